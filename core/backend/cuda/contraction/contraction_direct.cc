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
#include "core/base/memo.h"
#include "core/base/status.h"
#include "core/ops/type_tables.h"

namespace tensord::core::cuda {
namespace {

using Problem = ContractionProblem;
using Division = ContractionDivision;

// Problems whose divisions are kept.
constexpr size_t kMostKnown = 1024;

template <size_t operand_count>
void AddTo(IndexSpace<static_cast<int>(operand_count)>& space,
           const LoopModes<operand_count>& modes) {
  for (const auto& mode : modes) space.Add(mode.extent, mode.strides);
}

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

/// The modes that the problem was divided by.
DirectModes ModesOf(const Problem& problem, const Division& division) {
  return *DirectModesOf(problem, division.swaps, division.terms);
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

ContractionDirectTask TaskOf(const Problem& problem,
                             const ContractionOperands& operands,
                             const Division& division) {
  DirectModes modes = ModesOf(problem, division);
  if (division.split_count > 1) modes = WithPackedD(std::move(modes));
  ContractionDirectTask task{
      .formula = FormulaOf(problem, operands, division.swaps),
      .element_count = ElementCount(modes.m) * ElementCount(modes.n) *
                       ElementCount(modes.batch),
      .tile = division.tile,
      .reading_a = division.reading_a,
      .reading_b = division.reading_b,
      .tiles_m = FastDivisor(static_cast<uint32_t>(division.tiles_m)),
      .tiles_n = FastDivisor(static_cast<uint32_t>(division.tiles_n)),
      .split_count = FastDivisor(static_cast<uint32_t>(division.split_count)),
      .part = static_cast<uint32_t>(division.part),
      .k_count = 0,
      .m = SideOf(modes.m, division.m),
      .n = SideOf(modes.n, division.n),
      .k = {},
      .batch = {}};
  // Planned are addresses that are as aligned as those that were described.
  task.reading_a.by_vectors &= IsAligned(task.formula.a);
  task.reading_b.by_vectors &= IsAligned(task.formula.b);
  AddTo(task.batch, modes.batch);
  if (task.formula.a != nullptr && ElementCount(modes.k) > 0) {
    AddTo(task.k, modes.k);
    task.k_count = task.k.count;
  }
  return task;
}

/// Adds what the splits left in `partial`, and does the rest.
ReductionTreeTask SecondTask(const GpuModel& model, const Problem& problem,
                             const ContractionOperands& operands,
                             const Division& division, const void* partial) {
  const DirectModes modes = ModesOf(problem, division);
  const ElementType arithmetic = SizeOf(problem.type_d) >= 4 ? problem.type_d
                                 : IsInteger(problem.type_d)
                                     ? ElementType::kInt32
                                     : ElementType::kFloat32;
  const int64_t kept =
      ElementCount(modes.m) * ElementCount(modes.n) * ElementCount(modes.batch);
  const ReductionDivision second =
      DivideElements(model, kept, division.split_count, kept == 1);
  ReductionTreeTask task{
      .formula = {.a = partial,
                  .c = operands.beta.IsZero() ? nullptr : operands.c,
                  .d = operands.d,
                  .type_a = arithmetic,
                  .type_d = problem.type_d,
                  .compute = arithmetic,
                  .compute_type = DefaultComputeType(arithmetic),
                  .op = BinaryOperator::kAdd,
                  .unary_c = problem.conj_c ? UnaryOperator::kConj
                                            : UnaryOperator::kIdentity,
                  .alpha = {operands.alpha.real, operands.alpha.imaginary},
                  .beta = {operands.beta.real, operands.beta.imaginary}},
      .kept_threads = static_cast<uint32_t>(second.kept_threads),
      .reduced_threads = static_cast<uint32_t>(second.reduced_threads),
      .reduced_is_fastest = second.reduced_is_fastest,
      .part = static_cast<uint32_t>(division.split_count),
      .reduced_count = static_cast<uint32_t>(division.split_count),
      .kept = {},
      .reduced = {}};
  const DirectModes packed = WithPackedD(modes);
  const auto keep = [&](const auto& from, const auto& to, size_t c, size_t d) {
    for (size_t i = 0; i < to.size(); ++i) {
      task.kept.Add(to[i].extent,
                    {from[i].strides[d], to[i].strides[c], to[i].strides[d]});
    }
  };
  keep(packed.m, modes.m, Problem::kFreeC, Problem::kFreeD);
  keep(packed.n, modes.n, Problem::kFreeC, Problem::kFreeD);
  keep(packed.batch, modes.batch, Problem::kBatchC, Problem::kBatchD);
  task.reduced.Add(division.split_count, {kept});
  return task;
}

class DirectContraction final : public ContractionKernel {
 public:
  DirectContraction(const GpuModel& model, DirectTile tile, bool splits)
      : model_(model), tile_(tile), splits_(splits) {
    const DirectTileExtents extents = ExtentsOf(tile, sizeof(float));
    name_ = absl::StrCat("cuda.contract.direct_", extents.m, "x", extents.n,
                         splits ? "_split_k" : "");
  }

  absl::string_view name() const override { return name_; }
  int version() const override { return 3; }

  absl::Status Supports(const Problem& problem) const override {
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
    const std::shared_ptr<const Division> division = DivisionOf(problem);
    if (splits_ && division->split_count == 1) return nothing_to_split();
    if (division->block_count() > kMaxIndex) {
      return Unimplemented(
          "TOO_MANY_ELEMENTS", "it needs ", division->block_count(),
          " blocks of threads, at most ", kMaxIndex, " are possible");
    }
    return absl::OkStatus();
  }

  int64_t WorkspaceBytes(const Problem& problem) const override {
    const int64_t bytes = PartialBytes(problem, *DivisionOf(problem));
    return bytes == 0 ? 0 : Workspace::BytesFor(bytes);
  }

  double PredictNanoseconds(const Problem& problem) const override {
    return DivisionOf(problem)->nanoseconds;
  }

  absl::Status Launch(const Problem& problem,
                      const ContractionOperands& operands, Workspace& workspace,
                      Stream& stream) const override {
    CudaStream& queue = AsCuda(stream);
    TENSORD_RETURN_IF_ERROR(queue.device().Select());
    std::shared_ptr<const Division> division = DivisionOf(problem);
    if (operands.alpha.IsZero() && division->split_count > 1) {
      // There are no terms to split.
      auto whole = std::make_shared<Division>(*division);
      whole->split_count = 1;
      division = std::move(whole);
    }
    ContractionDirectTask task = TaskOf(problem, operands, *division);
    if (division->split_count > 1) {
      task.partial =
          workspace.Take<std::byte>(PartialBytes(problem, *division));
    }
    TENSORD_RETURN_IF_ERROR(
        Check(queue, VisitElementType(problem.type_d, [&](auto zero) {
                using Stored = decltype(zero);
                if constexpr (std::is_same_v<Stored, bool>) {
                  return cudaErrorInvalidValue;  // not supported
                } else {
                  return QueueContractionDirect<Stored>(task, queue.get());
                }
              })));
    if (task.partial == nullptr) return absl::OkStatus();
    return Check(queue, QueueReductionTree(SecondTask(model_, problem, operands,
                                                      *division, task.partial),
                                           queue.get()));
  }

 private:
  absl::Status Check(CudaStream& queue, cudaError_t queued) const {
    return queue.device().Check(queued, absl::StrCat("launching ", name()));
  }

  std::shared_ptr<const Division> DivisionOf(const Problem& problem) const {
    return *divisions_.Get(problem, [&] {  // there always is one
      return std::make_shared<const Division>(
          Divide(model_, problem, tile_, splits_));
    });
  }

  const GpuModel model_;
  const DirectTile tile_;
  const bool splits_;
  std::string name_;
  /// So that launches need not decide.
  mutable Memo<Problem, Division> divisions_{kMostKnown};
};

}  // namespace

std::unique_ptr<const ContractionKernel> CreateDirectContraction(
    const GpuModel& model, DirectTile tile, bool splits) {
  return std::make_unique<DirectContraction>(model, tile, splits);
}

}  // namespace tensord::core::cuda
