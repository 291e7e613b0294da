#include "core/memory/host_resource.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "core/base/checked_math.h"
#include "core/base/status.h"

namespace tensord::core {
namespace {

constexpr int64_t kPageBytes = 4096;
constexpr int64_t kLeastReturnedBytes = int64_t{1} << 20;
constexpr int64_t kHugePageBytes = int64_t{2} << 20;

}  // namespace

int64_t HostMemoryBytes() {
  return int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
}

absl::StatusOr<void*> HostResource::Allocate(int64_t bytes) {
  const bool huge = bytes >= kHugePageBytes;
  const int64_t slack = huge ? kHugePageBytes : 0;
  const auto padded = CheckedAdd(bytes, slack + kPageBytes);
  void* mapped = MAP_FAILED;
  if (padded) {
    mapped = mmap(nullptr, RoundUp(bytes, kPageBytes) + slack,
                  PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  if (mapped == MAP_FAILED) {
    return ResourceExhausted(
        "HOST_MEMORY_EXHAUSTED", "asked for ", bytes,
        " bytes of host memory: ", padded ? std::strerror(errno) : "too large");
  }
  if (!huge) return mapped;
  // Unmap what lies before and after the aligned part.
  const auto start = reinterpret_cast<int64_t>(mapped);
  const int64_t aligned = RoundUp(start, kHugePageBytes);
  const int64_t end = aligned + RoundUp(bytes, kPageBytes);
  const int64_t mapped_end = start + RoundUp(bytes, kPageBytes) + slack;
  if (aligned > start) munmap(mapped, aligned - start);
  if (mapped_end > end) munmap(reinterpret_cast<void*>(end), mapped_end - end);
  void* const pointer = reinterpret_cast<void*>(aligned);
  madvise(pointer, bytes,
          MADV_HUGEPAGE);  // Advice: a refusal costs only speed.
  return pointer;
}

void HostResource::Deallocate(void* pointer, int64_t bytes) {
  munmap(pointer, RoundUp(bytes, kPageBytes));
}

absl::Status HostResource::Clear(void* pointer, int64_t bytes) {
  auto* const begin = static_cast<std::byte*>(pointer);
  const auto address = reinterpret_cast<int64_t>(pointer);
  const int64_t first = RoundUp(address, kPageBytes) - address;
  const int64_t last = (address + bytes) / kPageBytes * kPageBytes - address;
  // Whole pages that are given back come again as zeros, each when it is
  // needed: that takes no time for those that nobody has touched.
  if (last - first < kLeastReturnedBytes ||
      madvise(begin + first, static_cast<size_t>(last - first),
              MADV_DONTNEED) != 0) {
    std::memset(begin, 0, static_cast<size_t>(bytes));
    return absl::OkStatus();
  }
  std::memset(begin, 0, static_cast<size_t>(first));
  std::memset(begin + last, 0, static_cast<size_t>(bytes - last));
  return absl::OkStatus();
}

}  // namespace tensord::core
