#include "core/backend/cpu/reduction/reduction_scan.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/backend/cpu/block/tile_operand.h"
#include "core/backend/cpu/reduction/across.h"
#include "core/backend/cpu/reduction/leaves.h"
#include "core/backend/cpu/reduction/reduction_end.h"
#include "core/base/status.h"
#include "core/problem/along.h"
#include "core/problem/heap_bytes.h"

namespace tensord::core {
namespace {

using Problem = ReductionProblem;

constexpr double kNanosecondsPerByte = 0.1;
constexpr double kLaunchNanoseconds = 2000;

// From here on a mode is cut into leaves that are combined side by side.
constexpr int64_t kLongMode = 256;
// With fewer kept elements side by side, arithmetic is not worth its calls.
constexpr int64_t kFewLanes = 16;
// Work that has fewer items is cut along the mode as well, into chunks of at
// least so many elements. Neither depends on the machine.
constexpr int64_t kItemsWanted = 64;
constexpr int64_t kSmallestChunk = 64 << 10;
// Leaves of side by side kept elements that are combined one after the other.
constexpr int64_t kLeavesOfRun = 64;
// Fewer threads read no faster than one does, and chunks want two passes.
constexpr int64_t kThreadsForPasses = 4;

/// How a scan is cut: kept elements in tiles along one mode, and the mode along
/// which it goes in chunks.
struct Cut {
  /// One kept element at a time; else some side by side.
  bool in_pieces = false;
  /// All elements one after the other: sums of integers are exact, and products
  /// no worse, which beyond the range of the type would not be what they are in
  /// order.
  bool in_order = false;
  LoopMode<3> across = {1, {}};  // the kept mode along which tiles lie
  int64_t width = 1;             // kept elements of a tile
  int64_t run = 1;               // elements along the mode that are loaded
  TileSpace<3> tiles;            // loop 0 along `across`
  int64_t chunk = 1;             // elements along the mode of all but the last
  int64_t chunk_count = 1;
  bool streams = false;  // past the caches, as d is large

  int64_t item_count() const { return tiles.tile_count() * chunk_count; }
};

Cut CutScan(const Problem& problem) {
  Cut cut;
  const size_t across = AcrossOf(problem.kept, kFewLanes);
  if (across < problem.kept.size()) cut.across = problem.kept[across];
  const int64_t extent = problem.along.extent;
  const int64_t element_bytes = SizeOf(problem.compute_element());
  const int64_t tile = kTileBytes / element_bytes;
  const bool turns =
      problem.along.strides[Problem::kA] < cut.across.strides[Problem::kA];
  cut.in_order = problem.op == BinaryOperator::kMul ||
                 IsInteger(problem.compute_element());
  cut.in_pieces =
      extent >= kLongMode && (turns || cut.across.extent < kFewLanes);
  if (!cut.in_pieces) {
    const int64_t widest = tile / 8;
    const int64_t wanted = turns ? std::max(kFewLanes, tile / extent) : widest;
    cut.width = std::min({cut.across.extent, wanted, widest});
  }
  cut.run = tile / cut.width;
  cut.tiles.Add(cut.across, cut.width);
  for (size_t m = 0; m < problem.kept.size(); ++m) {
    if (m != across) cut.tiles.Add(problem.kept[m]);
  }
  const int64_t wanted = CeilDivide(kItemsWanted, cut.tiles.tile_count());
  const int64_t possible = extent * cut.width / kSmallestChunk;
  const bool is_whole = problem.op == BinaryOperator::kMul;
  const int64_t chunks =
      is_whole ? 1 : std::max<int64_t>(1, std::min(wanted, possible));
  cut.chunk = RoundUp(CeilDivide(extent, chunks),
                      cut.in_pieces ? tile : kLeaf * kLeavesOfRun);
  cut.chunk_count = CeilDivide(extent, cut.chunk);
  cut.streams = ElementCount(problem.kept) * extent * SizeOf(problem.type_d) >=
                kStreamingBytes;
  return cut;
}

template <typename T>
class ScanRun {
 public:
  ScanRun(const Problem& problem, const Cut& cut,
          const ReductionOperands& operands, ElementType element, T* partials)
      : problem_(problem),
        cut_(cut),
        a_(operands.a, {.stored = problem.type_a,
                        .element = element,
                        .compute = problem.compute_type,
                        .unary = problem.unary_a,
                        .factor = kOne}),
        end_(problem, operands, element,
             cut.streams && operands.c != operands.d ? Stores::kStreaming
                                                     : Stores::kCached),
        combine_(FindBinary<T>(problem.op)),
        leaves_(FindLeafFunctions<T>(problem.op)),
        leaf_limit_(cut.in_order ? problem.along.extent : kLeaf),
        partials_(partials) {}

  void Run(ThreadPool& threads) const {
    const int64_t tiles = cut_.tiles.tile_count();
    if (cut_.chunk_count == 1 || !end_.reads_a()) {
      ForItems(threads, [this](const Item& item, Scratch& scratch) {
        ScanItem(item, nullptr, true, nullptr, scratch);
      });
    } else if (threads.thread_count() <
               std::max(kThreadsForPasses, tiles + 1)) {
      threads.ParallelFor(tiles, [this](int64_t tile) { RunInOrder(tile); });
    } else {
      RunInPasses(threads);
    }
  }

 private:
  static constexpr int64_t kTile = kTileElements<T>;
  static_assert(kTile % (kLeaf * kLeaves) == 0);

  struct alignas(kCacheLineBytes) Scratch {
    TileBuffer<T> block, transposed, values;
    T leaf[kTile / 8], run[kTile / 8], runs[kTile / 8];
  };
  using Offsets = TileSpace<3>::Offsets;

  /// A chunk of a tile.
  struct Item {
    int64_t tile, chunk;
    Offsets at;
    int64_t width;
    int64_t begin, end;  // along the mode
  };

  template <typename Body>
  void ForItems(ThreadPool& threads, const Body& body) const {
    const int64_t item_bytes =
        cut_.chunk * cut_.width * static_cast<int64_t>(sizeof(T));
    ParallelRanges(threads, cut_.item_count(), item_bytes,
                   [&](int64_t begin, int64_t end) {
                     Scratch scratch;
                     for (int64_t i = begin; i < end; ++i) {
                       body(ItemOf(i), scratch);
                     }
                     if (cut_.streams) FlushStreamingStores();
                   });
  }

  Item ItemOf(int64_t number) const {
    Item item{.tile = number / cut_.chunk_count,
              .chunk = number % cut_.chunk_count,
              .at = {},
              .width = 0,
              .begin = 0,
              .end = 0};
    cut_.tiles.ForEach(item.tile, item.tile + 1,
                       [&](const Offsets& at, const auto& sizes) {
                         item.at = at;
                         item.width = sizes[0];
                       });
    item.begin = item.chunk * cut_.chunk;
    item.end = std::min(item.begin + cut_.chunk, problem_.along.extent);
    return item;
  }

  bool EndsMode(const Item& item) const {
    return item.chunk + 1 == cut_.chunk_count;
  }

  /// One row a chunk: what it comes to, later with all chunks before it.
  T* TotalOf(const Item& item) const {
    return partials_ + (item.tile * cut_.chunk_count + item.chunk) * cut_.width;
  }

  /// Two passes over a, by all threads: what chunks come to, and the results.
  void RunInPasses(ThreadPool& threads) const {
    ForItems(threads, [this](const Item& item, Scratch& scratch) {
      if (EndsMode(item)) return;
      ScanItem(item, nullptr, false, TotalOf(item), scratch);
    });
    if (CurrentWork::ShouldStop()) return;
    for (int64_t i = 0; i < cut_.item_count(); ++i) {
      const Item item = ItemOf(i);
      if (item.chunk == 0 || EndsMode(item)) continue;
      T* const total = TotalOf(item);
      combine_(total - cut_.width, total, total, item.width);
    }
    ForItems(threads, [this](const Item& item, Scratch& scratch) {
      const T* const before =
          item.chunk == 0 ? nullptr : TotalOf(item) - cut_.width;
      ScanItem(item, before, true, nullptr, scratch);
    });
  }

  /// Needs one pass, and gives the same.
  void RunInOrder(int64_t tile) const {
    Scratch scratch;
    T total[kTile / 8], before[kTile / 8];
    for (int64_t chunk = 0; chunk < cut_.chunk_count; ++chunk) {
      const Item item = ItemOf(tile * cut_.chunk_count + chunk);
      if (chunk == 1) std::copy_n(total, item.width, before);
      if (chunk > 1) combine_(before, total, before, item.width);
      ScanItem(item, chunk == 0 ? nullptr : before, true, total, scratch);
      if (CurrentWork::ShouldStop()) return;
    }
    if (cut_.streams) FlushStreamingStores();
  }

  TileLayout TileOf(const Item& item, size_t operand, int64_t first,
                    int64_t count) const {
    const int64_t stride = problem_.along.strides[operand];
    const int64_t offset = item.at[operand] + first * stride;
    if (cut_.in_pieces) {
      return {.offset = offset,
              .count_i = count,
              .count_j = 1,
              .stride_i = stride,
              .stride_j = 0};
    }
    return {.offset = offset,
            .count_i = item.width,
            .count_j = count,
            .stride_i = cut_.across.strides[operand],
            .stride_j = stride};
  }

  /// Combines `before`, unless it is null, with the elements of an item, one
  /// after the other. Results are stored, or not; `total`, unless it is null,
  /// gets what the item comes to by itself.
  void ScanItem(const Item& item, const T* before, bool stores, T* total,
                Scratch& scratch) const {
    if (!end_.reads_a()) {
      for (int64_t at = item.begin; at < item.end; at += cut_.run) {
        if (CurrentWork::ShouldStop()) return;
        Store(item, at, std::min(cut_.run, item.end - at),
              scratch.values.data(), scratch);
      }
    } else if (cut_.in_pieces) {
      ScanPieces(item, before, stores, total, scratch);
    } else {
      ScanRows(item, before, stores, total, scratch);
    }
  }

  void Store(const Item& item, int64_t first, int64_t count, T* values,
             Scratch& scratch) const {
    end_.Store(values, TileOf(item, Problem::kC, first, count),
               TileOf(item, Problem::kD, first, count), scratch.block,
               scratch.transposed);
  }

  /// Elements of a leaf, leaves of a run, and runs, each one after the other.
  void ScanRows(const Item& item, const T* before, bool stores, T* total,
                Scratch& scratch) const {
    const int64_t width = item.width;
    const auto join = [&](T* to, const T* row, bool is_first) {
      if (is_first) {
        std::copy_n(row, width, to);
      } else {
        combine_(to, row, to, width);
      }
    };
    T* const leaf = scratch.leaf;  // up to here
    T* const run = scratch.run;    // with the leaves before, of those in a run
    int64_t leaf_rows = 0, run_rows = 0;
    bool has_runs = false;
    for (int64_t at = item.begin; at < item.end; at += cut_.run) {
      if (CurrentWork::ShouldStop()) return;
      const int64_t count = std::min(cut_.run, item.end - at);
      const T* row = a_.Load(TileOf(item, Problem::kA, at, count),
                             scratch.block.data(), scratch.transposed);
      T* result = scratch.values.data();
      for (int64_t i = 0; i < count; ++i, row += width, result += width) {
        if (leaf_rows == leaf_limit_) {
          join(run, leaf, run_rows == 0);
          run_rows += leaf_rows;
          leaf_rows = 0;
        }
        if (run_rows == kLeaf * kLeavesOfRun) {
          join(scratch.runs, run, !has_runs);
          has_runs = true;
          run_rows = 0;
        }
        join(leaf, row, leaf_rows++ == 0);
        const bool is_plain = run_rows == 0 && !has_runs && before == nullptr;
        if (is_plain) std::copy_n(leaf, width, result);
        if (is_plain || !stores) continue;
        const T* value = leaf;
        const std::array<const T*, 3> parts = {
            run_rows > 0 ? run : nullptr, has_runs ? scratch.runs : nullptr,
            before};
        for (const T* const part : parts) {
          if (part == nullptr) continue;
          combine_(part, value, result, width);
          value = result;
        }
      }
      if (stores) Store(item, at, count, scratch.values.data(), scratch);
    }
    if (total == nullptr) return;
    join(run, leaf, run_rows == 0);
    join(scratch.runs, run, !has_runs);
    std::copy_n(scratch.runs, width, total);
  }

  /// Of one kept element.
  void ScanPieces(const Item& item, const T* before, bool stores, T* total,
                  Scratch& scratch) const {
    T done{};  // what comes before a tile in the chunk
    bool is_first = true;
    for (int64_t at = item.begin; at < item.end; at += kTile) {
      if (CurrentWork::ShouldStop()) return;
      const int64_t count = std::min(kTile, item.end - at);
      const T* const x = a_.Load(TileOf(item, Problem::kA, at, count),
                                 scratch.block.data(), scratch.transposed);
      T* const values = scratch.values.data();
      if (cut_.in_order) {
        leaves_.scan_in_order(x, count, is_first ? nullptr : &done, values);
        done = values[count - 1];
      } else {
        const T sum = ScanTile(x, count, values, scratch.transposed.data());
        if (!is_first) leaves_.put_before(done, values, count);
        done = is_first ? sum : ApplyBinary(problem_.op, done, sum);
      }
      is_first = false;
      if (!stores) continue;
      if (before != nullptr) leaves_.put_before(*before, values, count);
      Store(item, at, count, values, scratch);
    }
    if (total != nullptr) *total = done;
  }

  /// A tile by itself: leaves side by side, then each with those before it.
  /// Returns what it comes to.
  T ScanTile(const T* x, int64_t count, T* values, T* block) const {
    for (int64_t first = 0; first < count; first += kLeaf * kLeaves) {
      leaves_.scan(WholeLeaves(x, first, count, block), values + first);
    }
    T sum = values[kLeaf - 1];
    for (int64_t first = kLeaf; first < count; first += kLeaf) {
      leaves_.put_before(sum, values + first, kLeaf);
      sum = values[first + kLeaf - 1];
    }
    return sum;
  }

  /// The leaves of x from the `first` element on, in `block` where `count` ends
  /// among them; what is behind does not matter then.
  const T* WholeLeaves(const T* x, int64_t first, int64_t count,
                       T* block) const {
    constexpr int64_t kElements = kLeaf * kLeaves;
    const int64_t left = count - first;
    if (left >= kElements) return x + first;
    std::copy_n(x + first, left, block);
    std::fill_n(block + left, kElements - left, IdentityOf<T>(problem_.op));
    return block;
  }

  const Problem& problem_;
  const Cut& cut_;
  TileInput<T> a_;
  ReductionEnd<T> end_;
  BinaryBlock<T> combine_;
  LeafFunctions<T> leaves_;
  int64_t leaf_limit_;  // elements
  T* partials_;
};

double PredictNanoseconds(const Problem& problem) {
  const int64_t bytes = SizeOf(problem.type_a) + SizeOf(problem.type_d);
  return kLaunchNanoseconds +
         kNanosecondsPerByte * static_cast<double>(ElementCount(problem.kept)) *
             static_cast<double>(problem.along.extent * bytes);
}

/// Of a total for each chunk.
int64_t TotalBytes(const Problem& problem, const Cut& cut) {
  return cut.chunk_count == 1
             ? 0
             : Workspace::BytesFor(cut.item_count() * cut.width *
                                   SizeOf(problem.compute_element()));
}

class ScanSolution final : public ReductionSolution {
 public:
  ScanSolution(const Problem& problem, Cut cut, ThreadPool& threads)
      : Solution(PredictNanoseconds(problem), TotalBytes(problem, cut)),
        problem_(problem),
        cut_(std::move(cut)),
        threads_(threads) {}

  std::string decision() const override {
    return absl::StrCat(cut_.in_pieces ? "one element in pieces" : "rows",
                        " at a time, in ", cut_.tiles.tile_count(),
                        " tiles of ", cut_.chunk_count,
                        cut_.chunk_count == 1 ? " chunk" : " chunks");
  }
  int64_t bytes() const override {
    return HeapBlockBytes(sizeof(*this)) + HeapBytes(problem_) +
           cut_.tiles.heap_bytes();
  }

  absl::Status Launch(const ReductionOperands& operands, Workspace& workspace,
                      Stream&) const override {
    const ElementType element = problem_.compute_element();
    std::byte* const totals =
        workspace_bytes() == 0 ? nullptr
                               : workspace.Take<std::byte>(workspace_bytes());
    VisitComputeElement(element, [&](auto zero) {
      using T = decltype(zero);
      ScanRun<T>(problem_, cut_, operands, element,
                 reinterpret_cast<T*>(totals))
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

std::unique_ptr<const ReductionKernel> CreateScanReduction(
    ThreadPool& threads) {
  return std::make_unique<SimpleReduction>(
      "cpu.reduce.scan",
      [&](const Problem& problem) -> ReductionKernel::Solved {
        TENSORD_RETURN_IF_ERROR(CheckScans(problem));
        return std::make_unique<ScanSolution>(problem, CutScan(problem),
                                              threads);
      });
}

}  // namespace tensord::core
