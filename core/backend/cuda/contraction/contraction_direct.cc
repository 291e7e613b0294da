#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/backend/cuda/contraction/contraction_division.h"
#include "core/backend/cuda/contraction/contraction_formula.h"
#include "core/backend/cuda/contraction/contraction_kernels.h"
#include "core/backend/cuda/contraction/side_order.h"
#include "core/backend/cuda/contraction/tile_efficiency.h"
#include "core/backend/cuda/cuda_stream.h"
#include "core/backend/cuda/kernel/contraction_tasks.h"
#include "core/backend/cuda/kernel/reduction_tasks.h"
#include "core/backend/cuda/reduction_division.h"
#include "core/base/status.h"
#include "core/ops/type_tables.h"

namespace tensord::core::cuda {
namespace {

using Problem = ContractionProblem;
using Division = ContractionDivision;

DirectSide SideOf(const LoopModes<3>& modes, const SideOrder& order) {
  DirectSide side;
  for (int cut = 0; cut < SideOrder::kMostCuts; ++cut) {
    side.cut_extents[cut] = order.cut_extents[cut];
  }
  for (const SideOrder::Piece& piece : order.pieces) {
    std::array<int64_t, 5> strides = {};
    for (size_t i = 0; i < 3; ++i) {
      strides[i] = piece.multiple * modes[piece.mode].strides[i];
    }
    if (piece.cut >= 0) strides[3 + piece.cut] = piece.multiple;
    side.space.Add(piece.extent, strides);
  }
  return side;
}

/// `modes` with a d in their own order without gaps, as splits leave it.
DirectModes WithPackedD(DirectModes modes) {
  int64_t before = 1;
  const auto pack = [&](auto& group, size_t operand) {
    for (auto& mode : group) {
      mode.strides[operand] = before;
      before *= mode.extent;
    }
  };
  pack(modes.m, Problem::kFreeD);
  pack(modes.n, Problem::kFreeD);
  pack(modes.batch, Problem::kBatchD);
  return modes;
}

/// Whether it is that of a vector of 16 bytes.
bool IsAligned(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % 16 == 0;
}

class DirectContractionSolution final : public ContractionSolution {
 public:
  /// Lifetime  `kernel` outlives *this.
  DirectContractionSolution(const GpuModel& model, const Problem& problem,
                            Division division, absl::string_view kernel)
      : Solution(division.nanoseconds,
                 Workspace::BytesFor(PartialBytes(problem, division))),
        division_(std::move(division)),
        formula_(FormulaOf(problem, division_.swaps)),
        modes_(*DirectModesOf(problem, division_.swaps, division_.terms)),
        partial_bytes_(PartialBytes(problem, division_)),
        second_(DivideSecond(model, element_count(), division_.split_count)),
        kernel_(kernel) {}

  std::string decision() const override {
    std::string text =
        absl::StrCat(division_.tiles_m, " x ", division_.tiles_n, " tiles",
                     division_.swaps ? ", rows from b" : ", rows from a");
    if (division_.batch_count > 1) {
      absl::StrAppend(&text, ", ", division_.batch_count, " batches");
    }
    if (division_.split_count > 1) {
      absl::StrAppend(&text, ", sums in ", division_.split_count, " parts");
    }
    return text;
  }
  int64_t bytes() const override {
    return HeapBlockBytes(sizeof(*this)) + modes_.heap_bytes() +
           HeapBytes(division_.m.pieces) + HeapBytes(division_.n.pieces);
  }

  absl::Status Launch(const ContractionOperands& operands, Workspace& workspace,
                      Stream& stream) const override {
    CudaStream& queue = AsCuda(stream);
    TENSORD_RETURN_IF_ERROR(queue.device().Select());
    // Without alpha there are no terms to split.
    const bool splits = division_.split_count > 1 && !operands.alpha.IsZero();
    ContractionDirectTask task = TaskOf(operands, splits);
    if (splits) task.partial = workspace.Take<std::byte>(partial_bytes_);
    TENSORD_RETURN_IF_ERROR(Check(
        queue, VisitDirectType(formula_.type_d, [&](auto zero) {
          return QueueContractionDirect<decltype(zero)>(task, queue.get());
        })));
    if (!splits) return absl::OkStatus();
    return Check(queue, QueueReductionTree(SecondTask(operands, task.partial),
                                           queue.get()));
  }

 private:
  absl::Status Check(CudaStream& queue, cudaError_t queued) const {
    return queue.device().Check(queued, absl::StrCat("launching ", kernel_));
  }

  int64_t element_count() const {
    return ElementCount(modes_.m) * ElementCount(modes_.n) *
           ElementCount(modes_.batch);
  }

  ContractionDirectTask TaskOf(const ContractionOperands& operands,
                               bool splits) const {
    const DirectModes modes = splits ? WithPackedD(modes_) : modes_;
    const int64_t split_count = splits ? division_.split_count : 1;
    ContractionDirectTask task{
        .formula = WithOperands(formula_, operands, division_.swaps),
        .element_count = element_count(),
        .tile = division_.tile,
        .reading_a = division_.reading_a,
        .reading_b = division_.reading_b,
        .tiles_m = FastDivisor(static_cast<uint32_t>(division_.tiles_m)),
        .tiles_n = FastDivisor(static_cast<uint32_t>(division_.tiles_n)),
        .split_count = FastDivisor(static_cast<uint32_t>(split_count)),
        .part = static_cast<uint32_t>(division_.part),
        .k_count = 0,
        .m = SideOf(modes.m, division_.m),
        .n = SideOf(modes.n, division_.n),
        .k = {},
        .batch = {}};
    // Planned are addresses that are as aligned as those that were described.
    task.reading_a.by_vectors &= IsAligned(task.formula.a);
    task.reading_b.by_vectors &= IsAligned(task.formula.b);
    task.batch.AddAll(modes.batch);
    if (task.formula.a != nullptr && ElementCount(modes.k) > 0) {
      task.k.AddAll(modes.k);
      task.k_count = task.k.count;
    }
    return task;
  }

  /// Adds what the splits left in `partial`, and does the rest.
  ReductionTreeTask SecondTask(const ContractionOperands& operands,
                               const void* partial) const {
    const ElementType type = formula_.type_d;
    const ElementType arithmetic = SizeOf(type) >= 4 ? type
                                   : IsInteger(type) ? ElementType::kInt32
                                                     : ElementType::kFloat32;
    ReductionTreeTask task =
        TreeTaskOf({.a = partial,
                    .c = operands.beta.IsZero() ? nullptr : operands.c,
                    .d = operands.d,
                    .type_a = arithmetic,
                    .type_d = type,
                    .compute = arithmetic,
                    .compute_type = DefaultComputeType(arithmetic),
                    .op = BinaryOperator::kAdd,
                    .unary_c = formula_.conj_c ? UnaryOperator::kConj
                                               : UnaryOperator::kIdentity,
                    .alpha = {operands.alpha.real, operands.alpha.imaginary},
                    .beta = {operands.beta.real, operands.beta.imaginary}},
                   second_);
    const DirectModes packed = WithPackedD(modes_);
    const auto keep = [&](const auto& from, const auto& to, size_t c,
                          size_t d) {
      for (size_t i = 0; i < to.size(); ++i) {
        task.kept.Add(to[i].extent,
                      {from[i].strides[d], to[i].strides[c], to[i].strides[d]});
      }
    };
    keep(packed.m, modes_.m, Problem::kFreeC, Problem::kFreeD);
    keep(packed.n, modes_.n, Problem::kFreeC, Problem::kFreeD);
    keep(packed.batch, modes_.batch, Problem::kBatchC, Problem::kBatchD);
    task.reduced.Add(division_.split_count, {element_count()});
    return task;
  }

  const Division division_;
  const ContractionFormula formula_;
  const DirectModes modes_;  // that the problem was divided by
  const int64_t partial_bytes_;
  const ReductionDivision second_;  // of what the splits leave
  const absl::string_view kernel_;
};

class DirectContraction final : public ContractionKernel {
 public:
  DirectContraction(const GpuModel& model, DirectTile tile, bool splits)
      : model_(model), tile_(tile), splits_(splits) {
    const DirectTileExtents extents = ExtentsOf(tile, sizeof(float));
    name_ = absl::StrCat("cuda.contract.direct_", extents.m, "x", extents.n,
                         splits ? "_split_k" : "");
  }

  absl::string_view name() const override { return name_; }
  int version() const override { return 4; }

  Solved Solve(const Problem& problem) const override {
    TENSORD_RETURN_IF_ERROR(CheckDirect(problem));
    if (tile_ == DirectTile::kLarge &&
        (ArithmeticBytes(problem.type_d) > 4 || SizeOf(problem.type_d) == 1)) {
      return Unimplemented("TYPE_UNSUPPORTED",
                           "its tiles are for arithmetic in 4 bytes, and not "
                           "of single ones");
    }
    if (tile_ == DirectTile::kTall24 && IsInteger(problem.type_d)) {
      return Unimplemented("TYPE_UNSUPPORTED", "its tiles are not of integers");
    }
    const auto nothing_to_split = [] {
      return Unimplemented("NOTHING_TO_SPLIT",
                           "without splits there are blocks enough, or too few "
                           "terms to split");
    };
    if (splits_ && !MaySplit(model_, problem, tile_)) return nothing_to_split();
    Division division = Divide(model_, problem, tile_, splits_);
    if (splits_ && division.split_count == 1) return nothing_to_split();
    if (division.block_count() > kMaxIndex) {
      return Unimplemented(
          "TOO_MANY_ELEMENTS", "it needs ", division.block_count(),
          " blocks of threads, at most ", kMaxIndex, " are possible");
    }
    return std::make_unique<DirectContractionSolution>(
        model_, problem, std::move(division), name_);
  }

 private:
  const GpuModel model_;
  const DirectTile tile_;
  const bool splits_;
  std::string name_;
};

}  // namespace

std::unique_ptr<const ContractionKernel> CreateDirectContraction(
    const GpuModel& model, DirectTile tile, bool splits) {
  return std::make_unique<DirectContraction>(model, tile, splits);
}

}  // namespace tensord::core::cuda
