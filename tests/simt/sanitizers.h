// What AddressSanitizer and ThreadSanitizer are told; nothing in other builds.
//
// ThreadSanitizer sees each GPU thread and each stream as a thread of its own,
// and only what these functions order as ordered. To that end, and to be quick,
// the files of this folder are compiled without instrumentation, and know the
// kind of build from TENSORD_SIMT_ASAN and TENSORD_SIMT_TSAN.
#pragma once

#include <cstddef>

#ifdef TENSORD_SIMT_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#ifdef TENSORD_SIMT_TSAN
extern "C" {
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void* fiber);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
void __tsan_acquire(void* address);
void __tsan_release(void* address);
void __tsan_ignore_thread_begin();
void __tsan_ignore_thread_end();
}
#endif

namespace tensord::simt {

namespace asan {

#ifdef TENSORD_SIMT_ASAN
inline constexpr bool kIsOn = true;
inline void Poison(const void* memory, size_t bytes) {
  __asan_poison_memory_region(memory, bytes);
}
inline void Unpoison(const void* memory, size_t bytes) {
  __asan_unpoison_memory_region(memory, bytes);
}
inline void BeforeSwitch(void** fake_stack, const void* next_bottom,
                         size_t next_bytes) {
  __sanitizer_start_switch_fiber(fake_stack, next_bottom, next_bytes);
}
inline void AfterSwitch(void* fake_stack, const void** left_bottom,
                        size_t* left_bytes) {
  __sanitizer_finish_switch_fiber(fake_stack, left_bottom, left_bytes);
}
#else
inline constexpr bool kIsOn = false;
inline void Poison(const void*, size_t) {}
inline void Unpoison(const void*, size_t) {}
inline void BeforeSwitch(void**, const void*, size_t) {}
inline void AfterSwitch(void*, const void**, size_t*) {}
#endif

}  // namespace asan

namespace tsan {

#ifdef TENSORD_SIMT_TSAN
inline constexpr bool kIsOn = true;
inline void* CurrentFiber() { return __tsan_get_current_fiber(); }
inline void* CreateFiber() { return __tsan_create_fiber(0); }
inline void DestroyFiber(void* fiber) { __tsan_destroy_fiber(fiber); }
/// The caller goes on as `fiber`; that orders nothing.
inline void SwitchTo(void* fiber) { __tsan_switch_to_fiber(fiber, 1); }
/// What comes before a release of an address happens before what follows a
/// later acquire of it. An address stands for what is ordered; allocate it
/// anew for every new thing.
inline void Acquire(const void* address) {
  __tsan_acquire(const_cast<void*>(address));
}
inline void Release(const void* address) {
  __tsan_release(const_cast<void*>(address));
}
inline void BeginIgnore() { __tsan_ignore_thread_begin(); }
inline void EndIgnore() { __tsan_ignore_thread_end(); }
#else
inline constexpr bool kIsOn = false;
inline void* CurrentFiber() { return nullptr; }
inline void* CreateFiber() { return nullptr; }
inline void DestroyFiber(void*) {}
inline void SwitchTo(void*) {}
inline void Acquire(const void*) {}
inline void Release(const void*) {}
inline void BeginIgnore() {}
inline void EndIgnore() {}
#endif

/// What the calling OS thread did before its first ReleaseOsThread() happens
/// before what follows an AcquireOsThread() of a fiber that it runs.
inline thread_local bool is_os_thread_released = false;
inline void ReleaseOsThread() {
  if (!kIsOn || is_os_thread_released) return;
  is_os_thread_released = true;
  Release(&is_os_thread_released);
}
inline void AcquireOsThread() {
  if (kIsOn) Acquire(&is_os_thread_released);
}

/// While it lives, no access of the calling thread is looked at: for the
/// bookkeeping of this folder, which may share code with instrumented files.
/// May not live across a switch.
class Ignore {
 public:
  Ignore() { BeginIgnore(); }
  ~Ignore() { EndIgnore(); }
  Ignore(const Ignore&) = delete;
  Ignore& operator=(const Ignore&) = delete;
};

}  // namespace tsan

}  // namespace tensord::simt
