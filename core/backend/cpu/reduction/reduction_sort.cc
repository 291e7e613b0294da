#include "core/backend/cpu/reduction/reduction_sort.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/backend/cpu/block/tile_operand.h"
#include "core/backend/cpu/reduction/across.h"
#include "core/backend/cpu/reduction/reduction_end.h"
#include "core/backend/cpu/reduction/sort_columns.h"
#include "core/base/status.h"
#include "core/ops/sort_key.h"
#include "core/problem/along.h"
#include "core/problem/heap_bytes.h"
#include "hwy/contrib/sort/vqsort.h"

namespace tensord::core {
namespace {

using Problem = ReductionProblem;

constexpr double kLaunchNanoseconds = 2000;
constexpr double kNanosecondsPerElement = 4;
constexpr double kNanosecondsPerComparison = 0.5;

// More along the mode are sorted in chunks of so many, by all threads.
constexpr int64_t kChunk = 128 << 10;
// Neighbours in memory whose pairs are made together.
constexpr int64_t kMostTogether = 16;
constexpr int64_t kTogetherBytes = 256 << 10;

/// A key and the index behind it, as one number.
using ShortPair = uint64_t;  // 32 bits each
using LongPair = hwy::uint128_t;

template <typename Pair>
Pair PairOf(uint64_t key, int64_t index) {
  if constexpr (std::is_same_v<Pair, ShortPair>) {
    return key << 32 | static_cast<uint64_t>(index);
  } else {
    Pair pair;
    pair.lo = static_cast<uint64_t>(index);
    pair.hi = key;
    return pair;
  }
}
int64_t IndexOf(ShortPair pair) {
  return static_cast<int64_t>(pair & UINT32_MAX);
}
int64_t IndexOf(LongPair pair) { return static_cast<int64_t>(pair.lo); }

bool IsLess(ShortPair x, ShortPair y) { return x < y; }
bool IsLess(const LongPair& x, const LongPair& y) {
  return x.hi != y.hi ? x.hi < y.hi : x.lo < y.lo;
}
template <typename Pair>
constexpr auto kLess =
    [](const Pair& x, const Pair& y) { return IsLess(x, y); };

/// Whether keys and indices have 32 bits.
bool HasShortPairs(const Problem& problem) {
  return problem.along.extent <= int64_t{UINT32_MAX} + 1 &&
         SizeOf(problem.type_a) <= 4;
}

/// How a problem is cut: kept elements in tiles along one mode.
struct Cut {
  LoopMode<3> across = {1, {}};  // the kept mode along which tiles lie
  int64_t width = 1;             // kept elements of a tile
  TileSpace<3> tiles;            // loop 0 along `across`
  int64_t pair_bytes = 0;
  int64_t worker_count = 1;

  int64_t pairs_of_tile(const Problem& problem) const {
    return width * problem.along.extent;
  }
};

/// Columns of so few elements are sorted side by side: short pairs of half as
/// many are what the library sorts as fast.
bool IsShort(const Problem& problem) {
  return problem.along.extent <=
         (HasShortPairs(problem) ? kMostOfColumn / 2 : kMostOfColumn);
}
bool IsLong(const Problem& problem) { return problem.along.extent > kChunk; }

Cut CutSort(const Problem& problem, int64_t thread_count) {
  constexpr size_t kA = Problem::kA;
  Cut cut;
  const size_t across =
      AcrossOf(problem.kept, IsShort(problem) ? kColumns : kMostTogether);
  if (!problem.kept.empty()) cut.across = problem.kept[across];
  cut.pair_bytes =
      HasShortPairs(problem) ? sizeof(ShortPair) : sizeof(LongPair);
  if (IsShort(problem)) {
    cut.width = std::min(cut.across.extent, kColumns);
  } else if (cut.across.strides[kA] < problem.along.strides[kA]) {
    const int64_t fit = kTogetherBytes / cut.pair_bytes / problem.along.extent;
    cut.width =
        std::min({cut.across.extent, std::max<int64_t>(fit, 1), kMostTogether});
  }
  cut.tiles.Add(cut.across, cut.width);
  for (size_t m = 0; m < problem.kept.size(); ++m) {
    if (m != across) cut.tiles.Add(problem.kept[m]);
  }
  if (!IsLong(problem)) {
    cut.worker_count = std::min(thread_count, cut.tiles.tile_count());
  }
  return cut;
}

using Offsets = TileSpace<3>::Offsets;

/// Calls put(i, j, key) for each element of a tile in [begin, end) along the
/// mode: that of its kept element i.
template <typename Put>
void ForEachKey(const Problem& problem, const Cut& cut, const void* a,
                const Offsets& at, int64_t width, int64_t begin, int64_t end,
                const Put& put) {
  const int64_t stride = problem.along.strides[Problem::kA];
  const int64_t across = cut.across.strides[Problem::kA];
  VisitElementType(problem.type_a, [&](auto zero) {
    using Stored = decltype(zero);
    if constexpr (!kIsComplex<Stored>) {
      using Key = decltype(SortKey(zero));
      const Key flips =
          problem.sorting == Sorting::kDescending ? ~Key{0} : Key{0};
      const Stored* const from =
          static_cast<const Stored*>(a) + at[Problem::kA];
      for (int64_t j = begin; j < end; ++j) {
        for (int64_t i = 0; i < width; ++i) {
          put(i, j, SortKey(from[i * across + j * stride]) ^ flips);
        }
      }
    }
  });
}

/// Where `count` elements along the mode from the `first` on of a tile lie in
/// an operand.
TileLayout TileOf(const Problem& problem, const Cut& cut, size_t operand,
                  const Offsets& at, int64_t width, int64_t first,
                  int64_t count) {
  const int64_t stride = problem.along.strides[operand];
  const int64_t offset = at[operand] + first * stride;
  if (width == 1) {
    return {.offset = offset,
            .count_i = count,
            .count_j = 1,
            .stride_i = stride,
            .stride_j = 0};
  }
  return {.offset = offset,
          .count_i = width,
          .count_j = count,
          .stride_i = cut.across.strides[operand],
          .stride_j = stride};
}

/// Indices on their way to d.
class IndexStore {
 public:
  IndexStore(const Problem& problem, const Cut& cut,
             const ReductionOperands& operands)
      : problem_(problem),
        cut_(cut),
        end_(problem, operands, ElementType::kInt64) {}

  struct Scratch {
    TileBuffer<int64_t> indices, block, transposed;
  };

  bool reads_a() const { return end_.reads_a(); }

  /// Stores index_of(i, j) for [begin, end) along the mode of a tile.
  template <typename IndexOf>
  void Store(const Offsets& at, int64_t width, int64_t begin, int64_t end,
             Scratch& scratch, const IndexOf& index_of) const {
    const int64_t run = kTileElements<int64_t> / width;
    int64_t* const indices = scratch.indices.data();
    for (int64_t first = begin; first < end; first += run) {
      const int64_t count = std::min(run, end - first);
      if (reads_a()) {
        for (int64_t j = 0; j < count; ++j) {
          for (int64_t i = 0; i < width; ++i) {
            indices[j * width + i] = index_of(i, first + j);
          }
        }
      }
      end_.Store(indices,
                 TileOf(problem_, cut_, Problem::kC, at, width, first, count),
                 TileOf(problem_, cut_, Problem::kD, at, width, first, count),
                 scratch.block, scratch.transposed);
    }
  }

 private:
  const Problem& problem_;
  const Cut& cut_;
  const ReductionEnd<int64_t> end_;
};

/// Where modes are short.
void SortShort(const Problem& problem, const Cut& cut,
               const ReductionOperands& operands, ThreadPool& threads) {
  struct Scratch {
    alignas(kCacheLineBytes) uint64_t keys[kMostOfColumn * kColumns];
    alignas(kCacheLineBytes) uint64_t places[kMostOfColumn * kColumns];
    IndexStore::Scratch store;
  };
  const IndexStore store(problem, cut, operands);
  const int64_t count = problem.along.extent;
  const int64_t tile_bytes =
      count * cut.width *
      static_cast<int64_t>(sizeof(int64_t) + SizeOf(problem.type_a));
  ParallelRanges(
      threads, cut.tiles.tile_count(), tile_bytes,
      [&](int64_t begin, int64_t end) {
        Scratch scratch;
        // Vectors may reach beyond the columns that there are.
        std::fill_n(scratch.keys, count * kColumns, 0);
        std::fill_n(scratch.places, count * kColumns, 0);
        cut.tiles.ForEach(
            begin, end, [&](const Offsets& at, const auto& sizes) {
              if (CurrentWork::ShouldStop()) return;
              if (store.reads_a()) {
                ForEachKey(problem, cut, operands.a, at, sizes[0], 0, count,
                           [&](int64_t i, int64_t j, uint64_t key) {
                             scratch.keys[j * kColumns + i] = key;
                             scratch.places[j * kColumns + i] =
                                 static_cast<uint64_t>(j);
                           });
                SortColumns(scratch.keys, scratch.places, count, sizes[0]);
              }
              store.Store(at, sizes[0], 0, count, scratch.store,
                          [&](int64_t i, int64_t j) {
                            return static_cast<int64_t>(
                                scratch.places[j * kColumns + i]);
                          });
            });
      });
}

/// Where they are not.
template <typename Pair>
class SortRun {
 public:
  SortRun(const Problem& problem, const Cut& cut,
          const ReductionOperands& operands, std::byte* memory)
      : problem_(problem),
        cut_(cut),
        a_(operands.a),
        store_(problem, cut, operands),
        pairs_(reinterpret_cast<Pair*>(memory)) {}

  void Run(ThreadPool& threads) const {
    if (IsLong(problem_) && store_.reads_a()) {
      cut_.tiles.ForEach(
          0, cut_.tiles.tile_count(),
          [&](const Offsets& at, const auto&) { SortLong(at, threads); });
      return;
    }
    constexpr int64_t kPartBytes = 256 << 10;
    const int64_t tile_bytes = cut_.pairs_of_tile(problem_) * cut_.pair_bytes;
    const int64_t tiles = cut_.tiles.tile_count();
    const int64_t each = kPartBytes / tile_bytes + 1;
    threads.ParallelFor(CeilDivide(tiles, each), cut_.worker_count,
                        [&](int64_t part, int64_t worker) {
                          SortTiles(
                              part * each, std::min(part * each + each, tiles),
                              pairs_ + worker * cut_.pairs_of_tile(problem_));
                        });
  }

 private:
  using Scratch = IndexStore::Scratch;

  void SortTiles(int64_t begin, int64_t end, Pair* pairs) const {
    const hwy::Sorter sorter;
    Scratch scratch;
    const int64_t count = problem_.along.extent;
    cut_.tiles.ForEach(begin, end, [&](const Offsets& at, const auto& sizes) {
      if (CurrentWork::ShouldStop()) return;
      if (store_.reads_a()) {
        Encode(at, sizes[0], 0, count, pairs);
        for (int64_t i = 0; i < sizes[0]; ++i) {
          sorter(pairs + i * count, static_cast<size_t>(count),
                 hwy::SortAscending());
        }
      }
      Store(at, sizes[0], pairs, 0, count, scratch);
    });
  }

  /// Pairs of the elements [begin, end) along the mode, of `width` kept ones:
  /// (kept, along).
  void Encode(const Offsets& at, int64_t width, int64_t begin, int64_t end,
              Pair* pairs) const {
    ForEachKey(problem_, cut_, a_, at, width, begin, end,
               [&](int64_t i, int64_t j, uint64_t key) {
                 pairs[i * problem_.along.extent + j] = PairOf<Pair>(key, j);
               });
  }

  /// The indices of sorted pairs [begin, end) along the mode, to d.
  void Store(const Offsets& at, int64_t width, const Pair* pairs, int64_t begin,
             int64_t end, Scratch& scratch) const {
    store_.Store(at, width, begin, end, scratch, [&](int64_t i, int64_t j) {
      return IndexOf(pairs[i * problem_.along.extent + j]);
    });
  }

  /// One kept element, by all threads.
  void SortLong(const Offsets& at, ThreadPool& threads) const {
    const int64_t count = problem_.along.extent;
    const int64_t parts = CeilDivide(count, kChunk);
    // False when it was stopped: pairs may be in any state then.
    const auto for_parts = [&](const auto& body) {
      threads.ParallelFor(parts, [&](int64_t part) {
        body(part * kChunk, std::min(part * kChunk + kChunk, count));
      });
      return !CurrentWork::ShouldStop();
    };
    Pair* from = pairs_;
    Pair* to = pairs_ + count;
    bool goes_on = for_parts([&](int64_t begin, int64_t end) {
      Encode(at, 1, begin, end, from);
      hwy::Sorter()(from + begin, static_cast<size_t>(end - begin),
                    hwy::SortAscending());
    });
    for (int64_t run = kChunk; goes_on && run < count; run *= 2) {
      goes_on = for_parts([&](int64_t begin, int64_t end) {
        Merge(from, run, count, begin, end, to);
      });
      std::swap(from, to);
    }
    if (!goes_on) return;
    for_parts([&](int64_t begin, int64_t end) {
      Scratch scratch;
      Store(at, 1, from, begin, end, scratch);
    });
  }

  /// The pairs [begin, end) of what sorted runs become in pairs.
  /// Requires  they are of one pair of runs.
  static void Merge(const Pair* from, int64_t run, int64_t count, int64_t begin,
                    int64_t end, Pair* to) {
    const int64_t first = begin / (2 * run) * 2 * run;
    const int64_t middle = std::min(first + run, count);
    const int64_t last = std::min(first + 2 * run, count);
    const Pair* const left = from + first;
    const Pair* const right = from + middle;
    const auto left_of = [&](int64_t before) {
      return Split(left, middle - first, right, last - middle, before);
    };
    const int64_t left_begin = left_of(begin - first);
    const int64_t left_end = left_of(end - first);
    std::merge(left + left_begin, left + left_end,
               right + (begin - first - left_begin),
               right + (end - first - left_end), to + begin, kLess<Pair>);
  }

  /// How many of the lowest `count` pairs of two sorted runs are of the left
  /// one.
  static int64_t Split(const Pair* left, int64_t left_count, const Pair* right,
                       int64_t right_count, int64_t count) {
    int64_t least = std::max<int64_t>(0, count - right_count);
    int64_t most = std::min(count, left_count);
    while (least < most) {
      const int64_t middle = least + (most - least) / 2;
      if (IsLess(left[middle], right[count - middle - 1])) {
        least = middle + 1;
      } else {
        most = middle;
      }
    }
    return least;
  }

  const Problem& problem_;
  const Cut& cut_;
  const void* a_;
  const IndexStore store_;
  Pair* pairs_;
};

double PredictNanoseconds(const Problem& problem) {
  const auto extent = static_cast<double>(problem.along.extent);
  return kLaunchNanoseconds +
         static_cast<double>(ElementCount(problem.kept)) * extent *
             (kNanosecondsPerElement +
              kNanosecondsPerComparison * std::log2(extent + 1));
}

int64_t PairBytes(const Problem& problem, const Cut& cut) {
  if (IsShort(problem)) return 0;
  // Merging takes as much again.
  const int64_t count = IsLong(problem)
                            ? 2 * problem.along.extent
                            : cut.worker_count * cut.pairs_of_tile(problem);
  return Workspace::BytesFor(count * cut.pair_bytes);
}

class SortSolution final : public ReductionSolution {
 public:
  SortSolution(const Problem& problem, Cut cut, ThreadPool& threads)
      : Solution(PredictNanoseconds(problem), PairBytes(problem, cut)),
        problem_(problem),
        cut_(std::move(cut)),
        threads_(threads) {}

  std::string decision() const override {
    return absl::StrCat(cut_.tiles.tile_count(), " tiles of ", cut_.width,
                        " x ", problem_.along.extent,
                        IsShort(problem_)  ? ", side by side"
                        : IsLong(problem_) ? ", each in chunks"
                                           : "");
  }
  int64_t bytes() const override {
    return HeapBlockBytes(sizeof(*this)) + HeapBytes(problem_) +
           cut_.tiles.heap_bytes();
  }

  absl::Status Launch(const ReductionOperands& operands, Workspace& workspace,
                      Stream&) const override {
    if (IsShort(problem_)) {
      SortShort(problem_, cut_, operands, threads_);
      return absl::OkStatus();
    }
    auto* const pairs = workspace.Take<std::byte>(workspace_bytes());
    if (HasShortPairs(problem_)) {
      SortRun<ShortPair>(problem_, cut_, operands, pairs).Run(threads_);
    } else {
      SortRun<LongPair>(problem_, cut_, operands, pairs).Run(threads_);
    }
    return absl::OkStatus();
  }

 private:
  const Problem problem_;
  const Cut cut_;
  ThreadPool& threads_;
};

}  // namespace

std::unique_ptr<const ReductionKernel> CreateSortReduction(
    ThreadPool& threads) {
  return std::make_unique<SimpleReduction>(
      "cpu.reduce.sort",
      [&](const Problem& problem) -> ReductionKernel::Solved {
        TENSORD_RETURN_IF_ERROR(CheckSorts(problem));
        return std::make_unique<SortSolution>(
            problem, CutSort(problem, threads.thread_count()), threads);
      });
}

}  // namespace tensord::core
