#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/backend/cuda/elementwise/elementwise_formula.h"
#include "core/backend/cuda/elementwise/elementwise_kernels.h"
#include "core/base/status.h"
#include "core/ops/type_tables.h"
#include "core/problem/heap_bytes.h"

namespace tensord::core::cuda {
namespace {

using Problem = ElementwiseProblem;
using Task = ElementwiseTiledTask;

constexpr size_t kD = Problem::kD;

// An input that is read in longer runs than these need not be turned.
constexpr int64_t kLongRunBytes = 64;
// Runs that a tile should have in every operand, in bytes: the longest that
// fit.
constexpr int64_t kRunBytes[] = {512, 256, 128, 64, 32, 16, 8};
// Elements that PackedSlot() leaves among themselves.
constexpr int64_t kSlots = 32;
// Of a multiprocessor, from compute capability 8.0 on.
constexpr int64_t kThreads = 2048;
// Beside the bytes it moves, what waiting for whole tiles costs.
constexpr double kSlowness = 1.05;

/// Which part of the problem a tile holds, and how each operand walks it.
struct Tiling {
  Parts parts;  // (mode)
  bool is_turned[3] = {};
  std::vector<size_t> orders[4];  // (operand): its own, if turned, or else d's

  bool is_in_tile(size_t mode) const { return parts[mode] > 1; }
};

/// Whether reading an input in its own order instead of d's makes its runs long
/// enough to be worth while. One that is broadcast along a long fastest mode of
/// d is not worth it: a whole run of d takes one element.
bool IsTurned(const Problem& problem, size_t i, const Parts& whole,
              const std::vector<size_t>& d_order) {
  if (!IsInput(problem, i)) return false;
  const int64_t size = SizeOf(problem.types[i]);
  if (problem.modes[0].strides[i] == 0 &&
      problem.modes[0].extent * size >= kLongRunBytes) {
    return false;
  }
  const int64_t run = RunAlong(problem, i, d_order, whole);
  const int64_t own = RunAlong(problem, i, OrderBy(problem.modes, i), whole);
  return run * size < kLongRunBytes && own >= 2 * run;
}

/// Threads of a block, of which each has a few elements.
int64_t ThreadsOf(const Tiling& tiling, int64_t element_bytes) {
  return 32 * CeilDivide(Volume(tiling.parts),
                         32 * Task::ElementsPerThread(element_bytes));
}

/// Bytes that arithmetic takes an element in.
int64_t ElementBytes(const Problem& problem) {
  const ElementType compute = problem.compute_element();
  return IsInteger(compute) ? 8 : SizeOf(compute);
}

/// Fills the tile with the longest runs that fit.
absl::Status FillTile(const Problem& problem, const Parts& extents,
                      Tiling& tiling) {
  const int64_t limit = Task::MaxTileElements(ElementBytes(problem));
  for (const int64_t run_bytes : kRunBytes) {
    tiling.parts.assign(extents.size(), 1);
    for (size_t i = 0; i <= kD; ++i) {
      if (i != kD && !tiling.is_turned[i]) continue;
      const int64_t target =
          std::max<int64_t>(run_bytes / SizeOf(problem.types[i]), 2);
      Grow(extents, tiling.orders[i], target, true, tiling.parts);
    }
    if (Volume(tiling.parts) <= limit) return absl::OkStatus();
  }
  return Unimplemented("TILE_TOO_LARGE", "a tile of its modes has ",
                       Volume(tiling.parts), " elements, at most ", limit,
                       " fit");
}

/// OK when a Task can hold the tiling.
absl::Status CheckTiling(const Problem& problem, const Parts& extents,
                         const Tiling& tiling) {
  int split_count = 0;
  size_t outer_count = 0;
  for (size_t m = 0; m < extents.size(); ++m) {
    outer_count += tiling.parts[m] < extents[m] ? 1 : 0;
    split_count += extents[m] % tiling.parts[m] != 0 ? 1 : 0;
  }
  int64_t furthest = 0;
  for (size_t i = 0; i <= kD; ++i) {
    int64_t last = 0;
    for (size_t m = 0; m < extents.size(); ++m) {
      last += (tiling.parts[m] - 1) * problem.modes[m].strides[i];
    }
    furthest = std::max(furthest, last);
  }
  if (furthest > kMaxIndex) {
    return Unimplemented("STRIDES_TOO_LARGE", "a tile spans ", furthest,
                         " elements of memory, at most ", kMaxIndex,
                         " are possible");
  }
  if (split_count > Task::kMaxSplits || outer_count > Task::kMaxOuterModes) {
    return Unimplemented("TOO_MANY_MODES", "tiles lie along ", outer_count,
                         " modes and split ", split_count, ", at most ",
                         Task::kMaxOuterModes, " and ", Task::kMaxSplits,
                         " are possible");
  }
  return absl::OkStatus();
}

absl::StatusOr<Tiling> TilingOf(const Problem& problem) {
  TENSORD_RETURN_IF_ERROR(CheckComputes(problem));
  Tiling tiling;
  const Parts extents = WholeOf(problem.modes);
  const std::vector<size_t> d_order = OrderBy(problem.modes, kD);
  bool is_any_turned = false;
  for (size_t i = 0; i <= kD; ++i) {
    tiling.orders[i] = d_order;
    if (i == kD || problem.modes.empty()) continue;
    tiling.is_turned[i] = IsTurned(problem, i, extents, d_order);
    if (!tiling.is_turned[i]) continue;
    tiling.orders[i] = OrderBy(problem.modes, i);
    is_any_turned = true;
  }
  if (!is_any_turned) {
    return Unimplemented("NOTHING_TO_TURN",
                         "every input lies in long runs in d's order, is "
                         "broadcast along its fastest mode, or lies in no "
                         "longer runs in any order");
  }
  TENSORD_RETURN_IF_ERROR(FillTile(problem, extents, tiling));
  TENSORD_RETURN_IF_ERROR(CheckTiling(problem, extents, tiling));
  return tiling;
}

Task TaskOf(int64_t multiprocessor_count, const Problem& problem,
            const Expression& expression, const Tiling& tiling) {
  Task task{.expression = expression,
            .tile_elements = static_cast<uint32_t>(Volume(tiling.parts)),
            .slot_count = static_cast<uint32_t>(
                CeilDivide(Volume(tiling.parts), kSlots) * kSlots),
            .outer = {}};
  std::vector<uint8_t> places(problem.modes.size(), 0);  // (mode) in the tile
  uint32_t weight = 1;
  for (const size_t m : tiling.orders[kD]) {
    const auto& mode = problem.modes[m];
    const int64_t part = tiling.parts[m];
    int split = -1;
    if (part < mode.extent) {
      const int64_t parts = CeilDivide(mode.extent, part);
      if (mode.extent % part != 0) {
        split = task.split_count++;
        task.splits[split] = {
            .before = FastDivisor(task.outer.count),
            .parts = FastDivisor(static_cast<uint32_t>(parts)),
            .extent = static_cast<uint32_t>(mode.extent),
            .part = static_cast<uint32_t>(part)};
      }
      std::array<int64_t, 4> strides = mode.strides;
      for (int64_t& stride : strides) stride *= part;
      task.outer.Add(parts, strides);
    }
    if (!tiling.is_in_tile(m)) continue;
    places[m] = static_cast<uint8_t>(task.tile_mode_count);
    Task::TileMode& tile_mode = task.modes[task.tile_mode_count++];
    tile_mode.extent = FastDivisor(static_cast<uint32_t>(part));
    std::transform(mode.strides.begin(), mode.strides.end(), tile_mode.strides,
                   [](int64_t stride) { return static_cast<int32_t>(stride); });
    tile_mode.weight = weight;
    tile_mode.split = split;
    weight *= static_cast<uint32_t>(part);
  }
  for (size_t i = 0; i < kD; ++i) {
    task.is_turned[i] = tiling.is_turned[i] && expression.inputs[i] != nullptr;
    int place = 0;
    for (const size_t m : tiling.orders[i]) {
      if (tiling.is_in_tile(m)) task.orders[i][place++] = places[m];
    }
  }
  task.block_count = static_cast<uint32_t>(std::min<int64_t>(
      task.outer.count, kThreads / ThreadsOf(tiling, ElementBytes(problem)) *
                            multiprocessor_count));
  return task;
}

double PredictNanoseconds(const GpuModel& model, const Problem& problem,
                          const Tiling& tiling) {
  double bytes = 0;
  for (size_t i = 0; i <= kD; ++i) {
    if (i != kD && !IsInput(problem, i)) continue;
    bytes += BytesInRuns(problem, i,
                         RunAlong(problem, i, tiling.orders[i], tiling.parts));
  }
  // Threads that have nothing to do at the edges.
  double used = 1;
  for (size_t m = 0; m < problem.modes.size(); ++m) {
    const int64_t extent = problem.modes[m].extent;
    const int64_t part = tiling.parts[m];
    used *= static_cast<double>(extent) /
            static_cast<double>(CeilDivide(extent, part) * part);
  }
  return MovingNanoseconds(model,
                           kSlowness * bytes * std::max(1.0, 0.5 / used));
}

constexpr absl::string_view kName = "cuda.elementwise.tiled";

class TiledElementwiseSolution final : public CudaElementwiseSolution {
 public:
  TiledElementwiseSolution(const GpuModel& model, const Problem& problem,
                           Tiling tiling)
      : CudaElementwiseSolution(PredictNanoseconds(model, problem, tiling),
                                kName, problem),
        multiprocessor_count_(model.multiprocessor_count),
        tiling_(std::move(tiling)) {}

  std::string decision() const override {
    return absl::StrCat("tiles of ", absl::StrJoin(tiling_.parts, " x "),
                        tiling_.is_turned[0] ? ", a turned" : "",
                        tiling_.is_turned[1] ? ", b turned" : "",
                        tiling_.is_turned[2] ? ", c turned" : "");
  }
  int64_t bytes() const override {
    int64_t bytes = HeapBlockBytes(sizeof(*this)) + HeapBytes(problem()) +
                    HeapBytes(tiling_.parts);
    for (const auto& order : tiling_.orders) bytes += HeapBytes(order);
    return bytes;
  }

 private:
  cudaError_t Queue(const Expression& expression,
                    cudaStream_t stream) const override {
    return QueueElementwiseTiled(
        TaskOf(multiprocessor_count_, problem(), expression, tiling_), stream);
  }

  const int64_t multiprocessor_count_;
  const Tiling tiling_;
};

}  // namespace

std::unique_ptr<const ElementwiseKernel> CreateTiledElementwise(
    const GpuModel& model) {
  return std::make_unique<SimpleElementwise>(
      std::string(kName),
      [model](const Problem& problem) -> ElementwiseKernel::Solved {
        TENSORD_ASSIGN_OR_RETURN(Tiling tiling, TilingOf(problem));
        return std::make_unique<TiledElementwiseSolution>(model, problem,
                                                          std::move(tiling));
      });
}

}  // namespace tensord::core::cuda
