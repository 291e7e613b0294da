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
  task.kept.AddAll(KeptModesOf(p));
  // A summed group without elements has one mode of extent 0.
  task.k.AddAll(p.k);
  task.a_only.AddAll(p.a_only);
  task.b_only.AddAll(p.b_only);
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

}  // namespace

std::unique_ptr<const ContractionKernel> CreateReferenceContraction(
    const GpuModel& model) {
  return std::make_unique<SimpleContraction>(
      "cuda.contract.reference", [model](const Problem& problem) {
        return SolveByReference<ContractionOperands>(
            PredictNanoseconds(model, problem), problem, Launch);
      });
}

}  // namespace tensord::core::cuda
