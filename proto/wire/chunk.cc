#include "proto/wire/chunk.h"

#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/slice.h>

#include <algorithm>
#include <utility>

#include "absl/strings/string_view.h"
#include "core/base/crc32c.h"
#include "tensord/v1/tensor.pb.h"

namespace tensord::wire {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedOutputStream;
using Upload = v1::UploadTensorRequest;
using Download = v1::DownloadTensorResponse;

static_assert(+Upload::kOffsetBytesFieldNumber ==
              +Download::kOffsetBytesFieldNumber);
static_assert(+Upload::kCrc32CFieldNumber == +Download::kCrc32CFieldNumber);
static_assert(+Upload::kDataFieldNumber == +Download::kDataFieldNumber);

constexpr uint32_t kTensor = WireFormatLite::MakeTag(
    Upload::kTensorFieldNumber, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
constexpr uint32_t kOffset = WireFormatLite::MakeTag(
    Upload::kOffsetBytesFieldNumber, WireFormatLite::WIRETYPE_VARINT);
constexpr uint32_t kCrc = WireFormatLite::MakeTag(
    Upload::kCrc32CFieldNumber, WireFormatLite::WIRETYPE_FIXED32);
constexpr uint32_t kData = WireFormatLite::MakeTag(
    Upload::kDataFieldNumber, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
constexpr uint64_t kMaxNameBytes = 512;
constexpr int64_t kCachedBytes = int64_t{8} << 20;  // by some cache, perhaps
constexpr int kMaxGroupDepth = 100;                 // protobuf's

absl::Status Malformed(absl::string_view what) {
  return absl::InvalidArgumentError(what);
}

grpc::ByteBuffer Make(const std::string& tensor, int64_t offset_bytes,
                      uint32_t crc32c, std::span<const std::byte> data,
                      std::shared_ptr<const void> owner) {
  Upload header;
  header.set_tensor(tensor);
  header.set_offset_bytes(offset_bytes);
  header.set_crc32c(crc32c);
  std::string bytes = header.SerializeAsString();
  // Tag and length of `data`, the last field; the data follows by reference.
  uint8_t prefix[10];
  uint8_t* end = CodedOutputStream::WriteTagToArray(kData, prefix);
  end = CodedOutputStream::WriteVarint32ToArray(
      static_cast<uint32_t>(data.size()), end);
  bytes.append(reinterpret_cast<const char*>(prefix), end - prefix);
  using Owner = std::shared_ptr<const void>;
  const grpc::Slice slices[] = {
      grpc::Slice(bytes),
      grpc::Slice(
          const_cast<std::byte*>(data.data()), data.size(),
          [](void* kept) { delete static_cast<Owner*>(kept); },
          new Owner(std::move(owner)))};
  return grpc::ByteBuffer(slices, 2);
}

}  // namespace

ChunkReader::ChunkReader(grpc::ByteBuffer& message)
    : bytes_(static_cast<int64_t>(message.Length())),
      slices_(&message),
      in_(&slices_) {}

bool ChunkReader::Tag(uint32_t* tag) {
  uint64_t value = 0;
  if (!in_.ReadVarint64(&value) || value > UINT32_MAX) return false;
  *tag = static_cast<uint32_t>(value);
  return WireFormatLite::GetTagFieldNumber(*tag) != 0;
}

bool ChunkReader::SkipBytes(uint64_t bytes) {
  return bytes <= static_cast<uint64_t>(left_bytes()) &&
         in_.Skip(static_cast<int>(bytes));
}

bool ChunkReader::Skip(uint32_t tag, int depth) {
  uint64_t value = 0;
  uint32_t inner = 0;
  switch (WireFormatLite::GetTagWireType(tag)) {
    case WireFormatLite::WIRETYPE_VARINT: return in_.ReadVarint64(&value);
    case WireFormatLite::WIRETYPE_FIXED64: return SkipBytes(8);
    case WireFormatLite::WIRETYPE_LENGTH_DELIMITED:
      return in_.ReadVarint64(&value) && SkipBytes(value);
    case WireFormatLite::WIRETYPE_FIXED32: return SkipBytes(4);
    case WireFormatLite::WIRETYPE_START_GROUP:
      while (depth > 0 && Tag(&inner)) {
        // The end's tag is that of the start plus one.
        if (inner == tag + 1) return true;
        if (!Skip(inner, depth - 1)) return false;
      }
      return false;
    default: return false;
  }
}

absl::StatusOr<ChunkHeader> ChunkReader::Header() {
  ChunkHeader header;
  if (absl::Status read = Fields(header); !read.ok()) return read;
  return header;
}

absl::Status ChunkReader::Fields(ChunkHeader& header) {
  while (left_bytes() > 0) {
    uint32_t tag = 0;
    if (!Tag(&tag)) return Malformed("a field's tag is cut off or invalid");
    if (tag != kTensor && tag != kOffset && tag != kCrc && tag != kData) {
      if (Skip(tag, kMaxGroupDepth)) continue;
      return Malformed("an unknown field is cut off or invalid");
    }
    if (tag <= last_tag_) return Malformed("fields out of order");
    last_tag_ = tag;
    if (tag == kCrc) {
      if (!in_.ReadLittleEndian32(&header.crc32c)) {
        return Malformed("crc32c is cut off");
      }
      continue;
    }
    uint64_t value = 0;
    if (!in_.ReadVarint64(&value)) return Malformed("a field is cut off");
    if (tag == kOffset) {
      if (value > INT64_MAX) return Malformed("offset_bytes is negative");
      header.offset_bytes = static_cast<int64_t>(value);
    } else if (tag == kTensor) {
      if (value > kMaxNameBytes) {
        return Malformed("the tensor's name is too long");
      }
      if (!in_.ReadString(&header.tensor, static_cast<int>(value))) {
        return Malformed("the tensor's name is cut off");
      }
    } else {
      if (value > static_cast<uint64_t>(left_bytes())) {
        return Malformed("data is cut off");
      }
      header.data_bytes = data_bytes_ = static_cast<int64_t>(value);
      if (value > 0) return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> ChunkReader::Payload(std::byte* to,
                                              int64_t total_bytes) {
  const core::CopyTo where =
      total_bytes > kCachedBytes ? core::CopyTo::kMemory : core::CopyTo::kCache;
  uint32_t crc = 0;
  for (int64_t left = data_bytes_; left > 0;) {
    const void* data = nullptr;
    int available = 0;
    if (!in_.GetDirectBufferPointer(&data, &available)) {
      return Malformed("data is cut off");
    }
    const int taken = static_cast<int>(std::min<int64_t>(left, available));
    crc = core::CopyWithCrc32c(
        {static_cast<const std::byte*>(data), static_cast<size_t>(taken)}, to,
        crc, where);
    in_.Skip(taken);
    left -= taken;
    to += taken;
  }
  ChunkHeader none;
  if (absl::Status read = Fields(none); !read.ok()) return read;
  return crc;
}

grpc::ByteBuffer MakeChunk(const std::string& tensor, int64_t offset_bytes,
                           std::span<const std::byte> data,
                           std::shared_ptr<const void> owner) {
  return Make(tensor, offset_bytes, core::Crc32c(data), data, std::move(owner));
}

grpc::ByteBuffer MakeChunkOfCopy(const std::string& tensor,
                                 int64_t offset_bytes,
                                 std::span<const std::byte> data,
                                 std::shared_ptr<std::byte[]> buffer) {
  std::byte* const copy = buffer.get();
  const uint32_t crc = core::CopyWithCrc32c(data, copy);
  return Make(tensor, offset_bytes, crc, {copy, data.size()},
              std::move(buffer));
}

}  // namespace tensord::wire
