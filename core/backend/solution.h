// What a kernel decided for one problem.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "core/base/heap_bytes.h"
#include "core/device/device.h"
#include "core/memory/workspace.h"

namespace tensord::core {

/// A solution, whatever its operation.
///
/// Threads   immutable; share freely.
/// Lifetime  the backend whose kernel made it must outlive it.
class AnySolution {
 public:
  virtual ~AnySolution() = default;
  AnySolution(const AnySolution&) = delete;
  AnySolution& operator=(const AnySolution&) = delete;

  /// Scratch memory Launch() needs, in bytes; exact.
  int64_t workspace_bytes() const { return workspace_bytes_; }

  /// How long Launch() should take by the kernel's cost model.
  double predicted_nanoseconds() const { return predicted_nanoseconds_; }

  /// What was decided, in one line that ExplainPlan shows, e.g.
  /// "matrix product of 100 x 64 x 32, a copied first".
  virtual std::string decision() const = 0;

  /// Bytes of memory, with all that it owns.
  virtual int64_t bytes() const = 0;

 protected:
  explicit AnySolution(double predicted_nanoseconds,
                       int64_t workspace_bytes = 0)
      : predicted_nanoseconds_(predicted_nanoseconds),
        workspace_bytes_(workspace_bytes) {}

 private:
  const double predicted_nanoseconds_;
  const int64_t workspace_bytes_;
};

/// All that was decided for one problem: running it takes the operands alone.
/// Costs are those of any factors; Launch() looks at what addresses and factors
/// change.
///
/// Threads  Launch() may be called concurrently.
template <typename Operands>
class Solution : public AnySolution {
 public:
  /// Queues the computation on `stream`; need not wait for it.
  ///
  /// Requires  d has elements; workspace of workspace_bytes().
  /// Lifetime  operands and workspace must outlive the work on `stream`.
  /// Aliasing  d may equal c when their strides are equal; in element-wise
  ///           operations also a or b, likewise. Any other overlap with d is
  ///           undefined; inputs may overlap.
  /// Errors    INTERNAL when the launch fails.
  virtual absl::Status Launch(const Operands& operands, Workspace& workspace,
                              Stream& stream) const = 0;

 protected:
  using AnySolution::AnySolution;
};

/// Of a solution that another one owns.
template <typename Operands>
int64_t HeapBytes(const std::unique_ptr<const Solution<Operands>>& solution) {
  return solution == nullptr ? 0 : solution->bytes();
}

}  // namespace tensord::core
