#include "core/backend/cpu/reduction_reference.h"

#include <bit>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/backend/cpu/block/element_math.h"
#include "core/backend/cpu/block/tile_space.h"
#include "core/backend/reference_solution.h"

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

template <typename T>
void Reduce(const Problem& problem, const ReductionOperands& operands) {
  const auto compute = problem.compute_type;
  const auto scaled = [&](const Scalar& factor, T x) {
    if (factor.IsOne()) return x;
    return RoundTo(compute, Multiply(RoundTo(compute, FactorAs<T>(factor)), x));
  };
  ForEachElement(problem.kept, [&](const auto& kept) {
    T sum(0);
    if (!operands.alpha.IsZero()) {
      PairwiseAccumulator<T> accumulator(problem.op);
      ForEachElement(problem.reduced, [&](const auto& reduced) {
        const T x =
            Load<T>(operands.a, problem.type_a, kept[Problem::kA] + reduced[0]);
        accumulator.Add(RoundTo(compute, ApplyUnary(problem.unary_a, x)));
      });
      sum = scaled(operands.alpha, RoundTo(compute, accumulator.Result()));
    }
    if (!operands.beta.IsZero()) {
      T x = Load<T>(operands.c, problem.type_d, kept[Problem::kC]);
      x = scaled(operands.beta,
                 RoundTo(compute, ApplyUnary(problem.unary_c, x)));
      sum = RoundTo(compute, ApplyBinary(BinaryOperator::kAdd, sum, x));
    }
    VisitElementType(problem.type_d, [&](auto zero) {
      using Stored = decltype(zero);
      if constexpr (kConverts<Stored, T>) {
        static_cast<Stored*>(operands.d)[kept[Problem::kD]] =
            ConvertElement<Stored>(sum);
      }
    });
  });
}

}  // namespace

std::unique_ptr<const ReductionKernel> CreateReferenceReduction() {
  return std::make_unique<SimpleReduction>(
      "cpu.reduce.reference", [](const Problem& problem) {
        return SolveByReference<ReductionOperands>(
            kNanosecondsPerElement *
                static_cast<double>(ElementCount(problem.kept)) *
                static_cast<double>(ElementCount(problem.reduced) + 1),
            problem,
            [](const Problem& p, const ReductionOperands& operands, Stream&) {
              VisitComputeElement(
                  ComputeElement(p.type_a, p.type_d, p.compute_type),
                  [&](auto zero) { Reduce<decltype(zero)>(p, operands); });
              return absl::OkStatus();
            });
      });
}

}  // namespace tensord::core
