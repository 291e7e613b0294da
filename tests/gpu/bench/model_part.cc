// Rows: quantity, value, unit; "paste" where a cost model has a place for it.
//
//   clock_ghz           of the multiprocessors, while they work
//   launch_ns           from one kernel to the next
//   single_launch_ns    of one kernel, from the call until the host knows
//   load_cycles/N       of a load of one warp that takes N transactions and
//                       misses the cache
//   base_latency,       the line through these: base + (N - 1) * departure
//   departure
//   shared_latency      of a store to and a load from shared memory, one warp
//   shared_request      the same a warp, with a full multiprocessor
//   copy_gb_per_s/B     of a copy of B bytes by cudaMemcpyAsync, read + written
//   word_copy_gb_per_s  by a kernel, the same bytes
//   read_gb_per_s       by a kernel that reads alone
#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "tests/gpu/bench/bench_kernels.h"
#include "tests/gpu/bench/parts.h"

namespace tensord::test {
namespace {

void PrintQuantity(absl::string_view quantity, double value,
                   absl::string_view unit, absl::string_view paste = "") {
  Row row = {{"part", "model"},
             {"quantity", quantity},
             {"value", value},
             {"unit", unit}};
  if (!paste.empty()) row.emplace_back("paste", paste);
  Print(row);
}

/// What a kernel left in `result`.
absl::StatusOr<int64_t> ReadResult(BenchDevice& device,
                                   const core::Buffer& result) {
  int64_t value = 0;
  TENSORD_RETURN_IF_ERROR(
      device.stream().CopyToHost(&value, result.data(), sizeof(value)));
  TENSORD_RETURN_IF_ERROR(device.stream().Synchronize());
  return value;
}

absl::Status MeasureClock(BenchDevice& device, const core::Buffer& result) {
  auto* const counted = reinterpret_cast<int64_t*>(result.data());
  const int64_t cycles = device.effort().tiny ? 1000 : 20'000'000;
  TENSORD_ASSIGN_OR_RETURN(const Timing timing, device.Time(0, [&] {
    return CheckCuda(Spin(cycles, counted, device.cuda_stream()),
                     "counting cycles");
  }));
  TENSORD_ASSIGN_OR_RETURN(const int64_t passed, ReadResult(device, result));
  PrintQuantity("clock_ghz", static_cast<double>(passed) / timing.median_ns,
                "GHz", "GpuModel::clock_ghz");
  return absl::OkStatus();
}

absl::Status MeasureLaunch(BenchDevice& device) {
  const int launches = device.effort().tiny ? 4 : 1000;
  const auto launch_all = [&] {
    for (int i = 0; i < launches; ++i) {
      TENSORD_RETURN_IF_ERROR(
          CheckCuda(Nothing(device.cuda_stream()), "an empty kernel"));
    }
    return absl::OkStatus();
  };
  TENSORD_ASSIGN_OR_RETURN(const Timing timing, device.Time(0, launch_all));
  PrintQuantity("launch_ns", timing.median_ns / launches, "ns",
                "GpuModel::launch_ns");
  std::vector<double> durations_ns;
  for (int i = 0; i < launches; ++i) {
    const auto start = std::chrono::steady_clock::now();
    TENSORD_RETURN_IF_ERROR(
        CheckCuda(Nothing(device.cuda_stream()), "an empty kernel"));
    TENSORD_RETURN_IF_ERROR(device.stream().Synchronize());
    durations_ns.push_back(std::chrono::duration<double, std::nano>(
                               std::chrono::steady_clock::now() - start)
                               .count());
  }
  PrintQuantity("single_launch_ns", TimingOf(durations_ns).median_ns, "ns");
  return absl::OkStatus();
}

/// Every load of the chase must miss the cache, so it goes through much more
/// memory than fits there, once, after a flush.
absl::Status MeasureLoads(BenchDevice& device, const core::Buffer& result) {
  const bool tiny = device.effort().tiny;
  const int iterations = tiny ? 8 : 1024;
  constexpr int64_t kGroupStride = 1024;  // words, 4 KiB
  // Odd multiples of a transaction: not always the same channel of memory.
  constexpr int64_t kStep = 32 * kGroupStride + 32;  // words
  TENSORD_ASSIGN_OR_RETURN(const core::Buffer words,
                           device.Allocate((iterations + 1) * kStep * 4));
  ElementPalette step{.element_bytes = 4};
  step.bits.fill(kStep);
  TENSORD_RETURN_IF_ERROR(CheckCuda(
      FillElements(words.data(), words.bytes(), step, device.cuda_stream()),
      "filling"));
  // Sums for the line through (groups - 1, cycles).
  double n = 0, x_sum = 0, y_sum = 0, xx_sum = 0, xy_sum = 0;
  for (int groups = 1; groups <= 32; groups *= 2) {
    std::vector<double> cycles;
    for (int i = 0; i < std::min(3, device.effort().repetitions()); ++i) {
      TENSORD_RETURN_IF_ERROR(device.FlushCache());
      TENSORD_RETURN_IF_ERROR(CheckCuda(
          Chase({.words = reinterpret_cast<const uint32_t*>(words.data()),
                 .group_stride = kGroupStride,
                 .groups = groups,
                 .iterations = iterations,
                 .cycles = reinterpret_cast<int64_t*>(result.data())},
                device.cuda_stream()),
          "chasing"));
      TENSORD_ASSIGN_OR_RETURN(const int64_t all, ReadResult(device, result));
      cycles.push_back(static_cast<double>(all) / iterations);
    }
    const double y = TimingOf(cycles).median_ns;
    const double x = groups - 1;
    PrintQuantity(absl::StrCat("load_cycles/", groups), y, "cycles");
    n += 1;
    x_sum += x;
    y_sum += y;
    xx_sum += x * x;
    xy_sum += x * y;
  }
  const double departure =
      (n * xy_sum - x_sum * y_sum) / (n * xx_sum - x_sum * x_sum);
  PrintQuantity("base_latency", (y_sum - departure * x_sum) / n, "cycles",
                "CycleParameters::base_latency");
  PrintQuantity("departure", departure, "cycles", "CycleParameters::departure");
  return absl::OkStatus();
}

absl::Status MeasureSharedMemory(BenchDevice& device,
                                 const core::Buffer& result) {
  const int iterations = device.effort().tiny ? 4 : 4096;
  for (const int threads : {32, 1024}) {
    TENSORD_RETURN_IF_ERROR(
        CheckCuda(UseSharedMemory(threads, iterations,
                                  reinterpret_cast<int64_t*>(result.data()),
                                  device.cuda_stream()),
                  "using shared memory"));
    TENSORD_ASSIGN_OR_RETURN(const int64_t cycles, ReadResult(device, result));
    // A store and a load each time; with all warps, what each of them takes.
    const double each = static_cast<double>(cycles) / iterations / 2;
    if (threads == 32) {
      PrintQuantity("shared_latency", each, "cycles");
    } else {
      PrintQuantity("shared_request", each / (threads / 32), "cycles",
                    "CycleParameters::shared_latency");
    }
  }
  return absl::OkStatus();
}

absl::Status MeasureBandwidth(BenchDevice& device) {
  const int64_t most = device.effort().tiny ? 64 << 10 : int64_t{4} << 30;
  TENSORD_ASSIGN_OR_RETURN(const core::Buffer from, device.Allocate(most));
  TENSORD_ASSIGN_OR_RETURN(const core::Buffer to, device.Allocate(most));
  TENSORD_RETURN_IF_ERROR(CheckCuda(
      FillBits(from.data(), from.bytes(), device.cuda_stream()), "filling"));
  for (int64_t bytes = most >> 12; bytes <= most; bytes *= 4) {
    TENSORD_ASSIGN_OR_RETURN(const Timing copy,
                             device.TimeCopy(from, to, bytes));
    PrintQuantity(absl::StrCat("copy_gb_per_s/", bytes),
                  2.0 * static_cast<double>(bytes) / copy.median_ns, "GB/s",
                  bytes == most ? "GpuModel::copy_bytes_per_ns()" : "");
  }
  TENSORD_ASSIGN_OR_RETURN(const Timing words, device.Time(2 * most, [&] {
    return CheckCuda(
        CopyWords(from.data(), to.data(), most, device.cuda_stream()),
        "copying");
  }));
  PrintQuantity("word_copy_gb_per_s",
                2.0 * static_cast<double>(most) / words.median_ns, "GB/s");
  TENSORD_ASSIGN_OR_RETURN(const Timing read, device.Time(most, [&] {
    return CheckCuda(
        ReadAll(from.data(), most, to.data(), device.cuda_stream()), "reading");
  }));
  PrintQuantity("read_gb_per_s", static_cast<double>(most) / read.median_ns,
                "GB/s");
  return absl::OkStatus();
}

}  // namespace

absl::Status RunModel(BenchDevice& device) {
  TENSORD_ASSIGN_OR_RETURN(const core::Buffer result, device.Allocate(8));
  CaseCounter counter("model", device.effort());
  if (counter.Next()) {
    TENSORD_RETURN_IF_ERROR(MeasureClock(device, result));
  }
  if (counter.Next()) TENSORD_RETURN_IF_ERROR(MeasureBandwidth(device));
  if (counter.Next()) TENSORD_RETURN_IF_ERROR(MeasureLaunch(device));
  if (counter.Next()) {
    TENSORD_RETURN_IF_ERROR(MeasureLoads(device, result));
  }
  if (counter.Next()) {
    TENSORD_RETURN_IF_ERROR(MeasureSharedMemory(device, result));
  }
  return absl::OkStatus();
}

}  // namespace tensord::test
