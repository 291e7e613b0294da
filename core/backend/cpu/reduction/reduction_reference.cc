#include "core/backend/cpu/reduction/reduction_reference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "core/backend/cpu/block/element_math.h"
#include "core/backend/cpu/block/tile_space.h"
#include "core/ops/sort_key.h"
#include "core/problem/heap_bytes.h"

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
  /// Requires  room for the indices of SortBytes() where it sorts.
  Reference(const Problem& problem, const ReductionOperands& operands,
            int64_t* indices)
      : problem_(problem), operands_(operands), indices_(indices) {}

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
    const int64_t extent = problem_.along.extent;
    int64_t* order = indices_;
    std::iota(order, order + extent, 0);
    if (reads_a()) {
      VisitElementType(problem_.type_a, [&](auto zero) {
        using Stored = decltype(zero);
        if constexpr (!kIsComplex<Stored>) {
          const auto* const a = static_cast<const Stored*>(operands_.a);
          const bool ascends = problem_.sorting == Sorting::kAscending;
          order = Sorted([&](int64_t x, int64_t y) {
            const auto key_x = SortKey(a[Along(kept, x)[kA]]);
            const auto key_y = SortKey(a[Along(kept, y)[kA]]);
            return ascends ? key_x < key_y : key_y < key_x;
          });
        }
      });
    }
    for (int64_t i = 0; i < extent && !CurrentWork::ShouldStop(); ++i) {
      Conclude(ConvertElement<T>(order[i]), Along(kept, i));
    }
  }

  /// The indices, which are in `indices_`, in order: runs are merged, so that
  /// equal ones stay as they are.
  template <typename Less>
  int64_t* Sorted(const Less& is_less) const {
    const int64_t extent = problem_.along.extent;
    int64_t* from = indices_;
    int64_t* to = indices_ + extent;
    for (int64_t run = 1; run < extent; run *= 2) {
      for (int64_t begin = 0; begin < extent; begin += 2 * run) {
        if (CurrentWork::ShouldStop()) return from;
        int64_t* const first = from + begin;
        int64_t* const middle = from + std::min(begin + run, extent);
        int64_t* const last = from + std::min(begin + 2 * run, extent);
        std::merge(first, middle, middle, last, to + begin, is_less);
      }
      std::swap(from, to);
    }
    return from;
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
  int64_t* const indices_;
};

/// Of indices along the mode, twice.
int64_t SortBytes(const Problem& problem) {
  if (!problem.sorts()) return 0;
  return Workspace::BytesFor(2 * problem.along.extent *
                             static_cast<int64_t>(sizeof(int64_t)));
}

double PredictNanoseconds(const Problem& problem) {
  const auto along = static_cast<double>(problem.along.extent + 1);
  return kNanosecondsPerElement *
         static_cast<double>(ElementCount(problem.kept)) *
         static_cast<double>(ElementCount(problem.reduced) + 1) * along *
         (problem.sorts() ? std::log2(along) : 1);
}

class ReferenceReductionSolution final : public ReductionSolution {
 public:
  explicit ReferenceReductionSolution(const Problem& problem)
      : Solution(PredictNanoseconds(problem), SortBytes(problem)),
        problem_(problem) {}

  std::string decision() const override { return "element by element"; }
  int64_t bytes() const override {
    return HeapBlockBytes(sizeof(*this)) + HeapBytes(problem_);
  }
  absl::Status Launch(const ReductionOperands& operands, Workspace& workspace,
                      Stream&) const override {
    int64_t* const indices =
        workspace_bytes() == 0
            ? nullptr
            : workspace.Take<int64_t>(2 * problem_.along.extent);
    VisitComputeElement(problem_.compute_element(), [&](auto zero) {
      Reference<decltype(zero)>(problem_, operands, indices).Run();
    });
    return absl::OkStatus();
  }

 private:
  const Problem problem_;
};

}  // namespace

std::unique_ptr<const ReductionKernel> CreateReferenceReduction() {
  return std::make_unique<SimpleReduction>(
      "cpu.reduce.reference", [](const Problem& problem) {
        return std::make_unique<ReferenceReductionSolution>(problem);
      });
}

}  // namespace tensord::core
