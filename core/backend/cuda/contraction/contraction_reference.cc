#include <algorithm>
#include <cmath>

#include "core/backend/cuda/contraction/contraction_formula.h"
#include "core/backend/cuda/contraction/contraction_kernels.h"
#include "core/backend/cuda/cuda_stream.h"
#include "core/backend/cuda/kernel/contraction_tasks.h"
#include "core/backend/reference_solution.h"
#include "core/base/status.h"

namespace tensord::core::cuda {
namespace {

using Problem = ContractionProblem;

template <int operand_count, int max_modes>
void AddTo(Loops<operand_count, max_modes>& loops, int64_t extent,
           const int64_t (&strides)[operand_count]) {
  auto& mode = loops.modes[loops.mode_count++];
  mode.extent = extent;
  for (int i = 0; i < operand_count; ++i) mode.strides[i] = strides[i];
  loops.count *= extent;
}

/// A summed group without elements has one mode of extent 0.
template <int max_modes, size_t problem_operands>
void AddSummed(Loops<static_cast<int>(problem_operands), max_modes>& loops,
               const LoopModes<problem_operands>& modes) {
  for (const auto& mode : modes) {
    int64_t strides[problem_operands];
    for (size_t i = 0; i < problem_operands; ++i) strides[i] = mode.strides[i];
    AddTo(loops, mode.extent, strides);
  }
}

ContractionReferenceTask TaskOf(const Problem& p,
                                const ContractionOperands& operands) {
  ContractionReferenceTask task{.formula = WithOperands(FormulaOf(p), operands),
                                .compute = IsInteger(p.type_d) ? p.type_d
                                           : IsComplex(p.type_d)
                                               ? ElementType::kComplex128
                                               : ElementType::kFloat64,
                                .kept = {},
                                .k = {},
                                .a_only = {},
                                .b_only = {}};
  for (const auto& mode : p.m) {
    AddTo(task.kept, mode.extent,
          {mode.strides[Problem::kFreeInput], 0, mode.strides[Problem::kFreeC],
           mode.strides[Problem::kFreeD]});
  }
  for (const auto& mode : p.n) {
    AddTo(task.kept, mode.extent,
          {0, mode.strides[Problem::kFreeInput], mode.strides[Problem::kFreeC],
           mode.strides[Problem::kFreeD]});
  }
  for (const auto& mode : p.batch) {
    AddTo(task.kept, mode.extent,
          {mode.strides[Problem::kBatchA], mode.strides[Problem::kBatchB],
           mode.strides[Problem::kBatchC], mode.strides[Problem::kBatchD]});
  }
  AddSummed(task.k, p.k);
  AddSummed(task.a_only, p.a_only);
  AddSummed(task.b_only, p.b_only);
  return task;
}

double PredictNanoseconds(const GpuModel& model, const Problem& p) {
  const auto count = [](const auto& modes) {
    return static_cast<double>(ElementCount(modes));
  };
  const double elements = count(p.batch) * count(p.m) * count(p.n);
  const double terms = count(p.k) * (count(p.a_only) + count(p.b_only));
  // Guesses: some 100 instructions for each product, one a cycle and
  // multiprocessor; a thread takes its terms one after the other, and each
  // waits for loads and divisions.
  constexpr double kTermNs = 300;
  constexpr double kResidentThreads = 1024;
  const double waves =
      std::ceil(elements / (kResidentThreads * model.multiprocessor_count));
  return model.launch_ns +
         std::max(2 * elements * terms / model.multiprocessor_count,
                  waves * (1 + terms) * kTermNs);
}

absl::Status Launch(const Problem& problem, const ContractionOperands& operands,
                    Stream& stream) {
  CudaStream& queue = AsCuda(stream);
  TENSORD_RETURN_IF_ERROR(queue.device().Select());
  return queue.device().Check(
      QueueContractionReference(TaskOf(problem, operands), queue.get()),
      "launching cuda.contract.reference");
}

class ReferenceContraction final : public ContractionKernel {
 public:
  explicit ReferenceContraction(const GpuModel& model) : model_(model) {}

  absl::string_view name() const override { return "cuda.contract.reference"; }
  Solved Solve(const Problem& problem) const override {
    return SolveByReference<ContractionOperands>(
        PredictNanoseconds(model_, problem), problem, Launch);
  }

 private:
  const GpuModel model_;
};

}  // namespace

std::unique_ptr<const ContractionKernel> CreateReferenceContraction(
    const GpuModel& model) {
  return std::make_unique<ReferenceContraction>(model);
}

}  // namespace tensord::core::cuda
