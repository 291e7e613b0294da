// A permutation as its kernels see it: words instead of elements.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/backend/cuda/cycle_model.h"
#include "core/backend/cuda/gpu_model.h"
#include "core/backend/cuda/kernel/permutation_tasks.h"
#include "core/backend/cuda/tile_parts.h"
#include "core/backend/kernel.h"

namespace tensord::core::cuda {

/// Makes words of pairs of neighbours, and so on, while pairs are neighbours in
/// every operand wherever they begin. Returns the bytes of a word.
///
/// Requires  every operand begins at a multiple of `alignment_bytes`.
template <size_t operand_count>
int WidenWords(LoopModes<operand_count>& modes, int word_bytes,
               int64_t alignment_bytes) {
  const auto is_even = [](int64_t x) { return x % 2 == 0; };
  while (2 * word_bytes <= alignment_bytes && !modes.empty()) {
    auto& [extent, strides] = modes[0];
    const bool are_pairs =
        is_even(extent) &&
        std::ranges::all_of(strides, [](int64_t s) { return s == 1; }) &&
        std::all_of(modes.begin() + 1, modes.end(), [&](const auto& mode) {
          return std::ranges::all_of(mode.strides, is_even);
        });
    if (!are_pairs) break;
    word_bytes *= 2;
    extent /= 2;
    for (size_t m = 1; m < modes.size(); ++m) {
      for (int64_t& stride : modes[m].strides) stride /= 2;
    }
    if (extent == 1) modes.erase(modes.begin());
  }
  return word_bytes;
}

/// A permutation of words.
///
/// Units  extents and strides count words of `move.word_bytes`.
struct PermutationWords {
  static constexpr size_t kA = PermutationProblem::kA;
  static constexpr size_t kD = PermutationProblem::kD;

  MoveTask move;
  LoopModes<2> modes;  // fastest in d first

  int64_t word_count() const { return ElementCount(modes); }
  /// Bytes of d for a word of a.
  double bytes_out() const;
  /// By what modes are sorted in the order of an operand: the stride, or the
  /// largest number where the operand is broadcast.
  int64_t rank_of(size_t mode, size_t operand) const;
  /// Index of the mode that comes first in a; in d that is 0.
  /// Requires  modes is not empty.
  size_t fastest_in() const;
};

/// Without addresses: words as wide as extents, strides and the problem's
/// alignment allow when it is to move bits, and elements otherwise.
PermutationWords WordsOf(const PermutationProblem& problem);

/// What a kernel that takes whole modes at a time has decided; empty in others.
struct PermutationTiling {
  Parts parts;  // (mode) words of a tile
  std::vector<size_t> in_a_order;
  std::vector<size_t> in_d_order;
  uint32_t block_count = 1;  // that share the tiles
};

/// Time to read and write every word once, in whole lines.
double CopyNanoseconds(const GpuModel& model, const PermutationWords& words);

/// How a kernel goes about a permutation, for the cycle model.
struct Turns {
  TileAccesses accesses;  // of one turn: a whole tile
  KernelShape shape;
  int64_t tile_count = 1;
  /// The first words of the `number`-th tile in a and d.
  std::function<std::array<int64_t, 2>(int64_t number)> base;
};

/// Warps of `threads` threads a block that a multiprocessor holds at a time.
double WarpsPerMultiprocessor(const GpuModel& model, int64_t threads,
                              int64_t registers_per_thread,
                              int64_t shared_bytes_per_block);

/// Time that the cycle model gives, from ten tiles that are always the same; at
/// least that of a copy.
double TurnsNanoseconds(const GpuModel& model, const PermutationWords& words,
                        const Turns& turns);

/// For the kernel that takes every permutation.
ReferenceTask ReferenceTaskOf(const PermutationWords& words);

/// The modes as device code counts them.
/// Requires  words.word_count() <= kMaxIndex.
IndexSpace<2> ModesOf(const PermutationWords& words);

/// What all permutation kernels do alike.
class CudaPermutation : public PermutationKernel {
 public:
  explicit CudaPermutation(const GpuModel& model) : model_(model) {}

  Solved Solve(const PermutationProblem& problem) const override;

 protected:
  const GpuModel& model() const { return model_; }

 private:
  class WordsSolution;

  /// Decides how `words` are divided, or declines them.
  virtual absl::StatusOr<PermutationTiling> Divide(
      const PermutationWords& words) const = 0;
  /// How long that should take.
  virtual double Nanoseconds(const PermutationWords& words,
                             const PermutationTiling& tiling) const = 0;
  /// Queues the permutation of `words`, which have addresses now.
  virtual cudaError_t Queue(const PermutationWords& words,
                            const PermutationTiling& tiling,
                            cudaStream_t stream) const = 0;

  const GpuModel model_;
};

}  // namespace tensord::core::cuda
