#include "core/backend/cpu/permutation_blocked.h"

#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
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
struct Computation {
  ElementType type_a, type_d, element;
  ComputeType compute_type;
  UnaryOperator unary;
  Stores stores;
  TileSpace<2> tiles;
};

Computation ComputationOf(const Problem& problem) {
  const ElementType element = ElementOf(problem);
  const int64_t d_bytes = ElementCount(problem.modes) * SizeOf(problem.type_d);
  return {.type_a = problem.type_a,
          .type_d = problem.type_d,
          .element = element,
          .compute_type = problem.compute_type,
          .unary = problem.unary,
          .stores =
              d_bytes >= kStreamingBytes ? Stores::kStreaming : Stores::kCached,
          .tiles = VisitComputeElement(element, [&](auto zero) {
            return CutIntoTiles(problem.modes, Problem::kD,
                                kTileElements<decltype(zero)>);
          })};
}

void Compute(const Computation& way, const PermutationOperands& operands,
             ThreadPool& threads) {
  VisitComputeElement(way.element, [&](auto zero) {
    using T = decltype(zero);
    const TileInput<T> a(operands.a, {.stored = way.type_a,
                                      .element = way.element,
                                      .compute = way.compute_type,
                                      .unary = way.unary,
                                      .factor = operands.alpha});
    const TileOutput<T> d(operands.d, way.element, way.type_d, way.stores);
    ParallelRanges(
        threads, way.tiles.tile_count(), 2 * kTileBytes,
        [&](int64_t begin, int64_t end) {
          TileBuffer<T> block, scratch;
          way.tiles.ForEach(
              begin, end, [&](const auto& offsets, const auto& sizes) {
                const auto tile = [&](size_t operand) {
                  return TileLayout{
                      .offset = offsets[operand],
                      .count_i = sizes[0],
                      .count_j = sizes[1],
                      .stride_i = way.tiles.loop(0).strides[operand],
                      .stride_j = way.tiles.loop(1).strides[operand]};
                };
                const T* const x =
                    a.Load(tile(Problem::kA), block.data(), scratch);
                d.Store(x, tile(Problem::kD), scratch);
              });
          FlushStreamingStores();
        });
  });
}

/// Bits are moved, where they lie so that they can be, or elements computed.
class BlockedPermutationSolution final : public PermutationSolution {
 public:
  using Way = std::variant<MovePlan, Computation>;

  BlockedPermutationSolution(double predicted_nanoseconds, Way way,
                             ThreadPool& threads)
      : Solution(predicted_nanoseconds),
        way_(std::move(way)),
        threads_(threads) {}

  std::string decision() const override {
    if (const auto* const move = std::get_if<MovePlan>(&way_)) {
      return absl::StrCat(
          move->transposes ? "turns tiles" : "copies rows", " of ",
          move->element_bytes, "-byte elements, in ", move->blocks.tile_count(),
          move->blocks.tile_count() == 1 ? " block" : " blocks");
    }
    const Computation& computation = std::get<Computation>(way_);
    return absl::StrCat(computation.tiles.tile_count(), " tiles in ",
                        NameOf(computation.element));
  }

  int64_t bytes() const override {
    const int64_t bytes = HeapBlockBytes(sizeof(*this));
    if (const auto* const move = std::get_if<MovePlan>(&way_)) {
      return bytes + move->blocks.heap_bytes() + HeapBytes(move->pieces);
    }
    return bytes + std::get<Computation>(way_).tiles.heap_bytes();
  }

  absl::Status Launch(const PermutationOperands& operands, Workspace&,
                      Stream&) const override {
    if (const auto* const move = std::get_if<MovePlan>(&way_)) {
      if (!operands.alpha.IsOne()) {
        return Internal("WRONG_OPERANDS",
                        "a move was planned for alpha = 1, got another");
      }
      Move(*move, operands.a, operands.d, threads_);
    } else {
      Compute(std::get<Computation>(way_), operands, threads_);
    }
    return absl::OkStatus();
  }

 private:
  const Way way_;
  ThreadPool& threads_;
};

BlockedPermutationSolution::Way WayOf(const Problem& problem) {
  if (!problem.is_move) return ComputationOf(problem);
  const int64_t bytes = SizeOf(problem.type_a);
  if (auto plan = PlanMove(problem.modes, bytes)) return *std::move(plan);
  Problem bits = problem;
  bits.type_a = bits.type_d = BitsType(bytes);
  bits.compute_type = ComputeType::kInteger;
  return ComputationOf(bits);
}

PermutationKernel::Solved Solve(const Problem& problem, ThreadPool& threads) {
  const ElementType element = ElementOf(problem);
  if (FindLoad(problem.type_a, element) == nullptr ||
      FindStore(element, problem.type_d) == nullptr) {
    return Unimplemented("CONVERSION_NOT_SUPPORTED", "conversion from ",
                         NameOf(problem.type_a), " in a to ",
                         NameOf(problem.type_d), " in d is not supported");
  }
  const int64_t bytes = ElementCount(problem.modes) *
                        (SizeOf(problem.type_a) + SizeOf(problem.type_d));
  const double nanoseconds =
      kLaunchNanoseconds + static_cast<double>(bytes) *
                               (problem.is_move ? kMoveNanosecondsPerByte
                                                : kComputeNanosecondsPerByte);
  return std::make_unique<BlockedPermutationSolution>(nanoseconds,
                                                      WayOf(problem), threads);
}

}  // namespace

std::unique_ptr<const PermutationKernel> CreateBlockedPermutation(
    ThreadPool& threads) {
  return std::make_unique<SimplePermutation>(
      "cpu.permute.blocked",
      [&](const Problem& problem) { return Solve(problem, threads); });
}

}  // namespace tensord::core
