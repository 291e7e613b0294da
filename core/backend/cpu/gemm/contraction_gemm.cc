#include "core/backend/cpu/gemm/contraction_gemm.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/backend/cpu/block/tile_space.h"
#include "core/backend/cpu/contraction_copy.h"
#include "core/backend/cpu/contraction_scale.h"
#include "core/backend/cpu/gemm/matrix_product.h"
#include "core/backend/cpu/permutation_blocked.h"
#include "core/backend/cpu/reduction/reduction_pairwise.h"
#include "core/base/status.h"

namespace tensord::core {
namespace {

using S = GemmStrategy;

/// Multiply-adds below which waking other threads does not pay.
constexpr double kSmallestParallel = 100e3;
constexpr int64_t kPartsPerThread = 4;
/// Blocks of d are not cut smaller than this, nor to other multiples.
constexpr int64_t kSmallestBlock = 64;
// Milliseconds of a thread: what can be stopped or interrupted in between.
constexpr double kLongestCall = 20, kLongestPart = 5;
// A product's k is cut in pieces that long before its blocks get smaller.
constexpr int64_t kDeep = 1024;
constexpr int64_t kBlockMultiple = 16;
constexpr double kLaunchNanoseconds = 100;
/// Until other threads are awake, and have been waited for.
constexpr double kWakingNanoseconds = 4000;

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
          .is_move = true,
          .modes = Canonical(std::move(modes), PermutationProblem::kD)};
}

/// How one operand gets into workspace.
struct CopyIn {
  int64_t bytes = 0;  // of the copy; 0: the operand is used where it lies
  // The one that is not null.
  std::unique_ptr<const PermutationSolution> move = nullptr;
  std::unique_ptr<const ReductionSolution> sum = nullptr;
  std::unique_ptr<const OperandCopy> convert = nullptr;

  int64_t workspace_bytes() const {
    return Workspace::BytesFor(bytes) + (move ? move->workspace_bytes() : 0) +
           (sum ? sum->workspace_bytes() : 0);
  }
  int64_t heap_bytes() const {
    return HeapBytes(move) + HeapBytes(sum) +
           (convert ? HeapBlockBytes(sizeof(*convert)) +
                          HeapBytes(convert->modes) + HeapBytes(convert->summed)
                    : 0);
  }
};

/// How the products get from workspace to d.
struct CopyOut {
  int64_t bytes = 0;  // of all parts; 0: they go to d itself
  int64_t part_elements = 0;
  /// Without c, unless they are to be converted.
  std::unique_ptr<const PermutationSolution> move = nullptr;
  std::unique_ptr<const ResultCopy> convert = nullptr;

  int64_t workspace_bytes() const {
    return Workspace::BytesFor(bytes) + (move ? move->workspace_bytes() : 0);
  }
  int64_t heap_bytes() const {
    return HeapBytes(move) + (convert ? HeapBlockBytes(sizeof(*convert)) +
                                            HeapBytes(convert->modes)
                                      : 0);
  }
};

/// The products of all loops, cut into blocks of d and parts of k.
struct Cutting {
  MatrixProduct product;  // whole
  /// The last stride is that of the position in k, which tells the part.
  TileSpace<4> blocks;
  TileSpace<2> k_loops;
  int64_t k_parts, k_step;
  int64_t thread_parts;  // that the blocks are dealt out in
  int64_t most_terms;    // of a call of BLAS
};

/// Terms of a product of `type` that take a thread `milliseconds`.
int64_t TermsIn(double milliseconds, ElementType type, const GemmRates& rates) {
  // To float32: twice the bytes take twice the time; a complex product has four
  // real ones.
  const double slower =
      SizeOf(RealPartOf(type)) / 4.0 * (IsComplex(type) ? 4 : 1);
  return static_cast<int64_t>(milliseconds * 1e6 * rates.flops_per_ns / 2 /
                              slower);
}

Cutting CutProducts(const GemmStrategy& s, const GemmRates& rates) {
  const int thread_count = rates.thread_count;
  const int64_t most_terms = TermsIn(kLongestCall, s.type, rates);
  const MatrixProduct& product = s.product;
  int64_t m_step = s.m_block, n_step = s.n_block;
  const double work = static_cast<double>(ElementCount(s.loops)) *
                      static_cast<double>(ElementCount(s.k_loops)) *
                      static_cast<double>(product.m) *
                      static_cast<double>(product.n) *
                      static_cast<double>(product.k);
  const int64_t wanted =
      thread_count == 1
          ? 1
          : std::clamp<int64_t>(static_cast<int64_t>(work / kSmallestParallel),
                                1, kPartsPerThread * thread_count);
  const int64_t loop_count = ElementCount(s.loops) * s.k_parts;
  const auto blocks = [&] {
    return loop_count * CeilDivide(product.m, m_step) *
           CeilDivide(product.n, n_step);
  };
  const int64_t most_elements = most_terms / std::min(product.k, kDeep);
  while ((blocks() < wanted || most_elements / m_step < n_step) &&
         std::max(m_step, n_step) > kSmallestBlock) {
    int64_t& longer = m_step >= n_step ? m_step : n_step;
    longer = RoundUp((longer + 1) / 2, kBlockMultiple);
  }
  Cutting cutting{.product = product,
                  .blocks = {},
                  .k_loops = {},
                  .k_parts = s.k_parts,
                  .k_step = CeilDivide(product.k, s.k_parts),
                  .thread_parts = 1,
                  .most_terms = most_terms};
  cutting.blocks.Add({product.m, m_step, {product.a_m, 0, product.d_m, 0}});
  cutting.blocks.Add({product.n, n_step, {0, product.b_n, product.d_n, 0}});
  cutting.blocks.Add(
      {product.k, cutting.k_step, {product.a_k, product.b_k, 0, 1}});
  for (const auto& [extent, strides] : s.loops) {
    cutting.blocks.Add(
        {extent, 1, {strides[S::kA], strides[S::kB], strides[S::kD], 0}});
  }
  for (const auto& loop : s.k_loops) cutting.k_loops.Add(loop);
  // Others need not wait long for a part's end.
  const double most_parts =
      work / static_cast<double>(TermsIn(kLongestPart, s.type, rates));
  cutting.thread_parts =
      std::min(cutting.blocks.tile_count(),
               std::max(wanted, static_cast<int64_t>(most_parts)));
  return cutting;
}

/// The copies and products of one contraction.
class GemmContractionSolution final : public ContractionSolution {
 public:
  /// All that was decided.
  struct Way {
    ElementType type;
    bool conj_a, conj_b;
    CopyIn a, b;
    CopyOut d;
    Cutting cutting;
    ResultCopy scaling;  // of what there is without products

    int64_t workspace_bytes() const {
      return a.workspace_bytes() + b.workspace_bytes() + d.workspace_bytes();
    }
  };

  GemmContractionSolution(double predicted_nanoseconds, Way way,
                          ThreadPool& threads, const Blas* blas)
      : Solution(predicted_nanoseconds, way.workspace_bytes()),
        way_(std::move(way)),
        adds_to_c_(!way_.scaling.conj_c &&
                   std::all_of(way_.scaling.modes.begin(),
                               way_.scaling.modes.end(),
                               [](const auto& mode) {
                                 return mode.strides[ResultCopy::kC] ==
                                        mode.strides[ResultCopy::kD];
                               })),
        threads_(threads),
        blas_(blas) {}

  std::string decision() const override;
  int64_t bytes() const override {
    return HeapBlockBytes(sizeof(*this)) + way_.a.heap_bytes() +
           way_.b.heap_bytes() + way_.d.heap_bytes() +
           way_.cutting.blocks.heap_bytes() +
           way_.cutting.k_loops.heap_bytes() + HeapBytes(way_.scaling.modes);
  }

  absl::Status Launch(const ContractionOperands& operands, Workspace& workspace,
                      Stream& stream) const override;

 private:
  /// The operand's copy, or itself when none is needed.
  absl::StatusOr<const void*> Copied(const CopyIn& copy, const void* tensor,
                                     Workspace& workspace,
                                     Stream& stream) const;
  /// Adds the parts that sums were done in, and moves the sums to d.
  absl::Status Finish(const ContractionOperands& operands, void* result,
                      Workspace& workspace, Stream& stream) const;
  void MultiplyAll(const ContractionOperands& operands) const;

  const Way way_;
  const bool adds_to_c_;  // where it is, when that is where d is
  ThreadPool& threads_;
  const Blas* const blas_;
};

std::string GemmContractionSolution::decision() const {
  const Cutting& cutting = way_.cutting;
  const MatrixProduct& product = cutting.product;
  const int64_t count = cutting.blocks.tile_count();
  std::string text = absl::StrCat("matrix product of ", product.m, " x ",
                                  product.n, " x ", product.k);
  for (const auto& [copy, operand] :
       {std::pair(&way_.a, "a"), {&way_.b, "b"}}) {
    if (copy->bytes == 0) continue;
    absl::StrAppend(&text, ", ", operand,
                    copy->move  ? " copied first"
                    : copy->sum ? " summed first"
                                : " converted first");
  }
  if (way_.d.bytes > 0) absl::StrAppend(&text, ", d copied last");
  if (count > 1) absl::StrAppend(&text, ", in ", count, " blocks");
  if (const int64_t loops = cutting.k_loops.tile_count(); loops > 1) {
    absl::StrAppend(&text, ", each a sum of ", loops);
  }
  if (cutting.k_parts > 1) {
    absl::StrAppend(&text, ", sums in ", cutting.k_parts, " parts");
  }
  return text;
}

absl::Status GemmContractionSolution::Launch(
    const ContractionOperands& operands, Workspace& workspace,
    Stream& stream) const {
  if (operands.alpha.IsZero()) {
    ScaleResult(threads_, way_.scaling, operands);
    return absl::OkStatus();
  }
  ContractionOperands in_place = operands;
  TENSORD_ASSIGN_OR_RETURN(in_place.a,
                           Copied(way_.a, operands.a, workspace, stream));
  TENSORD_ASSIGN_OR_RETURN(in_place.b,
                           Copied(way_.b, operands.b, workspace, stream));
  if (way_.d.bytes == 0) {
    if (!operands.beta.IsZero() && (operands.c != operands.d || !adds_to_c_)) {
      ScaleResult(threads_, way_.scaling, operands);
      in_place.beta = kOne;
    }
    MultiplyAll(in_place);
    return absl::OkStatus();
  }
  in_place.d = workspace.Take<std::byte>(way_.d.bytes);
  in_place.beta = kZero;
  MultiplyAll(in_place);
  return Finish(operands, in_place.d, workspace, stream);
}

absl::StatusOr<const void*> GemmContractionSolution::Copied(
    const CopyIn& copy, const void* tensor, Workspace& workspace,
    Stream& stream) const {
  if (copy.bytes == 0) return tensor;
  void* const copied = workspace.Take<std::byte>(copy.bytes);
  if (copy.move != nullptr) {
    TENSORD_RETURN_IF_ERROR(
        copy.move->Launch({.a = tensor, .d = copied}, workspace, stream));
  } else if (copy.sum != nullptr) {
    TENSORD_RETURN_IF_ERROR(
        copy.sum->Launch({.a = tensor, .d = copied}, workspace, stream));
  } else {
    CopyOperand(threads_, *copy.convert, tensor, copied);
  }
  return copied;
}

absl::Status GemmContractionSolution::Finish(
    const ContractionOperands& operands, void* result, Workspace& workspace,
    Stream& stream) const {
  const int64_t elements = way_.d.part_elements;
  if (way_.cutting.k_parts > 1) {
    CopyOperand(threads_,
                {.from = way_.type,
                 .to = way_.type,
                 .modes = {{elements, {1, 1}}},
                 .summed = {{way_.cutting.k_parts, {elements}}}},
                result, result);
  }
  if (way_.d.move != nullptr && operands.beta.IsZero()) {
    return way_.d.move->Launch({.a = result, .d = operands.d}, workspace,
                               stream);
  }
  CopyResult(threads_, *way_.d.convert, operands.beta, result, operands.c,
             operands.d);
  return absl::OkStatus();
}

void GemmContractionSolution::MultiplyAll(
    const ContractionOperands& operands) const {
  const Cutting& cutting = way_.cutting;
  const int64_t bytes = SizeOf(way_.type);
  const auto block = [&](const auto& offsets, const auto& sizes) {
    MatrixProduct product = cutting.product;
    product.m = sizes[0];
    product.n = sizes[1];
    product.k = sizes[2];
    const int64_t d_offset =
        offsets[S::kD] + offsets[3] / cutting.k_step * way_.d.part_elements;
    bool is_first = true;
    cutting.k_loops.ForEach(
        0, cutting.k_loops.tile_count(), [&](const auto& k, const auto&) {
          Multiply(blas_, way_.type, product, cutting.most_terms, way_.conj_a,
                   way_.conj_b, operands.alpha,
                   Advance(operands.a, (offsets[S::kA] + k[0]) * bytes),
                   Advance(operands.b, (offsets[S::kB] + k[1]) * bytes),
                   is_first ? operands.beta : kOne,
                   Advance(operands.d, d_offset * bytes));
          is_first = false;
        });
  };
  const int64_t count = cutting.blocks.tile_count();
  const int64_t parts = cutting.thread_parts;
  threads_.ParallelFor(parts, [&](int64_t part) {
    cutting.blocks.ForEach(count * part / parts, count * (part + 1) / parts,
                           block);
  });
}

/// Of a sum that is empty.
class ScalingSolution final : public ContractionSolution {
 public:
  ScalingSolution(ResultCopy scaling, ThreadPool& threads)
      : Solution(kLaunchNanoseconds),
        scaling_(std::move(scaling)),
        threads_(threads) {}

  std::string decision() const override { return "nothing to sum"; }
  int64_t bytes() const override {
    return HeapBlockBytes(sizeof(*this)) + HeapBytes(scaling_.modes);
  }
  absl::Status Launch(const ContractionOperands& operands, Workspace&,
                      Stream&) const override {
    ScaleResult(threads_, scaling_, operands);
    return absl::OkStatus();
  }

 private:
  const ResultCopy scaling_;
  ThreadPool& threads_;
};

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
  int version() const override { return 2; }

  Solved Solve(const ContractionProblem& problem) const override {
    if (!blas_.ok() && !IsInteger(problem.type_d)) {
      return Unimplemented(
          "NO_BLAS",
          "cpu.contract.gemm needs a BLAS library: ", blas_.status().message());
    }
    if (IsEmptySum(problem)) {
      return std::make_unique<ScalingSolution>(ScalingOf(problem), threads_);
    }
    const GemmStrategy s = ChooseGemmStrategy(problem, rates_);
    GemmContractionSolution::Way way{.type = s.type,
                                     .conj_a = problem.conj_a,
                                     .conj_b = problem.conj_b,
                                     .a = {},
                                     .b = {},
                                     .d = {},
                                     .cutting = CutProducts(s, rates_),
                                     .scaling = ScalingOf(problem)};
    TENSORD_ASSIGN_OR_RETURN(way.a,
                             CopyInOf(problem.type_a, problem.a_only, s.a, s));
    TENSORD_ASSIGN_OR_RETURN(way.b,
                             CopyInOf(problem.type_b, problem.b_only, s.b, s));
    if (s.d.needed) {
      TENSORD_ASSIGN_OR_RETURN(way.d, CopyOutOf(problem, s));
    }
    // The strategy's time is that of all threads.
    const double nanoseconds =
        kLaunchNanoseconds + (way.cutting.thread_parts == 1
                                  ? s.nanoseconds * rates_.thread_count
                                  : s.nanoseconds + kWakingNanoseconds);
    return std::make_unique<GemmContractionSolution>(
        nanoseconds, std::move(way), threads_,
        blas_.ok() ? blas_->get() : nullptr);
  }

 private:
  /// Elements that are neither converted nor rounded are moved or, when there
  /// are modes to be summed, reduced.
  absl::StatusOr<CopyIn> CopyInOf(ElementType type, const LoopModes<1>& summed,
                                  const GemmCopy& copy,
                                  const GemmStrategy& s) const {
    CopyIn in;
    if (!copy.needed) return in;
    in.bytes = copy.element_count * SizeOf(s.type);
    LoopModes<2> modes = PairOf(copy.modes, GemmCopy::kTensor, GemmCopy::kCopy);
    if (type != s.type || s.rounding != OperandRounding::kNone) {
      in.convert = std::make_unique<const OperandCopy>(
          OperandCopy{.from = type,
                      .to = s.type,
                      .rounding = s.rounding,
                      .modes = std::move(modes),
                      .summed = summed});
    } else if (summed.empty()) {
      TENSORD_ASSIGN_OR_RETURN(
          in.move, permutation_->Solve(MoveOf(type, std::move(modes))));
    } else {
      LoopModes<3> kept;
      for (const auto& [extent, strides] : modes) {
        kept.push_back({extent, {strides[0], strides[1], strides[1]}});
      }
      TENSORD_ASSIGN_OR_RETURN(
          in.sum, reduction_->Solve(
                      {.type_a = type,
                       .type_d = type,
                       .compute_type = ComputeTypeOf(type),
                       .kept = Canonical(std::move(kept), ReductionProblem::kD),
                       .reduced = summed}));
    }
    return in;
  }

  absl::StatusOr<CopyOut> CopyOutOf(const ContractionProblem& problem,
                                    const GemmStrategy& s) const {
    CopyOut out{.bytes = s.d.element_count * s.k_parts * SizeOf(s.type),
                .part_elements = s.d.element_count};
    if (problem.type_d == s.type) {
      TENSORD_ASSIGN_OR_RETURN(
          out.move,
          permutation_->Solve(MoveOf(
              s.type, PairOf(s.d.modes, GemmCopy::kCopy, GemmCopy::kTensor))));
    }
    ResultCopy convert{.from = s.type,
                       .to = problem.type_d,
                       .conj_c = problem.conj_c,
                       .modes = {}};
    for (const auto& [extent, strides] : s.d.modes) {
      convert.modes.push_back(
          {extent,
           {strides[GemmCopy::kCopy], strides[GemmCopy::kAddend],
            strides[GemmCopy::kTensor]}});
    }
    out.convert = std::make_unique<const ResultCopy>(std::move(convert));
    return out;
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
