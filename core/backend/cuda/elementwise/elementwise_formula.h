// What the element-wise kernels share on the host.
#pragma once

#include <cstdint>
#include <vector>

#include "core/backend/cuda/gpu_model.h"
#include "core/backend/cuda/kernel/elementwise_tasks.h"
#include "core/backend/cuda/tile_parts.h"
#include "core/backend/kernel.h"

namespace tensord::core::cuda {

/// Whether `operand` is an input that `problem` has; 0 to 2 are a, b and c, and
/// 3 is d.
bool IsInput(const ElementwiseProblem& problem, size_t operand);

/// How many neighbours of an operand come in a row when modes are walked in
/// `order`, each as far as `parts` says. Modes along which the operand is
/// broadcast do not count.
int64_t RunAlong(const ElementwiseProblem& problem, size_t operand,
                 const std::vector<size_t>& order, const Parts& parts);

/// Bytes that are moved to read or write each element of an operand once, in
/// runs of `run`.
double BytesInRuns(const ElementwiseProblem& problem, size_t operand,
                   int64_t run);

/// What kernels are given, but for where its elements are.
Expression ExpressionOf(const ElementwiseProblem& problem,
                        const ElementwiseOperands& operands);

/// OK when a linear index can count the elements.
absl::Status CheckCount(const ElementwiseProblem& problem);
/// The same, and it is no TAKE.
absl::Status CheckComputes(const ElementwiseProblem& problem);

/// Time to move `bytes` bytes.
inline double MovingNanoseconds(const GpuModel& model, double bytes) {
  return model.launch_ns + bytes / model.copy_bytes_per_ns();
}

/// What the solutions of all element-wise kernels do alike.
class CudaElementwiseSolution : public ElementwiseSolution {
 public:
  /// Lifetime  `kernel` is a literal.
  CudaElementwiseSolution(double predicted_nanoseconds,
                          absl::string_view kernel,
                          const ElementwiseProblem& problem)
      : Solution(predicted_nanoseconds), kernel_(kernel), problem_(problem) {}

  absl::Status Launch(const ElementwiseOperands& operands, Workspace& workspace,
                      Stream& stream) const final;

 protected:
  const ElementwiseProblem& problem() const { return problem_; }

 private:
  virtual cudaError_t Queue(const Expression& expression,
                            cudaStream_t stream) const = 0;

  const absl::string_view kernel_;
  const ElementwiseProblem problem_;
};

}  // namespace tensord::core::cuda
