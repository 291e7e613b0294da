#include <algorithm>

#include "core/backend/cuda/permutation_kernels.h"
#include "core/backend/cuda/permutation_words.h"
#include "core/base/status.h"

namespace tensord::core::cuda {
namespace {

constexpr size_t kA = PermutationWords::kA;
constexpr size_t kD = PermutationWords::kD;

// Of a thread, about.
constexpr int64_t kRegisters = 56;
// Of a run, at least: in fewer, those at its ends would be most.
constexpr int64_t kLeastGroups = 4;

class RunsPermutation final : public CudaPermutation {
 public:
  using CudaPermutation::CudaPermutation;
  absl::string_view name() const override { return "cuda.permute.runs"; }

 private:
  absl::Status Accepts(const PermutationWords& words) const override {
    if (words.word_count() > kMaxIndex) {
      return Unimplemented("TOO_MANY_WORDS", "it moves ", words.word_count(),
                           " words, at most ", kMaxIndex, " are possible");
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
    return absl::OkStatus();
  }

  double Nanoseconds(const PermutationWords& words) const override {
    const RunsTask task = TaskOf(words);
    constexpr double kBlockGroups =
        double{RunsTask::kThreads} * RunsTask::kGroupsPerThread;
    constexpr double kRequests = kBlockGroups / 32;
    constexpr double kTransactionBytes = 128, kLineBytes = 32;
    const double width = RunsWidth(words.move);
    const double load_bytes = 32 * width * words.move.word_bytes;
    const double store_bytes = 32 * width * words.bytes_out();
    // A group that is put together is read from two, the second of which is
    // the next lane's first.
    const double loads = AreGroupsAligned(words, kA) ? 1 : 2;
    const double runs_per_block =
        kBlockGroups / task.modes.modes[0].extent.divisor;
    const AccessCounts counts{
        .load_requests = loads * kRequests,
        .load_transactions =
            kRequests * (load_bytes / kTransactionBytes + loads - 1),
        .store_requests = kRequests,
        .store_transactions = kRequests * store_bytes / kTransactionBytes,
        .full_lines = kRequests * store_bytes / kLineBytes,
        .partial_lines = task.is_shifted ? 2 * runs_per_block : 0};
    const KernelShape shape{
        .warps_per_block = RunsTask::kThreads / 32.0,
        .warps_per_multiprocessor =
            WarpsPerMultiprocessor(model(), RunsTask::kThreads, kRegisters, 0),
        .parallel_requests = RunsTask::kGroupsPerThread * (loads + 1) / 2,
        .shared_transactions = 0};
    const double turns = std::max(
        1.0, task.modes.count / kBlockGroups / model().multiprocessor_count);
    return std::max(CopyNanoseconds(model(), words),
                    model().launch_ns + TurnCycles(model(), shape, counts) *
                                            turns / model().clock_ghz);
  }

  absl::StatusOr<cudaError_t> Queue(const PermutationWords& words,
                                    cudaStream_t stream) const override {
    TENSORD_RETURN_IF_ERROR(Accepts(words));
    return QueueRuns(TaskOf(words), stream);
  }

  /// Whether the groups of every run begin where an operand's addresses are
  /// multiples of their bytes.
  static bool AreGroupsAligned(const PermutationWords& words, size_t operand) {
    const int64_t width = RunsWidth(words.move);
    const int64_t bytes =
        width * (operand == kA ? words.move.word_bytes
                               : static_cast<int64_t>(words.bytes_out()));
    const void* const first = operand == kA ? words.move.a : words.move.d;
    return reinterpret_cast<uintptr_t>(first) % static_cast<uintptr_t>(bytes) ==
               0 &&
           std::all_of(words.modes.begin() + 1, words.modes.end(),
                       [&](const auto& mode) {
                         return mode.strides[operand] % width == 0;
                       });
  }

  static RunsTask TaskOf(const PermutationWords& words) {
    const int64_t width = RunsWidth(words.move);
    RunsTask task{.move = words.move,
                  .is_shifted = !AreGroupsAligned(words, kD),
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
