// Keys to try what is made of keys on, drawn from a seed.
#pragma once

#include <algorithm>
#include <random>
#include <variant>

#include "core/ops/factorization.h"
#include "core/plan/plan.h"
#include "core/problem/factorization_problem.h"
#include "core/problem/linear_solve_problem.h"
#include "tests/testing/random_problem.h"

namespace tensord::test {

/// A factorization of small matrices, packed, of two factors in any order of
/// modes.
inline core::FactorizationDesc RandomFactorization(std::mt19937& rng) {
  using core::FactorizationMethod;
  constexpr core::ElementType kTypes[] = {
      core::ElementType::kFloat32, core::ElementType::kFloat64,
      core::ElementType::kComplex64, core::ElementType::kComplex128};
  core::FactorizationDesc desc;
  desc.method =
      static_cast<FactorizationMethod>(rng() % core::kFactorizationMethodCount);
  const bool is_pair = !core::PairsRows(desc.method);
  core::ModeVector extents;  // (mode)
  const auto add = [&](core::Modes& to, int64_t extent) {
    to.push_back(static_cast<core::Mode>(extents.size()));
    extents.push_back(extent);
  };
  core::Modes batch, rows, columns, inner;
  for (core::Modes* const modes : {&batch, &rows, &columns}) {
    if (modes == &columns && !is_pair) {
      for (const core::Mode row : rows) add(columns, extents[row]);
      continue;
    }
    for (uint32_t count = rng() % 3; count > 0; --count) {
      add(*modes, 1 + static_cast<int64_t>(rng() % 4));
    }
  }
  add(inner, 0);
  const auto join = [](core::Modes& to, const core::Modes& x,
                       const core::Modes& y, const core::Modes& z) {
    for (const core::Modes* const modes : {&x, &y, &z}) {
      to.insert(to.end(), modes->begin(), modes->end());
    }
  };
  join(desc.a.modes, batch, rows, columns);
  join(desc.left.modes, batch, rows, inner);
  if (is_pair) join(desc.right.emplace().modes, batch, columns, inner);
  const bool is_svd = desc.method == FactorizationMethod::kSvd;
  if (desc.method == FactorizationMethod::kEigh || (is_svd && rng() % 2 == 0)) {
    join(desc.values.emplace().modes, batch, inner, {});
  }
  const core::ElementType type = kTypes[rng() % 4];
  const auto lay_out = [&](core::OperandDesc& operand,
                           core::ElementType its_type) {
    if (is_pair) std::ranges::shuffle(operand.modes, rng);
    core::ModeVector own;
    for (const core::Mode mode : operand.modes) own.push_back(extents[mode]);
    operand.element_type = its_type;
    operand.layout = core::PackedLayout(own, core::Order::kLastModeFastest);
  };
  lay_out(desc.a, type);
  extents[inner[0]] =
      core::GroupModes(desc.method, desc.a, desc.left.modes,
                       desc.right ? &desc.right->modes : nullptr,
                       desc.values ? &desc.values->modes : nullptr)
          ->inner_extent;
  if (is_svd && rng() % 2 == 0) {
    extents[inner[0]] = 1 + static_cast<int64_t>(rng() % extents[inner[0]]);
    if (rng() % 2 == 0) {
      desc.sampling.emplace().oversampling = static_cast<int64_t>(rng() % 3);
    }
  }
  lay_out(desc.left, type);
  if (desc.right) lay_out(*desc.right, type);
  if (desc.values) lay_out(*desc.values, core::RealPartOf(type));
  return desc;
}

/// Equations of small matrices, packed, an inverse or an exponential.
inline core::LinearSolveDesc RandomLinearSolve(std::mt19937& rng) {
  const core::ElementType types[] = {
      core::ElementType::kFloat32, core::ElementType::kFloat64,
      core::ElementType::kComplex64, core::ElementType::kComplex128};
  const core::ElementType type = types[rng() % std::size(types)];
  const auto extent = [&] { return 1 + static_cast<int64_t>(rng() % 4); };
  const int64_t batch = extent(), rows = extent(), more = extent(),
                sides = extent();
  const auto operand = [&](core::Modes modes, core::ModeVector extents) {
    const auto order = rng() % 2 == 0 ? core::Order::kFirstModeFastest
                                      : core::Order::kLastModeFastest;
    return core::OperandDesc{.element_type = type,
                             .layout = core::PackedLayout(extents, order),
                             .modes = std::move(modes)};
  };
  core::LinearSolveDesc desc;
  desc.structure =
      static_cast<core::MatrixStructure>(rng() % core::kMatrixStructureCount);
  desc.has_unit_diagonal = core::IsTriangular(desc.structure) && rng() % 2 == 0;
  desc.a = operand({0, 1, 2, 3, 4}, {batch, rows, more, more, rows});
  if (rng() % 2 == 0) desc.a.unary = core::UnaryOperator::kConj;
  if (rng() % 3 == 0) {
    desc.d = operand({0, 3, 4, 5, 6}, {batch, more, rows, rows, more});
    if (rng() % 2 == 0) return desc;
    desc.function = core::MatrixFunction::kExponential;
    desc.a = operand({0, 1, 2, 3, 4}, {batch, rows, more, rows, more});
    desc.d = operand({0, 2, 5, 1, 6}, {batch, more, rows, rows, more});
    return desc;
  }
  desc.b = operand({5, 2, 0, 1}, {sides, more, batch, rows});
  if (rng() % 2 == 0) desc.b->unary = core::UnaryOperator::kConj;
  desc.d = operand({4, 0, 5, 3}, {rows, batch, sides, more});
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
    case 3:
      key.problem = core::Canonicalize(RandomContraction(rng).desc);
      break;
    case 4: key.problem = core::Canonicalize(RandomFactorization(rng)); break;
    default: key.problem = core::Canonicalize(RandomLinearSolve(rng));
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
