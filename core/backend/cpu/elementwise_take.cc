#include "core/backend/cpu/elementwise_take.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "core/backend/cpu/block/tile_operand.h"
#include "core/base/status.h"
#include "core/problem/heap_bytes.h"
#include "core/problem/taking.h"
#include "hwy/cache_control.h"

namespace tensord::core {
namespace {

using Problem = ElementwiseProblem;

constexpr size_t kA = Problem::kA, kB = Problem::kB, kC = Problem::kC,
                 kD = Problem::kD;

constexpr double kLaunchNanoseconds = 2000;
constexpr double kNanosecondsPerElement = 1;
constexpr double kNanosecondsPerByte = 0.1;

/// The indices that there are not.
///
/// Threads  safe for concurrent use.
class RefusedIndices {
 public:
  void Add(int64_t index) {
    const absl::MutexLock lock(&mutex_);
    const auto [lowest, highest] = range_.value_or(std::pair(index, index));
    range_ = {std::min(lowest, index), std::max(highest, index)};
  }
  absl::Status status(const LoopMode<1>& taken) const {
    const absl::MutexLock lock(&mutex_);
    if (!range_) return absl::OkStatus();
    return IndexOutOfRange(taken, range_->first, range_->second);
  }

 private:
  mutable absl::Mutex mutex_;
  std::optional<std::pair<int64_t, int64_t>> range_ ABSL_GUARDED_BY(mutex_);
};

constexpr TwoWords kNothing = {};

/// Where a tile lies in a and where its elements go, and its indices.
struct Places {
  TileLayout from;
  int64_t to_i, to_j;  // strides
  const int64_t* indices;
  bool is_of_runs;     // one index for each run along i
  bool is_of_columns;  // indices along i are the same for each j
  Stores stores;       // of runs, if they are copied
};

/// What is fetched ahead of a run.
constexpr int64_t kFetchedBytes = 512;

/// Takes runs of a tile, whose places are of_runs.
template <typename Word, typename Miss>
void TakeRuns(const Word* a, const LoopMode<1>& taken, const Places& places,
              Word* to, const Miss& miss) {
  const TileLayout& from = places.from;
  const int64_t along = taken.strides[0];
  const bool is_copied =
      (from.stride_i == 1 && places.to_i == 1) || from.count_i == 1;
  const auto bytes = static_cast<int64_t>(sizeof(Word)) * from.count_i;
  for (int64_t j = 0; j < from.count_j; ++j) {
    const int64_t later = std::min(j + kRowsAhead, from.count_j - 1);
    int64_t next = places.indices[later];
    if (is_copied && FindIndex(taken, next)) {
      const auto* const ahead = reinterpret_cast<const std::byte*>(
          a + from.offset + later * from.stride_j + next * along);
      for (int64_t at = 0; at < std::min(bytes, kFetchedBytes);
           at += kCacheLineBytes) {
        hwy::Prefetch(ahead + at);
      }
    }
    int64_t index = places.indices[j];
    if (!FindIndex(taken, index)) {
      for (int64_t i = 0; i < from.count_i; ++i) {
        miss(places.indices[j], i, j);
      }
      continue;
    }
    const Word* const run = a + from.offset + j * from.stride_j + index * along;
    Word* const to_run = to + j * places.to_j;
    if (is_copied && places.stores == Stores::kStreaming) {
      CopyRows({.a = reinterpret_cast<const std::byte*>(run),
                .d = reinterpret_cast<std::byte*>(to_run),
                .rows = 1,
                .columns = bytes,
                .a_row_bytes = bytes,
                .d_row_bytes = bytes},
               Stores::kStreaming, 0);
    } else if (is_copied) {
      std::memcpy(static_cast<void*>(to_run), run, static_cast<size_t>(bytes));
    } else {
      for (int64_t i = 0; i < from.count_i; ++i) {
        to_run[i * places.to_i] = run[i * from.stride_i];
      }
    }
  }
}

/// A row of a tile: its indices, and where they lie apart in a and d.
struct Row {
  const int64_t* indices;
  int64_t count;
  int64_t from_stride, to_stride;
};

/// The offset of an index along the mode that is taken from; 0, and false in
/// `is_there`, of one that it does not have.
inline int64_t OffsetOf(int64_t index, const LoopMode<1>& taken,
                        bool& is_there) {
  index += index < 0 ? taken.extent : 0;
  is_there = static_cast<uint64_t>(index) < static_cast<uint64_t>(taken.extent);
  return is_there ? index * taken.strides[0] : 0;
}

/// Writes down where the elements of a row are. False: some are nowhere.
bool FindOffsets(const Row& row, const LoopMode<1>& taken, int64_t* offsets) {
  bool are_there = true;
  for (int64_t i = 0; i < row.count; ++i) {
    bool is_there;
    offsets[i] =
        OffsetOf(row.indices[i], taken, is_there) + i * row.from_stride;
    are_there &= is_there;
  }
  return are_there;
}

template <typename Word>
void TakeAt(const int64_t* offsets, const Row& row, const Word* a, Word* to) {
  if (row.to_stride == 1) {
    for (int64_t i = 0; i < row.count; ++i) to[i] = a[offsets[i]];
    return;
  }
  for (int64_t i = 0; i < row.count; ++i) to[i * row.to_stride] = a[offsets[i]];
}

/// Takes the elements of a row, where all are there; false: some are not, and
/// what is written in their places is nothing. `is_table`: the strides along it
/// are 0 in a, and 1 along what is taken from and in d.
///
/// Requires  taken.extent > 0.
template <bool is_table, typename Word>
bool TakeRow(const Row& row, const LoopMode<1>& taken, const Word* a,
             Word* to) {
  const LoopMode<1> from = {taken.extent, {is_table ? 1 : taken.strides[0]}};
  const int64_t from_stride = is_table ? 0 : row.from_stride;
  const int64_t to_stride = is_table ? 1 : row.to_stride;
  bool are_there = true;
  for (int64_t i = 0; i < row.count; ++i) {
    bool is_there;
    const int64_t offset = OffsetOf(row.indices[i], from, is_there);
    are_there &= is_there;
    to[i * to_stride] = a[offset + i * from_stride];
  }
  return are_there;
}

/// Takes the elements of a tile, calling miss(index, i, j) for each that is
/// nowhere. `offsets` has room for a row.
template <typename Word, typename Miss>
void TakeTile(const Word* a, const LoopMode<1>& taken, const Places& places,
              Word* to, int64_t* offsets, const Miss& miss) {
  if (places.is_of_runs) return TakeRuns(a, taken, places, to, miss);
  const TileLayout& from = places.from;
  const bool keeps_offsets = places.is_of_columns && from.count_j > 1;
  const auto row_of = [&](int64_t j) -> Row {
    return {places.indices + (places.is_of_columns ? 0 : j * from.count_i),
            from.count_i, from.stride_i, places.to_i};
  };
  bool are_there = keeps_offsets && FindOffsets(row_of(0), taken, offsets);
  for (int64_t j = 0; j < from.count_j; ++j) {
    const Word* const from_row = a + from.offset + j * from.stride_j;
    Word* const to_row = to + j * places.to_j;
    const Row row = row_of(j);
    if (keeps_offsets && are_there) {
      TakeAt(offsets, row, from_row, to_row);
      continue;
    }
    if (!keeps_offsets) {
      const bool is_table =
          row.from_stride == 0 && row.to_stride == 1 && taken.strides[0] == 1;
      are_there = taken.extent > 0 &&
                  (is_table ? TakeRow<true>(row, taken, from_row, to_row)
                            : TakeRow<false>(row, taken, from_row, to_row));
    }
    for (int64_t i = 0; !are_there && i < row.count; ++i) {
      int64_t index = row.indices[i];
      if (FindIndex(taken, index)) {
        to_row[i * places.to_i] =
            from_row[i * from.stride_i + index * taken.strides[0]];
      } else {
        miss(row.indices[i], i, j);
      }
    }
  }
}

/// The same of elements of `bytes` bytes.
template <typename Miss>
void TakeTile(int64_t bytes, const void* a, const LoopMode<1>& taken,
              const Places& places, void* to, int64_t* offsets,
              const Miss& miss) {
  VisitWord(bytes, [&]<typename Word>(Word /*zero*/) {
    TakeTile(static_cast<const Word*>(a), taken, places, static_cast<Word*>(to),
             offsets, miss);
  });
}

constexpr int64_t kMostIndices = kTileElements<int64_t>;

/// Tiles whose elements fit a buffer in the compute type, as they are stored in
/// a, and as indices.
TileSpace<4> TermTilesOf(const Problem& problem) {
  const int64_t bytes = std::max({SizeOf(problem.compute_element()),
                                  SizeOf(problem.types[kA]), int64_t{8}});
  return CutIntoTiles(problem.modes, kD, kTileBytes / bytes);
}

/// Tiles that are moved, which have no more indices than fit a buffer.
TileSpace<4> MoveTilesOf(const Problem& problem) {
  constexpr int64_t kMostElements = 1 << 15;
  // Of the first caches, for what is taken from.
  constexpr int64_t kKeptBytes = 128 << 10;
  const TileSpace<4> tiles = CutIntoTiles(problem.modes, kD, kMostIndices);
  const auto &inner = tiles.loop(0), &outer = tiles.loop(1);
  const bool is_of_runs = inner.strides[kB] == 0;
  const bool is_of_columns = outer.strides[kB] == 0;
  if (!is_of_runs && !is_of_columns) return tiles;
  auto wide_inner = inner, wide_outer = outer;
  if (is_of_runs) wide_inner.step = std::min(inner.extent, kMostElements / 2);
  int64_t most = std::min(outer.extent, kMostIndices);
  if (!is_of_runs) {
    const double row_bytes = static_cast<double>(problem.taken.extent) *
                             static_cast<double>(problem.taken.strides[0]) *
                             static_cast<double>(SizeOf(problem.types[kA]));
    most = std::clamp<int64_t>(
        static_cast<int64_t>(kKeptBytes / std::max(row_bytes, 1.0)), 1, most);
  }
  wide_outer.step = std::clamp<int64_t>(
      kMostElements / std::max<int64_t>(wide_inner.step, 1), 1, most);
  TileSpace<4> wide;
  wide.Add(wide_inner);
  wide.Add(wide_outer);
  for (size_t i = 2; i < tiles.loop_count(); ++i) wide.Add(tiles.loop(i));
  return wide;
}

/// What both kinds of launches do alike.
class TakingBase {
 public:
  TakingBase(const Problem& problem, const ElementwiseOperands& operands,
             const TileSpace<4>& space)
      : problem_(problem),
        operands_(operands),
        space_(space),
        b_(operands.b, {.stored = problem.types[kB],
                        .element = ElementType::kInt64,
                        .compute = ComputeType::kInteger,
                        .unary = problem.unary[kB],
                        .factor = operands.beta}) {}

 protected:
  template <typename RunTiles>
  absl::Status Run(ThreadPool& threads, const RunTiles& run_tiles) {
    const int64_t bytes = SizeOf(problem_.types[kA]) +
                          SizeOf(problem_.types[kD]) + sizeof(int64_t);
    ParallelRanges(threads, space_.tile_count(),
                   bytes * space_.loop(0).step * space_.loop(1).step,
                   run_tiles);
    return refused_.status(problem_.taken);
  }

  TileLayout LayoutOf(size_t operand, const TileSpace<4>::Offsets& offsets,
                      const TileSpace<4>::Sizes& sizes) const {
    return {.offset = offsets[operand],
            .count_i = sizes[0],
            .count_j = sizes[1],
            .stride_i = space_.loop(0).strides[operand],
            .stride_j = space_.loop(1).strides[operand]};
  }

  /// Indices may be loaded to either buffer.
  Places PlacesOf(const TileSpace<4>::Offsets& offsets,
                  const TileSpace<4>::Sizes& sizes, TileBuffer<int64_t>& buffer,
                  TileBuffer<int64_t>& scratch) const {
    TileLayout of_b = LayoutOf(kB, offsets, sizes);
    Places places{.from = LayoutOf(kA, offsets, sizes),
                  .to_i = 1,
                  .to_j = sizes[0],
                  .indices = nullptr,
                  .is_of_runs = of_b.stride_i == 0,
                  .is_of_columns = of_b.stride_j == 0,
                  .stores = Stores::kCached};
    if (places.is_of_runs) {
      of_b.count_i = 1;
    } else if (places.is_of_columns) {
      of_b.count_j = 1;
    }
    places.indices = b_.Load(of_b, buffer.data(), scratch);
    // Those that are refused are read again.
    if (operands_.d == operands_.b) {
      std::copy_n(places.indices, of_b.count(), scratch.data());
      places.indices = scratch.data();
    }
    return places;
  }

  const Problem& problem_;
  const ElementwiseOperands& operands_;
  const TileSpace<4>& space_;
  const TileInput<int64_t> b_;
  RefusedIndices refused_;
};

/// Bits are moved from a to d.
class Moving : TakingBase {
 public:
  using TakingBase::TakingBase;

  absl::Status Run(ThreadPool& threads) {
    const int64_t size = SizeOf(problem_.types[kD]);
    const bool streams =
        ElementCount(problem_.modes) * size >= kStreamingBytes &&
        space_.loop(0).step * size >= 4 * kCacheLineBytes;
    return TakingBase::Run(threads, [&](int64_t begin, int64_t end) {
      TileBuffer<int64_t> indices, scratch, row;
      space_.ForEach(begin, end, [&](const auto& offsets, const auto& sizes) {
        Places places = PlacesOf(offsets, sizes, indices, scratch);
        const TileLayout of_d = LayoutOf(kD, offsets, sizes);
        places.to_i = of_d.stride_i;
        places.to_j = of_d.stride_j;
        if (streams) places.stores = Stores::kStreaming;
        TakeTile(size, operands_.a, problem_.taken, places,
                 static_cast<std::byte*>(operands_.d) + of_d.offset * size,
                 row.data(),
                 [&](int64_t index, int64_t, int64_t) { refused_.Add(index); });
      });
      FlushStreamingStores();
    });
  }
};

/// Elements are gathered as they are stored, and become terms in T.
template <typename T>
class Taking : TakingBase {
 public:
  Taking(const Problem& problem, const ElementwiseOperands& operands,
         const TileSpace<4>& space)
      : TakingBase(problem, operands, space),
        element_(problem.compute_element()),
        c_(operands.c, OptionsOf(kC, operands.gamma)),
        d_(operands.d, element_, problem.types[kD], Stores::kCached) {}

  absl::Status Run(ThreadPool& threads) {
    return TakingBase::Run(
        threads, [this](int64_t begin, int64_t end) { RunTiles(begin, end); });
  }

 private:
  using Options = typename TileInput<T>::Options;

  Options OptionsOf(size_t operand, Scalar factor) const {
    return {.stored = problem_.types[operand],
            .element = element_,
            .compute = problem_.compute_type,
            .unary = problem_.unary[operand],
            .factor = factor};
  }

  void RunTiles(int64_t begin, int64_t end) {
    TileBuffer<int64_t> indices, index_scratch, row;
    TileBuffer<T> x_buffer, z_buffer, scratch;
    TileBuffer<std::byte> stored, misses;
    const int64_t size = SizeOf(problem_.types[kA]);
    const TileInput<T> a(stored.data(), OptionsOf(kA, operands_.alpha));
    const bool is_filled = !operands_.gamma.IsZero();
    space_.ForEach(begin, end, [&](const auto& offsets, const auto& sizes) {
      Places places = PlacesOf(offsets, sizes, indices, index_scratch);
      LoopMode<1> taken = problem_.taken;
      const void* source = operands_.a;
      if (operands_.alpha.IsZero()) {
        // Which indices there are is all that is asked.
        places.from.offset = places.from.stride_i = places.from.stride_j = 0;
        taken.strides[0] = 0;
        source = &kNothing;
      }
      const int64_t count = sizes[0] * sizes[1];
      std::fill_n(stored.data(), count * size, std::byte{0});
      std::fill_n(misses.data(), count, std::byte{0});
      TakeTile(size, source, taken, places, stored.data(), row.data(),
               [&](int64_t index, int64_t i, int64_t j) {
                 misses.data()[j * sizes[0] + i] = std::byte{1};
                 if (!is_filled) refused_.Add(index);
               });
      const TileLayout packed{.offset = 0,
                              .count_i = sizes[0],
                              .count_j = sizes[1],
                              .stride_i = 1,
                              .stride_j = sizes[0]};
      const T* x = a.Load(packed, x_buffer.data(), scratch);
      if (is_filled) {
        const T* const z =
            c_.Load(LayoutOf(kC, offsets, sizes), z_buffer.data(), scratch);
        for (int64_t k = 0; k < count; ++k) {
          x_buffer.data()[k] = misses.data()[k] == std::byte{0} ? x[k] : z[k];
        }
        x = x_buffer.data();
      }
      d_.Store(x, LayoutOf(kD, offsets, sizes), scratch);
    });
  }

  const ElementType element_;
  const TileInput<T> c_;
  const TileOutput<T> d_;
};

double PredictNanoseconds(const Problem& problem) {
  const int64_t bytes = SizeOf(problem.types[kA]) + SizeOf(problem.types[kD]);
  return kLaunchNanoseconds +
         static_cast<double>(ElementCount(problem.modes)) *
             (kNanosecondsPerElement +
              kNanosecondsPerByte * static_cast<double>(bytes));
}

class TakeSolution final : public ElementwiseSolution {
 public:
  TakeSolution(const Problem& problem, ThreadPool& threads)
      : Solution(PredictNanoseconds(problem)),
        threads_(threads),
        problem_(problem),
        move_tiles_(MoveTilesOf(problem)),
        term_tiles_(TermTilesOf(problem)) {}

  std::string decision() const override {
    return absl::StrCat(move_tiles_.tile_count(), " tiles, by indices below ",
                        problem_.taken.extent);
  }
  int64_t bytes() const override {
    return HeapBlockBytes(sizeof(*this)) + HeapBytes(problem_) +
           move_tiles_.heap_bytes() + term_tiles_.heap_bytes();
  }
  absl::Status Launch(const ElementwiseOperands& operands, Workspace&,
                      Stream&) const override {
    if (TakesBits(problem_) && operands.alpha.IsOne() &&
        operands.gamma.IsZero()) {
      return Moving(problem_, operands, move_tiles_).Run(threads_);
    }
    return VisitComputeElement(problem_.compute_element(), [&](auto zero) {
      return Taking<decltype(zero)>(problem_, operands, term_tiles_)
          .Run(threads_);
    });
  }

 private:
  ThreadPool& threads_;
  const Problem problem_;
  const TileSpace<4> move_tiles_, term_tiles_;
};

}  // namespace

std::unique_ptr<const ElementwiseKernel> CreateTakeElementwise(
    ThreadPool& threads) {
  return std::make_unique<SimpleElementwise>(
      "cpu.elementwise.take",
      [&](const Problem& problem) -> ElementwiseKernel::Solved {
        if (!problem.is_take()) {
          return Unimplemented("NOTHING_TO_TAKE", "it is for TAKE alone");
        }
        return std::make_unique<TakeSolution>(problem, threads);
      });
}

}  // namespace tensord::core
