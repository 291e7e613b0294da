#include "core/backend/cuda/contraction/direct_modes.h"

#include <algorithm>
#include <utility>

#include "core/backend/cuda/kernel/index_space.h"

namespace tensord::core::cuda {
namespace {

using Problem = ContractionProblem;

// Steps of a block: of a's mode a sector of float32, of b's two. A block then
// has half the terms of a chunk, whose sectors the caches keep.
constexpr int64_t kMostOfA = 8;
constexpr int64_t kMostOfB = 16;
// In fewer, too little of a sector is used.
constexpr int64_t kLeast = 4;

/// The largest divisor of `extent` that is at most `most`.
int64_t DivisorOf(int64_t extent, int64_t most) {
  int64_t divisor = std::min(extent, most);
  while (extent % divisor != 0) --divisor;
  return divisor;
}

size_t FastestIn(size_t operand, const LoopModes<2>& modes) {
  size_t fastest = 0;
  for (size_t i = 1; i < modes.size(); ++i) {
    if (modes[i].strides[operand] < modes[fastest].strides[operand]) {
      fastest = i;
    }
  }
  return fastest;
}

/// Puts `modes` in blocks. False when there are none.
bool PutInBlocks(LoopModes<2>& modes) {
  if (modes.size() < 2 || modes.size() + 2 > kMaxModes) return false;
  const size_t of_a = FastestIn(0, modes), of_b = FastestIn(1, modes);
  if (of_a == of_b) return false;
  const int64_t steps_a = DivisorOf(modes[of_a].extent, kMostOfA);
  const int64_t steps_b = DivisorOf(modes[of_b].extent, kMostOfB);
  if (std::min(steps_a, steps_b) < kLeast) return false;
  LoopModes<2> blocks;
  for (const auto& [mode, steps] :
       {std::pair(of_a, steps_a), std::pair(of_b, steps_b)}) {
    blocks.push_back({steps, modes[mode].strides});
    modes[mode].extent /= steps;
    for (int64_t& stride : modes[mode].strides) stride *= steps;
  }
  for (const auto& mode : modes) {
    if (mode.extent > 1) blocks.push_back(mode);
  }
  modes = std::move(blocks);
  return true;
}

}  // namespace

std::optional<DirectModes> DirectModesOf(const Problem& problem, bool swaps,
                                         TermOrder terms) {
  DirectModes modes{problem.batch, problem.m, problem.n, problem.k};
  if (swaps) {
    std::swap(modes.m, modes.n);
    for (auto& mode : modes.k) std::swap(mode.strides[0], mode.strides[1]);
    for (auto& mode : modes.batch) std::swap(mode.strides[0], mode.strides[1]);
  }
  std::stable_sort(modes.k.begin(), modes.k.end(),
                   [operand = terms == TermOrder::kAsInB ? 1 : 0](
                       const auto& x, const auto& y) {
                     return x.strides[operand] < y.strides[operand];
                   });
  if (terms == TermOrder::kInBlocks && !PutInBlocks(modes.k)) {
    return std::nullopt;
  }
  // Those that one operand has alone stay behind the others.
  const size_t own = swaps ? 1 : 0;
  for (const auto& mode : problem.a_only) {
    modes.k.push_back({mode.extent, {}});
    modes.k.back().strides[own] = mode.strides[0];
  }
  for (const auto& mode : problem.b_only) {
    modes.k.push_back({mode.extent, {}});
    modes.k.back().strides[1 - own] = mode.strides[0];
  }
  return modes;
}

}  // namespace tensord::core::cuda
