#include "tests/simt/grid/shared_block_memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tests/simt/sanitizers.h"

namespace tensord::simt {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kFrontBytes = kAlignment + 16;
constexpr size_t kBackBytes = 64;
constexpr unsigned char kGuard = 0xA5;

}  // namespace

void SharedBlockMemory::Free::operator()(unsigned char* memory) const {
  const tsan::Ignore ignore;
  std::free(memory);
}

void SharedBlockMemory::Prepare(size_t bytes,
                                std::optional<unsigned char> fill) {
  if (memory_ == nullptr || bytes != bytes_ || tsan::kIsOn) {
    memory_.reset();
    total_bytes_ = kFrontBytes + bytes + kBackBytes;
    void* memory = nullptr;
    if (posix_memalign(&memory, kAlignment, total_bytes_) != 0) std::abort();
    memory_.reset(static_cast<unsigned char*>(memory));
    bytes_ = bytes;
    data_ = memory_.get() + kFrontBytes;
    asan::Poison(memory_.get(), kFrontBytes);
    asan::Poison(data_ + bytes, kBackBytes);
  }
  if (!asan::kIsOn) {
    std::memset(memory_.get(), kGuard, kFrontBytes);
    std::memset(data_ + bytes, kGuard, kBackBytes);
  }
  if (fill.has_value()) std::memset(data_, *fill, bytes);
}

bool SharedBlockMemory::IsOverrun() const {
  if (asan::kIsOn) return false;
  const auto is_guard = [](unsigned char byte) { return byte == kGuard; };
  return !std::all_of(memory_.get(), data_, is_guard) ||
         !std::all_of(data_ + bytes_, memory_.get() + total_bytes_, is_guard);
}

}  // namespace tensord::simt
