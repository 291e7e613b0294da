// Any reduction, a thread a kept element.
#include "core/backend/cuda/kernel/along/sort_key.cuh"
#include "core/backend/cuda/kernel/index_space.cuh"
#include "core/backend/cuda/kernel/launch.cuh"
#include "core/backend/cuda/kernel/reduction_formula.cuh"

namespace tensord::core::cuda {
namespace {

constexpr uint32_t kThreads = 128;
constexpr int kLevels = 60;

/// Combines values in pairs, pairs of pairs and so on.
template <typename T>
class Pairs {
 public:
  __device__ Pairs(const ReductionFormula& formula)
      : formula_(formula), sums_(SumArithmetic(formula)) {}

  __device__ void Add(T x) {
    int level = 0;
    for (int64_t ones = count_++; ones & 1; ones >>= 1) {
      x = ApplyReducing(sums_, formula_.op, levels_[level++], x);
    }
    levels_[level] = x;
  }
  __device__ T Result() const {
    T result = IdentityOf<T>(formula_.op, formula_.type_d);
    for (int level = 0; level < kLevels; ++level) {
      if (count_ >> level & 1) {
        result = ApplyReducing(sums_, formula_.op, levels_[level], result);
      }
    }
    return result;
  }

 private:
  const ReductionFormula& formula_;
  const Arithmetic sums_;
  int64_t count_ = 0;
  T levels_[kLevels];
};

/// Where the results of a kept element go along the mode.
template <typename T>
__device__ void ConcludeAt(const ReductionReferenceTask& task,
                           const Offsets<3>& base, int64_t at, T value) {
  Conclude<true>(task.formula, task.formula.type_d, value,
                 base.at[1] + at * task.along.strides[1],
                 base.at[2] + at * task.along.strides[2]);
}

template <typename T>
__device__ void ScanOne(const ReductionReferenceTask& task,
                        const Offsets<3>& base) {
  Pairs<T> pairs(task.formula);
  for (int64_t at = 0; at < task.along.extent; ++at) {
    if (task.formula.a != nullptr) {
      pairs.Add(
          TermAt<T>(task.formula, base.at[0] + at * task.along.strides[0]));
    }
    ConcludeAt(task, base, at, pairs.Result());
  }
}

/// Each element's place is how many come before it.
__device__ void SortOne(const ReductionReferenceTask& task,
                        const Offsets<3>& base) {
  const ReductionFormula& formula = task.formula;
  const auto key = [&](int64_t at) {
    return SortKeyAt(formula.a, formula.type_a, task.sorting,
                     base.at[0] + at * task.along.strides[0]);
  };
  for (int64_t at = 0; at < task.along.extent; ++at) {
    int64_t place = formula.a == nullptr ? at : 0;
    for (int64_t i = 0; formula.a != nullptr && i < task.along.extent; ++i) {
      if (key(i) < key(at) || (key(i) == key(at) && i < at)) ++place;
    }
    ConcludeAt(task, base, place, at);
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    Reference(const ReductionReferenceTask __grid_constant__ task) {
  const ReductionFormula& formula = task.formula;
  ForEachIndex(task.kept.count, [&](int64_t index) {
    const Offsets<3> base = OffsetsOf(task.kept, index);
    if (task.sorting != Sorting::kNone) {
      SortOne(task, base);
    } else if (task.along.extent > 0) {
      ScanOne<T>(task, base);
    } else {
      Pairs<T> pairs(formula);
      const int64_t count = formula.a == nullptr ? 0 : task.reduced.count;
      for (int64_t r = 0; r < count; ++r) {
        pairs.Add(
            TermAt<T>(formula, base.at[0] + OffsetsOf(task.reduced, r).at[0]));
      }
      Conclude<true>(formula, formula.type_d, pairs.Result(), base.at[1],
                     base.at[2]);
    }
  });
}

}  // namespace

cudaError_t QueueReductionReference(const ReductionReferenceTask& task,
                                    cudaStream_t stream) {
  const Grid grid = GridOf(task.kept.count, kThreads);
  return VisitArithmetic(task.formula.compute, [&](auto zero) {
    return Launch(grid, stream, &Reference<decltype(zero)>, task);
  });
}

}  // namespace tensord::core::cuda
