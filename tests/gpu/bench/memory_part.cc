// Rows
//   source, test = "latency", bytes: allocate_ns and free_ns of one allocation
//     that has been made before
//   source, test = "replay": the same random allocations and frees for every
//     source, fewer of them for a slow one; ns_per_call, most bytes in use,
//     most bytes taken from the device and their ratio, which is what
//     fragmentation costs
// A source that is not there has a row with its reason.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/memory/pool_resource.h"
#include "tests/gpu/bench/node.h"
#include "tests/gpu/bench/parts.h"

namespace tensord::test {
namespace {

/// Where memory comes from, and how much of the device's it holds.
struct MemorySource {
  std::string name;
  core::MemoryResource* resource;
  std::function<absl::StatusOr<int64_t>()> reserved_bytes;
  std::function<absl::Status()> trim;  // gives all that is unused back
  int latency_runs;
  int64_t replay_calls;
};

double NanosecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::nano>(
             std::chrono::steady_clock::now() - start)
      .count();
}

absl::Status PrintLatency(const MemorySource& source, int64_t bytes) {
  std::vector<double> allocate_ns, free_ns;
  // One more, which does not count.
  for (int i = 0; i <= source.latency_runs; ++i) {
    auto start = std::chrono::steady_clock::now();
    TENSORD_ASSIGN_OR_RETURN(void* const pointer,
                             source.resource->Allocate(bytes));
    const double allocated = NanosecondsSince(start);
    start = std::chrono::steady_clock::now();
    source.resource->Deallocate(pointer, bytes);
    const double freed = NanosecondsSince(start);
    if (i == 0) continue;
    allocate_ns.push_back(allocated);
    free_ns.push_back(freed);
  }
  Print({{"part", "memory"},
         {"test", "latency"},
         {"source", source.name},
         {"bytes", bytes},
         {"allocate_ns", TimingOf(allocate_ns).median_ns},
         {"free_ns", TimingOf(free_ns).median_ns}});
  return absl::OkStatus();
}

/// Random allocations and frees, most of the time with about `limit_bytes` in
/// use; sizes are spread evenly over their logarithms, as those of tensors are.
class Replay {
 public:
  Replay(const MemorySource& source, int64_t limit_bytes)
      : source_(source), limit_bytes_(limit_bytes) {}
  ~Replay() {
    while (!blocks_.empty()) FreeOne();
  }
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  absl::Status Run() {
    std::uniform_real_distribution logarithm(
        std::log(1024.0), std::log(static_cast<double>(limit_bytes_) / 16));
    while (calls_ < source_.replay_calls) {
      const auto bytes = static_cast<int64_t>(std::exp(logarithm(rng_)));
      while (used_ + bytes > limit_bytes_) FreeOne();
      TENSORD_RETURN_IF_ERROR(AllocateOne(bytes));
      if (rng_() % 3 == 0) FreeOne();
    }
    return absl::OkStatus();
  }

  void PrintResult() const {
    Print({{"part", "memory"},
           {"test", "replay"},
           {"source", source_.name},
           {"calls", calls_},
           {"ns_per_call", spent_ns_ / static_cast<double>(calls_)},
           {"peak_used_bytes", peak_used_},
           {"peak_reserved_bytes", peak_reserved_},
           {"overhead", static_cast<double>(peak_reserved_) /
                            static_cast<double>(peak_used_)}});
  }

 private:
  struct Block {
    void* pointer;
    int64_t bytes;
  };

  absl::Status AllocateOne(int64_t bytes) {
    const auto start = std::chrono::steady_clock::now();
    TENSORD_ASSIGN_OR_RETURN(void* const pointer,
                             source_.resource->Allocate(bytes));
    spent_ns_ += NanosecondsSince(start);
    ++calls_;
    blocks_.push_back({pointer, bytes});
    used_ += bytes;
    peak_used_ = std::max(peak_used_, used_);
    TENSORD_ASSIGN_OR_RETURN(const int64_t reserved, source_.reserved_bytes());
    peak_reserved_ = std::max(peak_reserved_, reserved);
    return absl::OkStatus();
  }

  void FreeOne() {
    std::swap(blocks_[rng_() % blocks_.size()], blocks_.back());
    const Block block = blocks_.back();
    blocks_.pop_back();
    used_ -= block.bytes;
    const auto start = std::chrono::steady_clock::now();
    source_.resource->Deallocate(block.pointer, block.bytes);
    spent_ns_ += NanosecondsSince(start);
    ++calls_;
  }

  const MemorySource& source_;
  const int64_t limit_bytes_;
  std::mt19937_64 rng_{1};
  std::vector<Block> blocks_;
  int64_t used_ = 0, peak_used_ = 0, peak_reserved_ = 0;
  int64_t calls_ = 0;
  double spent_ns_ = 0;
};

/// Bytes that the device has lent to anybody.
absl::StatusOr<int64_t> LentBytes() {
  size_t free_bytes = 0;
  size_t all_bytes = 0;
  TENSORD_RETURN_IF_ERROR(
      CheckCuda(cudaMemGetInfo(&free_bytes, &all_bytes), "cudaMemGetInfo"));
  return static_cast<int64_t>(all_bytes - free_bytes);
}

}  // namespace

absl::Status RunMemory(BenchDevice& device) {
  const bool tiny = device.effort().tiny;
  core::MemoryResource& plain = device.backend().memory();
  core::PoolResource pool(plain, {});
  TENSORD_ASSIGN_OR_RETURN(const int64_t lent_before, LentBytes());
  std::vector<MemorySource> sources = {
      {.name = "tensord pool",
       .resource = &pool,
       .reserved_bytes = [&] { return pool.reserved_bytes(); },
       .trim =
           [&] {
             pool.Trim();
             return absl::OkStatus();
           },
       .latency_runs = tiny ? 3 : 501,
       .replay_calls = tiny ? 200 : 20000},
      {.name = "cudaMalloc",
       .resource = &plain,
       .reserved_bytes = [&]() -> absl::StatusOr<int64_t> {
         TENSORD_ASSIGN_OR_RETURN(const int64_t lent, LentBytes());
         return lent - lent_before;
       },
       .trim = [] { return absl::OkStatus(); },
       .latency_runs = tiny ? 3 : 21,
       .replay_calls = tiny ? 200 : 2000}};
  auto driver = CreateStreamOrderedMemory();
  if (driver.ok()) {
    sources.push_back(
        {.name = "cudaMallocAsync",
         .resource = driver->get(),
         .reserved_bytes = [&] { return (*driver)->ReservedBytes(); },
         .trim = [&] { return (*driver)->Trim(); },
         .latency_runs = tiny ? 3 : 501,
         .replay_calls = tiny ? 200 : 20000});
  } else {
    Print({{"part", "memory"},
           {"source", "cudaMallocAsync"},
           {"skipped", driver.status().message()}});
  }
  CaseCounter counter("memory", device.effort());
  for (const MemorySource& source : sources) {
    for (int64_t bytes = 4 << 10; bytes <= (tiny ? 64 << 10 : 1 << 30);
         bytes *= 16) {
      if (counter.Next()) TENSORD_RETURN_IF_ERROR(PrintLatency(source, bytes));
    }
    TENSORD_RETURN_IF_ERROR(source.trim());
    if (!counter.Next()) continue;
    {
      Replay replay(source, tiny ? 4 << 20 : int64_t{8} << 30);
      TENSORD_RETURN_IF_ERROR(replay.Run());
      replay.PrintResult();
    }
    TENSORD_RETURN_IF_ERROR(source.trim());
  }
  return absl::OkStatus();
}

}  // namespace tensord::test
