#include "tests/simt/grid/context_switch.h"

#include <cstdint>
#include <cstdlib>

#ifdef TENSORD_SIMT_USES_UCONTEXT

namespace tensord::simt {

void Context::Prepare(void* bottom, void* top, void (*entry)()) {
  if (getcontext(&state_) != 0) std::abort();
  state_.uc_stack.ss_sp = bottom;
  state_.uc_stack.ss_size =
      static_cast<size_t>(static_cast<char*>(top) - static_cast<char*>(bottom));
  state_.uc_link = nullptr;
  makecontext(&state_, entry, 0);
}

void Context::SwitchTo(Context& next) {
  if (swapcontext(&state_, &next.state_) != 0) std::abort();
}

}  // namespace tensord::simt

#else

// Keeps what the System V ABI asks a function to keep, less the floating-point
// control words, which kernels do not change. glibc's swapcontext does the same
// and a system call on top, which costs ten times as much.
extern "C" void tensord_simt_switch_stack(void** left, void* next);
asm(R"(
.text
.globl tensord_simt_switch_stack
.type tensord_simt_switch_stack, @function
tensord_simt_switch_stack:
  pushq %rbx
  pushq %rbp
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbp
  popq %rbx
  ret
.size tensord_simt_switch_stack, .-tensord_simt_switch_stack
)");

namespace tensord::simt {

void Context::Prepare(void* /*bottom*/, void* top, void (*entry)()) {
  constexpr int kSavedRegisters = 6;
  auto* slot = static_cast<uint64_t*>(top);
  *--slot = 0;  // where entry() would return to: ends stack traces
  *--slot = reinterpret_cast<uint64_t>(entry);
  for (int i = 0; i < kSavedRegisters; ++i) *--slot = 0;
  stack_pointer_ = slot;
}

void Context::SwitchTo(Context& next) {
  tensord_simt_switch_stack(&stack_pointer_, next.stack_pointer_);
}

}  // namespace tensord::simt

#endif
