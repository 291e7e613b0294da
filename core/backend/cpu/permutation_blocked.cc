#include "core/backend/cpu/permutation_blocked.h"

#include <optional>

#include "core/backend/cpu/block/permutation_move.h"
#include "core/backend/cpu/block/tile_operand.h"
#include "core/base/status.h"

namespace tensord::core {
namespace {

using Problem = PermutationProblem;

constexpr double kMoveNanosecondsPerByte = 0.04;
constexpr double kComputeNanosecondsPerByte = 0.1;
constexpr double kLaunchNanoseconds = 2000;

ElementType ElementOf(const Problem& problem) {
  return ComputeElement(problem.type_a, problem.type_d, problem.compute_type);
}

/// The type whose elements are moved as bits when they are `bytes` long.
ElementType BitsType(int64_t bytes) {
  switch (bytes) {
    case 1: return ElementType::kUint8;
    case 2: return ElementType::kInt16;
    case 4: return ElementType::kInt32;
    case 8: return ElementType::kInt64;
    default: return ElementType::kComplex128;
  }
}

/// d = alpha * unary(a), tile by tile.
void Compute(const Problem& problem, const PermutationOperands& operands,
             ThreadPool& threads) {
  const ElementType element = ElementOf(problem);
  const int64_t d_bytes = ElementCount(problem.modes) * SizeOf(problem.type_d);
  const Stores stores =
      d_bytes >= kStreamingBytes ? Stores::kStreaming : Stores::kCached;
  VisitComputeElement(element, [&](auto zero) {
    using T = decltype(zero);
    const TileInput<T> a(operands.a, {.stored = problem.type_a,
                                      .element = element,
                                      .compute = problem.compute_type,
                                      .unary = problem.unary,
                                      .factor = operands.alpha});
    const TileOutput<T> d(operands.d, element, problem.type_d, stores);
    const auto space =
        CutIntoTiles(problem.modes, Problem::kD, kTileElements<T>);
    ParallelRanges(
        threads, space.tile_count(), 2 * kTileBytes,
        [&](int64_t begin, int64_t end) {
          TileBuffer<T> block, scratch;
          space.ForEach(
              begin, end, [&](const auto& offsets, const auto& sizes) {
                const auto tile = [&](size_t operand) {
                  return TileLayout{.offset = offsets[operand],
                                    .count_i = sizes[0],
                                    .count_j = sizes[1],
                                    .stride_i = space.loop(0).strides[operand],
                                    .stride_j = space.loop(1).strides[operand]};
                };
                const T* const x =
                    a.Load(tile(Problem::kA), block.data(), scratch);
                d.Store(x, tile(Problem::kD), scratch);
              });
          FlushStreamingStores();
        });
  });
}

class BlockedPermutation final : public PermutationKernel {
 public:
  explicit BlockedPermutation(ThreadPool& threads) : threads_(threads) {}

  absl::string_view name() const override { return "cpu.permute.blocked"; }

  absl::Status Supports(const Problem& problem) const override {
    const ElementType element = ElementOf(problem);
    if (FindLoad(problem.type_a, element) != nullptr &&
        FindStore(element, problem.type_d) != nullptr) {
      return absl::OkStatus();
    }
    return Unimplemented("CONVERSION_NOT_SUPPORTED", "conversion from ",
                         NameOf(problem.type_a), " in a to ",
                         NameOf(problem.type_d), " in d is not supported");
  }

  int64_t WorkspaceBytes(const Problem&) const override { return 0; }

  double PredictNanoseconds(const Problem& problem) const override {
    const int64_t bytes = ElementCount(problem.modes) *
                          (SizeOf(problem.type_a) + SizeOf(problem.type_d));
    const bool moves = problem.type_a == problem.type_d &&
                       problem.unary == UnaryOperator::kIdentity;
    return kLaunchNanoseconds +
           static_cast<double>(bytes) *
               (moves ? kMoveNanosecondsPerByte : kComputeNanosecondsPerByte);
  }

  absl::Status Launch(const Problem& problem,
                      const PermutationOperands& operands, Workspace&,
                      Stream&) const override {
    if (problem.type_a != problem.type_d || !operands.alpha.IsOne() ||
        problem.unary != UnaryOperator::kIdentity) {
      Compute(problem, operands, threads_);
      return absl::OkStatus();
    }
    const int64_t bytes = SizeOf(problem.type_a);
    if (const auto plan = PlanMove(problem.modes, bytes)) {
      Move(*plan, operands.a, operands.d, threads_);
      return absl::OkStatus();
    }
    Problem bits = problem;
    bits.type_a = bits.type_d = BitsType(bytes);
    bits.compute_type = ComputeType::kInteger;
    Compute(bits, operands, threads_);
    return absl::OkStatus();
  }

 private:
  ThreadPool& threads_;
};

}  // namespace

std::unique_ptr<const PermutationKernel> CreateBlockedPermutation(
    ThreadPool& threads) {
  return std::make_unique<BlockedPermutation>(threads);
}

}  // namespace tensord::core
