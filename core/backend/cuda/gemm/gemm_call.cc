#include "core/backend/cuda/gemm/gemm_call.h"

#include <algorithm>
#include <array>
#include <optional>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace tensord::core::cuda {
namespace {

using Problem = ContractionProblem;

/// One mode of a product, or none. Strides are 0 in operands that lack it.
struct Axis {
  int64_t extent = 1;
  int64_t a = 0, b = 0, c = 0, d = 0;
};

/// A contraction whose groups all are single modes.
struct Axes {
  Axis m, n, k, batch;

  Axes Swapped() const {
    const auto swapped = [](Axis axis) {
      std::swap(axis.a, axis.b);
      return axis;
    };
    return {swapped(n), swapped(m), swapped(k), swapped(batch)};
  }
};

Axis OfM(const LoopMode<3>& mode) {
  return {mode.extent, mode.strides[Problem::kFreeInput], 0,
          mode.strides[Problem::kFreeC], mode.strides[Problem::kFreeD]};
}

Axis OfN(const LoopMode<3>& mode) {
  return {mode.extent, 0, mode.strides[Problem::kFreeInput],
          mode.strides[Problem::kFreeC], mode.strides[Problem::kFreeD]};
}

/// How a matrix of `rows` by `columns` that is stored with those strides can be
/// taken. Of a single row or column any stride will do.
struct Stored {
  bool is_transposed;
  int64_t leading_stride;
};
std::optional<Stored> AsStored(int64_t rows, int64_t row_stride,
                               int64_t columns, int64_t column_stride,
                               bool is_transposed) {
  if (is_transposed) {
    std::swap(rows, columns);
    std::swap(row_stride, column_stride);
  }
  if (rows > 1 && row_stride != 1) return std::nullopt;
  if (columns == 1) return Stored{is_transposed, rows};
  if (column_stride < rows) return std::nullopt;
  return Stored{is_transposed, column_stride};
}

/// The first way that has the form which conjugation asks for.
std::optional<Stored> InputAsStored(int64_t rows, int64_t row_stride,
                                    int64_t columns, int64_t column_stride,
                                    bool is_conjugate) {
  if (!is_conjugate) {
    const auto plain =
        AsStored(rows, row_stride, columns, column_stride, false);
    if (plain.has_value()) return plain;
  }
  return AsStored(rows, row_stride, columns, column_stride, true);
}

GemmForm FormOf(bool is_transposed, bool is_conjugate) {
  if (!is_transposed) return GemmForm::kPlain;
  return is_conjugate ? GemmForm::kConjugateTransposed : GemmForm::kTransposed;
}

struct Conjugations {
  bool a, b;
};

/// The product that `axes` are, d's rows being along m.
std::optional<GemmCall> CallOf(const Axes& axes, Conjugations conjugates) {
  const Axis &m = axes.m, &n = axes.n, &k = axes.k, &batch = axes.batch;
  const auto a = InputAsStored(m.extent, m.a, k.extent, k.a, conjugates.a);
  const auto b = InputAsStored(k.extent, k.b, n.extent, n.b, conjugates.b);
  const auto c = AsStored(m.extent, m.c, n.extent, n.c, false);
  const auto d = AsStored(m.extent, m.d, n.extent, n.d, false);
  if (!a || !b || !c || !d) return std::nullopt;
  GemmCall call{.form_a = FormOf(a->is_transposed, conjugates.a),
                .form_b = FormOf(b->is_transposed, conjugates.b),
                .m = m.extent,
                .n = n.extent,
                .k = k.extent,
                .batch_count = batch.extent,
                .a = {.leading_stride = a->leading_stride},
                .b = {.leading_stride = b->leading_stride},
                .c = {.leading_stride = c->leading_stride},
                .d = {.leading_stride = d->leading_stride}};
  if (batch.extent > 1) {
    call.a.batch_stride = batch.a;
    call.b.batch_stride = batch.b;
    call.c.batch_stride = batch.c;
    call.d.batch_stride = batch.d;
  }
  return call;
}

/// The ways to take the problem's groups as single modes: as they are or, where
/// m or n has two and there is no batch, with either of the two as the batch.
absl::InlinedVector<Axes, 4> WaysToTake(const Problem& problem) {
  const auto first = [](const auto& modes) {
    return modes.empty() ? std::decay_t<decltype(modes[0])>{1, {}} : modes[0];
  };
  Axes axes;
  const auto k = first(problem.k);
  axes.k = {k.extent, k.strides[Problem::kSumA], k.strides[Problem::kSumB], 0,
            0};
  if (problem.batch.size() == 1) {
    const auto& batch = problem.batch[0];
    axes.batch = {batch.extent, batch.strides[Problem::kBatchA],
                  batch.strides[Problem::kBatchB],
                  batch.strides[Problem::kBatchC],
                  batch.strides[Problem::kBatchD]};
  }
  const size_t m_count = problem.m.size(), n_count = problem.n.size();
  const size_t batch_count = problem.batch.size();
  absl::InlinedVector<Axes, 4> ways;
  if (problem.k.size() > 1 || batch_count > 1) return ways;
  if (m_count <= 1 && n_count <= 1) {
    axes.m = OfM(first(problem.m));
    axes.n = OfN(first(problem.n));
    ways.push_back(axes);
  } else if (batch_count == 0 && m_count == 2 && n_count <= 1) {
    axes.n = OfN(first(problem.n));
    for (const size_t batch : {1, 0}) {
      axes.batch = OfM(problem.m[batch]);
      axes.m = OfM(problem.m[1 - batch]);
      ways.push_back(axes);
    }
  } else if (batch_count == 0 && n_count == 2 && m_count <= 1) {
    axes.m = OfM(first(problem.m));
    for (const size_t batch : {1, 0}) {
      axes.batch = OfN(problem.n[batch]);
      axes.n = OfN(problem.n[1 - batch]);
      ways.push_back(axes);
    }
  }
  return ways;
}

bool IsTooLarge(const Axes& axes) {
  return std::max({axes.m.extent, axes.n.extent, axes.k.extent}) >
         kMaxGemmExtent;
}

}  // namespace

std::string GemmCall::Text() const {
  std::string text = absl::StrCat("matrix product of ", m, " x ", n, " x ", k);
  if (batch_count > 1) absl::StrAppend(&text, ", ", batch_count, " batches");
  if (swaps) absl::StrAppend(&text, ", b by a");
  return text;
}

bool IsGemmType(ElementType in, ElementType out, ComputeType compute_type) {
  switch (in) {
    case ElementType::kFloat16:
    case ElementType::kBfloat16:
      return (out == in || out == ElementType::kFloat32) &&
             compute_type == ComputeType::kFloat32;
    case ElementType::kFloat32:
    case ElementType::kComplex64:
      return out == in && compute_type != ComputeType::kFloat64;
    case ElementType::kFloat64:
    case ElementType::kComplex128:
      return out == in && compute_type == ComputeType::kFloat64;
    default: return false;
  }
}

absl::StatusOr<GemmCall> GemmCallOf(const Problem& problem) {
  if (problem.type_a != problem.type_b ||
      !IsGemmType(problem.type_a, problem.type_d, problem.compute_type)) {
    return Unimplemented(
        "TYPE_UNSUPPORTED", "there is no GEMM of ", NameOf(problem.type_a),
        " and ", NameOf(problem.type_b), " into ", NameOf(problem.type_d),
        " in ", NameOf(problem.compute_type));
  }
  if (!problem.a_only.empty() || !problem.b_only.empty()) {
    return Unimplemented("MODES_IN_ONE_INPUT",
                         "modes of one input only are summed");
  }
  if (ElementCount(problem.k) == 0) {
    return Unimplemented("NO_TERMS", "there is nothing to sum");
  }
  if (problem.conj_c) {
    return Unimplemented("CONJUGATE_C", "c is conjugated");
  }
  absl::Status refusal =
      Unimplemented("NO_MATRICES",
                    "operands are no matrices as they lie, or conjugated but "
                    "not transposed");
  for (const Axes& way : WaysToTake(problem)) {
    for (const bool swaps : {false, true}) {
      const Axes axes = swaps ? way.Swapped() : way;
      Conjugations conjugates{problem.conj_a, problem.conj_b};
      if (swaps) std::swap(conjugates.a, conjugates.b);
      std::optional<GemmCall> call = CallOf(axes, conjugates);
      if (!call.has_value()) continue;
      if (IsTooLarge(axes)) {
        refusal = Unimplemented("GEMM_TOO_LARGE", "it is a product of ",
                                axes.m.extent, " x ", axes.n.extent, " x ",
                                axes.k.extent, ", at most ", kMaxGemmExtent,
                                " of each are possible");
        continue;
      }
      call->swaps = swaps;
      call->a.type = call->b.type = problem.type_a;
      call->c.type = call->d.type = problem.type_d;
      call->compute_type = problem.compute_type;
      return *call;
    }
  }
  return refusal;
}

}  // namespace tensord::core::cuda
