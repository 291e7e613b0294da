#include "core/backend/cpu/direct/direct_execution.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/backend/cpu/block/tile_space.h"
#include "core/backend/cpu/block/transpose_block.h"

namespace tensord::core {
namespace {

/// Threads that have work.
int64_t WorkersOf(const DirectWay& way, int thread_count) {
  return std::min<int64_t>(thread_count, way.task_count());
}

/// The blocks that the modes of a group are cut into.
template <size_t operand_count>
class Blocks {
 public:
  using Space = TileSpace<operand_count>;
  using Offsets = typename Space::Offsets;
  using Sizes = typename BlockModes<operand_count>::Sizes;

  explicit Blocks(const BlockModes<operand_count>& group)
      : first_(group.last_is_unit ? group.modes.size() - 1 : 0) {
    const size_t modes = group.modes.size();
    for (size_t m = 0; m < modes; ++m) {
      const size_t mode = (m + first_) % modes;
      space_.Add(group.modes[mode], group.parts[mode]);
    }
  }

  int64_t count() const { return space_.tile_count(); }

  /// Calls visit(offsets, sizes) for the blocks [begin, end): where each starts
  /// and how much of each mode it has.
  template <typename Visitor>
  void ForEach(int64_t begin, int64_t end, Visitor visit) const {
    space_.ForEach(begin, end, [&](const Offsets& at, const auto& by_loop) {
      Sizes sizes(by_loop.begin(), by_loop.end());
      std::rotate(sizes.begin(), sizes.end() - static_cast<int64_t>(first_),
                  sizes.end());
      visit(at, sizes);
    });
  }

 private:
  const size_t first_;  // the mode of the innermost loop
  Space space_;
};

/// Calls visit(place, count, offsets, steps) for a block's rows or columns:
/// `count` along the first mode, with the offsets and strides in c and d.
template <typename Visitor>
void ForEachStretch(const BlockModes<3>& lanes,
                    const BlockModes<3>::Sizes& sizes, Visitor visit) {
  constexpr size_t kPlace = 0, kC = 1, kD = 2;
  const PackModes places = lanes.In(DirectWay::kD, sizes);
  TileSpace<3> space;
  for (size_t m = 0; m < sizes.size(); ++m) {
    const auto& strides = lanes.modes[m].strides;
    space.Add({.extent = sizes[m],
               .step = m == 0 ? sizes[m] : 1,
               .strides = {places.modes[m].step, strides[DirectWay::kC],
                           strides[DirectWay::kD]}});
  }
  const bool has_modes = !sizes.empty();
  const int64_t count = has_modes ? sizes[0] : 1;
  const int64_t step_c = has_modes ? space.loop(0).strides[kC] : 0;
  const int64_t step_d = has_modes ? space.loop(0).strides[kD] : 0;
  space.ForEach(0, space.tile_count(), [&](const auto& at, const auto&) {
    visit(at[kPlace], count, at[kC], at[kD], step_c, step_d);
  });
}

/// What one thread works with.
template <typename T>
struct Bench {
  T* x = nullptr;
  T* y = nullptr;
  std::vector<RowRun> runs = {};
  std::vector<int64_t> run_ends = {}, columns_c = {}, columns_d = {};
};

/// One execution.
template <typename T>
class Execution {
 public:
  Execution(const DirectWay& way, const ContractionOperands& operands)
      : way_(way),
        rows_(way.rows),
        columns_(way.columns),
        terms_(way.terms),
        x_(static_cast<const T*>(way.swaps ? operands.b : operands.a)),
        y_(static_cast<const T*>(way.swaps ? operands.a : operands.b)),
        c_(static_cast<const T*>(operands.c)),
        d_(static_cast<T*>(operands.d)),
        alpha_(static_cast<T>(operands.alpha.real)),
        beta_(static_cast<T>(operands.beta.real)) {
    for (const auto& mode : way.batch) batch_.Add(mode);
  }

  /// A block of columns by a range of blocks of rows, of one element of the
  /// batch modes.
  void RunTask(int64_t task, Bench<T>& bench) const {
    const int64_t ranges = way_.row_ranges();
    const int64_t range = task % ranges;
    const int64_t block = task / ranges % columns_.count();
    const int64_t batch = task / ranges / columns_.count();
    batch_.ForEach(batch, batch + 1, [&](const auto& at, const auto&) {
      columns_.ForEach(block, block + 1,
                       [&](const Offsets& column, const Sizes& sizes) {
                         MultiplyRows(at, column, sizes, range, bench);
                       });
    });
  }

 private:
  using Offsets = Blocks<3>::Offsets;
  using Sizes = Blocks<3>::Sizes;
  static constexpr size_t kInput = DirectWay::kInput, kC = DirectWay::kC,
                          kD = DirectWay::kD, kX = DirectWay::kX,
                          kY = DirectWay::kY;

  /// A range of rows by one block of columns.
  void MultiplyRows(const TileSpace<4>::Offsets& batch, const Offsets& column,
                    const Sizes& column_sizes, int64_t range,
                    Bench<T>& bench) const {
    const int64_t batch_x = batch[0], batch_y = batch[1];
    const int64_t batch_c = batch[2], batch_d = batch[3];
    const int64_t first = range * way_.row_blocks_per_task;
    const int64_t last =
        std::min(first + way_.row_blocks_per_task, rows_.count());
    ListColumns(column_sizes, bench);
    // The first block of terms adds c, later ones what is in d.
    bool adds_c = true;
    terms_.ForEach(
        0, terms_.count(), [&](const auto& term, const auto& term_sizes) {
          if (CurrentWork::ShouldStop()) return;
          Pack(sizeof(T), way_.columns.In(kInput, column_sizes),
               way_.terms.In(kY, term_sizes),
               y_ + batch_y + column[kInput] + term[kY], way_.tile.columns,
               bench.y);
          const PackModes terms_x = way_.terms.In(kX, term_sizes);
          rows_.ForEach(
              first, last, [&](const Offsets& row, const Sizes& row_sizes) {
                if (CurrentWork::ShouldStop()) return;
                Pack(sizeof(T), way_.rows.In(kInput, row_sizes), terms_x,
                     x_ + batch_x + row[kInput] + term[kX], way_.tile.rows,
                     bench.x);
                const bool reads_c = adds_c && beta_ != 0;
                ListRuns(row_sizes, reads_c, bench);
                T* const d = d_ + batch_d + row[kD] + column[kD];
                Multiply(BlockProduct<T>{
                    .shape = way_.shape,
                    .terms = terms_x.places,
                    .x = bench.x,
                    .y = bench.y,
                    .runs = bench.runs,
                    .run_ends = bench.run_ends,
                    .columns_c = reads_c ? bench.columns_c : bench.columns_d,
                    .columns_d = bench.columns_d,
                    .alpha = alpha_,
                    .beta = adds_c ? beta_ : T{1},
                    .c = reads_c ? c_ + batch_c + row[kC] + column[kC] : d,
                    .d = d,
                    .streams = way_.streams});
              });
          adds_c = false;
        });
  }

  /// Lists the offsets of a block's columns.
  void ListColumns(const Sizes& sizes, Bench<T>& bench) const {
    const auto places = static_cast<size_t>(way_.columns.PlacesOf(sizes));
    bench.columns_c.assign(places, BlockProduct<T>::kNoColumn);
    bench.columns_d.assign(places, BlockProduct<T>::kNoColumn);
    ForEachStretch(way_.columns, sizes,
                   [&](int64_t place, int64_t count, int64_t c, int64_t d,
                       int64_t step_c, int64_t step_d) {
                     for (int64_t i = 0; i < count; ++i) {
                       const auto at = static_cast<size_t>(place + i);
                       bench.columns_c[at] = c + i * step_c;
                       bench.columns_d[at] = d + i * step_d;
                     }
                   });
  }

  /// Lists the runs of a block's rows; where c is not read, it is as d.
  void ListRuns(const Sizes& sizes, bool reads_c, Bench<T>& bench) const {
    const int64_t panel = way_.tile.rows;
    bench.runs.clear();
    bench.run_ends.clear();
    int64_t next = panel;  // where the next panel begins
    ForEachStretch(
        way_.rows, sizes,
        [&](int64_t place, int64_t count, int64_t c, int64_t d, int64_t step_c,
            int64_t step_d) {
          if (!reads_c) {
            c = d;
            step_c = step_d;
          }
          const bool is_run = step_c == 1 && step_d == 1;
          while (count > 0) {
            while (place >= next) {
              bench.run_ends.push_back(static_cast<int64_t>(bench.runs.size()));
              next += panel;
            }
            const int64_t piece = is_run ? std::min(count, next - place) : 1;
            AddRun({place - (next - panel), piece, c, d}, bench);
            place += piece;
            count -= piece;
            c += piece * step_c;
            d += piece * step_d;
          }
        });
    bench.run_ends.push_back(static_cast<int64_t>(bench.runs.size()));
  }

  /// Adds a run of the last panel, or lengthens the one before it.
  static void AddRun(const RowRun& run, Bench<T>& bench) {
    const int64_t begin = bench.run_ends.empty() ? 0 : bench.run_ends.back();
    if (static_cast<int64_t>(bench.runs.size()) > begin) {
      RowRun& before = bench.runs.back();
      if (before.first + before.count == run.first &&
          before.c + before.count == run.c &&
          before.d + before.count == run.d) {
        before.count += run.count;
        return;
      }
    }
    bench.runs.push_back(run);
  }

  const DirectWay& way_;
  TileSpace<4> batch_;
  const Blocks<3> rows_, columns_;
  const Blocks<2> terms_;
  const T* const x_;
  const T* const y_;
  const T* const c_;
  T* const d_;
  const T alpha_, beta_;
};

template <typename T>
void ExecuteAs(const DirectWay& way, const ContractionOperands& operands,
               ThreadPool& threads, Workspace& workspace) {
  const Execution<T> execution(way, operands);
  const int64_t tasks = way.task_count();
  std::vector<Bench<T>> benches(
      static_cast<size_t>(WorkersOf(way, threads.thread_count())));
  for (Bench<T>& bench : benches) {
    bench.x = workspace.Take<T>(way.x_elements());
    bench.y = workspace.Take<T>(way.y_elements());
  }
  threads.ParallelFor(
      tasks, std::ssize(benches), [&](int64_t task, int64_t worker) {
        execution.RunTask(task, benches[static_cast<size_t>(worker)]);
        if (way.streams) FlushStreamingStores();
      });
}

}  // namespace

int64_t DirectWorkspaceBytes(const DirectWay& way, int thread_count) {
  const int64_t bytes = SizeOf(way.type);
  return WorkersOf(way, thread_count) *
         (Workspace::BytesFor(way.x_elements() * bytes) +
          Workspace::BytesFor(way.y_elements() * bytes));
}

void ExecuteDirectWay(const DirectWay& way, const ContractionOperands& operands,
                      ThreadPool& threads, Workspace& workspace) {
  if (way.type == ElementType::kFloat64) {
    ExecuteAs<double>(way, operands, threads, workspace);
  } else {
    ExecuteAs<float>(way, operands, threads, workspace);
  }
}

}  // namespace tensord::core
