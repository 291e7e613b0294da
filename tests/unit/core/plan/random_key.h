// Keys to try what is made of keys on, drawn from a seed.
#pragma once

#include <random>

#include "core/plan/plan.h"
#include "tests/testing/random_problem.h"

namespace tensord::test {

/// A key of a canonical problem of any operation.
inline core::PlanKey RandomKey(std::mt19937& rng) {
  core::PlanKey key;
  switch (rng() % 4) {
    case 0:
      key.problem = core::Canonicalize(RandomPermutation(rng).desc);
      break;
    case 1:
      key.problem = core::Canonicalize(RandomElementwise(rng).desc);
      break;
    case 2: key.problem = core::Canonicalize(RandomReduction(rng).desc); break;
    default: key.problem = core::Canonicalize(RandomContraction(rng).desc);
  }
  key.device = rng() % 2 == 0 ? "cpu:0 AVX3_ZEN4" : "cuda:1 sm_90";
  if (rng() % 2 == 0) {
    key.workspace_limit_bytes = static_cast<int64_t>(rng()) << rng() % 31;
  }
  if (rng() % 4 == 0) key.kernel = "cpu.contract.gemm";
  key.deterministic = rng() % 4 == 0;
  key.selection = static_cast<core::Selection>(rng() % 3);
  return key;
}

}  // namespace tensord::test
