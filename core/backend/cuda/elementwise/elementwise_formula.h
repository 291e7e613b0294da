// What the element-wise kernels share on the host.
#pragma once

#include <cstdint>
#include <vector>

#include "core/backend/cuda/gpu_model.h"
#include "core/backend/cuda/kernel/elementwise_tasks.h"
#include "core/backend/cuda/tile_parts.h"
#include "core/backend/kernel.h"

namespace tensord::core::cuda {

/// The operands of `problem`: 0 to 2 for a, b and c, and 3 for d.
bool IsInput(const ElementwiseProblem& problem, size_t operand);

/// Elements of an operand that are neighbours and come one after the other when
/// modes are walked in `order`, of each as many as `parts` says. Modes along
/// which it is broadcast are no step.
int64_t RunAlong(const ElementwiseProblem& problem, size_t operand,
                 const std::vector<size_t>& order, const Parts& parts);

/// Bytes that are moved to read or write each element of an operand once, in
/// runs of `run`.
double BytesInRuns(const ElementwiseProblem& problem, size_t operand,
                   int64_t run);

/// OK when a linear index can count the elements.
absl::Status CheckCount(const ElementwiseProblem& problem);

/// What all element-wise kernels do alike.
class CudaElementwise : public ElementwiseKernel {
 public:
  explicit CudaElementwise(const GpuModel& model) : model_(model) {}

  int64_t WorkspaceBytes(const ElementwiseProblem&) const override { return 0; }

  absl::Status Launch(const ElementwiseProblem& problem,
                      const ElementwiseOperands& operands, Workspace& workspace,
                      Stream& stream) const override;

 protected:
  const GpuModel& model() const { return model_; }

  virtual cudaError_t Queue(const ElementwiseProblem& problem,
                            const Expression& expression,
                            cudaStream_t stream) const = 0;

  /// Time to move `bytes` bytes.
  double Nanoseconds(double bytes) const {
    return model_.launch_ns + bytes / model_.copy_bytes_per_ns();
  }

 private:
  const GpuModel model_;
};

}  // namespace tensord::core::cuda
