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

HeapWatch::Excess HeapWatch::Look(int64_t counted, bool is_quiet,
                                  int64_t ended) {
  constexpr int64_t kStep = int64_t{4} << 20;
  constexpr int64_t kLeast = int64_t{1} << 20;  // less comes and goes
  const int64_t held = source_.held_bytes();
  looked_at_ = std::min(looked_at_, held);
  if (!is_due_ && arriving_ == 0 && excess_ == Excess::kNone &&
      held < looked_at_ + kStep) {
    return excess_;
  }
  is_due_ = false;
  looked_at_ = held;
  heap_ = source_.heap_bytes();
  const int64_t uncounted = heap_ - counted;
  if (is_quiet) quiet_ = uncounted;
  const int64_t more = uncounted - quiet_;
  arriving_ = more >= kLeast ? more : 0;
  excess_ = ExcessOf(counted, ended);
  return excess_;
}

HeapWatch::Excess HeapWatch::ExcessOf(int64_t counted, int64_t ended) {
  constexpr int64_t kTimes = 4;
  constexpr int kLooksAtRequests = 4;
  constexpr int kLooks = 12;
  if (heap_ > kTimes * counted + limits_.spare_bytes) {
    return Excess::kConnections;
  }
  else_ = std::min(else_, arriving_);
  const int64_t arrives = arriving_ - else_;
  if (arrives <= limits_.arriving_bytes) {
    looks_ = 0;
    return Excess::kNone;
  }
  looks_ = ended > 0 ? 1 : looks_ + 1;
  if (looks_ > kLooks) {
    looks_ = 0;
    else_ = arriving_;
    return Excess::kNone;
  }
  return looks_ > kLooksAtRequests || arrives > 2 * limits_.arriving_bytes
             ? Excess::kWaits
             : Excess::kRequests;
}

}  // namespace tensord::server
