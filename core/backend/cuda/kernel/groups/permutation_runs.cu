// Runs that are contiguous in a and in d, moved, scaled or converted 16 bytes
// at a time wherever they begin.
#include <algorithm>

#include "core/backend/cuda/kernel/element_change.cuh"
#include "core/backend/cuda/kernel/groups/element_group.cuh"
#include "core/backend/cuda/kernel/index_space.cuh"
#include "core/backend/cuda/kernel/launch.cuh"
#include "core/backend/cuda/kernel/permutation_tasks.h"

namespace tensord::core::cuda {
namespace {

constexpr uint32_t kThreads = RunsTask::kThreads;
constexpr uint32_t kGroups = RunsTask::kGroupsPerThread;
// That a multiprocessor holds, at least.
constexpr uint32_t kBlocks = 4;

template <typename A, typename D>
constexpr int kWidth = kGroupBytes /
                       static_cast<int>(std::max(sizeof(A), sizeof(D)));

/// A group of d and what it is made of.
template <typename A, typename D>
struct Work {
  const A* row;  // the run that it is part of
  int32_t at;    // in the run; below 0 where the run begins within the group
  D* to;
  int begin, end;  // elements of the group that are there
};

template <typename A, typename D>
__device__ __forceinline__ Work<A, D> WorkOf(const RunsTask& task,
                                             uint32_t index) {
  constexpr int width = kWidth<A, D>;
  Work<A, D> work;
  const auto& groups = task.modes.modes[0];
  const uint32_t rest = Quotient(index, groups.extent);
  Offsets<2> offsets;
  uint32_t left = rest;
  for (int m = 1; m < task.modes.mode_count; ++m) {
    const auto& mode = task.modes.modes[m];
    const uint32_t next = Quotient(left, mode.extent);
    const int64_t place = left - next * mode.extent.divisor;
    offsets.at[0] += place * mode.strides[0];
    offsets.at[1] += place * mode.strides[1];
    left = next;
  }
  D* const row = static_cast<D*>(task.move.d) + offsets.at[1];
  work.at = static_cast<int32_t>(index - rest * groups.extent.divisor) * width;
  if (task.is_shifted) {
    work.at -= static_cast<int32_t>(reinterpret_cast<uintptr_t>(row) /
                                    sizeof(D) % width);
  }
  work.row = static_cast<const A*>(task.move.a) + offsets.at[0];
  work.to = row + work.at;
  work.begin = max(-work.at, 0);
  // Without a branch, so that addresses are known to be of global memory.
  work.end = index < task.modes.count
                 ? min(static_cast<int>(task.run) - work.at, width)
                 : 0;
  return work;
}

// Where the elements of the other operand are wider, a group has 8 bytes.
// Stores are written as calls: the compiler takes others apart again, into
// those of words that it has at hand.

template <typename T>
constexpr bool kHasHalves = sizeof(T) <= sizeof(uint32_t);

template <typename T>
__device__ __forceinline__ Group<T> LoadHalf(const T* from) {
  static_assert(kHasHalves<T>);
  const uint2 words = *reinterpret_cast<const uint2*>(from);
  Group<T> group;
  group.words[0] = words.x;
  group.words[1] = words.y;
  return group;
}

template <typename T>
__device__ __forceinline__ void StoreHalf(const Group<T>& group, T* to) {
  static_assert(kHasHalves<T>);
  __stwb(reinterpret_cast<uint2*>(to), uint2{group.words[0], group.words[1]});
}

/// The elements of a group on their way.
template <typename A>
struct Loaded {
  Group<A> low, high;
  /// Bytes of `low` before the first one; `high` is loaded when there are any,
  /// or the second half of `low` where a group has 8 bytes.
  uint32_t shift = 0;
};

/// Reads a group at once, or the two of which it is part, where all of those is
/// in the run; element by element otherwise.
template <typename A, typename D>
__device__ __forceinline__ Loaded<A> Load(const RunsTask& task,
                                          const Work<A, D>& work) {
  constexpr int width = kWidth<A, D>;
  constexpr uint32_t kBytes = width * sizeof(A);
  const A* const from = work.row + work.at;
  const auto shift =
      static_cast<uint32_t>(reinterpret_cast<uintptr_t>(from) % kBytes);
  const auto before = static_cast<int32_t>(shift / sizeof(A));
  const int32_t first = work.at - before;
  const int32_t last = first + (shift > 0 ? 2 : 1) * width;
  Loaded<A> loaded;
  if (first >= 0 && last <= static_cast<int32_t>(task.run) &&
      work.end == width) {
    const A* const aligned = work.row + first;
    loaded.shift = shift;
    if constexpr (kBytes == kGroupBytes) {
      loaded.low = LoadGroup<A>(aligned);
      if (shift > 0) loaded.high = LoadGroup<A>(aligned + width);
    } else {
      loaded.low = LoadHalf(aligned);
      if (shift > 0) {
        const Group<A> half = LoadHalf(aligned + width);
        loaded.low.words[2] = half.words[0];
        loaded.low.words[3] = half.words[1];
      }
    }
    return loaded;
  }
  A single[width];
#pragma unroll
  for (int e = 0; e < width; ++e) {
    single[e] = A{};
    if (work.begin <= e && e < work.end) single[e] = from[e];
  }
#pragma unroll
  for (int e = 0; e < width; ++e) loaded.low.Set(e, single[e]);
  return loaded;
}

/// What becomes of an element: it is multiplied in T and rounded to D, or kept
/// when T is void.
template <typename D, typename T>
class Change {
 public:
  __device__ __forceinline__ explicit Change(const ElementChange& change)
      : factor_(FactorAs<T>(Arithmetic{}, change.alpha_real,
                            change.alpha_imaginary)) {}

  template <typename A>
  __device__ __forceinline__ D operator()(A x) const {
    return Convert<D>(Multiply(factor_, Convert<T>(x)));
  }

 private:
  const T factor_;
};

template <typename D>
class Change<D, void> {
 public:
  __device__ __forceinline__ explicit Change(const ElementChange&) {}
  __device__ __forceinline__ D operator()(D x) const { return x; }
};

template <typename A, typename D, typename T>
__global__ void __launch_bounds__(kThreads, kBlocks)
    Runs(const RunsTask __grid_constant__ task) {
  constexpr int width = kWidth<A, D>;
  const uint32_t first = blockIdx.x * (kThreads * kGroups) + threadIdx.x;
  Work<A, D> works[kGroups];
  Loaded<A> loaded[kGroups];
#pragma unroll
  for (uint32_t g = 0; g < kGroups; ++g) {
    works[g] = WorkOf<A, D>(task, first + g * kThreads);
    loaded[g] = Load(task, works[g]);
  }
  const Change<D, T> change(task.move.change);
#pragma unroll
  for (uint32_t g = 0; g < kGroups; ++g) {
    const Work<A, D>& work = works[g];
    if (loaded[g].shift > 0) {
      loaded[g].low = Between(loaded[g].low, loaded[g].high, loaded[g].shift);
    }
    D changed[width];
#pragma unroll
    for (int e = 0; e < width; ++e) changed[e] = change(loaded[g].low.At(e));
    const bool is_whole =
        work.begin == 0 && work.end == width &&
        reinterpret_cast<uintptr_t>(work.to) % (width * sizeof(D)) == 0;
    if (!is_whole) {
#pragma unroll
      for (int e = 0; e < width; ++e) {
        if (work.begin <= e && e < work.end) work.to[e] = changed[e];
      }
      continue;
    }
    Group<D> group;
#pragma unroll
    for (int e = 0; e < width; ++e) group.Set(e, changed[e]);
    if constexpr (width * sizeof(D) == kGroupBytes) {
      __stwb(reinterpret_cast<uint4*>(work.to), std::bit_cast<uint4>(group));
    } else {
      StoreHalf(group, work.to);
    }
  }
}

template <typename A, typename D, typename T>
cudaError_t Queue(const RunsTask& task, cudaStream_t stream) {
  constexpr uint32_t kBlockGroups = kThreads * kGroups;
  const Grid grid{
      .blocks = (task.modes.count + kBlockGroups - 1) / kBlockGroups,
      .threads = kThreads};
  return Launch(grid, stream, &Runs<A, D, T>, task);
}

/// Types that real elements have whose arithmetic runs in T.
template <typename T, typename Stored>
constexpr bool kIsRealIn = std::is_same_v<Stored, float> ||
                           (std::is_same_v<T, float>
                                ? kIsHalf<Stored>
                                : std::is_same_v<T, Stored>);

template <typename T>
cudaError_t QueueReal(const RunsTask& task, cudaStream_t stream) {
  const ElementChange& change = task.move.change;
  cudaError_t queued = cudaErrorInvalidValue;
  VisitElementType(change.type_a, [&](auto a) {
    using A = decltype(a);
    VisitElementType(change.type_d, [&](auto d) {
      using D = decltype(d);
      if constexpr (kIsRealIn<T, A> && kIsRealIn<T, D>) {
        queued = Queue<A, D, T>(task, stream);
      }
    });
  });
  return queued;
}

}  // namespace

int RunsWidth(const MoveTask& move) {
  const ElementChange& change = move.change;
  if (change.is_move) {
    return move.word_bytes < kGroupBytes ? kGroupBytes / move.word_bytes : 0;
  }
  const auto is_wide_real = [](ElementType type) {
    return type == ElementType::kFloat32 || type == ElementType::kFloat64;
  };
  const bool is_double = change.compute == ElementType::kFloat64 &&
                         is_wide_real(change.type_a) &&
                         is_wide_real(change.type_d);
  const bool is_complex = IsComplex(change.compute) &&
                          change.type_a == change.compute &&
                          change.type_d == change.compute;
  if (change.unary != UnaryOperator::kIdentity ||
      !(change.is_scaled_float || is_double || is_complex)) {
    return 0;
  }
  return kGroupBytes / static_cast<int>(std::max(SizeOf(change.type_a),
                                                 SizeOf(change.type_d)));
}

cudaError_t QueueRuns(const RunsTask& task, cudaStream_t stream) {
  const ElementChange& change = task.move.change;
  if (change.is_move) {
    return VisitWord(task.move.word_bytes, [&](auto word) {
      using Word = decltype(word);
      if constexpr (sizeof(Word) < kGroupBytes) {
        return Queue<Word, Word, void>(task, stream);
      } else {
        return cudaErrorInvalidValue;
      }
    });
  }
  switch (change.compute) {
    case ElementType::kFloat32: return QueueReal<float>(task, stream);
    case ElementType::kFloat64: return QueueReal<double>(task, stream);
    case ElementType::kComplex64:
      return Queue<Complex<float>, Complex<float>, Complex<float>>(task,
                                                                   stream);
    case ElementType::kComplex128:
      return Queue<Complex<double>, Complex<double>, Complex<double>>(task,
                                                                      stream);
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace tensord::core::cuda
