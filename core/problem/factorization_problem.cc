#include "core/problem/factorization_problem.h"

#include <algorithm>
#include <utility>

namespace tensord::core {
LoopModes<2> MergedInOrder(const LoopModes<2>& loops) {
  LoopModes<2> merged;
  for (const LoopMode<2>& loop : loops) {
    if (loop.extent == 1) continue;
    if (!merged.empty()) {
      LoopMode<2>& inner = merged.back();
      if (loop.strides[0] == inner.extent * inner.strides[0] &&
          loop.strides[1] == inner.extent * inner.strides[1]) {
        inner.extent *= loop.extent;
        continue;
      }
    }
    merged.push_back(loop);
  }
  return merged;
}

FactorizationProblem Canonicalize(const FactorizationDesc& desc) {
  using P = FactorizationProblem;
  const OperandDesc &a = desc.a, &q = desc.q, &r = desc.r;
  P problem{.method = desc.method, .type = a.element_type};
  LoopModes<3> batch;
  LoopModes<2> rows, columns;
  for (size_t i = 0; i < q.modes.size(); ++i) {
    const int in_a = PositionOf(q.modes[i], a.modes);
    const int in_r = PositionOf(q.modes[i], r.modes);
    const int64_t extent = q.layout.extents[i];
    const int64_t stride = q.layout.strides[i];
    if (in_a < 0) {
      problem.inner_extent = extent;
      problem.inner_stride_q = stride;
      problem.inner_stride_r = r.layout.strides[in_r];
    } else if (in_r < 0) {
      rows.push_back({extent, {a.layout.strides[in_a], stride}});
    } else {
      batch.push_back(
          {extent, {a.layout.strides[in_a], stride, r.layout.strides[in_r]}});
    }
  }
  for (size_t i = r.modes.size(); i-- > 0;) {  // the last one is fastest
    if (PositionOf(r.modes[i], q.modes) >= 0) continue;
    const int in_a = PositionOf(r.modes[i], a.modes);
    columns.push_back(
        {r.layout.extents[i], {a.layout.strides[in_a], r.layout.strides[i]}});
  }
  problem.batch = Canonical(std::move(batch), P::kBatchA);
  problem.rows = Canonical(std::move(rows), P::kA);
  problem.columns = MergedInOrder(columns);
  return problem;
}

double FlopCount(const FactorizationProblem& p) {
  const auto m = static_cast<double>(ElementCount(p.rows));
  const auto n = static_cast<double>(ElementCount(p.columns));
  const auto k = static_cast<double>(p.inner_extent);
  const double one = 2 * k * k * (std::max(m, n) + m) - 4 * k * k * k / 3;
  return one * static_cast<double>(ElementCount(p.batch)) *
         (IsComplex(p.type) ? 4 : 1);
}

}  // namespace tensord::core
