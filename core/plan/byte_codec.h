// Numbers and texts as bytes that mean the same on every machine.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "absl/strings/string_view.h"

namespace tensord::core {

/// Most bytes of a Varint().
inline constexpr size_t kMaxVarintBytes = 10;

/// Appends to memory that it is lent.
///
/// Requires  the memory suffices for all that is written.
class ByteWriter {
 public:
  explicit ByteWriter(char* to) : next_(to) {}

  /// Behind the last byte written.
  char* end() const { return next_; }

  void Byte(uint8_t value) { *next_++ = static_cast<char>(value); }
  template <typename Enum>
  requires std::is_enum_v<Enum>
  void Byte(Enum value) { Byte(static_cast<uint8_t>(value)); }

  /// Seven bits a byte, the lowest first: small numbers take one byte.
  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) Byte(static_cast<uint8_t>(value | 0x80));
    Byte(static_cast<uint8_t>(value));
  }

  /// `bytes` bytes, the lowest first.
  void Fixed(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) Byte(static_cast<uint8_t>(value >> 8 * i));
  }

  void Double(double value) { Fixed(std::bit_cast<uint64_t>(value), 8); }

  void Raw(absl::string_view bytes) {
    if (!bytes.empty()) std::memcpy(next_, bytes.data(), bytes.size());
    next_ += bytes.size();
  }

  /// A text behind its length.
  void Text(absl::string_view text) {
    Varint(text.size());
    Raw(text);
  }

 private:
  char* next_;
};

/// Reads what a ByteWriter wrote, or anything else: whatever is missing or too
/// large reads as 0, and ok() is false from then on.
///
/// Lifetime  `bytes` must outlive it and the texts it gives.
class ByteReader {
 public:
  explicit ByteReader(absl::string_view bytes) : left_(bytes) {}

  /// Nothing was malformed so far.
  bool ok() const { return ok_; }
  /// Nothing was malformed, and nothing is left.
  bool AtEnd() const { return ok_ && left_.empty(); }
  size_t left_bytes() const { return left_.size(); }

  uint8_t Byte() {
    const absl::string_view byte = Raw(1);
    return byte.empty() ? 0 : static_cast<uint8_t>(byte[0]);
  }

  /// The enumerator of that number. Malformed from `count` on.
  template <typename Enum>
  Enum Enumerator(int count) {
    const uint8_t value = Byte();
    if (value >= count) Fail();
    return ok_ ? static_cast<Enum>(value) : Enum{};
  }

  /// Malformed above `most`, and when fewer bytes would have done: equal
  /// numbers are equal bytes.
  uint64_t Varint(uint64_t most = UINT64_MAX) {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint8_t byte = Byte();
      if (!ok_ || (shift == 63 && byte > 1) || (shift > 0 && byte == 0)) break;
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) {
        if (value <= most) return value;
        break;
      }
    }
    Fail();
    return 0;
  }

  uint64_t Fixed(int bytes) {
    const absl::string_view raw = Raw(static_cast<size_t>(bytes));
    uint64_t value = 0;
    for (size_t i = 0; i < raw.size(); ++i) {
      value |= uint64_t{static_cast<uint8_t>(raw[i])} << 8 * i;
    }
    return value;
  }

  double Double() { return std::bit_cast<double>(Fixed(8)); }

  absl::string_view Raw(size_t bytes) {
    if (!ok_ || bytes > left_.size()) {
      Fail();
      return {};
    }
    const absl::string_view raw = left_.substr(0, bytes);
    left_.remove_prefix(bytes);
    return raw;
  }

  /// Malformed when longer than `most` bytes.
  absl::string_view Text(size_t most) { return Raw(Varint(most)); }

  void Fail() { ok_ = false; }

 private:
  absl::string_view left_;
  bool ok_ = true;
};

}  // namespace tensord::core
