// The messages of transfers, without a copy of their data that can be spared.
#pragma once

#include <google/protobuf/io/coded_stream.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tensord::wire {

/// What an UploadTensorRequest or a DownloadTensorResponse says of its data.
struct ChunkHeader {
  std::string tensor;  // of uploads
  int64_t offset_bytes = 0;
  uint32_t crc32c = 0;
  int64_t data_bytes = 0;
};

/// Takes a serialized UploadTensorRequest or DownloadTensorResponse apart:
/// Header(), then Payload() once.
///
/// Skips unknown fields as protobuf does. Stricter than protobuf otherwise: the
/// fields it knows come ascending, each at most once. Every serializer of the
/// generated code writes them so.
class ChunkReader {
 public:
  /// Lifetime  `message` must outlive it.
  explicit ChunkReader(grpc::ByteBuffer& message);

  /// Errors  INVALID_ARGUMENT.
  absl::StatusOr<ChunkHeader> Header();

  /// Copies the payload, Header()->data_bytes long, to `to`: the one copy
  /// between the socket and the tensor, of `total_bytes`. Then skips what
  /// follows it. Returns the payload's CRC-32C.
  ///
  /// Errors  as Header(); the payload has been copied then.
  absl::StatusOr<uint32_t> Payload(std::byte* to, int64_t total_bytes = 0);

 private:
  bool Tag(uint32_t* tag);
  bool SkipBytes(uint64_t bytes);
  /// Skips the rest of a field whose tag has been read; groups in groups are at
  /// most `depth` deep. Stricter than WireFormatLite::SkipField(), which takes
  /// tags and lengths modulo 2^32.
  bool Skip(uint32_t tag, int depth);
  /// Reads fields up to a payload, else to the end.
  absl::Status Fields(ChunkHeader& header);
  int64_t left_bytes() const { return bytes_ - in_.CurrentPosition(); }

  const int64_t bytes_;  // of the message
  grpc::ProtoBufferReader slices_;
  google::protobuf::io::CodedInputStream in_;
  uint32_t last_tag_ = 0;  // of the fields it knows
  int64_t data_bytes_ = 0;
};

/// An UploadTensorRequest, or without a name a DownloadTensorResponse, whose
/// payload is `data` itself, kept alive by `owner` until gRPC lets go of it,
/// which may be after the write has completed.
grpc::ByteBuffer MakeChunk(const std::string& tensor, int64_t offset_bytes,
                           std::span<const std::byte> data,
                           std::shared_ptr<const void> owner);

/// The same with a copy of `data` in `buffer`.
///
/// Requires  `buffer` holds data.size() bytes.
grpc::ByteBuffer MakeChunkOfCopy(const std::string& tensor,
                                 int64_t offset_bytes,
                                 std::span<const std::byte> data,
                                 std::shared_ptr<std::byte[]> buffer);

}  // namespace tensord::wire
