#include <algorithm>

#include "core/backend/cuda/permutation_kernels.h"
#include "core/backend/cuda/permutation_words.h"
#include "core/base/status.h"

namespace tensord::core::cuda {
namespace {

constexpr size_t kA = PermutationWords::kA;
constexpr size_t kD = PermutationWords::kD;

// Of a thread, about.
constexpr int64_t kRegisters = 48;
// Of a run, at least: in fewer, those at its ends would be most.
constexpr int64_t kLeastGroups = 4;

class RunsPermutation final : public CudaPermutation {
 public:
  using CudaPermutation::CudaPermutation;
  absl::string_view name() const override { return "cuda.permute.runs"; }

 private:
  absl::StatusOr<PermutationTiling> Divide(
      const PermutationWords& words) const override {
    if (words.word_count() > kMaxPart) {
      return Unimplemented("TOO_MANY_WORDS", "it moves ", words.word_count(),
                           " words, at most ", kMaxPart, " are possible");
    }
    const int64_t width = RunsWidth(words.move);
    if (width == 0) {
      return Unimplemented(
          "NOTHING_TO_GROUP",
          "words have 16 bytes, or what becomes of elements is "
          "more than a factor and a conversion of one kind");
    }
    const auto is_contiguous = [&](size_t operand) {
      return words.modes[0].strides[operand] == 1;
    };
    if (words.modes.empty() || !is_contiguous(kA) || !is_contiguous(kD)) {
      return Unimplemented("NO_COMMON_RUNS",
                           "no mode is contiguous in a and in d");
    }
    if (words.modes[0].extent < kLeastGroups * width) {
      return Unimplemented("RUNS_TOO_SHORT", "runs have ",
                           words.modes[0].extent, " words, wanted ",
                           kLeastGroups * width);
    }
    return PermutationTiling{};
  }

  double Nanoseconds(const PermutationWords& words,
                     const PermutationTiling&) const override {
    const RunsTask task = TaskOf(words);
    constexpr double kBlockGroups =
        double{RunsTask::kThreads} * RunsTask::kGroupsPerThread;
    constexpr double kBlockRequests = kBlockGroups / 32;
    constexpr double kTransactionBytes = 128, kLineBytes = 32;
    const double width = RunsWidth(words.move);
    const double load_bytes = 32 * width * words.move.word_bytes;
    const double store_bytes = 32 * width * words.bytes_out();
    // A group that is put together is read from two, the second of which is
    // the next lane's first.
    const double loads = AreAlignedAlike(words) ? 1 : 2;
    const double blocks = std::max(1.0, task.modes.count / kBlockGroups);
    const double groups_of_run = task.modes.modes[0].extent.divisor;
    const double runs = task.modes.count / groups_of_run;
    // Of a run's ends, the groups that are read or written element by element:
    // a warp that has any makes as many more accesses, all under way together,
    // of a sector each.
    const double ends = (task.is_shifted ? 2 : 1) + 2 * (loads - 1);
    const double cut = std::min(ends * runs / blocks, kBlockRequests);
    const double cut_transactions =
        cut * width * kLineBytes / kTransactionBytes;
    const AccessCounts counts{
        .load_requests = loads * kBlockRequests + cut,
        .load_transactions =
            kBlockRequests * (load_bytes / kTransactionBytes + loads - 1) +
            cut_transactions,
        .store_requests = kBlockRequests + cut,
        .store_transactions =
            kBlockRequests * store_bytes / kTransactionBytes + cut_transactions,
        .full_lines = kBlockRequests * store_bytes / kLineBytes,
        .partial_lines = task.is_shifted ? 2 * runs / blocks : 0};
    const KernelShape shape{
        .warps_per_block = RunsTask::kThreads / 32.0,
        .warps_per_multiprocessor =
            WarpsPerMultiprocessor(model(), RunsTask::kThreads, kRegisters, 0),
        .parallel_requests = RunsTask::kGroupsPerThread *
                             (counts.load_requests + counts.store_requests) /
                             2 / kBlockRequests,
        .shared_transactions = 0};
    return std::max(
        CopyNanoseconds(model(), words),
        model().launch_ns +
            TurnCycles(model(), shape, counts) *
                std::max(1.0, blocks / model().multiprocessor_count) /
                model().clock_ghz);
  }

  cudaError_t Queue(const PermutationWords& words, const PermutationTiling&,
                    cudaStream_t stream) const override {
    return QueueRuns(TaskOf(words), stream);
  }

  /// Whether the groups of every run of d begin at multiples of their bytes.
  static bool AreGroupsAligned(const PermutationWords& words) {
    const int64_t width = RunsWidth(words.move);
    const auto bytes =
        static_cast<uintptr_t>(width * static_cast<int64_t>(words.bytes_out()));
    return reinterpret_cast<uintptr_t>(words.move.d) % bytes == 0 &&
           std::all_of(
               words.modes.begin() + 1, words.modes.end(),
               [&](const auto& mode) { return mode.strides[kD] % width == 0; });
  }

  /// Whether groups of d that begin at multiples of their bytes begin at such
  /// in a, too.
  static bool AreAlignedAlike(const PermutationWords& words) {
    const int64_t width = RunsWidth(words.move);
    const auto place = [&](const void* first, int64_t bytes) {
      return static_cast<int64_t>(reinterpret_cast<uintptr_t>(first)) / bytes %
             width;
    };
    return place(words.move.a, words.move.word_bytes) ==
               place(words.move.d, static_cast<int64_t>(words.bytes_out())) &&
           std::all_of(words.modes.begin() + 1, words.modes.end(),
                       [&](const auto& mode) {
                         return (mode.strides[kA] - mode.strides[kD]) % width ==
                                0;
                       });
  }

  static RunsTask TaskOf(const PermutationWords& words) {
    const int64_t width = RunsWidth(words.move);
    RunsTask task{.move = words.move,
                  .is_shifted = !AreGroupsAligned(words),
                  .run = static_cast<uint32_t>(words.modes[0].extent),
                  .modes = {}};
    const int64_t cut = task.is_shifted ? width - 1 : 0;
    task.modes.Add((task.run + cut + width - 1) / width, {width, width});
    for (size_t m = 1; m < words.modes.size(); ++m) {
      const auto& mode = words.modes[m];
      task.modes.Add(mode.extent, {mode.strides[kA], mode.strides[kD]});
    }
    return task;
  }
};

}  // namespace

std::unique_ptr<const PermutationKernel> CreateRunsPermutation(
    const GpuModel& model) {
  return std::make_unique<RunsPermutation>(model);
}

}  // namespace tensord::core::cuda
