#include "core/problem/factorization_problem.h"

#include <algorithm>
#include <utility>

namespace tensord::core {
namespace {

/// Loops over a and a factor, in the order that numbers what they visit.
LoopModes<2> InOrder(const OperandDesc& a, const OperandDesc* factor,
                     const Modes& modes) {
  LoopModes<2> loops;
  for (size_t i = modes.size(); i-- > 0;) {  // the last one is fastest
    loops.push_back(
        {a.layout.extents[PositionOf(modes[i], a.modes)],
         {StrideAlong(&a, modes[i]), StrideAlong(factor, modes[i])}});
  }
  return loops;
}

}  // namespace

std::array<const OperandDesc*, 3> FactorsOf(const FactorizationDesc& desc) {
  const OperandDesc* left = &desc.left;
  const OperandDesc* right = desc.right ? &*desc.right : nullptr;
  if (desc.method == FactorizationMethod::kLq) std::swap(left, right);
  return {left, right, desc.values ? &*desc.values : nullptr};
}

FactorizationProblem Canonicalize(const FactorizationDesc& desc) {
  using P = FactorizationProblem;
  const OperandDesc& a = desc.a;
  FactorizationModes modes =
      *GroupModes(desc.method, a, desc.left.modes,
                  desc.right ? &desc.right->modes : nullptr,
                  desc.values ? &desc.values->modes : nullptr);
  const auto [left, right, values] = FactorsOf(desc);
  P problem{.method = desc.method,
            .type = a.element_type,
            .has_values = values != nullptr};
  if (desc.method == FactorizationMethod::kLq) {
    problem.method = FactorizationMethod::kQr;
    std::swap(modes.rows, modes.columns);
  }
  LoopModes<4> batch;
  for (const Mode mode : modes.batch) {
    batch.push_back({a.layout.extents[PositionOf(mode, a.modes)],
                     {StrideAlong(&a, mode), StrideAlong(left, mode),
                      StrideAlong(right, mode), StrideAlong(values, mode)}});
  }
  problem.batch = Canonical(std::move(batch), P::kBatchA);
  const LoopModes<2> rows = InOrder(a, left, modes.rows);
  problem.rows =
      PairsRows(desc.method) ? MergedInOrder(rows) : Canonical(rows, P::kA);
  problem.columns = MergedInOrder(InOrder(a, right, modes.columns));
  problem.inner_extent =
      left->layout.extents[PositionOf(modes.inner, left->modes)];
  problem.inner_stride_left = StrideAlong(left, modes.inner);
  problem.inner_stride_right = StrideAlong(right, modes.inner);
  problem.inner_stride_values = StrideAlong(values, modes.inner);
  if (desc.sampling) {
    const int64_t sampled = problem.inner_extent + desc.sampling->oversampling;
    if (sampled < modes.inner_extent) {
      problem.sampled = sampled;
      problem.power_iterations = desc.sampling->power_iterations;
    }
  }
  return problem;
}

double FlopCount(const FactorizationProblem& p) {
  const auto m = static_cast<double>(ElementCount(p.rows));
  const auto n = static_cast<double>(ElementCount(p.columns));
  const double k = std::min(m, n), l = std::max(m, n);
  double one = 0;
  switch (p.method) {
    case FactorizationMethod::kQr:
    case FactorizationMethod::kLq:
      one = 2 * k * k * (l + m) - 4 * k * k * k / 3;
      break;
    case FactorizationMethod::kSvd: one = 6 * l * k * k + 20 * k * k * k; break;
    case FactorizationMethod::kEigh: one = 9 * k * k * k; break;
    case FactorizationMethod::kCholesky: one = k * k * k / 3; break;
  }
  return one * static_cast<double>(ElementCount(p.batch)) *
         (IsComplex(p.type) ? 4 : 1);
}

double SampledFlopCount(const FactorizationProblem& p) {
  const auto m = static_cast<double>(ElementCount(p.rows));
  const auto n = static_cast<double>(ElementCount(p.columns));
  const auto l = static_cast<double>(p.sampled);
  const auto q = static_cast<double>(p.power_iterations);
  const double one = 4 * m * n * l * (1 + q) + 4 * l * l * (m + q * (m + n)) +
                     6 * n * l * l + 20 * l * l * l + 2 * m * l * l;
  return one * static_cast<double>(ElementCount(p.batch)) *
         (IsComplex(p.type) ? 4 : 1);
}

}  // namespace tensord::core
