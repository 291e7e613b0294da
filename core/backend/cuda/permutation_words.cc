#include "core/backend/cuda/permutation_words.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/backend/cuda/cuda_stream.h"
#include "core/base/status.h"
#include "core/ops/type_tables.h"

namespace tensord::core::cuda {
namespace {

// What a multiprocessor has, from compute capability 8.0 on.
constexpr int64_t kMostThreads = 2048;
constexpr int64_t kRegisters = 65536;

// Tiles whose accesses are counted.
constexpr uint64_t kSamples = 10;

/// Without the factor.
ElementChange ChangeOf(const PermutationProblem& problem) {
  ElementChange change{.is_move = problem.is_move,
                       .type_a = problem.type_a,
                       .type_d = problem.type_d,
                       .compute = ComputeElement(problem.type_a, problem.type_d,
                                                 problem.compute_type),
                       .compute_type = problem.compute_type,
                       .unary = problem.unary};
  change.is_scaled_float =
      problem.unary == UnaryOperator::kIdentity && !IsInteger(problem.type_a) &&
      !IsInteger(problem.type_d) && change.compute == ElementType::kFloat32 &&
      problem.compute_type == ComputeType::kFloat32;
  return change;
}

bool IsMultiple(const void* address, int64_t bytes) {
  return reinterpret_cast<uintptr_t>(address) % static_cast<uintptr_t>(bytes) ==
         0;
}

/// Makes two words of each, wherever they are.
void Halve(PermutationWords& words) {
  words.move.word_bytes /= 2;
  for (auto& mode : words.modes) {
    for (int64_t& stride : mode.strides) stride *= 2;
  }
  words.modes.insert(words.modes.begin(), {2, {1, 1}});
}

}  // namespace

double PermutationWords::bytes_out() const {
  return move.change.is_move ? move.word_bytes
                             : static_cast<double>(SizeOf(move.change.type_d));
}

int64_t PermutationWords::rank_of(size_t mode, size_t operand) const {
  const int64_t stride = modes[mode].strides[operand];
  return stride == 0 ? std::numeric_limits<int64_t>::max() : stride;
}

size_t PermutationWords::fastest_in() const {
  size_t fastest = 0;
  for (size_t m = 1; m < modes.size(); ++m) {
    if (rank_of(m, kA) < rank_of(fastest, kA)) fastest = m;
  }
  return fastest;
}

PermutationWords WordsOf(const PermutationProblem& problem) {
  PermutationWords words{
      .move = {.word_bytes = static_cast<int>(SizeOf(problem.type_a)),
               .change = ChangeOf(problem)},
      .modes = problem.modes};
  if (problem.is_move) {
    words.move.word_bytes =
        WidenWords(words.modes, words.move.word_bytes, problem.alignment_bytes);
  }
  return words;
}

double CopyNanoseconds(const GpuModel& model, const PermutationWords& words) {
  return model.launch_ns + static_cast<double>(words.word_count()) *
                               (words.move.word_bytes + words.bytes_out()) /
                               model.copy_bytes_per_ns();
}

double WarpsPerMultiprocessor(const GpuModel& model, int64_t threads,
                              int64_t registers_per_thread,
                              int64_t shared_bytes_per_block) {
  int64_t blocks = std::min(kMostThreads / threads,
                            kRegisters / (threads * registers_per_thread));
  if (shared_bytes_per_block > 0) {
    blocks = std::min(
        blocks, model.shared_bytes_per_multiprocessor / shared_bytes_per_block);
  }
  return static_cast<double>(std::max<int64_t>(blocks, 1) * threads / 32);
}

double TurnsNanoseconds(const GpuModel& model, const PermutationWords& words,
                        const Turns& turns) {
  AccessCounts counts;
  std::map<std::array<int64_t, 2>, AccessCounts> by_alignment;
  for (uint64_t sample = 0; sample < kSamples; ++sample) {
    // Scattered, and the same for every plan: multiples of the golden ratio.
    const uint64_t scattered = sample * 0x9E3779B97F4A7C15u >> 16;
    const auto number = static_cast<int64_t>(
        scattered % static_cast<uint64_t>(turns.tile_count));
    const auto [load_base, store_base] = turns.base(number);
    const auto [known, is_new] = by_alignment.try_emplace(
        turns.accesses.AlignmentOf(load_base, store_base));
    if (is_new) known->second = turns.accesses.Count(load_base, store_base);
    counts += known->second;
  }
  const double turn_count = std::max(
      1.0, static_cast<double>(turns.tile_count) / model.multiprocessor_count);
  const double ns =
      TurnCycles(model, turns.shape, counts) * turn_count / model.clock_ghz;
  return std::max(model.launch_ns + ns, CopyNanoseconds(model, words));
}

IndexSpace<2> ModesOf(const PermutationWords& words) {
  IndexSpace<2> modes;
  modes.AddAll(words.modes);
  return modes;
}

ReferenceTask ReferenceTaskOf(const PermutationWords& words) {
  ReferenceTask task{.move = words.move, .loops = {}};
  task.loops.AddAll(words.modes);
  return task;
}

/// A division of words, to be done by a kernel.
class CudaPermutation::WordsSolution final : public PermutationSolution {
 public:
  WordsSolution(const CudaPermutation& kernel, PermutationWords words,
                PermutationTiling tiling)
      : Solution(kernel.Nanoseconds(words, tiling)),
        kernel_(kernel),
        words_(std::move(words)),
        tiling_(std::move(tiling)) {}

  std::string decision() const override {
    std::string text =
        words_.move.change.is_move
            ? absl::StrCat("words of ", words_.move.word_bytes, " bytes")
            : absl::StrCat("elements in ", NameOf(words_.move.change.compute));
    if (!tiling_.parts.empty()) {
      absl::StrAppend(&text, ", tiles of ", absl::StrJoin(tiling_.parts, " x "),
                      ", ", tiling_.block_count, " blocks");
    }
    return text;
  }
  int64_t bytes() const override {
    return HeapBlockBytes(sizeof(*this)) + HeapBytes(words_.modes) +
           HeapBytes(tiling_.parts) + HeapBytes(tiling_.in_a_order) +
           HeapBytes(tiling_.in_d_order);
  }

  /// Without alpha, zeroes d; a is not read then. Where addresses are aligned
  /// worse than was planned with, narrower words are copied in the order of d.
  /// Errors  INTERNAL also: the problem is to move bits, but alpha is not 1.
  absl::Status Launch(const PermutationOperands& operands, Workspace&,
                      Stream& stream) const override {
    CudaStream& queue = AsCuda(stream);
    TENSORD_RETURN_IF_ERROR(queue.device().Select());
    const bool moves = words_.move.change.is_move;
    if (moves && !operands.alpha.IsOne()) {
      return Internal("WRONG_OPERANDS", kernel_.name(),
                      " was planned for alpha = 1, got another");
    }
    PermutationWords words = words_;
    words.move.a = operands.a;
    words.move.d = operands.d;
    words.move.change.alpha_real = operands.alpha.real;
    words.move.change.alpha_imaginary = operands.alpha.imaginary;
    cudaError_t queued = cudaSuccess;
    if (operands.alpha.IsZero()) {
      words.move = {
          .d = operands.d,
          .word_bytes = static_cast<int>(SizeOf(words.move.change.type_d)),
          .change = {}};
      queued = QueueReference(ReferenceTaskOf(words), queue.get());
    } else if (moves && !IsAligned(words.move)) {
      while (!IsAligned(words.move)) Halve(words);
      queued =
          words.word_count() <= kMaxIndex
              ? QueueTiledCopy({.move = words.move, .modes = ModesOf(words)},
                               queue.get())
              : QueueReference(ReferenceTaskOf(words), queue.get());
    } else {
      queued = kernel_.Queue(words, tiling_, queue.get());
    }
    return queue.device().Check(queued,
                                absl::StrCat("launching ", kernel_.name()));
  }

 private:
  static bool IsAligned(const MoveTask& move) {
    return IsMultiple(move.a, move.word_bytes) &&
           IsMultiple(move.d, move.word_bytes);
  }

  const CudaPermutation& kernel_;
  const PermutationWords words_;
  const PermutationTiling tiling_;
};

PermutationKernel::Solved CudaPermutation::Solve(
    const PermutationProblem& problem) const {
  PermutationWords words = WordsOf(problem);
  TENSORD_ASSIGN_OR_RETURN(PermutationTiling tiling, Divide(words));
  return std::make_unique<WordsSolution>(*this, std::move(words),
                                         std::move(tiling));
}

}  // namespace tensord::core::cuda
