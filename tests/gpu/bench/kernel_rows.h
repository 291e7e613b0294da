// Times every kernel that can solve a problem, and checks that they agree.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/executor/executor.h"
#include "core/plan/plan.h"
#include "tests/gpu/bench/bench_device.h"

namespace tensord::test {

/// A problem with its operands, ready to run.
struct BenchProblem {
  Row row;  // what the case is, for each line that is printed
  core::AnyProblem problem;
  core::AnyOperands operands;
  int64_t bytes = 0;  // read and written at least
  /// Where the result is, and memory for the right one.
  const core::Buffer* d = nullptr;
  const core::Buffer* expected = nullptr;
  int64_t d_bytes = 0;
  /// Whether the right result is in `expected`: then the reference kernel,
  /// which would take minutes, does not run.
  bool is_expected = false;
};

/// What the planner decides, and how long that takes.
struct Planning {
  std::string kernel;
  double nanoseconds = 0;  // median
};

/// Errors  those of MakePlan().
absl::StatusOr<Planning> TimePlanning(BenchDevice& device,
                                      const core::PlanKey& key);

/// Prints a line for every kernel of the operation: how long it took, what its
/// cost model predicted, whether the planner chooses it, and in how many bytes
/// its result differs from the reference kernel's, or from `expected`; or that
/// it declined. Then one line for the time that planning took.
///
/// Errors  those of a kernel that ran.
absl::Status PrintKernelRows(BenchDevice& device, const BenchProblem& problem);

}  // namespace tensord::test
