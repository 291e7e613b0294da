// What the heap holds that nothing counts.
#pragma once

#include <cstdint>

namespace tensord::server {

/// What clients have the server hold is counted, all but what gRPC keeps of
/// messages that are not whole, and of calls that the server has yet to hear
/// of: that is seen by what the heap holds alone. Tensors' contents and
/// workspace are not in it.
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

  struct Limits {
    /// Of what arrives.
    int64_t arriving_bytes = 0;
    /// What else may be there uncounted; besides, up to four times what is
    /// counted may be.
    int64_t spare_bytes = 0;
  };

  /// What has to be broken off.
  enum class Excess {
    kNone,
    kRequests,     // what waits for a request that is not whole
    kWaits,        // all that waits for its client
    kConnections,  // and all connections
  };

  explicit HeapWatch(const Limits& limits, const Source& source = System())
      : limits_(limits), source_(source) {}

  /// Looks, where the process holds more than at the last look, or too much
  /// was there or anything arrived then. While it `is_quiet`, no call is open:
  /// what is there besides the `counted` bytes has not arrived.
  ///
  /// `ended` says how many calls were broken off since the last look. Where
  /// much arrives, requests go first; all that waits, when there is none to
  /// break off, or twice as much arrives. For what stays when there is nothing
  /// to break off, nothing goes any more. The first look is a quiet one.
  Excess Look(int64_t counted, bool is_quiet, int64_t ended);
  /// Has it look next time in any case, as when free memory has gone back to
  /// the system.
  void LookNext() { is_due_ = true; }

  const Limits& limits() const { return limits_; }

  // As of the last look.
  int64_t heap_bytes() const { return heap_; }
  /// What has come, beside what is counted, since it was quiet.
  int64_t arriving_bytes() const { return arriving_; }

 private:
  Excess ExcessOf(int64_t counted, int64_t ended);

  const Limits limits_;
  const Source source_;
  bool is_due_ = true;
  int64_t looked_at_ = 0;  // what the process held then
  int64_t heap_ = 0;
  int64_t quiet_ = 0;  // of the heap, beside what is counted
  int64_t else_ = 0;   // of what arrives, or so it seems
  int64_t arriving_ = 0;
  Excess excess_ = Excess::kNone;
  int looks_ = 0;  // at which too much arrived, and nothing was ended before
};

}  // namespace tensord::server
