#include "core/backend/cuda/reduction_division.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "core/backend/cuda/kernel/groups/group.h"
#include "core/base/checked_math.h"
#include "core/ops/type_tables.h"

namespace tensord::core::cuda {
namespace {

using Problem = ReductionProblem;
using Division = ReductionDivision;
using Way = ReductionWay;

constexpr int64_t kThreads = ReductionTreeTask::kThreads;
static_assert(kThreads == ReductionGroupsTask::kThreads);
constexpr int64_t kWarp = 32;
// Blocks for each multiprocessor that keep it busy.
constexpr int64_t kBlocksPerMultiprocessor = 8;
// Fewer elements a thread are not worth another block.
constexpr int64_t kLeastPerThread = 8;
// Bytes of one access to memory; neighbouring blocks may share its sectors.
constexpr int64_t kLineBytes = 128;

int64_t PowerOfTwoFrom(int64_t x) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(x)));
}

int64_t AtOnce(const Problem& problem) {
  return ReductionGroupsTask::AtOnce(SizeOf(problem.type_a));
}

int64_t WantedBlocks(const GpuModel& model) {
  return kBlocksPerMultiprocessor * model.multiprocessor_count;
}

/// Deals the reduced items out to enough blocks to keep the GPU busy, while a
/// thread has at least `least` items, and so many that it has at most `most`.
void Split(const GpuModel& model, int64_t least, int64_t most,
           Division& division) {
  const auto splits = [&](int64_t per_thread) {
    return CeilDivide(division.reduced_items,
                      division.reduced_threads * per_thread);
  };
  const int64_t wanted = CeilDivide(WantedBlocks(model), division.tiles());
  const int64_t split_count =
      std::max<int64_t>({1, splits(most), std::min(wanted, splits(least))});
  division.part =
      std::max<int64_t>(CeilDivide(division.reduced_items, split_count), 1);
  division.split_count =
      std::max<int64_t>(CeilDivide(division.reduced_items, division.part), 1);
}

template <size_t operand_count>
int64_t LeastStride(const LoopModes<operand_count>& modes) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const auto& mode : modes) {
    if (mode.strides[0] != 0) least = std::min(least, mode.strides[0]);
  }
  return least;
}

/// Elements of a that lie next to each other, whatever becomes of them.
int64_t RunOfA(const Problem& problem) {
  struct Mode {
    int64_t stride, extent;
  };
  absl::InlinedVector<Mode, 12> modes;
  for (const auto& mode : problem.kept) {
    modes.push_back({mode.strides[Problem::kA], mode.extent});
  }
  for (const auto& mode : problem.reduced) {
    modes.push_back({mode.strides[0], mode.extent});
  }
  std::sort(modes.begin(), modes.end(),
            [](const Mode& x, const Mode& y) { return x.stride < y.stride; });
  int64_t run = 1;
  for (const Mode& mode : modes) {
    if (mode.stride == run) run *= mode.extent;
  }
  return run;
}

/// Whether `modes`, but for the first `skipped`, lead from one multiple of
/// `width` elements of a to others.
template <size_t operand_count>
bool KeepGroupsWhole(const LoopModes<operand_count>& modes, size_t skipped,
                     int64_t width) {
  return std::all_of(
      modes.begin() + skipped, modes.end(),
      [&](const auto& mode) { return mode.strides[0] % width == 0; });
}

Division DivideRows(const GpuModel& model, const Problem& problem,
                    Division division) {
  const int64_t at_once = AtOnce(problem);
  const int64_t run = problem.reduced[0].extent;
  const int64_t groups = CeilDivide(run, division.group_width) *
                         (ElementCount(problem.reduced) / run);
  division.has_whole_groups =
      KeepGroupsWhole(problem.kept, 0, division.group_width) &&
      KeepGroupsWhole(problem.reduced, 1, division.group_width);
  division.kept_items = division.kept_count;
  division.reduced_items = groups;
  if (groups <= kWarp) {
    division.way = Way::kShortRows;
    division.reduced_threads = PowerOfTwoFrom(groups);
    division.kept_per_thread = at_once;
    division.part = groups;
  } else {
    division.way = Way::kLongRows;
    // Rows that share lines of a go to one block.
    const bool shares_lines = run * SizeOf(problem.type_a) < kLineBytes;
    division.reduced_threads =
        shares_lines && division.kept_count > 1
            ? kWarp
            : std::clamp(PowerOfTwoFrom(CeilDivide(groups, at_once)), kWarp,
                         kThreads);
  }
  division.kept_threads = kThreads / division.reduced_threads;
  if (division.way == Way::kLongRows) {
    Split(model, 2 * at_once, at_once * ReductionGroupsTask::kMostBatches,
          division);
  }
  return division;
}

Division DivideColumns(const GpuModel& model, const Problem& problem,
                       const LoopModes<3>& kept, Division division) {
  const int64_t at_once = AtOnce(problem);
  const int64_t run = kept[0].extent;
  const int64_t groups =
      CeilDivide(run, division.group_width) * (division.kept_count / run);
  division.way = Way::kColumns;
  division.has_whole_groups =
      KeepGroupsWhole(kept, 1, division.group_width) &&
      KeepGroupsWhole(problem.reduced, 0, division.group_width);
  division.kept_items = groups;
  const int64_t reduced = division.reduced_items;
  // Whole lines for neighbouring threads, and few of them idle.
  int64_t least_kept = std::min(PowerOfTwoFrom(groups), kWarp);
  for (int64_t threads = least_kept / 2; threads >= 8; threads /= 2) {
    const auto used = [&](int64_t x) { return CeilDivide(groups, x) * x; };
    if (used(threads) < used(least_kept)) least_kept = threads;
  }
  // More threads an element of d where each has enough to do, or there would
  // be idle multiprocessors.
  division.reduced_threads = 1;
  division.kept_threads = kThreads;
  while (division.kept_threads > least_kept) {
    const int64_t least = division.tiles() < WantedBlocks(model) ? 1 : 4;
    const int64_t threads = 2 * division.reduced_threads;
    const bool is_wide = division.kept_threads > PowerOfTwoFrom(groups);
    if (!is_wide && reduced < threads * least * at_once) break;
    division.reduced_threads = threads;
    division.kept_threads = kThreads / threads;
  }
  Split(model, 2 * at_once, at_once * ReductionGroupsTask::kMostBatches,
        division);
  return division;
}

}  // namespace

int64_t ReductionDivision::tiles() const {
  return CeilDivide(kept_items, kept_threads * kept_per_thread);
}

LoopModes<3> KeptInOrderOfA(const Problem& problem) {
  LoopModes<3> kept = problem.kept;
  std::stable_sort(kept.begin(), kept.end(), [](const auto& x, const auto& y) {
    return x.strides[Problem::kA] < y.strides[Problem::kA];
  });
  return kept;
}

Division DivideElements(const GpuModel& model, int64_t kept_count,
                        int64_t reduced_count, bool reduced_is_fastest) {
  Division division{.way = Way::kTree,
                    .kept_count = kept_count,
                    .kept_items = kept_count,
                    .reduced_items = reduced_count,
                    .reduced_is_fastest = reduced_is_fastest};
  if (reduced_is_fastest) {
    // Whole lines of a for a warp, and not many idle threads.
    division.reduced_threads = std::clamp<int64_t>(
        PowerOfTwoFrom(CeilDivide(reduced_count, kLeastPerThread)),
        std::min(PowerOfTwoFrom(std::max<int64_t>(reduced_count, 1)), kWarp),
        kThreads);
  } else {
    division.reduced_threads =
        kThreads / std::min<int64_t>(PowerOfTwoFrom(kept_count), 64);
  }
  division.kept_threads = kThreads / division.reduced_threads;
  Split(model, kLeastPerThread, ReductionTreeTask::kMostPerThread, division);
  return division;
}

Division DivideElements(const GpuModel& model, const Problem& problem) {
  return DivideElements(
      model, ElementCount(problem.kept), ElementCount(problem.reduced),
      LeastStride(problem.reduced) < LeastStride(problem.kept));
}

Division Divide(const GpuModel& model, const Problem& problem) {
  const LoopModes<3> kept = KeptInOrderOfA(problem);
  Division division{.kept_count = ElementCount(problem.kept),
                    .reduced_items = ElementCount(problem.reduced),
                    .group_width = kGroupBytes / SizeOf(problem.type_a)};
  if (problem.unary_a == UnaryOperator::kIdentity &&
      problem.unary_c == UnaryOperator::kIdentity &&
      problem.type_a == problem.type_d && division.reduced_items > 0) {
    if (!problem.reduced.empty() && problem.reduced[0].strides[0] == 1) {
      return DivideRows(model, problem, division);
    }
    if (!kept.empty() && kept[0].strides[Problem::kA] == 1) {
      return DivideColumns(model, problem, kept, division);
    }
  }
  return DivideElements(model, problem);
}

ReductionDivision DivideSecond(const GpuModel& model, int64_t kept_count,
                               int64_t split_count) {
  ReductionDivision division =
      DivideElements(model, kept_count, split_count, kept_count == 1);
  division.split_count = 1;  // there are few enough
  division.part = division.reduced_items;
  return division;
}

ReductionTreeTask TreeTaskOf(const ReductionFormula& formula,
                             const ReductionDivision& division) {
  return {.formula = formula,
          .kept_threads = static_cast<uint32_t>(division.kept_threads),
          .reduced_threads = static_cast<uint32_t>(division.reduced_threads),
          .reduced_is_fastest = division.reduced_is_fastest,
          .split_count = static_cast<uint32_t>(division.split_count),
          .part = static_cast<uint32_t>(division.part),
          .reduced_count = static_cast<uint32_t>(division.reduced_items),
          .kept = {},
          .reduced = {}};
}

int64_t PartialBytes(const Problem& problem, const Division& division) {
  if (division.split_count == 1) return 0;
  const ElementType element =
      ComputeElement(problem.type_a, problem.type_d, problem.compute_type);
  const int64_t element_bytes = IsInteger(element)
                                    ? static_cast<int64_t>(sizeof(int64_t))
                                    : SizeOf(element);
  return division.split_count * division.kept_count * element_bytes;
}

double PredictReduction(const GpuModel& model, const Problem& problem,
                        const Division& division) {
  // Instructions that a multiprocessor issues in a cycle, of single threads.
  constexpr double kIssued = 128;
  // What they come to, as tests/gpu/census.py counts them in the machine code:
  // 40 an element in the loop of the tree; 36 a group of float32, 48 of float16
  // and 72 of int8, or somewhat fewer, in those of groups.
  constexpr double kPerElement = 40, kPerGroup = 24, kPerElementOfGroup = 3;
  // Sectors that a multiprocessor's cache hands out in a cycle, of four.
  constexpr double kSectorsPerCycle = 4;
  constexpr double kLatencyNs = 700;

  const auto element_bytes = static_cast<double>(SizeOf(problem.type_a));
  const auto kept = static_cast<double>(division.kept_count);
  const double count =
      kept * static_cast<double>(ElementCount(problem.reduced));
  const auto run = static_cast<double>(RunOfA(problem));
  const double bytes = count * SectorBytes(run * element_bytes) / run +
                       2 * kept * static_cast<double>(SizeOf(problem.type_d)) +
                       2 * static_cast<double>(PartialBytes(problem, division));
  const double cycles_per_ns = model.clock_ghz * model.multiprocessor_count;

  const bool is_tree = division.way == Way::kTree;
  const double groups = static_cast<double>(division.kept_items) *
                        static_cast<double>(division.reduced_items);
  const double instructions =
      is_tree ? kPerElement * count
              : groups *
                    (kPerGroup + kPerElementOfGroup *
                                     static_cast<double>(division.group_width));
  double ns = std::max(bytes / model.copy_bytes_per_ns(),
                       instructions / (kIssued * cycles_per_ns));
  if (!is_tree && !division.has_whole_groups) {
    // Lanes 16 bytes apart read elements: half a sector each.
    const double sectors =
        groups * static_cast<double>(division.group_width) / 2;
    ns = std::max(ns, sectors / (kSectorsPerCycle * cycles_per_ns));
  }
  // Each thread has several reads under way.
  const double threads = static_cast<double>(division.block_count()) * kThreads;
  const double read_bytes =
      is_tree ? element_bytes : static_cast<double>(kGroupBytes);
  const auto reads = static_cast<double>(is_tree ? 8 : AtOnce(problem));
  const double at_once = threads * reads * read_bytes;
  ns = std::max(ns, kLatencyNs * count * element_bytes / at_once);
  return model.launch_ns * (division.split_count > 1 ? 2 : 1) + ns;
}

}  // namespace tensord::core::cuda
