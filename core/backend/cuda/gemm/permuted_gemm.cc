#include "core/backend/cuda/gemm/permuted_gemm.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>

#include "core/backend/cuda/gemm/gemm_cost.h"
#include "core/backend/cuda/kernel/split/split_task.h"
#include "core/base/status.h"
#include "core/ops/type_tables.h"

namespace tensord::core::cuda {
namespace {

using Problem = ContractionProblem;

// Of what a copy in whole lines takes. A guess, to be fitted.
constexpr double kCopySlowdown = 1.25;

enum Operand : size_t { kA, kB, kC, kD };

/// A mode of any group, with its strides in a, b, c and d; 0 where it is not.
using Mode = LoopMode<4>;
using Modes = LoopModes<4>;

struct Groups {
  Modes batch, m, n, k;
  Mode parts{1, {}};  // of every term; counts terms as the slowest mode of k
};

Groups GroupsOf(const Problem& problem) {
  return {.batch = problem.batch,
          .m = Spread<4>(problem.m, std::array<size_t, 3>{kA, kC, kD}),
          .n = Spread<4>(problem.n, std::array<size_t, 3>{kB, kC, kD}),
          .k = Spread<4>(problem.k, std::array<size_t, 2>{kA, kB})};
}

/// `problem` with these groups instead of its own.
Problem ProblemOf(const Problem& problem, const Groups& groups) {
  LoopModes<3> m, n;
  LoopModes<2> k;
  for (const auto& [extent, s] : groups.m) {
    m.push_back({extent, {s[kA], s[kC], s[kD]}});
  }
  for (const auto& [extent, s] : groups.n) {
    n.push_back({extent, {s[kB], s[kC], s[kD]}});
  }
  for (const auto& [extent, s] : groups.k) {
    k.push_back({extent, {s[kA], s[kB]}});
  }
  k.push_back({groups.parts.extent,
               {groups.parts.strides[kA], groups.parts.strides[kB]}});
  Problem result = problem;
  result.batch = Canonical(groups.batch, Problem::kBatchD);
  result.m = Canonical(std::move(m), Problem::kFreeD);
  result.n = Canonical(std::move(n), Problem::kFreeD);
  result.k = Canonical(std::move(k), Problem::kSumA);
  return result;
}

void SortBy(Operand operand, Modes& modes) {
  std::stable_sort(modes.begin(), modes.end(),
                   [operand](const Mode& x, const Mode& y) {
                     return x.strides[operand] < y.strides[operand];
                   });
}

int64_t LeastStride(const Modes& modes, Operand operand) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const Mode& mode : modes) {
    least = std::min(least, mode.strides[operand]);
  }
  return least;
}

/// An operand's way into or out of workspace: its modes with their strides in
/// both places.
struct Packing {
  LoopModes<2> modes;  // where it is, packed
  int64_t element_count = 1;
};

/// Packs `operand` into whole groups, of `x` and `y` that one first which has
/// its fastest mode; `parts` are the slowest mode of `y`, but nowhere else.
Packing Pack(Operand operand, Modes& x, Modes& y, Mode& parts, Modes& batch) {
  const bool x_is_first = LeastStride(x, operand) <= LeastStride(y, operand);
  Packing packing;
  for (Modes* group : {x_is_first ? &x : &y, x_is_first ? &y : &x, &batch}) {
    for (Mode& mode : *group) {
      packing.modes.push_back(
          {mode.extent, {mode.strides[operand], packing.element_count}});
      mode.strides[operand] = packing.element_count;
      packing.element_count *= mode.extent;
    }
    if (group == &y) {
      parts.strides[operand] = packing.element_count;
      packing.element_count *= parts.extent;
    }
  }
  return packing;
}

/// The type that inputs are multiplied in, when they can be copied.
ElementType InputType(const Problem& problem) {
  const bool is_complex =
      IsComplex(problem.type_a) || IsComplex(problem.type_b);
  const bool is_wide = RealPartOf(problem.type_a) == ElementType::kFloat64;
  if (is_wide && problem.compute_type != ComputeType::kFloat64) {
    return is_complex ? ElementType::kComplex64 : ElementType::kFloat32;
  }
  if (!is_complex) return problem.type_a;
  return is_wide ? ElementType::kComplex128 : ElementType::kComplex64;
}

/// The type of a product that still has to go to d.
ElementType ProductType(ElementType input) {
  return SizeOf(input) == 2 ? ElementType::kFloat32 : input;
}

PermutationProblem CopyOf(LoopModes<2> modes, ElementType from, ElementType to,
                          bool conjugates, int64_t alignment_bytes) {
  const bool is_move = from == to && !conjugates;
  return {.type_a = from,
          .type_d = to,
          .compute_type = DefaultComputeType(WidestOf(from, to)),
          .unary = conjugates ? UnaryOperator::kConj : UnaryOperator::kIdentity,
          .is_move = is_move,
          .alignment_bytes = is_move ? alignment_bytes : 1,
          .modes = Canonical(std::move(modes), PermutationProblem::kD)};
}

ElementwiseProblem MergeOf(const Groups& from, const Groups& to,
                           ElementType product, const Problem& problem) {
  LoopModes<4> modes;
  const auto add = [&](const Modes& source, const Modes& target) {
    for (size_t i = 0; i < source.size(); ++i) {
      modes.push_back({source[i].extent,
                       {source[i].strides[kD], 0, target[i].strides[kC],
                        target[i].strides[kD]}});
    }
  };
  add(from.m, to.m);
  add(from.n, to.n);
  add(from.batch, to.batch);
  const ElementType type = problem.type_d;
  return {.types = {product, product, type, type},
          .unary = {UnaryOperator::kIdentity, UnaryOperator::kIdentity,
                    problem.conj_c ? UnaryOperator::kConj
                                   : UnaryOperator::kIdentity},
          .compute_type = DefaultComputeType(WidestOf(product, type)),
          .modes = Canonical(std::move(modes), ElementwiseProblem::kD)};
}

struct Moves {
  bool a, b, d;
};

/// Sorts every group as the operands that stay have it.
void Sort(const Moves& moves, Groups& groups) {
  if (!moves.a) SortBy(kA, groups.m);
  if (!moves.b) SortBy(kB, groups.n);
  if (moves.a && !moves.b) SortBy(kB, groups.k);
  if (moves.d && !moves.a) {
    SortBy(kA, groups.batch);
  } else if (moves.d && !moves.b) {
    SortBy(kB, groups.batch);
  }
}

int64_t Bytes(const Packing& packing, ElementType type) {
  return packing.element_count * SizeOf(type);
}

double CopyNanoseconds(const GpuModel& model, const PermutationProblem& copy) {
  return model.launch_ns +
         kCopySlowdown * static_cast<double>(ElementCount(copy.modes)) *
             static_cast<double>(SizeOf(copy.type_a) + SizeOf(copy.type_d)) /
             model.copy_bytes_per_ns();
}

/// `problem` in the precision that the product has.
Problem InnerOf(const Problem& problem, int64_t parts) {
  Problem inner = problem;
  if (problem.compute_type != ComputeType::kFloat64 &&
      RealPartOf(problem.type_a) == ElementType::kFloat64) {
    inner.compute_type = ComputeType::kFloat32;
  }
  if (parts > 1) inner.compute_type = ComputeType::kTf32;
  return inner;
}

struct Candidate {
  PermutedGemm gemm;
  double nanoseconds = 0;
};

absl::StatusOr<Candidate> CandidateOf(const GpuModel& model,
                                      const Problem& problem,
                                      const Moves& moves, int64_t parts) {
  const ElementType input = InputType(problem);
  const int64_t alignment =
      std::min(problem.alignment_bytes, PermutationProblem::kWidestAccess);
  Candidate candidate;
  PermutedGemm& gemm = candidate.gemm;
  Groups groups = GroupsOf(problem);
  groups.parts.extent = parts;
  Sort(moves, groups);
  const Groups before = groups;
  Problem inner = InnerOf(problem, parts);
  // Gives what is left of the problem the copy instead of the operand.
  const auto copy_input = [&](Operand operand, Modes& free, ElementType& type,
                              bool& conjugates) {
    const Packing packing =
        Pack(operand, free, groups.k, groups.parts, groups.batch);
    const InputCopy copy{
        .problem = CopyOf(packing.modes, type, input, conjugates, alignment),
        .part_stride = parts > 1 ? groups.parts.strides[operand] : 0,
        .bytes = Bytes(packing, input)};
    candidate.nanoseconds += parts > 1 ? SplitNanoseconds(model, copy.problem)
                                       : CopyNanoseconds(model, copy.problem);
    type = input;
    conjugates = false;
    return copy;
  };
  if (moves.a) {
    gemm.copy_a = copy_input(kA, groups.m, inner.type_a, inner.conj_a);
  }
  if (moves.b) {
    gemm.copy_b = copy_input(kB, groups.n, inner.type_b, inner.conj_b);
  }
  if (moves.d) {
    const ElementType product = ProductType(input);
    Mode whole{1, {}};
    Packing packing = Pack(kD, groups.m, groups.n, whole, groups.batch);
    for (Modes* group : {&groups.m, &groups.n, &groups.batch}) {
      for (Mode& mode : *group) mode.strides[kC] = mode.strides[kD];
    }
    gemm.moves_d = true;
    gemm.bytes_d = Bytes(packing, product);
    gemm.merge_d = MergeOf(groups, before, product, problem);
    for (auto& mode : packing.modes) {  // the other way round
      std::swap(mode.strides[0], mode.strides[1]);
    }
    gemm.copy_d =
        CopyOf(packing.modes, product, problem.type_d, false, alignment);
    candidate.nanoseconds += CopyNanoseconds(model, gemm.copy_d);
    inner.type_d = product;
    inner.conj_c = false;
  }
  TENSORD_ASSIGN_OR_RETURN(gemm.call, GemmCallOf(ProblemOf(inner, groups)));
  candidate.nanoseconds += GemmNanoseconds(model, gemm.call);
  return candidate;
}

/// The best of `choices`.
absl::StatusOr<PermutedGemm> BestOf(const GpuModel& model,
                                    const Problem& problem,
                                    std::initializer_list<Moves> choices,
                                    int64_t parts) {
  absl::Status refusal;
  std::optional<Candidate> best;
  for (const Moves moves : choices) {
    auto candidate = CandidateOf(model, problem, moves, parts);
    if (!candidate.ok()) {
      refusal = candidate.status();
    } else if (!best.has_value() ||
               candidate->nanoseconds < best->nanoseconds) {
      best = *std::move(candidate);
    }
  }
  if (!best.has_value()) return refusal;
  return best->gemm;
}

}  // namespace

absl::StatusOr<PermutedGemm> PermutedGemmOf(const GpuModel& model,
                                            const Problem& problem) {
  if (IsInteger(problem.type_d)) {
    return Unimplemented("TYPE_UNSUPPORTED", "there is no GEMM of integers");
  }
  const bool is_single_modes =
      std::max({problem.batch.size(), problem.m.size(), problem.n.size(),
                problem.k.size()}) <= 1;
  if (is_single_modes && GemmCallOf(problem).ok()) {
    return Unimplemented("NOTHING_TO_PERMUTE",
                         "operands are matrices as they lie");
  }
  return BestOf(model, problem,
                {{true, false, false},
                 {false, true, false},
                 {false, false, true},
                 {true, true, false},
                 {true, false, true},
                 {false, true, true},
                 {true, true, true}},
                1);
}

absl::StatusOr<PermutedGemm> SplitGemmOf(const GpuModel& model,
                                         const Problem& problem) {
  if (problem.compute_type != ComputeType::kThreeTf32) {
    return Unimplemented("COMPUTE_TYPE_UNSUPPORTED",
                         "it is for 3xTF32, this is ",
                         NameOf(problem.compute_type));
  }
  const int64_t terms = ElementCount(problem.batch) * ElementCount(problem.k);
  const int64_t elements =
      terms * std::max(ElementCount(problem.m), ElementCount(problem.n));
  if (elements > kMaxIndex) {
    return Unimplemented("TOO_MANY_ELEMENTS", "an input has ", elements,
                         " elements, at most ", kMaxIndex, " are possible");
  }
  return BestOf(model, problem, {{true, true, false}, {true, true, true}},
                SplitTask::kParts);
}

}  // namespace tensord::core::cuda
