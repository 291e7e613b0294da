// A contraction as a product of column-major matrices, as BLAS knows them.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "core/base/element_type.h"
#include "core/problem/contraction_problem.h"

namespace tensord::core::cuda {

/// What becomes of a stored matrix before it is multiplied.
enum class GemmForm : uint8_t {
  kPlain,
  kTransposed,
  kConjugateTransposed,
};

/// Where a column-major matrix lies. Its element (row, column) of batch i is at
/// row + column * leading_stride + i * batch_stride.
///
/// Units      strides count elements.
/// Invariant  leading_stride >= the number of its rows.
struct GemmMatrix {
  ElementType type = ElementType::kFloat32;
  int64_t leading_stride = 1;
  int64_t batch_stride = 0;

  bool operator==(const GemmMatrix&) const = default;
};

/// d = alpha * form_a(a) * form_b(b) + beta * c, `batch_count` times; d and c
/// have m rows and n columns, the sums k terms.
///
/// Invariant  m, n, k, batch_count are at least 1; m, n, k at most
///            kMaxGemmExtent; the types of a and b are equal, and those of c
///            and d.
/// Threads    immutable value; share freely.
struct GemmCall {
  /// a is the problem's b and the other way round.
  bool swaps = false;
  GemmForm form_a = GemmForm::kPlain;
  GemmForm form_b = GemmForm::kPlain;
  int64_t m = 1;
  int64_t n = 1;
  int64_t k = 1;
  int64_t batch_count = 1;
  GemmMatrix a;
  GemmMatrix b;
  GemmMatrix c;
  GemmMatrix d;
  ComputeType compute_type = ComputeType::kFloat32;

  int64_t rows_a() const { return form_a == GemmForm::kPlain ? m : k; }
  int64_t columns_a() const { return form_a == GemmForm::kPlain ? k : m; }
  int64_t rows_b() const { return form_b == GemmForm::kPlain ? k : n; }
  int64_t columns_b() const { return form_b == GemmForm::kPlain ? n : k; }

  /// In one line, for people: "matrix product of 8 x 8 x 8".
  std::string Text() const;

  bool operator==(const GemmCall&) const = default;
};

/// The largest extent that a BLAS's fields hold.
inline constexpr int64_t kMaxGemmExtent = (int64_t{1} << 31) - 1;

/// Whether there is a GEMM of that compute type for inputs of type `in` and a d
/// of type `out`: equal types, or float16 and bfloat16 into float32.
bool IsGemmType(ElementType in, ElementType out, ComputeType compute_type);

/// `problem` as one product of its operands as they lie. A mode of a and d, or
/// of b and d, may be the batch of a product that has no other: the other input
/// then has a batch stride of 0.
///
/// A function of the problem: no device, no addresses.
/// Errors  UNIMPLEMENTED, with the reason: operands that are no matrices, that
///         differ in type or have integers; larger extents than a GemmCall has.
absl::StatusOr<GemmCall> GemmCallOf(const ContractionProblem& problem);

}  // namespace tensord::core::cuda
