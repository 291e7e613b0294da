#include "client/cpp/src/chunk_wire.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/slice.h>

#include <algorithm>
#include <utility>

#include "client/cpp/src/crc32c.h"
#include "client/cpp/src/errors.h"
#include "tensord/v1/tensor.pb.h"

namespace tensord::internal {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;
using Out = v1::UploadTensorRequest;
using In = v1::DownloadTensorResponse;

absl::Status Corrupt(std::string_view what, int64_t offset_bytes) {
  return Error(absl::StatusCode::kDataLoss, "CHUNK_CORRUPT",
               absl::StrCat("the chunk received at byte ", offset_bytes, " ",
                            absl::string_view(what.data(), what.size())));
}

/// What a slice owns.
struct HeldBuffer {
  std::shared_ptr<ChunkBuffers> buffers;
  ChunkBuffers::Buffer buffer;
};

void GiveBack(void* held) {
  const std::unique_ptr<HeldBuffer> owned(static_cast<HeldBuffer*>(held));
  owned->buffers->Return(std::move(owned->buffer));
}

/// Copies `size` bytes from `in` to `to` and computes their checksum. False
/// when there are fewer.
bool ReadData(CodedInputStream& in, uint32_t size, std::byte* to,
              uint32_t& crc32c) {
  crc32c = 0;
  while (size > 0) {
    const void* data = nullptr;
    int available = 0;
    if (!in.GetDirectBufferPointer(&data, &available)) return false;
    const uint32_t taken = std::min(size, static_cast<uint32_t>(available));
    crc32c = CopyAndExtendCrc32c(
        crc32c, {static_cast<const std::byte*>(data), taken}, to);
    in.Skip(static_cast<int>(taken));
    size -= taken;
    to += taken;
  }
  return true;
}

}  // namespace

ChunkBuffers::Buffer ChunkBuffers::Take() {
  absl::MutexLock lock(&mutex_);
  if (free_.empty()) {
    return std::make_unique_for_overwrite<std::byte[]>(chunk_bytes_);
  }
  Buffer buffer = std::move(free_.back());
  free_.pop_back();
  return buffer;
}

void ChunkBuffers::Return(Buffer buffer) {
  absl::MutexLock lock(&mutex_);
  free_.push_back(std::move(buffer));
}

grpc::ByteBuffer EncodeChunk(const std::string& tensor, int64_t offset_bytes,
                             std::span<const std::byte> data,
                             ChunkBuffers& buffers) {
  auto held = std::make_unique<HeldBuffer>(
      HeldBuffer{buffers.shared_from_this(), buffers.Take()});
  std::byte* const copy = held->buffer.get();
  Out header;
  header.set_tensor(tensor);
  header.set_offset_bytes(offset_bytes);
  header.set_crc32c(CopyAndExtendCrc32c(0, data, copy));
  std::string bytes = header.SerializeAsString();
  // Tag and length of `data`, the last field; the data follows by reference.
  uint8_t prefix[10];
  uint8_t* end = WireFormatLite::WriteTagToArray(
      Out::kDataFieldNumber, WireFormatLite::WIRETYPE_LENGTH_DELIMITED, prefix);
  end = CodedOutputStream::WriteVarint32ToArray(
      static_cast<uint32_t>(data.size()), end);
  bytes.append(reinterpret_cast<const char*>(prefix), end - prefix);
  const grpc::Slice slices[] = {
      grpc::Slice(bytes),
      grpc::Slice(copy, data.size(), GiveBack, held.release())};
  return grpc::ByteBuffer(slices, 2);
}

absl::StatusOr<int64_t> DecodeChunk(grpc::ByteBuffer& message,
                                    int64_t offset_bytes,
                                    std::span<std::byte> to) {
  grpc::ProtoBufferReader slices(&message);
  CodedInputStream in(&slices);
  uint64_t offset = 0;
  uint32_t crc32c = 0;
  uint32_t received_crc32c = 0;
  uint32_t size = 0;
  bool has_data = false;
  while (const uint32_t tag = in.ReadTag()) {
    bool whole = true;
    switch (tag) {
      case WireFormatLite::MakeTag(In::kOffsetBytesFieldNumber,
                                   WireFormatLite::WIRETYPE_VARINT):
        whole = in.ReadVarint64(&offset);
        break;
      case WireFormatLite::MakeTag(In::kCrc32CFieldNumber,
                                   WireFormatLite::WIRETYPE_FIXED32):
        whole = in.ReadLittleEndian32(&crc32c);
        break;
      case WireFormatLite::MakeTag(In::kDataFieldNumber,
                                   WireFormatLite::WIRETYPE_LENGTH_DELIMITED):
        whole = !has_data && in.ReadVarint32(&size);
        if (!whole) break;
        has_data = true;
        if (size > to.size()) {
          return Corrupt(absl::StrCat("has ", size, " bytes, but only ",
                                      to.size(), " were left to come"),
                         offset_bytes);
        }
        whole = ReadData(in, size, to.data(), received_crc32c);
        break;
      default: whole = WireFormatLite::SkipField(&in, tag);
    }
    if (!whole) return Corrupt("is cut short", offset_bytes);
  }
  if (!in.ConsumedEntireMessage()) {
    return Corrupt("is not a message", offset_bytes);
  }
  if (offset != static_cast<uint64_t>(offset_bytes)) {
    return Corrupt(absl::StrCat("says it starts at byte ", offset),
                   offset_bytes);
  }
  if (received_crc32c != crc32c) {
    return Corrupt("has another checksum than it was sent with", offset_bytes);
  }
  return size;
}

}  // namespace tensord::internal
