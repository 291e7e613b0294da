#include "server/rpc/chunk_wire.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/base/status.h"

namespace tensord::rpc {
namespace {

// Field number << 3 | wire type: 0 varint, 2 length-delimited, 5 fixed32.
constexpr uint64_t kTensor = 1 << 3 | 2;
constexpr uint64_t kOffset = 2 << 3 | 0;
constexpr uint64_t kCrc = 3 << 3 | 5;
constexpr uint64_t kData = 15 << 3 | 2;
constexpr uint64_t kMaxNameBytes = 512;

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

absl::StatusOr<ChunkHeader> ChunkReader::Header() {
  ChunkHeader header;
  uint64_t last_tag = 0;
  while (left_ > 0) {
    uint64_t tag = 0;
    if (!Varint(&tag)) return Malformed("a field's tag is cut off");
    if (tag <= last_tag) return Malformed("fields out of order");
    last_tag = tag;
    uint64_t value = 0;
    if (tag == kCrc) {
      std::array<uint8_t, 4> bytes;
      for (uint8_t& byte : bytes) {
        if (!Byte(&byte)) return Malformed("crc32c is cut off");
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
      if (value > static_cast<uint64_t>(left_) || value > kMaxNameBytes) {
        return Malformed("the tensor's name is too long");
      }
      header.tensor.resize(value);
      for (char& c : header.tensor) {
        uint8_t byte = 0;
        if (!Byte(&byte)) return Malformed("the tensor's name is cut off");
        c = static_cast<char>(byte);
      }
    } else if (tag == kData) {
      if (value != static_cast<uint64_t>(left_)) {
        return Malformed("data does not end with the message");
      }
      header.data_bytes = left_;
      return header;
    } else {
      return Malformed("unknown field");
    }
  }
  return header;
}

void ChunkReader::Payload(std::byte* to) {
  while (left_ > 0 && Fill()) {
    const size_t bytes = std::min(slice_.size(), static_cast<size_t>(left_));
    std::memcpy(to, slice_.data(), bytes);
    to += bytes;
    left_ -= static_cast<int64_t>(bytes);
    slice_ = slice_.subspan(bytes);
  }
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
