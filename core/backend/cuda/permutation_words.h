// A permutation as its kernels see it: words instead of elements.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include "core/backend/cuda/cycle_model.h"
#include "core/backend/cuda/gpu_model.h"
#include "core/backend/cuda/kernel/permutation_tasks.h"
#include "core/backend/kernel.h"

namespace tensord::core::cuda {

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
  /// What `mode` comes by in the order of an operand: its stride, but last when
  /// the operand is broadcast along it.
  int64_t rank_of(size_t mode, size_t operand) const;
  /// Index of the mode that comes first in a; in d that is 0.
  /// Requires  modes is not empty.
  size_t fastest_in() const;
};

/// Words as wide as extents, strides and alignment allow when the problem is to
/// move bits, and elements otherwise. Null addresses are as aligned as the
/// problem says: planning is done without them.
PermutationWords WordsOf(const PermutationProblem& problem,
                         const PermutationOperands& operands);

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

  int64_t WorkspaceBytes(const PermutationProblem&) const override { return 0; }
  absl::Status Supports(const PermutationProblem& problem) const override;
  double PredictNanoseconds(const PermutationProblem& problem) const override;
  /// Without alpha, zeroes d; a is not read then.
  /// Errors  INTERNAL also: the problem is to move bits, but alpha is not 1.
  absl::Status Launch(const PermutationProblem& problem,
                      const PermutationOperands& operands, Workspace& workspace,
                      Stream& stream) const override;

 protected:
  const GpuModel& model() const { return model_; }

  /// Supports(), for words.
  virtual absl::Status Accepts(const PermutationWords& words) const = 0;
  /// PredictNanoseconds(), for words that Accepts() accepts.
  virtual double Nanoseconds(const PermutationWords& words) const = 0;
  /// Queues the permutation of `words`. Where addresses are aligned worse than
  /// was planned with, `words` may not be what Accepts() accepts. Then the
  /// kernel that copies word by word in the order of d runs instead.
  ///
  /// Errors  as Accepts(): nothing has been queued.
  virtual absl::StatusOr<cudaError_t> Queue(const PermutationWords& words,
                                            cudaStream_t stream) const = 0;

 private:
  const GpuModel model_;
};

}  // namespace tensord::core::cuda
