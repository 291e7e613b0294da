// Whether the heap holds much that nothing counts.
#pragma once

#include <cstdint>
#include <optional>

namespace tensord::server {

/// What clients have the server hold is counted, all but what gRPC keeps of
/// calls that the server has yet to hear of: that is seen by what the heap
/// holds alone. Tensors' contents and workspace are not in it.
///
/// Threads  one.
class HeapWatch {
 public:
  /// What the process holds, contents and what is free again included: cheap to
  /// ask for. What the heap holds of it: that takes the longer the more pieces
  /// are free.
  struct Source {
    int64_t (*held_bytes)();
    int64_t (*heap_bytes)();
  };
  /// The system's and the C library's. Under a sanitizer the heap holds
  /// nothing.
  static Source System();

  /// `spare_bytes` is what may be there uncounted; besides, up to four times
  /// what is counted may be.
  explicit HeapWatch(int64_t spare_bytes, const Source& source = System())
      : spare_bytes_(spare_bytes), source_(source), look_at_(spare_bytes) {}

  /// What the heap holds, if that is too much for the `counted` bytes.
  std::optional<int64_t> Overflow(int64_t counted);

 private:
  const int64_t spare_bytes_;
  const Source source_;
  int64_t look_at_;  // when the process holds more
};

}  // namespace tensord::server
