// Leaving one stack for another.
#pragma once

#include <cstddef>

#if !defined(__x86_64__) || defined(TENSORD_SIMT_UCONTEXT)
#define TENSORD_SIMT_USES_UCONTEXT
#include <ucontext.h>
#endif

namespace tensord::simt {

/// Where a stack that is not running was left.
class Context {
 public:
  /// Prepares the stack [bottom, top) so that the first switch to it calls
  /// `entry`, which must never return. Requires `top` aligned to 16 bytes.
  void Prepare(void* bottom, void* top, void (*entry)());

  /// Leaves the running stack, to be gone on with from here, for `next`.
  void SwitchTo(Context& next);

 private:
#ifdef TENSORD_SIMT_USES_UCONTEXT
  ucontext_t state_;
#else
  void* stack_pointer_ = nullptr;
#endif
};

}  // namespace tensord::simt
