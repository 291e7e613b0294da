// What the kernels that contract without copies share.
#pragma once

#include <cuda_runtime.h>

#include <complex>
#include <cstdint>
#include <type_traits>

#include "core/backend/cuda/kernel/contraction_tasks.h"
#include "core/backend/cuda/kernel/element_math.cuh"
#include "core/backend/cuda/kernel/groups/element_group.cuh"
#include "core/backend/cuda/kernel/index_space.cuh"
#include "core/backend/cuda/kernel/operand_rounding.cuh"

namespace tensord::core::cuda {

template <typename T>
__device__ __forceinline__ void MultiplyAdd(T x, T y, T& sum) {
  if constexpr (kIsComplex<T>) {
    using Part = typename T::value_type;
    Part real = sum.real(), imaginary = sum.imag();
    real += x.real() * y.real();
    real -= x.imag() * y.imag();
    imaginary += x.real() * y.imag();
    imaginary += x.imag() * y.real();
    sum = T(real, imaginary);
  } else if constexpr (std::is_integral_v<T>) {
    sum = Joined<BinaryOperator::kAdd>(sum, Joined<BinaryOperator::kMul>(x, y));
  } else {
    sum += x * y;
  }
}

/// alpha or beta, converted once; integers wrap, and may do so to T.
template <typename T>
class SumFactor {
 public:
  SumFactor() = default;
  explicit __device__ __forceinline__ SumFactor(const double (&factor)[2]) {
    if constexpr (std::is_integral_v<T>) {
      factor_ = static_cast<T>(static_cast<int64_t>(factor[0]));
    } else {
      factor_ = FactorAs<T>(Arithmetic(), factor[0], factor[1]);
    }
    is_one_ = factor[0] == 1 && factor[1] == 0;
  }

  __device__ __forceinline__ T Times(T x) const {
    if constexpr (kIsComplex<T>) {
      // A product with (1, 0) would turn the other part of an infinity into
      // NaN.
      return is_one_ ? x : Multiply(factor_, x);
    } else {
      return Joined<BinaryOperator::kMul>(factor_, x);
    }
  }

 private:
  T factor_ = T{1};
  bool is_one_ = true;
};

/// The element of an operand as it is multiplied.
template <typename Stored>
__device__ __forceinline__ ComputedIn<Stored> FactorOf(Stored element,
                                                       OperandRounding rounding,
                                                       bool conjugates) {
  const auto factor = Convert<ComputedIn<Stored>>(element);
  if constexpr (std::is_integral_v<Stored>) {
    return factor;
  } else {
    return ConjugatedIf(conjugates, Rounded(rounding, factor));
  }
}

/// Adds the products of a column of a and a row of b to the sums.
template <typename Stored, uint32_t rows, uint32_t columns>
__device__ __forceinline__ void MultiplyTerm(
    const ContractionFormula& formula, const Stored (&column)[rows],
    const Stored (&row)[columns], ComputedIn<Stored> (&sums)[rows][columns]) {
  ComputedIn<Stored> factors[columns];
#pragma unroll
  for (uint32_t x = 0; x < columns; ++x) {
    factors[x] = FactorOf(row[x], formula.rounding_b, formula.conj_b);
  }
#pragma unroll
  for (uint32_t y = 0; y < rows; ++y) {
    const auto factor = FactorOf(column[y], formula.rounding_a, formula.conj_a);
#pragma unroll
    for (uint32_t x = 0; x < columns; ++x) {
      MultiplyAdd(factor, factors[x], sums[y][x]);
    }
  }
}

/// The offsets of the `index`-th element of m (or n) in the input, c and d;
/// negative ones where there is none.
__device__ __forceinline__ Offsets<3> OffsetsOf(const DirectSide& side,
                                                uint32_t index) {
  if (index < side.space.count) {
    const Offsets<5> offsets = OffsetsOf(side.space, index);
    if (offsets.at[3] < side.cut_extents[0] &&
        offsets.at[4] < side.cut_extents[1]) {
      return {{offsets.at[0], offsets.at[1], offsets.at[2]}};
    }
  }
  return {{-1, -1, -1}};
}

/// Stores what becomes of sums.
template <typename Stored>
struct SumStore {
  using T = ComputedIn<Stored>;

  /// As elements of d, the offsets of which begin at `base_d`, and of c.
  __device__ __forceinline__ SumStore(const ContractionFormula& formula,
                                      int64_t base_c, int64_t base_d)
      : alpha(formula.alpha),
        beta(formula.beta),
        conj_c(formula.conj_c),
        d(static_cast<Stored*>(formula.d) + base_d) {
    if (formula.c != nullptr) {
      c = static_cast<const Stored*>(formula.c) + base_c;
    }
  }

  /// As they are.
  explicit __device__ __forceinline__ SumStore(T* sums) {
    if constexpr (std::is_same_v<Stored, T>) {
      d = sums;
    } else {
      partial = sums;
    }
  }

  __device__ __forceinline__ void Store(T sum, int64_t at_c,
                                        int64_t at_d) const {
    if constexpr (!std::is_same_v<Stored, T>) {
      if (partial != nullptr) {
        partial[at_d] = sum;
        return;
      }
    }
    T value = alpha.Times(sum);
    if (c != nullptr) {
      const T added = ConjugatedIf(conj_c, Convert<T>(c[at_c]));
      value = Joined<BinaryOperator::kAdd>(value, beta.Times(added));
    }
    d[at_d] = Convert<Stored>(value);
  }

  SumFactor<T> alpha, beta;
  bool conj_c = false;
  const Stored* c = nullptr;
  Stored* d = nullptr;
  T* partial = nullptr;
};

/// What a block of threads computes: a tile of one batch, over one part of the
/// terms. Tiles follow one another along m, then along n.
struct DirectBlock {
  __device__ __forceinline__ DirectBlock(const ContractionDirectTask& task,
                                         const DirectTileExtents& tile) {
    const uint32_t rest_n = Quotient(blockIdx.x, task.tiles_m);
    const uint32_t rest_split = Quotient(rest_n, task.tiles_n);
    const uint32_t batch = Quotient(rest_split, task.split_count);
    split = rest_split - batch * task.split_count.divisor;
    first_m = (blockIdx.x - rest_n * task.tiles_m.divisor) * tile.m;
    first_n = (rest_n - rest_split * task.tiles_n.divisor) * tile.n;
    first_k = split * task.part;
    end_k = min(first_k + task.part, task.k_count);
    base = OffsetsOf(task.batch, batch);
  }

  /// For sums at offsets behind the batch's first element of c and d.
  template <typename Stored>
  __device__ __forceinline__ SumStore<Stored> StoreOf(
      const ContractionDirectTask& task) const {
    using T = ComputedIn<Stored>;
    if (task.partial == nullptr) {
      return SumStore<Stored>(task.formula, base.at[2], base.at[3]);
    }
    return SumStore<Stored>(static_cast<T*>(task.partial) +
                            int64_t{split} * task.element_count + base.at[3]);
  }

  uint32_t first_m, first_n;
  uint32_t first_k, end_k;
  uint32_t split;
  Offsets<4> base;
};

}  // namespace tensord::core::cuda
