#include "core/backend/cpu/gemm/contraction_gemm.h"

#include <algorithm>
#include <utility>

#include "core/backend/cpu/block/tile_space.h"
#include "core/backend/cpu/contraction_copy.h"
#include "core/backend/cpu/contraction_scale.h"
#include "core/backend/cpu/gemm/matrix_product.h"
#include "core/backend/cpu/permutation_blocked.h"
#include "core/backend/cpu/reduction_pairwise.h"
#include "core/base/status.h"

namespace tensord::core {
namespace {

using S = GemmStrategy;

/// Multiply-adds below which waking other threads does not pay.
constexpr double kSmallestParallel = 100e3;
constexpr int64_t kPartsPerThread = 4;
/// Blocks of d are not cut smaller than this, nor to other multiples.
constexpr int64_t kSmallestBlock = 64;
constexpr int64_t kBlockMultiple = 16;

template <typename T>
T* Advance(T* pointer, int64_t bytes) {
  using Byte =
      std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
  return static_cast<Byte*>(pointer) + bytes;
}

bool IsEmptySum(const ContractionProblem& problem) {
  return ElementCount(problem.k) == 0 || ElementCount(problem.a_only) == 0 ||
         ElementCount(problem.b_only) == 0;
}

/// The strides (tensor, copy) of a copy, as loops over (from, to).
LoopModes<2> PairOf(const LoopModes<3>& modes, size_t from, size_t to) {
  LoopModes<2> pair;
  for (const auto& mode : modes) {
    pair.push_back({mode.extent, {mode.strides[from], mode.strides[to]}});
  }
  return pair;
}

/// The precision of arithmetic in `type`, one of GemmStrategy's.
ComputeType ComputeTypeOf(ElementType type) {
  if (IsInteger(type)) return ComputeType::kInteger;
  return RealPartOf(type) == ElementType::kFloat64 ? ComputeType::kFloat64
                                                   : ComputeType::kFloat32;
}

/// The permutation that moves elements of `type` unchanged.
PermutationProblem MoveOf(ElementType type, LoopModes<2> modes) {
  return {.type_a = type,
          .type_d = type,
          .compute_type = ComputeTypeOf(type),
          .modes = Canonical(std::move(modes), PermutationProblem::kD)};
}

/// How one operand gets into workspace.
struct Input {
  ElementType type;
  const LoopModes<1>& summed;
  const GemmCopy& copy;
  const GemmStrategy& strategy;

  /// Neither converted nor rounded: a permutation, or a reduction when there
  /// are modes to be summed.
  bool is_plain() const {
    return type == strategy.type && strategy.rounding == OperandRounding::kNone;
  }
  bool is_move() const { return is_plain() && summed.empty(); }
  bool is_sum() const { return is_plain() && !summed.empty(); }
  PermutationProblem move() const {
    return MoveOf(type, PairOf(copy.modes, GemmCopy::kTensor, GemmCopy::kCopy));
  }
  ReductionProblem sum() const {
    LoopModes<3> kept;
    for (const auto& mode : copy.modes) {
      const int64_t to = mode.strides[GemmCopy::kCopy];
      kept.push_back({mode.extent, {mode.strides[GemmCopy::kTensor], to, to}});
    }
    return {.type_a = type,
            .type_d = type,
            .compute_type = ComputeTypeOf(type),
            .kept = Canonical(std::move(kept), ReductionProblem::kD),
            .reduced = summed};
  }
};

/// d out of workspace; a move when it only has to be moved.
PermutationProblem MoveBack(const GemmStrategy& strategy) {
  return MoveOf(strategy.type,
                PairOf(strategy.d.modes, GemmCopy::kCopy, GemmCopy::kTensor));
}

class GemmContraction final : public ContractionKernel {
 public:
  GemmContraction(ThreadPool& threads,
                  absl::StatusOr<std::shared_ptr<const Blas>> blas,
                  const GemmRates& rates)
      : threads_(threads),
        blas_(std::move(blas)),
        rates_(rates),
        permutation_(CreateBlockedPermutation(threads)),
        reduction_(CreatePairwiseReduction(threads)) {}

  absl::string_view name() const override { return "cpu.contract.gemm"; }

  absl::Status Supports(const ContractionProblem& problem) const override {
    if (blas_.ok() || IsInteger(problem.type_d)) return absl::OkStatus();
    return Unimplemented("NO_BLAS", "cpu.contract.gemm needs a BLAS library: ",
                         blas_.status().message());
  }

  int64_t WorkspaceBytes(const ContractionProblem& problem) const override {
    if (IsEmptySum(problem)) return 0;
    const GemmStrategy s = ChooseGemmStrategy(problem, rates_);
    int64_t bytes = 0;
    const auto add_copy = [&](const GemmCopy& copy, int64_t count) {
      bytes += Workspace::BytesFor(copy.element_count * count * SizeOf(s.type));
    };
    const auto add_move = [&](const PermutationProblem& move) {
      bytes += permutation_->WorkspaceBytes(move);
    };
    for (const Input& input : {InputA(problem, s), InputB(problem, s)}) {
      if (!input.copy.needed) continue;
      add_copy(input.copy, 1);
      if (input.is_move()) add_move(input.move());
      if (input.is_sum()) bytes += reduction_->WorkspaceBytes(input.sum());
    }
    if (s.d.needed) {
      add_copy(s.d, s.k_parts);
      if (problem.type_d == s.type) add_move(MoveBack(s));
    }
    return bytes;
  }

  double PredictNanoseconds(const ContractionProblem& problem) const override {
    constexpr double kLaunch = 4000;  // the choice of a strategy, above all
    if (IsEmptySum(problem)) return kLaunch;
    return kLaunch + ChooseGemmStrategy(problem, rates_).nanoseconds;
  }

  absl::Status Launch(const ContractionProblem& problem,
                      const ContractionOperands& operands, Workspace& workspace,
                      Stream& stream) const override {
    if (operands.alpha.IsZero() || IsEmptySum(problem)) {
      ScaleResult(threads_, problem, operands);
      return absl::OkStatus();
    }
    const GemmStrategy s = ChooseGemmStrategy(problem, rates_);
    ContractionOperands in_place = operands;
    TENSORD_ASSIGN_OR_RETURN(
        in_place.a, CopyIn(InputA(problem, s), operands.a, workspace, stream));
    TENSORD_ASSIGN_OR_RETURN(
        in_place.b, CopyIn(InputB(problem, s), operands.b, workspace, stream));
    if (!s.d.needed) {
      if (!operands.beta.IsZero() && !IsInPlace(problem, operands)) {
        ScaleResult(threads_, problem, operands);
        in_place.beta = kOne;
      }
      MultiplyAll(problem, s, in_place);
      return absl::OkStatus();
    }
    void* const result = workspace.Take<std::byte>(s.d.element_count *
                                                   s.k_parts * SizeOf(s.type));
    in_place.d = result;
    in_place.beta = kZero;
    MultiplyAll(problem, s, in_place);
    if (s.k_parts > 1) {
      CopyOperand(threads_,
                  {.from = s.type,
                   .to = s.type,
                   .modes = {{s.d.element_count, {1, 1}}},
                   .summed = {{s.k_parts, {s.d.element_count}}}},
                  result, result);
    }
    return CopyOut(problem, s, operands, result, workspace, stream);
  }

 private:
  static Input InputA(const ContractionProblem& problem,
                      const GemmStrategy& s) {
    return {problem.type_a, problem.a_only, s.a, s};
  }
  static Input InputB(const ContractionProblem& problem,
                      const GemmStrategy& s) {
    return {problem.type_b, problem.b_only, s.b, s};
  }

  /// True when products can be added to c where it is.
  static bool IsInPlace(const ContractionProblem& problem,
                        const ContractionOperands& operands) {
    if (operands.c != operands.d || problem.conj_c) return false;
    const LoopModes<3> modes = ResultModes(problem);
    return std::all_of(modes.begin(), modes.end(), [](const auto& mode) {
      return mode.strides[ResultCopy::kC] == mode.strides[ResultCopy::kD];
    });
  }

  /// The operand's copy, or itself when none is needed.
  absl::StatusOr<const void*> CopyIn(const Input& input, const void* tensor,
                                     Workspace& workspace,
                                     Stream& stream) const {
    if (!input.copy.needed) return tensor;
    const GemmStrategy& s = input.strategy;
    void* const copy =
        workspace.Take<std::byte>(input.copy.element_count * SizeOf(s.type));
    if (input.is_move()) {
      TENSORD_RETURN_IF_ERROR(permutation_->Launch(
          input.move(), {.a = tensor, .d = copy}, workspace, stream));
      return copy;
    }
    if (input.is_sum()) {
      TENSORD_RETURN_IF_ERROR(reduction_->Launch(
          input.sum(), {.a = tensor, .d = copy}, workspace, stream));
      return copy;
    }
    CopyOperand(
        threads_,
        {.from = input.type,
         .to = s.type,
         .rounding = s.rounding,
         .modes = PairOf(input.copy.modes, GemmCopy::kTensor, GemmCopy::kCopy),
         .summed = input.summed},
        tensor, copy);
    return copy;
  }

  absl::Status CopyOut(const ContractionProblem& problem, const GemmStrategy& s,
                       const ContractionOperands& operands, const void* result,
                       Workspace& workspace, Stream& stream) const {
    if (problem.type_d == s.type && operands.beta.IsZero()) {
      return permutation_->Launch(MoveBack(s), {.a = result, .d = operands.d},
                                  workspace, stream);
    }
    ResultCopy request{.from = s.type,
                       .to = problem.type_d,
                       .conj_c = problem.conj_c,
                       .modes = {}};
    for (const auto& mode : s.d.modes) {
      request.modes.push_back(
          {mode.extent,
           {mode.strides[GemmCopy::kCopy], mode.strides[GemmCopy::kAddend],
            mode.strides[GemmCopy::kTensor]}});
    }
    CopyResult(threads_, request, operands.beta, result, operands.c,
               operands.d);
    return absl::OkStatus();
  }

  /// The products of all loops, cut into parts for the threads.
  void MultiplyAll(const ContractionProblem& problem, const GemmStrategy& s,
                   const ContractionOperands& operands) const {
    const int64_t bytes = SizeOf(s.type);
    TileSpace<4> space;
    int64_t m_step = s.m_block, n_step = s.n_block;
    const double work = static_cast<double>(ElementCount(s.loops)) *
                        static_cast<double>(ElementCount(s.k_loops)) *
                        static_cast<double>(s.product.m) *
                        static_cast<double>(s.product.n) *
                        static_cast<double>(s.product.k);
    const int64_t wanted =
        threads_.thread_count() == 1
            ? 1
            : std::clamp<int64_t>(
                  static_cast<int64_t>(work / kSmallestParallel), 1,
                  kPartsPerThread * threads_.thread_count());
    const int64_t loop_count = ElementCount(s.loops) * s.k_parts;
    const auto blocks = [&] {
      return loop_count * ((s.product.m + m_step - 1) / m_step) *
             ((s.product.n + n_step - 1) / n_step);
    };
    while (blocks() < wanted && std::max(m_step, n_step) > kSmallestBlock) {
      int64_t& longer = m_step >= n_step ? m_step : n_step;
      longer = RoundUp((longer + 1) / 2, kBlockMultiple);
    }
    const int64_t k_step = (s.product.k + s.k_parts - 1) / s.k_parts;
    // The last column is the position in k, which tells the part.
    space.Add({s.product.m, m_step, {s.product.a_m, 0, s.product.d_m, 0}});
    space.Add({s.product.n, n_step, {0, s.product.b_n, s.product.d_n, 0}});
    space.Add({s.product.k, k_step, {s.product.a_k, s.product.b_k, 0, 1}});
    for (const auto& loop : s.loops) {
      space.Add(
          {loop.extent,
           1,
           {loop.strides[S::kA], loop.strides[S::kB], loop.strides[S::kD], 0}});
    }

    const auto block = [&](const auto& offsets, const auto& sizes) {
      MatrixProduct product = s.product;
      product.m = sizes[0];
      product.n = sizes[1];
      product.k = sizes[2];
      const int64_t d_offset =
          offsets[S::kD] + offsets[3] / k_step * s.d.element_count;
      bool is_first = true;
      ForEachElement(s.k_loops, [&](const auto& k) {
        Multiply(blas_.ok() ? blas_->get() : nullptr, s.type, product,
                 problem.conj_a, problem.conj_b, operands.alpha,
                 Advance(operands.a, (offsets[S::kA] + k[0]) * bytes),
                 Advance(operands.b, (offsets[S::kB] + k[1]) * bytes),
                 is_first ? operands.beta : kOne,
                 Advance(operands.d, d_offset * bytes));
        is_first = false;
      });
    };
    const int64_t count = space.tile_count();
    const int64_t parts = std::min(count, wanted);
    threads_.ParallelFor(parts, [&](int64_t part) {
      space.ForEach(count * part / parts, count * (part + 1) / parts, block);
    });
  }

  ThreadPool& threads_;
  const absl::StatusOr<std::shared_ptr<const Blas>> blas_;
  const GemmRates rates_;
  const std::unique_ptr<const PermutationKernel> permutation_;
  const std::unique_ptr<const ReductionKernel> reduction_;
};

}  // namespace

GemmRates GemmRatesOf(absl::string_view core_type, int thread_count) {
  GemmRates rates{.flops_per_ns = 20, .thread_count = thread_count};
  if (core_type == "Haswell" || core_type == "Zen") rates.flops_per_ns = 100;
  if (core_type == "SkylakeX" || core_type == "Cooperlake" ||
      core_type == "SapphireRapids") {
    rates.flops_per_ns = 200;
    rates.has_small_kernels = true;
  }
  return rates;
}

std::unique_ptr<const ContractionKernel> CreateGemmContraction(
    ThreadPool& threads, absl::StatusOr<std::shared_ptr<const Blas>> blas,
    const GemmRates& rates) {
  return std::make_unique<GemmContraction>(threads, std::move(blas), rates);
}

}  // namespace tensord::core
