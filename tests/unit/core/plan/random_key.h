// Keys to try what is made of keys on, drawn from a seed.
#pragma once

#include <algorithm>
#include <random>
#include <variant>

#include "core/ops/factorization.h"
#include "core/plan/plan.h"
#include "tests/testing/random_problem.h"

namespace tensord::test {

/// A factorization of small matrices, packed in any order of modes.
inline core::FactorizationDesc RandomFactorization(std::mt19937& rng) {
  constexpr core::ElementType kTypes[] = {
      core::ElementType::kFloat32, core::ElementType::kFloat64,
      core::ElementType::kComplex64, core::ElementType::kComplex128};
  core::FactorizationDesc desc;
  core::ModeVector extents;  // (mode)
  const auto add = [&](core::Modes& x, core::Modes& y) {
    for (uint32_t count = rng() % 3; count > 0; --count) {
      x.push_back(static_cast<core::Mode>(extents.size()));
      y.push_back(x.back());
      extents.push_back(1 + static_cast<int64_t>(rng() % 4));
    }
  };
  core::Modes batch;
  add(desc.a.modes, batch);
  desc.q.modes = desc.r.modes = batch;
  add(desc.a.modes, desc.q.modes);
  add(desc.a.modes, desc.r.modes);
  const auto inner = static_cast<core::Mode>(extents.size());
  extents.push_back(0);
  desc.q.modes.push_back(inner);
  desc.r.modes.push_back(inner);
  const core::ElementType type = kTypes[rng() % 4];
  for (core::OperandDesc* const operand : {&desc.a, &desc.q, &desc.r}) {
    std::shuffle(operand->modes.begin(), operand->modes.end(), rng);
    core::ModeVector own;
    for (const core::Mode mode : operand->modes) own.push_back(extents[mode]);
    operand->element_type = type;
    operand->layout = core::PackedLayout(own, core::Order::kLastModeFastest);
    if (operand != &desc.a) continue;
    extents[inner] =
        core::InnerExtent(desc.a, desc.q.modes, desc.r.modes).value();
  }
  return desc;
}

/// A key of a canonical problem of any operation.
inline core::PlanKey RandomKey(std::mt19937& rng) {
  core::PlanKey key;
  switch (rng() % std::variant_size_v<core::AnyProblem>) {
    case 0:
      key.problem = core::Canonicalize(RandomPermutation(rng).desc);
      break;
    case 1:
      key.problem = core::Canonicalize(RandomElementwise(rng).desc);
      break;
    case 2: key.problem = core::Canonicalize(RandomReduction(rng).desc); break;
    case 3: key.problem = core::Canonicalize(RandomContraction(rng).desc); break;
    default: key.problem = core::Canonicalize(RandomFactorization(rng));
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
