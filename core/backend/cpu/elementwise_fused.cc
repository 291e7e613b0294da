#include "core/backend/cpu/elementwise_fused.h"

#include "absl/strings/str_cat.h"
#include "core/backend/cpu/block/tile_operand.h"
#include "core/base/status.h"
#include "core/problem/heap_bytes.h"
#include "core/problem/taking.h"

namespace tensord::core {
namespace {

using Problem = ElementwiseProblem;

constexpr double kNanosecondsPerByte = 0.04;
constexpr double kLaunchNanoseconds = 2000;

int64_t BytesPerElement(const Problem& problem) {
  int64_t bytes = 0;
  for (const ElementType type : problem.types) bytes += SizeOf(type);
  return bytes;
}

/// Tiles of as many elements as fit.
TileSpace<4> TilesOf(const Problem& problem, ElementType element) {
  return VisitComputeElement(element, [&](auto zero) {
    return CutIntoTiles(problem.modes, Problem::kD,
                        kTileElements<decltype(zero)>);
  });
}

/// The expression, evaluated tile by tile.
template <typename T>
class Evaluation {
 public:
  Evaluation(const Problem& problem, const ElementwiseOperands& operands,
             ElementType element, Stores stores, const TileSpace<4>& space)
      : a_(Input(problem, element, Problem::kA, operands.a, operands.alpha)),
        b_(Input(problem, element, Problem::kB, operands.b, operands.beta)),
        c_(Input(problem, element, Problem::kC, operands.c, operands.gamma)),
        d_(operands.d, element, problem.types[Problem::kD], stores),
        is_where_(problem.op_abc == BinaryOperator::kWhere),
        ab_(FindBinary<T>(problem.op_ab)),
        abc_(is_where_ ? nullptr : FindBinary<T>(problem.op_abc)),
        round_(FindRounding<T>(problem.compute_type)),
        uses_b_(problem.has_b && !(problem.op_ab == BinaryOperator::kAdd &&
                                   operands.beta.IsZero())),
        uses_c_(!(problem.op_abc == BinaryOperator::kAdd &&
                  operands.gamma.IsZero())),
        space_(space) {}

  void Run(ThreadPool& threads) const {
    ParallelRanges(
        threads, space_.tile_count(), 4 * kTileBytes,
        [this](int64_t begin, int64_t end) { RunTiles(begin, end); });
  }

 private:
  static TileInput<T> Input(const Problem& problem, ElementType element,
                            size_t operand, const void* data, Scalar factor) {
    return TileInput<T>(data, {.stored = problem.types[operand],
                               .element = element,
                               .compute = problem.compute_type,
                               .unary = problem.unary[operand],
                               .factor = factor});
  }

  void RunTiles(int64_t begin, int64_t end) const {
    TileBuffer<T> x_buffer, y_buffer, z_buffer, scratch;
    T* const result = x_buffer.data();
    space_.ForEach(begin, end, [&](const auto& offsets, const auto& sizes) {
      const auto tile = [&](size_t operand) {
        return TileLayout{.offset = offsets[operand],
                          .count_i = sizes[0],
                          .count_j = sizes[1],
                          .stride_i = space_.loop(0).strides[operand],
                          .stride_j = space_.loop(1).strides[operand]};
      };
      const int64_t count = sizes[0] * sizes[1];
      const T* x = a_.Load(tile(Problem::kA), result, scratch);
      const auto combine = [&](BinaryBlock<T> op, const TileInput<T>& input,
                               size_t operand) {
        const T* const y = input.Load(tile(operand), y_buffer.data(), scratch);
        op(x, y, result, count);
        if (round_ != nullptr) round_(result, count);
        x = result;
      };
      if (is_where_) {
        const T* const y = b_.Load(tile(Problem::kB), y_buffer.data(), scratch);
        const T* const z = c_.Load(tile(Problem::kC), z_buffer.data(), scratch);
        Choose(y, x, z, result, count);
        x = result;
      } else {
        if (uses_b_) combine(ab_, b_, Problem::kB);
        if (uses_c_) combine(abc_, c_, Problem::kC);
      }
      d_.Store(x, tile(Problem::kD), scratch);
    });
    FlushStreamingStores();
  }

  TileInput<T> a_, b_, c_;
  TileOutput<T> d_;
  bool is_where_;
  BinaryBlock<T> ab_, abc_;
  UnaryBlock<T> round_;
  bool uses_b_, uses_c_;
  const TileSpace<4>& space_;
};

class FusedElementwiseSolution final : public ElementwiseSolution {
 public:
  FusedElementwiseSolution(const Problem& problem, ThreadPool& threads)
      : Solution(kLaunchNanoseconds +
                 kNanosecondsPerByte *
                     static_cast<double>(ElementCount(problem.modes) *
                                         BytesPerElement(problem))),
        threads_(threads),
        problem_(problem),
        element_(problem.compute_element()),
        streams_(ElementCount(problem.modes) *
                     SizeOf(problem.types[Problem::kD]) >=
                 kStreamingBytes),
        tiles_(TilesOf(problem, element_)) {}

  std::string decision() const override {
    return absl::StrCat(tiles_.tile_count(), " tiles in ", NameOf(element_),
                        streams_ ? ", written past the caches" : "");
  }
  int64_t bytes() const override {
    return HeapBlockBytes(sizeof(*this)) + HeapBytes(problem_) +
           tiles_.heap_bytes();
  }

  absl::Status Launch(const ElementwiseOperands& operands, Workspace&,
                      Stream&) const override {
    const bool in_place = operands.d == operands.a ||
                          operands.d == operands.b || operands.d == operands.c;
    const Stores stores =
        streams_ && !in_place ? Stores::kStreaming : Stores::kCached;
    VisitComputeElement(element_, [&](auto zero) {
      Evaluation<decltype(zero)>(problem_, operands, element_, stores, tiles_)
          .Run(threads_);
    });
    return absl::OkStatus();
  }

 private:
  ThreadPool& threads_;
  const Problem problem_;
  const ElementType element_;
  const bool streams_;
  const TileSpace<4> tiles_;
};

}  // namespace

std::unique_ptr<const ElementwiseKernel> CreateFusedElementwise(
    ThreadPool& threads) {
  return std::make_unique<SimpleElementwise>(
      "cpu.elementwise.fused",
      [&](const Problem& problem) -> ElementwiseKernel::Solved {
        TENSORD_RETURN_IF_ERROR(CheckTakesNothing(problem));
        return std::make_unique<FusedElementwiseSolution>(problem, threads);
      });
}

}  // namespace tensord::core
