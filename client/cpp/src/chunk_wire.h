// Messages of transfers on the wire, with one copy of their data each:
// UploadTensorRequest out, DownloadTensorResponse in.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace tensord::internal {

/// Buffers of chunks on their way out, used again and again. gRPC may hold a
/// chunk long after its call has ended, as when the peer does not read; so it
/// is given these and never the caller's memory.
///
/// Threads  safe for concurrent use.
/// Owner    whoever sends, and every chunk that gRPC holds.
class ChunkBuffers : public std::enable_shared_from_this<ChunkBuffers> {
 public:
  using Buffer = std::unique_ptr<std::byte[]>;

  explicit ChunkBuffers(int64_t chunk_bytes) : chunk_bytes_(chunk_bytes) {}

  Buffer Take();
  void Return(Buffer buffer);

 private:
  const int64_t chunk_bytes_;
  absl::Mutex mutex_;
  std::vector<Buffer> free_ ABSL_GUARDED_BY(mutex_);
};

/// An UploadTensorRequest with a copy of `data` in one of `buffers` and its
/// checksum. `tensor` is the name, for the first message.
///
/// Requires  data.size() <= chunk_bytes of the buffers.
grpc::ByteBuffer EncodeChunk(const std::string& tensor, int64_t offset_bytes,
                             std::span<const std::byte> data,
                             ChunkBuffers& buffers);

/// Takes a DownloadTensorResponse apart and copies its data to the front of
/// `to`. Returns how many bytes came.
///
/// Errors  DATA_LOSS: not a message, not at `offset_bytes`, more data than `to`
///         holds, or a checksum that differs.
absl::StatusOr<int64_t> DecodeChunk(grpc::ByteBuffer& message,
                                    int64_t offset_bytes,
                                    std::span<std::byte> to);

}  // namespace tensord::internal
