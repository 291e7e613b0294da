#include "tests/simt/kernel_parameters.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <sstream>

#include "tests/simt/sanitizers.h"

namespace tensord::simt {
namespace {

/// Where Linux on x86-64 puts programs, heaps and stacks. Numbers, pairs of
/// small ones too, are hardly ever there.
bool LooksLikeAnAddress(uintptr_t word) {
  constexpr uintptr_t kFirst = 0x5500'0000'0000, kLast = 0x7fff'ffff'ffff;
  constexpr uintptr_t kFirstTsan = 0x6000'0000'0000;  // what it keeps itself
  constexpr uintptr_t kLastTsan = 0x61ff'ffff'ffff;
  if (tsan::kIsOn && word >= kFirstTsan && word <= kLastTsan) return false;
  return word >= kFirst && word <= kLast;
}

/// The system call reads its second argument before it refuses the first.
bool IsReadable(uintptr_t address) {
  constexpr int kNoSuchAction = ~0;
  constexpr size_t kBytes = sizeof(uint64_t);
  const uintptr_t aligned = address & ~uintptr_t{kBytes - 1};
  const long result =
      syscall(SYS_rt_sigprocmask, kNoSuchAction, aligned, nullptr, kBytes);
  return result == 0 || errno != EFAULT;
}

}  // namespace

std::optional<std::string> FindHostAddress(
    std::span<const KernelParameter> parameters, const NodeMemory& memory) {
  for (size_t index = 0; index < parameters.size(); ++index) {
    const KernelParameter& parameter = parameters[index];
    if (parameter.alignment < alignof(void*)) continue;
    const auto* const data = static_cast<const char*>(parameter.data);
    for (size_t offset = 0; offset + sizeof(uintptr_t) <= parameter.bytes;
         offset += sizeof(uintptr_t)) {
      uintptr_t word;
      std::memcpy(&word, data + offset, sizeof(word));
      if (!LooksLikeAnAddress(word) ||
          memory.IsForDevices(reinterpret_cast<const void*>(word)) ||
          !IsReadable(word)) {
        continue;
      }
      std::ostringstream text;
      text << "parameter " << index << " of a kernel holds, at byte " << offset
           << ", the address of host memory that is not pinned: 0x" << std::hex
           << word;
      return text.str();
    }
  }
  return std::nullopt;
}

}  // namespace tensord::simt
