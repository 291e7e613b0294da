#include "server/telemetry/heap_watch.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace tensord::server {
namespace {

/// Pages of its own, which no file and no other process has.
int64_t HeldBytes() {
  long resident = 0;
  long shared = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  const int read = std::fscanf(file, "%*d %ld %ld", &resident, &shared);
  std::fclose(file);
  return read == 2 ? (resident - shared) * sysconf(_SC_PAGESIZE) : 0;
}

int64_t HeapBytes() { return static_cast<int64_t>(mallinfo2().uordblks); }

}  // namespace

HeapWatch::Source HeapWatch::System() {
  return {.held_bytes = &HeldBytes, .heap_bytes = &HeapBytes};
}

std::optional<int64_t> HeapWatch::Overflow(int64_t counted) {
  constexpr int64_t kTimes = 4;
  constexpr int64_t kStep = int64_t{64} << 20;
  const int64_t held = source_.held_bytes();
  look_at_ = std::max(spare_bytes_, std::min(look_at_, held + kStep));
  if (held <= look_at_) return std::nullopt;
  const int64_t heap = source_.heap_bytes();
  if (heap > kTimes * counted + spare_bytes_) return heap;
  look_at_ = held + kStep;
  return std::nullopt;
}

}  // namespace tensord::server
