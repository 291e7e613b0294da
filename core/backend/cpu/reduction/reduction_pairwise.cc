#include "core/backend/cpu/reduction/reduction_pairwise.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/backend/cpu/block/row_tree.h"
#include "core/backend/cpu/block/tile_operand.h"
#include "core/backend/cpu/reduction/reduction_end.h"
#include "core/base/status.h"
#include "core/problem/along.h"
#include "core/problem/heap_bytes.h"
#include "hwy/cache_control.h"

namespace tensord::core {
namespace {

using Problem = ReductionProblem;

constexpr double kNanosecondsPerByte = 0.05;
constexpr double kLaunchNanoseconds = 2000;

// A reduced run at least this long is combined for one kept element at a time.
constexpr int64_t kLongRun = 128;
// Rows read in place are combined one after the other this many at a time.
constexpr int64_t kRowsInPlace = 16;
constexpr int64_t kShortestRowInPlace = 128;
constexpr int64_t kShortestRow = 16;
// Work that has fewer items is cut along the reduced modes as well, into
// chunks of at least so many elements. Neither depends on the machine.
constexpr int64_t kItemsWanted = 64;
constexpr int64_t kSmallestChunk = 64 << 10;
// A chunk longer than this is cut, too, as long as there are not too many: it
// is what others may have to wait for.
constexpr int64_t kLargestChunk = 4 << 20;
constexpr int64_t kMostItems = 4096;
constexpr int64_t kSlotBytes = 32 << 10;

/// How a reduction is cut: kept elements in tiles along one mode, reduced ones
/// in chunks of their running index.
struct Cut {
  LoopMode<3> across = {1, {}};  // the kept mode along which tiles lie
  LoopMode<1> along = {1, {}};   // the fastest reduced mode
  int64_t reduced_count = 1;
  /// Kept elements that are combined side by side, in rows.
  int64_t width = 1;
  /// Reduced elements that are loaded at a time.
  int64_t run = 1;
  /// Rows are combined where they lie in a.
  bool in_place = false;
  TileSpace<3> tiles;  // loop 0 along `across`
  int64_t tile_width = 1;
  int64_t chunk_count = 1;

  int64_t item_count() const { return tiles.tile_count() * chunk_count; }
};

Cut CutReduction(const Problem& problem) {
  Cut cut;
  size_t across = problem.kept.size();
  for (size_t m = 0; m < problem.kept.size(); ++m) {
    if (across == problem.kept.size() || problem.kept[m].strides[Problem::kA] <
                                             cut.across.strides[Problem::kA]) {
      across = m;
      cut.across = problem.kept[m];
    }
  }
  if (!problem.reduced.empty()) cut.along = problem.reduced[0];
  cut.reduced_count = ElementCount(problem.reduced);
  const ElementType element = problem.compute_element();
  const int64_t element_bytes = SizeOf(element);
  const int64_t tile = kTileBytes / element_bytes;
  const int64_t most_slots = RowTree<float>::SlotCount(cut.reduced_count);
  const int64_t widest =
      std::min(tile / 4, kSlotBytes / element_bytes / most_slots);
  const int64_t kept_stride = cut.across.strides[Problem::kA];
  const int64_t kept = cut.across.extent, reduced = cut.along.extent;
  const bool plain =
      problem.unary_a == UnaryOperator::kIdentity && problem.type_a == element;
  if (kept == 1 ||
      (cut.along.strides[0] < kept_stride && reduced >= kLongRun)) {
    cut.width = 1;
    cut.run = tile;
  } else if (cut.along.strides[0] < kept_stride) {
    const int64_t rows = std::max<int64_t>(reduced, 1);
    cut.width = std::min({kept, std::max(kShortestRow, tile / rows), widest});
    cut.run = tile / cut.width;
  } else {
    cut.width = std::min(kept, widest);
    cut.run = tile / cut.width;
    const bool contiguous = cut.along.strides[0] == cut.width;
    if (plain && kept_stride == 1 &&
        (!contiguous || cut.width >= kShortestRowInPlace)) {
      cut.in_place = true;
      cut.run = kRowsInPlace;
    }
  }
  // Items of one kept element are grouped to make the final step cheap.
  cut.tile_width = cut.width;
  if (cut.width == 1) {
    cut.tile_width = std::clamp<int64_t>(
        kSmallestChunk / std::max<int64_t>(cut.reduced_count, 1), 1,
        std::min<int64_t>(kept, 256));
  }
  cut.tiles.Add(cut.across, cut.tile_width);
  for (size_t m = 0; m < problem.kept.size(); ++m) {
    if (m != across) cut.tiles.Add(problem.kept[m]);
  }
  const int64_t tile_count = cut.tiles.tile_count();
  const double tile_elements = static_cast<double>(cut.reduced_count) *
                               static_cast<double>(cut.tile_width);
  const auto chunks_of = [&](int64_t elements) {
    return static_cast<int64_t>(tile_elements / static_cast<double>(elements));
  };
  const int64_t wanted =
      std::max(CeilDivide(kItemsWanted, tile_count),
               std::min(chunks_of(kLargestChunk), kMostItems / tile_count));
  const int64_t possible = chunks_of(kSmallestChunk);
  cut.chunk_count =
      std::max<int64_t>(1, std::min({wanted, possible, cut.reduced_count}));
  return cut;
}

/// Walks the reduced elements with running index [begin, end).
class ReducedCursor {
 public:
  ReducedCursor(const LoopModes<1>& modes, int64_t begin, int64_t end)
      : modes_(modes), at_(modes.size()), left_(end - begin) {
    for (size_t m = 0; m < modes.size(); ++m) {
      at_[m] = begin % modes[m].extent;
      begin /= modes[m].extent;
      offset_ += at_[m] * modes[m].strides[0];
    }
  }

  bool done() const { return left_ == 0; }
  int64_t offset() const { return offset_; }

  /// Elements from here on along the fastest mode, at most `most`.
  int64_t RunLength(int64_t most) const {
    if (modes_.empty()) return 1;
    return std::min({most, left_, modes_[0].extent - at_[0]});
  }

  /// Requires  count <= RunLength().
  void Advance(int64_t count) {
    left_ -= count;
    for (size_t m = 0; m < modes_.size(); ++m) {
      at_[m] += count;
      offset_ += count * modes_[m].strides[0];
      if (at_[m] < modes_[m].extent) return;
      offset_ -= at_[m] * modes_[m].strides[0];
      at_[m] = 0;
      count = 1;
    }
  }

 private:
  const LoopModes<1>& modes_;
  absl::InlinedVector<int64_t, 8> at_;
  int64_t left_;
  int64_t offset_ = 0;
};

template <typename T>
class PairwiseRun {
 public:
  PairwiseRun(const Problem& problem, const Cut& cut,
              const ReductionOperands& operands, ElementType element,
              T* partials)
      : problem_(problem),
        cut_(cut),
        a_(operands.a, {.stored = problem.type_a,
                        .element = element,
                        .compute = problem.compute_type,
                        .unary = problem.unary_a,
                        .factor = kOne}),
        end_(problem, operands, element),
        combine_(FindBinary<T>(problem.op)),
        partials_(partials) {}

  void Run(ThreadPool& threads) const {
    const int64_t chunk_elements = cut_.reduced_count / cut_.chunk_count + 1;
    const int64_t item_bytes =
        chunk_elements * cut_.tile_width * static_cast<int64_t>(sizeof(T));
    if (cut_.chunk_count == 1 || !end_.reads_a()) {
      ParallelRanges(
          threads, cut_.tiles.tile_count(), item_bytes,
          [this](int64_t begin, int64_t end) { ReduceTiles(begin, end); });
      return;
    }
    ParallelRanges(threads, cut_.item_count(), item_bytes,
                   [this](int64_t begin, int64_t end) {
                     for (int64_t item = begin; item < end; ++item) {
                       ReduceChunk(item);
                     }
                   });
    ParallelRanges(
        threads, cut_.tiles.tile_count(),
        cut_.chunk_count * cut_.tile_width * 8,
        [this](int64_t begin, int64_t end) { FinishTiles(begin, end); });
  }

 private:
  struct alignas(kCacheLineBytes) Scratch {
    TileBuffer<T> block, transposed, result;
    alignas(kCacheLineBytes) std::byte slots[kSlotBytes];
  };
  using Offsets = TileSpace<3>::Offsets;

  int64_t ChunkBegin(int64_t chunk) const {
    const int64_t each = cut_.reduced_count / cut_.chunk_count;
    return each * chunk +
           std::min(chunk, cut_.reduced_count % cut_.chunk_count);
  }

  void ReduceTiles(int64_t begin, int64_t end) const {
    Scratch scratch;
    cut_.tiles.ForEach(begin, end, [&](const Offsets& at, const auto& sizes) {
      T* const result = scratch.result.data();
      if (end_.reads_a()) {
        Reduce(at[Problem::kA], sizes[0], 0, cut_.reduced_count, result,
               scratch);
      }
      Finish(at, sizes[0], result, scratch);
    });
  }

  void ReduceChunk(int64_t item) const {
    Scratch scratch;
    const int64_t tile = item / cut_.chunk_count;
    const int64_t chunk = item % cut_.chunk_count;
    cut_.tiles.ForEach(tile, tile + 1,
                       [&](const Offsets& at, const auto& sizes) {
                         Reduce(at[Problem::kA], sizes[0], ChunkBegin(chunk),
                                ChunkBegin(chunk + 1),
                                partials_ + item * cut_.tile_width, scratch);
                       });
  }

  void FinishTiles(int64_t begin, int64_t end) const {
    Scratch scratch;
    int64_t tile = begin;
    cut_.tiles.ForEach(begin, end, [&](const Offsets& at, const auto& sizes) {
      T* const rows = partials_ + tile * cut_.chunk_count * cut_.tile_width;
      CombineRows(problem_.op, rows, cut_.chunk_count, cut_.tile_width, rows);
      Finish(at, sizes[0], rows, scratch);
      ++tile;
    });
  }

  /// Combines the reduced elements [begin, end) of `kept` kept elements.
  void Reduce(int64_t offset, int64_t kept, int64_t begin, int64_t end,
              T* result, Scratch& scratch) const {
    if (begin == end) {
      std::fill_n(result, kept, IdentityOf<T>(problem_.op));
      return;
    }
    for (int64_t i = 0; i < kept; i += cut_.width) {
      const int64_t width = std::min(cut_.width, kept - i);
      ReduceRows(offset + i * cut_.across.strides[Problem::kA], width, begin,
                 end, result + i, scratch);
    }
  }

  void ReduceRows(int64_t offset, int64_t width, int64_t begin, int64_t end,
                  T* result, Scratch& scratch) const {
    if (problem_.reduced.size() <= 1 && end - begin <= cut_.run &&
        !cut_.in_place) {
      const T* const rows =
          a_.Load({.offset = offset + begin * cut_.along.strides[0],
                   .count_i = width,
                   .count_j = end - begin,
                   .stride_i = cut_.across.strides[Problem::kA],
                   .stride_j = cut_.along.strides[0]},
                  scratch.block.data(), scratch.transposed);
      CombineRows(problem_.op, rows, end - begin, width, result);
      return;
    }
    RowTree<T> tree(combine_, width, reinterpret_cast<T*>(scratch.slots));
    T* const block = scratch.block.data();
    ReducedCursor cursor(problem_.reduced, begin, end);
    while (!cursor.done()) {
      if (CurrentWork::ShouldStop()) return;
      const int64_t run = cursor.RunLength(cut_.run);
      const TileLayout tile{.offset = offset + cursor.offset(),
                            .count_i = width,
                            .count_j = run,
                            .stride_i = cut_.across.strides[Problem::kA],
                            .stride_j = cut_.along.strides[0]};
      cursor.Advance(run);
      if (cut_.in_place) {
        const T* const rows = a_.Direct(tile.offset);
        const T* sum = rows;
        for (int64_t j = 1; j < run; ++j) {
          PrefetchRow(rows + (j + 1) * tile.stride_j, width);
          combine_(sum, rows + j * tile.stride_j, block, width);
          sum = block;
        }
        tree.Push(sum);
      } else {
        const T* const rows = a_.Load(tile, block, scratch.transposed);
        CombineRows(problem_.op, rows, run, width, block);
        tree.Push(block);
      }
    }
    std::copy_n(tree.Finish(), width, result);
  }

  /// Hardware follows a row, but does not guess where the next one starts.
  static void PrefetchRow(const T* row, int64_t width) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(row);
    const int64_t size = width * static_cast<int64_t>(sizeof(T));
    for (int64_t at = 0; at < size; at += kCacheLineBytes) {
      hwy::Prefetch(bytes + at);
    }
  }

  /// d = alpha * result + beta * unary_c(c) for one tile.
  void Finish(const Offsets& at, int64_t count, T* result,
              Scratch& scratch) const {
    const auto tile = [&](size_t operand) {
      return TileLayout{.offset = at[operand],
                        .count_i = count,
                        .count_j = 1,
                        .stride_i = cut_.across.strides[operand],
                        .stride_j = 0};
    };
    end_.Store(result, tile(Problem::kC), tile(Problem::kD), scratch.block,
               scratch.transposed);
  }

  const Problem& problem_;
  const Cut& cut_;
  TileInput<T> a_;
  ReductionEnd<T> end_;
  BinaryBlock<T> combine_;
  T* partials_;
};

double PredictNanoseconds(const Problem& problem) {
  const int64_t read = ElementCount(problem.reduced) * SizeOf(problem.type_a);
  return kLaunchNanoseconds +
         kNanosecondsPerByte *
             static_cast<double>(ElementCount(problem.kept) *
                                 (read + SizeOf(problem.type_d)));
}

/// What chunks leave to be combined.
int64_t PartialBytes(const Problem& problem, const Cut& cut) {
  return cut.chunk_count == 1
             ? 0
             : Workspace::BytesFor(cut.item_count() * cut.tile_width *
                                   SizeOf(problem.compute_element()));
}

class PairwiseReductionSolution final : public ReductionSolution {
 public:
  PairwiseReductionSolution(const Problem& problem, Cut cut,
                            ThreadPool& threads)
      : Solution(PredictNanoseconds(problem), PartialBytes(problem, cut)),
        problem_(problem),
        cut_(std::move(cut)),
        threads_(threads) {}

  std::string decision() const override {
    return absl::StrCat(cut_.width == 1 ? "one element" : "rows", " at a time",
                        cut_.in_place ? ", in place" : "", ", in ",
                        cut_.tiles.tile_count(), " tiles of ", cut_.chunk_count,
                        cut_.chunk_count == 1 ? " chunk" : " chunks");
  }
  int64_t bytes() const override {
    return HeapBlockBytes(sizeof(*this)) + HeapBytes(problem_) +
           cut_.tiles.heap_bytes();
  }

  absl::Status Launch(const ReductionOperands& operands, Workspace& workspace,
                      Stream&) const override {
    const ElementType element = problem_.compute_element();
    std::byte* const partials =
        workspace_bytes() == 0 ? nullptr
                               : workspace.Take<std::byte>(workspace_bytes());
    VisitComputeElement(element, [&](auto zero) {
      using T = decltype(zero);
      PairwiseRun<T>(problem_, cut_, operands, element,
                     reinterpret_cast<T*>(partials))
          .Run(threads_);
    });
    return absl::OkStatus();
  }

 private:
  const Problem problem_;
  const Cut cut_;
  ThreadPool& threads_;
};

}  // namespace

std::unique_ptr<const ReductionKernel> CreatePairwiseReduction(
    ThreadPool& threads) {
  return std::make_unique<SimpleReduction>(
      "cpu.reduce.pairwise",
      [&](const Problem& problem) -> ReductionKernel::Solved {
        TENSORD_RETURN_IF_ERROR(CheckAlongNothing(problem));
        return std::make_unique<PairwiseReductionSolution>(
            problem, CutReduction(problem), threads);
      });
}

}  // namespace tensord::core
