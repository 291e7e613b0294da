#include "tests/simt/grid/fiber.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/simt/sanitizers.h"

namespace tensord::simt {
namespace {

constexpr size_t kGuardBytes = 4096;
constexpr size_t kStackBytes = 256 * 1024;  // only pages that are used count

thread_local Fiber* running = nullptr;
thread_local Fiber* left = nullptr;

/// Not by mmap(), for which ThreadSanitizer marks every byte as written.
void* MapFreshMemory(size_t bytes) {
  const long mapping =
      syscall(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == -1) std::abort();
  return reinterpret_cast<void*>(mapping);
}

}  // namespace

Fiber::Fiber(void (*entry)(), size_t index) : entry_(entry) {
  mapping_ = MapFreshMemory(kGuardBytes + kStackBytes);
  if (mprotect(mapping_, kGuardBytes, PROT_NONE) != 0) std::abort();
  char* const bottom = static_cast<char*>(mapping_) + kGuardBytes;
  bottom_ = bottom;
  bytes_ = kStackBytes;
  // Frames of the same kernel at the same offset of every stack would compete
  // for the same sets of the first cache.
  const size_t offset = index % 64 * 320;
  context_.Prepare(bottom, bottom + kStackBytes - offset, &Fiber::Start);
  tsan_fiber_ = tsan::CreateFiber();
}

Fiber::~Fiber() {
  if (mapping_ == nullptr) return;
  tsan::DestroyFiber(tsan_fiber_);
  asan::Unpoison(bottom_, bytes_);
  munmap(mapping_, kGuardBytes + kStackBytes);
}

void Fiber::Adopt() {
  running = this;
  tsan_fiber_ = tsan::CurrentFiber();
}

void Fiber::SwitchTo(Fiber& next) {
  if (&next == this) return;
  left = this;
  running = &next;
  asan::BeforeSwitch(&fake_stack_, next.bottom_, next.bytes_);
  tsan::SwitchTo(next.tsan_fiber_);
  context_.SwitchTo(next.context_);
  Arrive();
}

void Fiber::ActAs() const { tsan::SwitchTo(tsan_fiber_); }

Fiber& Fiber::Running() { return *running; }

void Fiber::Start() {
  Arrive();
  running->entry_();
}

void Fiber::Arrive() {
  const void* left_bottom = nullptr;
  size_t left_bytes = 0;
  asan::AfterSwitch(running->fake_stack_, &left_bottom, &left_bytes);
  if (left->mapping_ == nullptr) {
    left->bottom_ = left_bottom;
    left->bytes_ = left_bytes;
  }
}

}  // namespace tensord::simt
