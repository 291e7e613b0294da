// Host memory at whose end the process faults.
#pragma once

#include <cstddef>

namespace tensord::test {

/// A block that is followed by a page that can neither be read nor written, so
/// that the first byte touched beyond it ends the test.
class EdgeMemory {
 public:
  /// Requires  bytes > 0.
  explicit EdgeMemory(size_t bytes);
  ~EdgeMemory();
  EdgeMemory(const EdgeMemory&) = delete;
  EdgeMemory& operator=(const EdgeMemory&) = delete;

  /// The first byte: aligned as far as `bytes` is a multiple of the alignment.
  std::byte* data() const { return data_; }

 private:
  size_t mapped_bytes_;
  std::byte* mapped_;
  std::byte* data_;
};

}  // namespace tensord::test
