#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "core/backend/cuda/permutation_kernels.h"
#include "core/backend/cuda/permutation_words.h"
#include "core/backend/cuda/tile_parts.h"
#include "core/base/status.h"

namespace tensord::core::cuda {
namespace {

constexpr size_t kA = PermutationWords::kA;
constexpr size_t kD = PermutationWords::kD;

// Runs that a tile should have on both sides, in bytes: the longest that fits.
constexpr int64_t kRunBytes[] = {512, 256, 128, 64, 32};
// Of a thread, about.
constexpr int64_t kRegisters = 64;

using Tiling = PermutationTiling;

/// Words that a tile may have: all stages fit into a multiprocessor.
int64_t MostWords(const GpuModel& model, const PermutationWords& words) {
  constexpr int64_t kMostBytes = 32 << 10;
  constexpr int64_t kOther = 4 << 10;  // of shared memory, besides tiles
  constexpr int64_t kWarpWords = PackedTask::kWarpWords;
  const int64_t word_bytes = words.move.word_bytes;
  const int64_t bytes =
      std::min(kMostBytes, (model.shared_bytes_per_multiprocessor - kOther) /
                               PackedTask::Stages(word_bytes));
  return std::min<int64_t>(words.move.change.is_move
                               ? PackedTask::kMaxMovedWords
                               : PackedTask::kMaxChangedWords,
                           bytes / word_bytes / kWarpWords * kWarpWords);
}

/// Tiles of whole modes or, when `splits`, of which at least one is a part.
absl::StatusOr<Tiling> TilingOf(const GpuModel& model,
                                const PermutationWords& words, bool splits) {
  if (words.word_count() > kMaxIndex) {
    return Unimplemented("TOO_MANY_WORDS", "it moves ", words.word_count(),
                         " words, at most ", kMaxIndex, " are possible");
  }
  const int64_t limit = MostWords(model, words);
  Tiling tiling{.parts = {},
                .in_a_order = OrderBy(words.modes, kA),
                .in_d_order = OrderBy(words.modes, kD)};
  const Parts extents = WholeOf(words.modes);
  const auto fits = [&] {
    for (const int64_t run_bytes : kRunBytes) {
      const int64_t target =
          std::max<int64_t>(run_bytes / words.move.word_bytes, 2);
      tiling.parts.assign(words.modes.size(), 1);
      Grow(extents, tiling.in_a_order, target, splits, tiling.parts);
      Grow(extents, tiling.in_d_order, target, splits, tiling.parts);
      if (Volume(tiling.parts) <= limit) return true;
    }
    return false;
  };
  if (!fits()) {
    return Unimplemented("TILE_TOO_LARGE", "a tile of its modes has ",
                         Volume(tiling.parts), " words, at most ", limit,
                         " fit");
  }
  bool is_split = false;
  int64_t furthest[2] = {0, 0};
  for (size_t m = 0; m < words.modes.size(); ++m) {
    const auto& mode = words.modes[m];
    is_split |= tiling.parts[m] > 1 && tiling.parts[m] < mode.extent;
    for (const size_t operand : {kA, kD}) {
      furthest[operand] += (tiling.parts[m] - 1) * mode.strides[operand];
    }
  }
  if (splits && !is_split) {
    return Unimplemented("NOTHING_TO_SPLIT",
                         "its tiles consist of whole modes");
  }
  if (std::max(furthest[kA], furthest[kD]) > kMaxIndex) {
    return Unimplemented("STRIDES_TOO_LARGE", "a tile spans ",
                         std::max(furthest[kA], furthest[kD]),
                         " words of memory, at most ", kMaxIndex,
                         " are possible");
  }
  return tiling;
}

PackedTask TaskOf(const PermutationWords& words, const Tiling& tiling) {
  PackedTask task{.move = words.move,
                  .tile_words = static_cast<uint32_t>(Volume(tiling.parts)),
                  .outer = {},
                  .block_count = tiling.block_count};
  std::vector<int32_t> weights(words.modes.size(), 0);
  int32_t weight = 1;
  for (const size_t m : tiling.in_a_order) {
    weights[m] = weight;
    weight *= static_cast<int32_t>(tiling.parts[m]);
  }
  std::vector<int> split_of(words.modes.size(), -1);
  for (const size_t m : tiling.in_d_order) {
    const auto& mode = words.modes[m];
    const int64_t part = tiling.parts[m];
    if (part == mode.extent) continue;
    const int64_t parts = CeilDivide(mode.extent, part);
    if (part > 1) {
      split_of[m] = task.split_count;
      task.splits[task.split_count++] = {
          .before = FastDivisor(task.outer.count),
          .parts = FastDivisor(static_cast<uint32_t>(parts)),
          .extent = static_cast<uint32_t>(mode.extent),
          .part = static_cast<uint32_t>(part)};
    }
    task.outer.Add(parts, {part * mode.strides[kA], part * mode.strides[kD]});
  }
  const auto tile_mode = [&](size_t m) {
    const auto& mode = words.modes[m];
    return PackedTask::TileMode{
        .extent = FastDivisor(static_cast<uint32_t>(tiling.parts[m])),
        .stride_a = static_cast<int32_t>(mode.strides[kA]),
        .stride_d = static_cast<int32_t>(mode.strides[kD]),
        .weight = weights[m],
        .split = split_of[m]};
  };
  int count = 0;
  for (size_t i = 0; i < words.modes.size(); ++i) {
    // As many of one order as of the other.
    if (tiling.parts[tiling.in_a_order[i]] > 1) {
      task.in_a_order[count++] = tile_mode(tiling.in_a_order[i]);
    }
  }
  task.tile_mode_count = count;
  count = 0;
  for (const size_t m : tiling.in_d_order) {
    if (tiling.parts[m] > 1) task.in_d_order[count++] = tile_mode(m);
  }
  return task;
}

/// The words of a whole tile in one of its orders: where they lie in that
/// operand, and in shared memory.
struct TileOrder {
  std::vector<int64_t> offsets;
  std::vector<uint32_t> slots;
};

TileOrder OrderOf(const PackedTask& task, bool of_a) {
  TileOrder order;
  order.offsets.reserve(task.tile_words);
  order.slots.reserve(task.tile_words);
  std::array<uint32_t, PackedTask::kMaxTileModes> at = {};
  int64_t offset = 0;
  uint32_t in_a_order = 0;
  for (uint32_t index = 0; index < task.tile_words; ++index) {
    order.offsets.push_back(offset);
    order.slots.push_back(PackedSlot(in_a_order));
    for (int m = 0; m < task.tile_mode_count; ++m) {  // count one further
      const PackedTask::TileMode& mode =
          (of_a ? task.in_a_order : task.in_d_order)[m];
      const int64_t stride = of_a ? mode.stride_a : mode.stride_d;
      const uint32_t extent = mode.extent.divisor;
      const auto weight = static_cast<uint32_t>(mode.weight);
      offset += stride;
      in_a_order += weight;
      if (++at[static_cast<size_t>(m)] < extent) break;
      at[static_cast<size_t>(m)] = 0;
      offset -= int64_t{extent} * stride;
      in_a_order -= extent * weight;
    }
  }
  return order;
}

/// How often on average a warp that reads words of `slots` has to wait for a
/// bank that another of its lanes uses, plus one.
double BankTurns(const std::vector<uint32_t>& slots, int word_bytes) {
  constexpr size_t kWarp = 32;
  constexpr uint32_t kBanks = 32;
  const uint32_t banks =
      kBanks * 4 / static_cast<uint32_t>(std::max(word_bytes, 4));
  double turns = 0;
  double warps = 0;
  for (size_t first = 0; first < slots.size(); first += kWarp) {
    std::array<int, kBanks> uses = {};
    int most = 0;
    for (size_t i = first; i < std::min(first + kWarp, slots.size()); ++i) {
      most = std::max(most, ++uses[slots[i] % banks]);
    }
    // Wide words take several turns for all lanes anyway.
    turns += std::max(1.0, static_cast<double>(most) * banks / kBanks);
    warps += 1;
  }
  return turns / warps;
}

Turns TurnsOf(const GpuModel& model, const PermutationWords& words,
              const Tiling& tiling) {
  const PackedTask task = TaskOf(words, tiling);
  TileOrder loads = OrderOf(task, true);
  TileOrder stores = OrderOf(task, false);
  const double shared_transactions =
      (1 + BankTurns(stores.slots, words.move.word_bytes)) / 2;
  const int64_t threads = task.threads();
  return {.accesses = TileAccesses(loads.offsets, words.move.word_bytes,
                                   std::move(stores.offsets),
                                   static_cast<int>(words.bytes_out())),
          .shape = {.warps_per_block = static_cast<double>(threads / 32),
                    .warps_per_multiprocessor = WarpsPerMultiprocessor(
                        model, threads, kRegisters, task.shared_bytes()),
                    .parallel_requests = PackedTask::kWordsPerThread,
                    .shared_transactions = shared_transactions},
          .tile_count = task.outer.count,
          .base = [outer = task.outer](int64_t number) {
            return outer.At(number);
          }};
}

class PackedPermutation final : public CudaPermutation {
 public:
  PackedPermutation(const GpuModel& model, CudaDevice* device, bool splits)
      : CudaPermutation(model), device_(device), splits_(splits) {}

  absl::string_view name() const override {
    return splits_ ? "cuda.permute.packed_split" : "cuda.permute.packed";
  }
  int version() const override { return 2; }

 private:
  absl::StatusOr<Tiling> Divide(const PermutationWords& words) const override {
    TENSORD_ASSIGN_OR_RETURN(Tiling tiling, TilingOf(model(), words, splits_));
    if (device_ == nullptr) return tiling;
    // As many blocks as are at work at a time: each goes through tiles, and
    // knows the places in them.
    TENSORD_RETURN_IF_ERROR(device_->Select());
    const PackedTask task = TaskOf(words, tiling);
    int of_multiprocessor = 0;
    TENSORD_RETURN_IF_ERROR(
        device_->Check(CountPackedBlocks(task, &of_multiprocessor),
                       "asking how many blocks a multiprocessor holds"));
    tiling.block_count = static_cast<uint32_t>(std::min<int64_t>(
        task.outer.count, std::max<int64_t>(of_multiprocessor, 1) *
                              model().multiprocessor_count));
    return tiling;
  }

  double Nanoseconds(const PermutationWords& words,
                     const Tiling& tiling) const override {
    return TurnsNanoseconds(model(), words, TurnsOf(model(), words, tiling));
  }

  cudaError_t Queue(const PermutationWords& words, const Tiling& tiling,
                    cudaStream_t stream) const override {
    return QueuePacked(TaskOf(words, tiling), stream);
  }

  CudaDevice* const device_;
  const bool splits_;
};

}  // namespace

std::unique_ptr<const PermutationKernel> CreatePackedPermutation(
    const GpuModel& model, CudaDevice* device) {
  return std::make_unique<PackedPermutation>(model, device, false);
}

std::unique_ptr<const PermutationKernel> CreatePackedSplitPermutation(
    const GpuModel& model, CudaDevice* device) {
  return std::make_unique<PackedPermutation>(model, device, true);
}

}  // namespace tensord::core::cuda
