// Plans to put into caches.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "core/plan/plan_cache.h"
#include "tests/unit/core/plan/fake_backend.h"

namespace tensord::test {

/// The key of a matrix of `rows` rows.
inline core::PlanKey MatrixKey(int64_t rows) {
  return {.problem = Transpose(rows, 5), .device = "fake:0"};
}

/// A plan that can be told from others by its workspace.
inline core::Plan PlanWith(int64_t workspace_bytes) {
  const FakePermutation kernel(
      {.name = "", .workspace_bytes = workspace_bytes});
  return {.solution = kernel.Solve(Transpose()).value()};
}

/// The plan of MatrixKey(rows), made when it is not there.
inline std::shared_ptr<const core::Plan> Get(
    core::PlanCache& cache, int64_t rows, const core::PlanAsker& asker = {}) {
  return cache
      .GetOrMake(
          MatrixKey(rows),
          [&]() -> absl::StatusOr<core::Plan> { return PlanWith(rows); }, asker)
      ->plan;
}

inline uint64_t IdOf(const core::PlanKey& key) {
  return core::PlanIdOf(core::EncodePlanKey(key));
}

}  // namespace tensord::test
