#include "core/backend/cpu/elementwise_fused.h"

#include "core/backend/cpu/block/tile_operand.h"

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

Stores StoresFor(const Problem& problem, const ElementwiseOperands& operands) {
  const bool in_place = operands.d == operands.a || operands.d == operands.b ||
                        operands.d == operands.c;
  const int64_t bytes =
      ElementCount(problem.modes) * SizeOf(problem.types[Problem::kD]);
  return !in_place && bytes >= kStreamingBytes ? Stores::kStreaming
                                               : Stores::kCached;
}

/// The expression, evaluated tile by tile.
template <typename T>
class Evaluation {
 public:
  Evaluation(const Problem& problem, const ElementwiseOperands& operands,
             ElementType element)
      : a_(Input(problem, element, Problem::kA, operands.a, operands.alpha)),
        b_(Input(problem, element, Problem::kB, operands.b, operands.beta)),
        c_(Input(problem, element, Problem::kC, operands.c, operands.gamma)),
        d_(operands.d, element, problem.types[Problem::kD],
           StoresFor(problem, operands)),
        ab_(FindBinary<T>(problem.op_ab)),
        abc_(FindBinary<T>(problem.op_abc)),
        round_(FindRounding<T>(problem.compute_type)),
        uses_b_(problem.has_b && !(problem.op_ab == BinaryOperator::kAdd &&
                                   operands.beta.IsZero())),
        uses_c_(!(problem.op_abc == BinaryOperator::kAdd &&
                  operands.gamma.IsZero())),
        space_(CutIntoTiles(problem.modes, Problem::kD, kTileElements<T>)) {}

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
    TileBuffer<T> x_buffer, y_buffer, scratch;
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
      if (uses_b_) combine(ab_, b_, Problem::kB);
      if (uses_c_) combine(abc_, c_, Problem::kC);
      d_.Store(x, tile(Problem::kD), scratch);
    });
    FlushStreamingStores();
  }

  TileInput<T> a_, b_, c_;
  TileOutput<T> d_;
  BinaryBlock<T> ab_, abc_;
  UnaryBlock<T> round_;
  bool uses_b_, uses_c_;
  TileSpace<4> space_;
};

class FusedElementwise final : public ElementwiseKernel {
 public:
  explicit FusedElementwise(ThreadPool& threads) : threads_(threads) {}

  absl::string_view name() const override { return "cpu.elementwise.fused"; }

  absl::Status Supports(const Problem&) const override {
    return absl::OkStatus();
  }

  int64_t WorkspaceBytes(const Problem&) const override { return 0; }

  double PredictNanoseconds(const Problem& problem) const override {
    return kLaunchNanoseconds +
           kNanosecondsPerByte *
               static_cast<double>(ElementCount(problem.modes) *
                                   BytesPerElement(problem));
  }

  absl::Status Launch(const Problem& problem,
                      const ElementwiseOperands& operands, Workspace&,
                      Stream&) const override {
    const ElementType element =
        ComputeElement(problem.types[Problem::kA], problem.types[Problem::kD],
                       problem.compute_type);
    VisitComputeElement(element, [&](auto zero) {
      Evaluation<decltype(zero)>(problem, operands, element).Run(threads_);
    });
    return absl::OkStatus();
  }

 private:
  ThreadPool& threads_;
};

}  // namespace

std::unique_ptr<const ElementwiseKernel> CreateFusedElementwise(
    ThreadPool& threads) {
  return std::make_unique<FusedElementwise>(threads);
}

}  // namespace tensord::core
