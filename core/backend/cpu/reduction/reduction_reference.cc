#include "core/backend/cpu/reduction/reduction_reference.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/backend/cpu/block/element_math.h"
#include "core/backend/cpu/block/tile_space.h"
#include "core/backend/reference_solution.h"
#include "core/ops/sort_key.h"

namespace tensord::core {
namespace {

using Problem = ReductionProblem;

constexpr double kNanosecondsPerElement = 20;

template <typename T>
T Load(const void* data, ElementType type, int64_t offset) {
  return VisitElementType(type, [&](auto zero) {
    using Stored = decltype(zero);
    if constexpr (kConverts<T, Stored>) {
      return ConvertElement<T>(static_cast<const Stored*>(data)[offset]);
    } else {
      return T(0);
    }
  });
}

/// Combines elements in pairs, pairs of pairs and so on, as they come.
template <typename T>
class PairwiseAccumulator {
 public:
  explicit PairwiseAccumulator(BinaryOperator op) : op_(op) {}

  void Add(T x) {
    // As many equal halves are complete as the count ends in ones.
    for (uint64_t rest = count_; rest & 1; rest >>= 1) {
      x = ApplyBinary(op_, halves_[std::popcount(rest) - 1], x);
    }
    ++count_;
    halves_[std::popcount(count_) - 1] = x;
  }

  T Result() const {
    if (count_ == 0) return IdentityOf<T>(op_);
    int i = std::popcount(count_) - 1;
    T x = halves_[i];
    while (--i >= 0) x = ApplyBinary(op_, halves_[i], x);
    return x;
  }

 private:
  BinaryOperator op_;
  uint64_t count_ = 0;
  T halves_[64];
};

/// Values of T and what becomes of them.
template <typename T>
class Reference {
 public:
  Reference(const Problem& problem, const ReductionOperands& operands)
      : problem_(problem), operands_(operands) {}

  void Run() const {
    ForEachElement(problem_.kept, [&](const auto& kept) {
      if (!problem_.is_along()) return Conclude(Reduced(kept[kA]), kept);
      problem_.sorts() ? Sort(kept) : Scan(kept);
    });
  }

 private:
  static constexpr size_t kA = Problem::kA, kC = Problem::kC, kD = Problem::kD;
  using Offsets = TileSpace<3>::Offsets;

  bool reads_a() const { return !operands_.alpha.IsZero(); }

  T Term(int64_t offset) const {
    const T x = Load<T>(operands_.a, problem_.type_a, offset);
    return RoundTo(problem_.compute_type, ApplyUnary(problem_.unary_a, x));
  }

  T Reduced(int64_t offset) const {
    if (!reads_a()) return T(0);
    PairwiseAccumulator<T> accumulator(problem_.op);
    ForEachElement(problem_.reduced, [&](const auto& reduced) {
      accumulator.Add(Term(offset + reduced[0]));
    });
    return accumulator.Result();
  }

  Offsets Along(const Offsets& kept, int64_t index) const {
    Offsets at = kept;
    for (size_t i = 0; i < at.size(); ++i) {
      at[i] += index * problem_.along.strides[i];
    }
    return at;
  }

  void Scan(const Offsets& kept) const {
    PairwiseAccumulator<T> accumulator(problem_.op);
    for (int64_t i = 0; i < problem_.along.extent; ++i) {
      if (CurrentWork::ShouldStop()) return;
      const Offsets at = Along(kept, i);
      if (reads_a()) accumulator.Add(Term(at[kA]));
      Conclude(accumulator.Result(), at);
    }
  }

  void Sort(const Offsets& kept) const {
    std::vector<int64_t> order(static_cast<size_t>(problem_.along.extent));
    std::iota(order.begin(), order.end(), 0);
    if (reads_a()) {
      VisitElementType(problem_.type_a, [&](auto zero) {
        using Stored = decltype(zero);
        if constexpr (!kIsComplex<Stored>) {
          const auto* const a = static_cast<const Stored*>(operands_.a);
          const auto key = [&](int64_t index) {
            return SortKey(a[Along(kept, index)[kA]]);
          };
          std::ranges::stable_sort(order, [&](int64_t x, int64_t y) {
            return problem_.sorting == Sorting::kAscending ? key(x) < key(y)
                                                           : key(y) < key(x);
          });
        }
      });
    }
    for (int64_t i = 0; i < problem_.along.extent; ++i) {
      Conclude(ConvertElement<T>(order[static_cast<size_t>(i)]),
               Along(kept, i));
    }
  }

  /// d = alpha * value + beta * unary_c(c) for one element.
  void Conclude(T value, const Offsets& at) const {
    T sum(0);
    if (reads_a()) sum = Scaled(operands_.alpha, Round(value));
    if (!operands_.beta.IsZero()) {
      const T x = Load<T>(operands_.c, problem_.type_d, at[kC]);
      const T term =
          Scaled(operands_.beta, Round(ApplyUnary(problem_.unary_c, x)));
      sum = Round(ApplyBinary(BinaryOperator::kAdd, sum, term));
    }
    VisitElementType(problem_.type_d, [&](auto zero) {
      using Stored = decltype(zero);
      if constexpr (kConverts<Stored, T>) {
        static_cast<Stored*>(operands_.d)[at[kD]] = ConvertElement<Stored>(sum);
      }
    });
  }

  T Round(T x) const { return RoundTo(problem_.compute_type, x); }
  T Scaled(const Scalar& factor, T x) const {
    return factor.IsOne() ? x : Round(Multiply(Round(FactorAs<T>(factor)), x));
  }

  const Problem& problem_;
  const ReductionOperands& operands_;
};

}  // namespace

std::unique_ptr<const ReductionKernel> CreateReferenceReduction() {
  return std::make_unique<SimpleReduction>(
      "cpu.reduce.reference", [](const Problem& problem) {
        return SolveByReference<ReductionOperands>(
            kNanosecondsPerElement *
                static_cast<double>(ElementCount(problem.kept)) *
                static_cast<double>(ElementCount(problem.reduced) + 1) *
                static_cast<double>(problem.along.extent + 1),
            problem,
            [](const Problem& p, const ReductionOperands& operands, Stream&) {
              VisitComputeElement(p.compute_element(), [&](auto zero) {
                Reference<decltype(zero)>(p, operands).Run();
              });
              return absl::OkStatus();
            });
      });
}

}  // namespace tensord::core
