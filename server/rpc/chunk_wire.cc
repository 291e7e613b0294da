#include "server/rpc/chunk_wire.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/base/status.h"

namespace tensord::rpc {
namespace {

enum WireType : uint64_t {
  kVarint = 0,
  kFixed64 = 1,
  kLengthDelimited = 2,
  kStartGroup = 3,
  kEndGroup = 4,
  kFixed32 = 5,
};

// Field number << 3 | wire type.
constexpr uint64_t kTensor = 1 << 3 | kLengthDelimited;
constexpr uint64_t kOffset = 2 << 3 | kVarint;
constexpr uint64_t kCrc = 3 << 3 | kFixed32;
constexpr uint64_t kData = 15 << 3 | kLengthDelimited;
constexpr uint64_t kMaxNameBytes = 512;
constexpr int kMaxGroupDepth = 100;  // protobuf's

absl::Status Malformed(absl::string_view what) {
  return core::InvalidArgument("CHUNK_MALFORMED", "malformed chunk: ", what);
}

}  // namespace

ChunkReader::ChunkReader(grpc::ByteBuffer& wire)
    : left_(static_cast<int64_t>(wire.Length())), slices_(&wire) {}

bool ChunkReader::Fill() {
  while (slice_.empty()) {
    const void* data = nullptr;
    int size = 0;
    if (!slices_.Next(&data, &size)) return false;
    slice_ = {static_cast<const std::byte*>(data), static_cast<size_t>(size)};
  }
  return true;
}

bool ChunkReader::Byte(uint8_t* byte) {
  if (left_ == 0 || !Fill()) return false;
  *byte = static_cast<uint8_t>(slice_.front());
  slice_ = slice_.subspan(1);
  --left_;
  return true;
}

bool ChunkReader::Varint(uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    uint8_t byte = 0;
    if (!Byte(&byte)) return false;
    if (shift == 63 && byte > 1) return false;
    *value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

bool ChunkReader::Tag(uint64_t* tag) {
  return Varint(tag) && *tag <= UINT32_MAX && *tag >> 3 != 0;
}

bool ChunkReader::Take(uint64_t bytes, std::byte* to) {
  if (bytes > static_cast<uint64_t>(left_)) return false;
  while (bytes > 0) {
    if (!Fill()) return false;
    const size_t taken = std::min(slice_.size(), static_cast<size_t>(bytes));
    if (to != nullptr) {
      std::memcpy(to, slice_.data(), taken);
      to += taken;
    }
    slice_ = slice_.subspan(taken);
    left_ -= static_cast<int64_t>(taken);
    bytes -= taken;
  }
  return true;
}

bool ChunkReader::Skip(uint64_t tag, int depth) {
  uint64_t value = 0;
  switch (tag & 7) {
    case kVarint: return Varint(&value);
    case kFixed64: return Take(8, nullptr);
    case kLengthDelimited: return Varint(&value) && Take(value, nullptr);
    case kFixed32: return Take(4, nullptr);
    case kStartGroup:
      while (depth > 0 && Tag(&value)) {
        if (value == (tag ^ kStartGroup ^ kEndGroup)) return true;
        if (!Skip(value, depth - 1)) return false;
      }
      return false;
    default: return false;
  }
}

absl::StatusOr<ChunkHeader> ChunkReader::Header() {
  ChunkHeader header;
  TENSORD_RETURN_IF_ERROR(Fields(header));
  return header;
}

absl::Status ChunkReader::Fields(ChunkHeader& header) {
  while (left_ > 0) {
    uint64_t tag = 0;
    if (!Tag(&tag)) return Malformed("a field's tag is cut off or invalid");
    const bool known =
        tag == kTensor || tag == kOffset || tag == kCrc || tag == kData;
    if (!known) {
      if (!Skip(tag, kMaxGroupDepth)) {
        return Malformed("an unknown field is cut off or invalid");
      }
      continue;
    }
    if (tag <= last_tag_) return Malformed("fields out of order");
    last_tag_ = tag;
    uint64_t value = 0;
    if (tag == kCrc) {
      std::array<uint8_t, 4> bytes;
      if (!Take(bytes.size(), reinterpret_cast<std::byte*>(bytes.data()))) {
        return Malformed("crc32c is cut off");
      }
      header.crc32c = uint32_t{bytes[0]} | uint32_t{bytes[1]} << 8 |
                      uint32_t{bytes[2]} << 16 | uint32_t{bytes[3]} << 24;
      continue;
    }
    if (!Varint(&value)) return Malformed("a field is cut off");
    if (tag == kOffset) {
      if (value > INT64_MAX) return Malformed("offset_bytes is negative");
      header.offset_bytes = static_cast<int64_t>(value);
    } else if (tag == kTensor) {
      if (value > kMaxNameBytes) {
        return Malformed("the tensor's name is too long");
      }
      header.tensor.resize(value);
      if (!Take(value, reinterpret_cast<std::byte*>(header.tensor.data()))) {
        return Malformed("the tensor's name is cut off");
      }
    } else {
      if (value > static_cast<uint64_t>(left_)) {
        return Malformed("data is cut off");
      }
      header.data_bytes = data_bytes_ = static_cast<int64_t>(value);
      if (value > 0) return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

absl::Status ChunkReader::Payload(std::byte* to) {
  if (!Take(static_cast<uint64_t>(data_bytes_), to)) {
    return Malformed("data is cut off");
  }
  ChunkHeader none;
  return Fields(none);
}

grpc::ByteBuffer MakeChunk(int64_t offset_bytes, uint32_t crc32c,
                           std::span<const std::byte> data,
                           std::shared_ptr<const void> owner) {
  std::array<uint8_t, 32> header;
  size_t size = 0;
  const auto put_varint = [&](uint64_t value) {
    for (; value >= 0x80; value >>= 7) {
      header[size++] = static_cast<uint8_t>(value | 0x80);
    }
    header[size++] = static_cast<uint8_t>(value);
  };
  if (offset_bytes != 0) {
    put_varint(kOffset);
    put_varint(static_cast<uint64_t>(offset_bytes));
  }
  if (crc32c != 0) {
    put_varint(kCrc);
    for (int shift = 0; shift < 32; shift += 8) {
      header[size++] = static_cast<uint8_t>(crc32c >> shift);
    }
  }
  put_varint(kData);
  put_varint(data.size());
  using Owner = std::shared_ptr<const void>;
  const grpc::Slice slices[] = {
      grpc::Slice(header.data(), size),
      grpc::Slice(
          const_cast<std::byte*>(data.data()), data.size(),
          [](void* kept) { delete static_cast<Owner*>(kept); },
          new Owner(std::move(owner)))};
  return grpc::ByteBuffer(slices, 2);
}

uint32_t Crc32c(std::span<const std::byte> data) {
  // isa-l takes int lengths and the state before its final inversion.
  uint32_t state = ~uint32_t{0};
  while (!data.empty()) {
    const size_t bytes = std::min(data.size(), size_t{1} << 30);
    state = crc32_iscsi(
        reinterpret_cast<unsigned char*>(const_cast<std::byte*>(data.data())),
        static_cast<int>(bytes), state);
    data = data.subspan(bytes);
  }
  return ~state;
}

}  // namespace tensord::rpc
