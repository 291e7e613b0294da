// Transfer chunks on the wire, without a copy of their payload.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace tensord::rpc {

/// The fields of an UploadTensorRequest before its data.
struct ChunkHeader {
  std::string tensor;
  int64_t offset_bytes = 0;
  uint32_t crc32c = 0;
  int64_t data_bytes = 0;
};

/// Takes a serialized UploadTensorRequest apart: Header(), then Payload() once.
///
/// Skips unknown fields as protobuf does. Stricter than protobuf otherwise: the
/// fields it knows come ascending, each at most once. Every serializer of the
/// generated code writes them so.
class ChunkReader {
 public:
  /// Lifetime  `wire` must outlive it.
  explicit ChunkReader(grpc::ByteBuffer& wire);

  /// Errors  INVALID_ARGUMENT, reason CHUNK_MALFORMED.
  absl::StatusOr<ChunkHeader> Header();

  /// Copies the payload, Header()->data_bytes long, to `to`: the one copy
  /// between the socket and the tensor. Then skips what follows it.
  /// Errors  as Header(); the payload has been copied then.
  absl::Status Payload(std::byte* to);

 private:
  bool Fill();
  bool Byte(uint8_t* byte);
  bool Varint(uint64_t* value);
  bool Tag(uint64_t* tag);
  /// Takes the next `bytes` of the message, and copies them to `to` unless
  /// null.
  bool Take(uint64_t bytes, std::byte* to);
  /// Takes the rest of a field whose tag has been read; groups in groups are at
  /// most `depth` deep.
  bool Skip(uint64_t tag, int depth);
  /// Reads fields up to a payload, else to the end.
  absl::Status Fields(ChunkHeader& header);

  int64_t left_;           // bytes of the message not taken yet
  uint64_t last_tag_ = 0;  // of the fields it knows
  int64_t data_bytes_ = 0;
  grpc::ProtoBufferReader slices_;
  std::span<const std::byte> slice_;  // rest of the current one
};

/// A serialized DownloadTensorResponse whose payload is `data` itself, kept
/// alive by `owner` until gRPC lets go of it, which may be after the write has
/// completed.
grpc::ByteBuffer MakeChunk(int64_t offset_bytes, uint32_t crc32c,
                           std::span<const std::byte> data,
                           std::shared_ptr<const void> owner);

/// CRC-32C (Castagnoli) of `data`.
uint32_t Crc32c(std::span<const std::byte> data);

}  // namespace tensord::rpc
