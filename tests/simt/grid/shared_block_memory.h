// The shared memory of a block that runs.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

namespace tensord::simt {

/// Exactly as many bytes as the launch asked for. Reading or writing beside
/// them is found by AddressSanitizer; writing alone also without it.
///
/// Threads  used by one OS thread.
class SharedBlockMemory {
 public:
  /// Makes `bytes` ready for the next block, filled with `fill` if there is
  /// one. For ThreadSanitizer they are new memory every time.
  void Prepare(size_t bytes, std::optional<unsigned char> fill);

  /// Aligned to 16 bytes but not to 32.
  unsigned char* data() const { return data_; }
  size_t bytes() const { return bytes_; }

  /// Whether a byte beside the memory was written since Prepare().
  bool IsOverrun() const;

 private:
  struct Free {
    void operator()(unsigned char* memory) const;
  };

  size_t bytes_ = 0;
  size_t total_bytes_ = 0;
  std::unique_ptr<unsigned char, Free> memory_;
  unsigned char* data_ = nullptr;
};

}  // namespace tensord::simt
