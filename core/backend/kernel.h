// One way of solving one kind of problem on one kind of device.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/device/device.h"
#include "core/memory/workspace.h"
#include "core/ops/scalar.h"
#include "core/problem/contraction_problem.h"
#include "core/problem/elementwise_problem.h"
#include "core/problem/permutation_problem.h"
#include "core/problem/reduction_problem.h"

namespace tensord::core {

// The addresses and factors of one execution. Each pointer is that of the
// operand's first element. An input whose factor is zero may be null and is not
// read; b is null in a binary element-wise operation.

/// Requires  alpha is 1 where the problem moves bits.
struct PermutationOperands {
  const void* a = nullptr;
  void* d = nullptr;
  Scalar alpha = kOne;
};

struct ElementwiseOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* c = nullptr;
  void* d = nullptr;
  Scalar alpha = kOne;
  Scalar beta = kOne;
  Scalar gamma = kOne;
};

struct ReductionOperands {
  const void* a = nullptr;
  const void* c = nullptr;
  void* d = nullptr;
  Scalar alpha = kOne;
  Scalar beta = kZero;
};

struct ContractionOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* c = nullptr;
  void* d = nullptr;
  Scalar alpha = kOne;
  Scalar beta = kZero;
};

/// One way of solving problems of one operation.
///
/// Threads  every method is const and may be called concurrently.
/// Owner    the backend's kernel list; lives as long as the backend.
template <typename Problem, typename Operands>
class Kernel {
 public:
  virtual ~Kernel() = default;

  /// Stable name shown in plans and metrics, e.g. "cpu.contract.gemm".
  virtual absl::string_view name() const = 0;

  /// Of what it supports, needs and is measured as: raised when a plan or a
  /// measurement kept from before no longer holds.
  virtual int version() const { return 1; }

  /// OK when Launch() can run `problem`, whatever the factors. Otherwise
  /// UNIMPLEMENTED, with a reason that ExplainPlan shows to the user.
  virtual absl::Status Supports(const Problem& problem) const = 0;

  /// Scratch memory Launch() needs for `problem`, in bytes; exact.
  /// Requires Supports(problem).ok().
  virtual int64_t WorkspaceBytes(const Problem& problem) const = 0;

  /// How long Launch() should take, in nanoseconds, by this kernel's cost
  /// model. Deterministic; the planner takes the kernel that predicts least
  /// and, of equals, the first in the list.
  /// Requires Supports(problem).ok().
  virtual double PredictNanoseconds(const Problem& problem) const = 0;

  /// Queues the computation on `stream`; need not wait for it.
  ///
  /// Requires  Supports(problem).ok(); d has elements; workspace of
  ///           WorkspaceBytes(problem).
  /// Lifetime  operands and workspace must outlive the work on `stream`.
  /// Aliasing  d may equal c when their strides are equal; in element-wise
  ///           operations also a or b, likewise. Any other overlap with d is
  ///           undefined; inputs may overlap.
  /// Errors    INTERNAL when the launch fails.
  virtual absl::Status Launch(const Problem& problem, const Operands& operands,
                              Workspace& workspace, Stream& stream) const = 0;
};

using PermutationKernel = Kernel<PermutationProblem, PermutationOperands>;
using ElementwiseKernel = Kernel<ElementwiseProblem, ElementwiseOperands>;
using ReductionKernel = Kernel<ReductionProblem, ReductionOperands>;
using ContractionKernel = Kernel<ContractionProblem, ContractionOperands>;

}  // namespace tensord::core
