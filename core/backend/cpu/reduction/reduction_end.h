// What becomes of values that a reduction gave.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/backend/cpu/block/tile_operand.h"
#include "core/backend/kernel.h"

namespace tensord::core {

/// d = alpha * value + beta * unary_c(c), tile by tile.
///
/// Threads  immutable; share freely.
/// Lifetime  operands outlive it.
template <typename T>
class ReductionEnd {
 public:
  using Problem = ReductionProblem;

  ReductionEnd(const Problem& problem, const ReductionOperands& operands,
               ElementType element, Stores stores = Stores::kCached)
      : c_(operands.c, {.stored = problem.type_d,
                        .element = element,
                        .compute = problem.compute_type,
                        .unary = problem.unary_c,
                        .factor = operands.beta}),
        d_(operands.d, element, problem.type_d, stores),
        add_(FindBinary<T>(BinaryOperator::kAdd)),
        round_(FindRounding<T>(problem.compute_type)),
        alpha_(RoundTo(problem.compute_type, FactorAs<T>(operands.alpha))),
        reads_a_(!operands.alpha.IsZero()),
        scales_(!operands.alpha.IsOne()) {}

  /// Otherwise values count for nothing.
  bool reads_a() const { return reads_a_; }

  /// Stores a tile of values, which it changes. It lies in c and d as they say,
  /// and in `values` without gaps.
  void Store(T* values, const TileLayout& in_c, const TileLayout& in_d,
             TileBuffer<T>& block, TileBuffer<T>& scratch) const {
    const int64_t count = in_d.count();
    if (!reads_a_) {
      std::fill_n(values, count, T(0));
    } else {
      Round(values, count);
      if (scales_) {
        Scale(alpha_, values, count);
        Round(values, count);
      }
    }
    if (!c_.is_zero()) {
      add_(values, c_.Load(in_c, block.data(), scratch), values, count);
      Round(values, count);
    }
    const bool turns =
        in_d.stride_j < in_d.stride_i && in_d.count_i > 1 && in_d.count_j > 1;
    if (!turns) return d_.Store(values, in_d, scratch);
    constexpr int64_t kSize = sizeof(T);
    TransposePiece(kSize,
                   {.a = reinterpret_cast<const std::byte*>(values),
                    .d = block.bytes,
                    .rows = in_d.count_j,
                    .columns = in_d.count_i,
                    .a_row_bytes = in_d.count_i * kSize,
                    .d_row_bytes = in_d.count_j * kSize},
                   Stores::kCached, 0);
    d_.Store(block.data(),
             {.offset = in_d.offset,
              .count_i = in_d.count_j,
              .count_j = in_d.count_i,
              .stride_i = in_d.stride_j,
              .stride_j = in_d.stride_i},
             scratch);
  }

 private:
  void Round(T* values, int64_t count) const {
    if (round_ != nullptr) round_(values, count);
  }

  TileInput<T> c_;
  TileOutput<T> d_;
  BinaryBlock<T> add_;
  UnaryBlock<T> round_;
  T alpha_;
  bool reads_a_, scales_;
};

}  // namespace tensord::core
