#include "core/backend/cpu/block/permutation_move.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "core/backend/cpu/block/transpose_block.h"

namespace tensord::core {
namespace {

constexpr size_t kA = PermutationProblem::kA, kD = PermutationProblem::kD;

/// Runs of a block, in bytes; short when all of d fits the caches and blocks
/// should be many.
struct RunBytes {
  int64_t a, d;
};
constexpr RunBytes kStreamingRuns{2048, 1024};
constexpr RunBytes kStreamingCopyRuns{4096, 4096};
constexpr RunBytes kCachedRuns{512, 512};

constexpr int64_t kPieceRows = 32;
constexpr int64_t kPieceColumns = 64;
constexpr int64_t kCopiedRows = 64;
// Longer rows than this are read ahead by the hardware.
constexpr int64_t kLongestPrefetchedRow = 1024;
constexpr int64_t kCopiedRowBytes = 16 << 10;
// Copied rows that are not aligned are streamed when at least so long: the
// lines at their ends cannot be. Transposed ones never are: putting them
// together in a buffer first costs what streaming gains.
constexpr int64_t kShortestStreamedRow = 512;

/// A short mode that is contiguous on both sides becomes one larger element.
void WidenElements(LoopModes<2>& modes, int64_t& element_bytes) {
  const LoopMode<2> inner = modes[0];
  if (inner.strides != std::array<int64_t, 2>{1, 1}) return;
  const int64_t bytes = inner.extent * element_bytes;
  if (bytes > 16 || (bytes & (bytes - 1)) != 0) return;
  for (size_t m = 1; m < modes.size(); ++m) {
    for (const int64_t stride : modes[m].strides) {
      if (stride % inner.extent != 0) return;
    }
  }
  modes.erase(modes.begin());
  for (auto& mode : modes) {
    for (int64_t& stride : mode.strides) stride /= inner.extent;
  }
  element_bytes = bytes;
}

/// The largest step up to `most`, a multiple of `grain` unless it is all, that
/// cuts `extent` into equal parts as far as possible.
int64_t EvenStep(int64_t extent, int64_t most, int64_t grain) {
  if (most >= extent) return extent;
  most = std::max(most / grain * grain, grain);
  const int64_t parts = (extent + most - 1) / most;
  const int64_t even = (extent + parts - 1) / parts;
  return std::min(extent, (even + grain - 1) / grain * grain);
}

using Indices = absl::InlinedVector<size_t, 8>;
using Steps = absl::InlinedVector<int64_t, 8>;  // (mode)

/// Modes by their strides in operand `k`, those that lack it last.
Indices SortedBy(const LoopModes<2>& modes, size_t k) {
  Indices order(modes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) {
    const int64_t sx = modes[x].strides[k], sy = modes[y].strides[k];
    return sy == 0 ? sx != 0 : sx != 0 && sx < sy;
  });
  return order;
}

bool Has(const Indices& indices, size_t index) {
  return std::count(indices.begin(), indices.end(), index) > 0;
}

/// Extends blocks along `order` until their run has `run_bytes`, but not along
/// modes that another run already has.
void GrowRun(const LoopModes<2>& modes, const Indices& order,
             int64_t unit_bytes, int64_t run_bytes, int64_t grain,
             Indices& taken, Steps& steps) {
  int64_t run = unit_bytes;
  for (const size_t m : order) {
    if (run >= run_bytes || Has(taken, m)) return;
    steps[m] = EvenStep(modes[m].extent, (run_bytes + run - 1) / run, grain);
    taken.push_back(m);
    if (steps[m] < modes[m].extent) return;
    run *= steps[m];
    grain = 1;
  }
}

/// The modes in the order of each operand.
struct Orders {
  Indices a, d;
};

/// How far blocks reach along each mode, from units of `unit_bytes` on.
Steps BlockSteps(const MovePlan& plan, const LoopModes<2>& modes,
                 const Orders& orders, int64_t unit_bytes) {
  const RunBytes runs = plan.d_bytes < kStreamingBytes ? kCachedRuns
                        : plan.transposes              ? kStreamingRuns
                                                       : kStreamingCopyRuns;
  const int64_t grain =
      plan.transposes ? kCacheLineBytes / plan.element_bytes : 1;
  Steps steps(modes.size(), 1);
  Indices taken;
  GrowRun(modes, orders.d, unit_bytes, runs.d, grain, taken, steps);
  const size_t column = orders.a[0];
  if (plan.transposes && Has(taken, column)) {
    // d's run has reached a's fastest mode, of which blocks take enough.
    steps[column] = std::max(
        steps[column],
        EvenStep(modes[column].extent, runs.a / plan.element_bytes, grain));
  }
  GrowRun(modes, orders.a, unit_bytes, runs.a, grain, taken, steps);
  return steps;
}

/// The modes as loops over the pieces of a block, innermost first: a is read
/// along its runs; d's runs are outermost.
Indices PieceOrder(const LoopModes<2>& modes, const Orders& orders, size_t row,
                   size_t column) {
  Indices inner = {column};
  const auto add = [&](size_t m) {
    if (!Has(inner, m)) inner.push_back(m);
  };
  for (const size_t m : orders.a) {
    if (m != row && modes[m].strides[kA] < modes[m].strides[kD]) add(m);
  }
  for (const size_t m : orders.d) add(m);
  return inner;
}

}  // namespace

std::optional<MovePlan> PlanMove(LoopModes<2> modes, int64_t element_bytes) {
  if (modes.empty()) modes.push_back({1, {1, 1}});
  if (modes.size() > 1) WidenElements(modes, element_bytes);
  if (modes[0].strides[kD] != 1) return std::nullopt;
  size_t unit = 0;
  while (unit < modes.size() && modes[unit].strides[kA] != 1) ++unit;
  if (unit == modes.size()) return std::nullopt;

  MovePlan plan;
  plan.element_bytes = element_bytes;
  plan.transposes = unit != 0;
  plan.d_bytes = ElementCount(modes) * element_bytes;
  for (auto& mode : modes) {
    for (int64_t& stride : mode.strides) stride *= element_bytes;
  }
  plan.is_aligned = true;
  for (size_t m = 1; m < modes.size(); ++m) {
    plan.is_aligned &= modes[m].strides[kD] % kCacheLineBytes == 0;
  }

  // Copied rows are bytes along mode 0 and then as good as single elements.
  int64_t unit_bytes = element_bytes;
  if (!plan.transposes) {
    unit_bytes = modes[0].extent * element_bytes;
    plan.blocks.Add({unit_bytes, kCopiedRowBytes, {1, 1}});
    plan.pieces.push_back({0, kCopiedRowBytes});
    modes.erase(modes.begin());
    if (modes.empty()) modes.push_back({1, {0, 0}});
  }
  const Orders orders = {SortedBy(modes, kA), SortedBy(modes, kD)};
  const Steps steps = BlockSteps(plan, modes, orders, unit_bytes);
  const size_t first = plan.pieces.size();
  for (const size_t m : orders.a) plan.blocks.Add(modes[m], steps[m]);
  const size_t row = orders.d[0];
  const size_t column = plan.transposes ? orders.a[0] : row;
  const int64_t line = kCacheLineBytes / element_bytes;
  for (const size_t m : PieceOrder(modes, orders, row, column)) {
    int64_t step = 1;
    if (m == row) {
      plan.row_loop = plan.pieces.size();
      step =
          plan.transposes ? EvenStep(steps[m], kPieceRows, line) : kCopiedRows;
    } else if (m == column) {
      plan.column_loop = plan.pieces.size();
      step = EvenStep(steps[m], kPieceColumns, line);
    }
    const size_t at =
        std::find(orders.a.begin(), orders.a.end(), m) - orders.a.begin();
    plan.pieces.push_back({first + at, step});
  }
  if (!plan.transposes) plan.column_loop = 0;
  return plan;
}

namespace {

/// One thread's way through the pieces of a plan.
class Mover {
 public:
  Mover(const MovePlan& plan, const void* a, void* d)
      : plan_(plan),
        a_(static_cast<const std::byte*>(a)),
        d_(static_cast<std::byte*>(d)),
        row_(plan.blocks.loop(plan.pieces[plan.row_loop].block_loop)),
        column_(plan.blocks.loop(plan.pieces[plan.column_loop].block_loop)) {
    const bool aligned = plan.is_aligned &&
                         reinterpret_cast<uintptr_t>(d) % kCacheLineBytes == 0;
    const bool copies_long_rows =
        !plan.transposes && column_.extent >= kShortestStreamedRow;
    if (plan.d_bytes >= kStreamingBytes && (aligned || copies_long_rows)) {
      stores_ = Stores::kStreaming;
    }
  }

  /// Moves the blocks [begin, end).
  void Run(int64_t begin, int64_t end) {
    plan_.blocks.ForEach(begin, end, [&](const auto& at, const auto& sizes) {
      TileSpace<2> pieces;
      for (const auto& piece : plan_.pieces) {
        const auto& loop = plan_.blocks.loop(piece.block_loop);
        pieces.Add({sizes[piece.block_loop], piece.step, loop.strides});
      }
      pieces.ForEach(
          0, pieces.tile_count(), [&](const auto& in, const auto& of) {
            Next({.a = a_ + at[kA] + in[kA],
                  .d = d_ + at[kD] + in[kD],
                  .rows = of[plan_.row_loop],
                  .columns = of[plan_.column_loop],
                  .a_row_bytes = row_.strides[kA],
                  .d_row_bytes =
                      (plan_.transposes ? column_ : row_).strides[kD]});
          });
    });
    MovePending(0);
    FlushStreamingStores();
  }

 private:
  /// Moves the piece before, reading ahead for this one.
  void Next(const TilePiece& piece) {
    if (has_pending_) MovePending(piece.a - pending_.a);
    pending_ = piece;
    has_pending_ = true;
  }

  void MovePending(int64_t prefetch_bytes) {
    if (plan_.transposes) {
      TransposePiece(plan_.element_bytes, pending_, stores_, prefetch_bytes);
    } else {
      CopyRows(pending_, stores_,
               pending_.columns > kLongestPrefetchedRow ? 0 : prefetch_bytes);
    }
  }

  const MovePlan& plan_;
  const std::byte* a_;
  std::byte* d_;
  const TileLoop<2>& row_;
  const TileLoop<2>& column_;
  Stores stores_ = Stores::kCached;
  TilePiece pending_ = {};
  bool has_pending_ = false;
};

}  // namespace

void Move(const MovePlan& plan, const void* a, void* d, ThreadPool& threads) {
  const int64_t count = plan.blocks.tile_count();
  ParallelRanges(
      threads, count, 2 * plan.d_bytes / count,
      [&](int64_t begin, int64_t end) { Mover(plan, a, d).Run(begin, end); });
}

}  // namespace tensord::core
