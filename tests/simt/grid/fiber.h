// Stacks that GPU threads run on, many to an OS thread.
#pragma once

#include <cstddef>

#include "tests/simt/grid/context_switch.h"

namespace tensord::simt {

/// A stack, and where on it execution stands.
///
/// Threads  belongs to the OS thread that made it, for ever.
class Fiber {
 public:
  /// Stands for the stack that the calling OS thread runs on.
  Fiber() = default;

  /// A new stack. The first switch to it calls `entry`, which never returns;
  /// `index` spreads the stacks over the sets of the caches.
  Fiber(void (*entry)(), size_t index);

  /// Drops what is on the stack without running any destructor.
  ~Fiber();

  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Of a fiber made by Fiber(): take the calling thread, as ThreadSanitizer
  /// sees it now, to be this fiber.
  void Adopt();

  /// Leaves this fiber, which must be the running one, for `next`; returns
  /// when some fiber switches back.
  void SwitchTo(Fiber& next);

  /// ThreadSanitizer takes the caller for this fiber until the next switch.
  void ActAs() const;

  /// The fiber that the calling OS thread runs.
  static Fiber& Running();

  /// For whoever switches fibers: what this one is to work on.
  void* occupant = nullptr;

 private:
  static void Start();
  static void Arrive();

  void (*entry_)() = nullptr;
  Context context_;
  void* mapping_ = nullptr;  // guard page and stack, if owned
  const void* bottom_ = nullptr;
  size_t bytes_ = 0;
  void* fake_stack_ = nullptr;  // AddressSanitizer's
  void* tsan_fiber_ = nullptr;
};

}  // namespace tensord::simt
