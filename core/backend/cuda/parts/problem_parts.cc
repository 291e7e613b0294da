#include "core/backend/cuda/parts/problem_parts.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/backend/cuda/reduction_division.h"
#include "core/base/checked_math.h"
#include "core/ops/type_tables.h"

namespace tensord::core::cuda {
namespace {

constexpr size_t kA = 0, kB = 1, kC = 2, kD = 3;  // of what LoopParts divides

/// Gives `modes` the extents from `extent` on, which it moves on, and makes
/// them canonical again.
template <size_t operand_count>
void Resize(LoopModes<operand_count>& modes, size_t leading,
            ModeVector::const_iterator& extent) {
  for (auto& mode : modes) mode.extent = *extent++;
  modes = Canonical(std::move(modes), leading);
}

/// `modes` in parts; `part_of` makes a problem of the extents of a part.
template <typename Problem, typename PartOf>
ProblemParts<Problem> DivideModes(LoopModes<4> modes, size_t leading,
                                  int64_t limit, PartOf&& part_of) {
  ProblemParts<Problem> parts{.loops = LoopParts(modes, leading, limit),
                              .modes = std::move(modes),
                              .problems = {}};
  for (const auto& shape : parts.loops.shapes()) {
    parts.problems.push_back(part_of(shape.extents));
  }
  return parts;
}

/// Makes the alignment that the parts' problems have what all parts begin at
/// multiples of.
template <typename Problem>
void Align(ProblemParts<Problem>& parts) {
  const std::array<int64_t, 4> bytes = ElementBytes(parts.problems.front());
  for (size_t m = 0; m < parts.modes.size(); ++m) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      const int64_t step =
          parts.loops.step(m) * parts.modes[m].strides[i] * bytes[i];
      for (Problem& problem : parts.problems) {
        problem.alignment_bytes = std::gcd(problem.alignment_bytes, step);
      }
    }
  }
}

/// Makes the strides of operands `c` and `d` those of a packed tensor, from
/// `before` on.
template <size_t operand_count>
void Pack(LoopModes<operand_count>& modes, size_t c, size_t d,
          int64_t& before) {
  for (auto& mode : modes) {
    mode.strides[c] = mode.strides[d] = before;
    before *= mode.extent;
  }
}

/// The type of what parts of a sum come to.
ElementType PartialType(const ReductionProblem& problem) {
  return ComputeElement(problem.type_a, problem.type_d, problem.compute_type);
}
ElementType PartialType(const ContractionProblem& problem) {
  return problem.type_d;
}

/// Each part's result begins at a multiple of 16 bytes of any type.
LoopModes<1> JoinedModes(int64_t part_count, int64_t kept_count) {
  return {{part_count, {RoundUp(kept_count, 16)}}};
}

}  // namespace

std::array<int64_t, 4> ElementBytes(const PermutationProblem& problem) {
  return {SizeOf(problem.type_a), 0, 0, SizeOf(problem.type_d)};
}
std::array<int64_t, 4> ElementBytes(const ElementwiseProblem& problem) {
  std::array<int64_t, 4> bytes;
  std::transform(problem.types.begin(), problem.types.end(), bytes.begin(),
                 SizeOf);
  return bytes;
}
std::array<int64_t, 4> ElementBytes(const ReductionProblem& problem) {
  const int64_t bytes_d = SizeOf(problem.type_d);
  return {SizeOf(problem.type_a), 0, bytes_d, bytes_d};
}
std::array<int64_t, 4> ElementBytes(const ContractionProblem& problem) {
  const int64_t bytes_d = SizeOf(problem.type_d);
  return {SizeOf(problem.type_a), SizeOf(problem.type_b), bytes_d, bytes_d};
}

int64_t KeptCount(const PermutationProblem& problem) {
  return ElementCount(problem.modes);
}
int64_t KeptCount(const ElementwiseProblem& problem) {
  return ElementCount(problem.modes);
}
int64_t KeptCount(const ReductionProblem& problem) {
  return ElementCount(problem.kept);
}
int64_t KeptCount(const ContractionProblem& problem) {
  return ElementCount(problem.batch) * ElementCount(problem.m) *
         ElementCount(problem.n);
}

ProblemParts<PermutationProblem> DivideKept(const PermutationProblem& problem,
                                            int64_t limit) {
  auto parts = DivideModes<PermutationProblem>(
      Spread<4>(problem.modes, std::array{kA, kD}), kD, limit,
      [&](const ModeVector& extents) {
        PermutationProblem part = problem;
        auto extent = extents.begin();
        Resize(part.modes, PermutationProblem::kD, extent);
        return part;
      });
  Align(parts);
  return parts;
}

ProblemParts<ElementwiseProblem> DivideKept(const ElementwiseProblem& problem,
                                            int64_t limit) {
  return DivideModes<ElementwiseProblem>(
      problem.modes, kD, limit, [&](const ModeVector& extents) {
        ElementwiseProblem part = problem;
        auto extent = extents.begin();
        Resize(part.modes, ElementwiseProblem::kD, extent);
        return part;
      });
}

ProblemParts<ReductionProblem> DivideKept(const ReductionProblem& problem,
                                          int64_t limit) {
  return DivideModes<ReductionProblem>(
      Spread<4>(problem.kept, std::array{kA, kC, kD}), kD, limit,
      [&](const ModeVector& extents) {
        ReductionProblem part = problem;
        auto extent = extents.begin();
        Resize(part.kept, ReductionProblem::kD, extent);
        return part;
      });
}

ProblemParts<ContractionProblem> DivideKept(const ContractionProblem& problem,
                                            int64_t limit) {
  auto parts = DivideModes<ContractionProblem>(
      KeptModesOf(problem), kD, limit, [&](const ModeVector& extents) {
        ContractionProblem part = problem;
        auto extent = extents.begin();
        Resize(part.m, ContractionProblem::kFreeD, extent);
        Resize(part.n, ContractionProblem::kFreeD, extent);
        Resize(part.batch, ContractionProblem::kBatchD, extent);
        return part;
      });
  Align(parts);
  return parts;
}

int64_t TermCount(const ReductionProblem& problem) {
  return ElementCount(problem.reduced);
}
int64_t TermCount(const ContractionProblem& problem) {
  // All of a's modes together do not overflow.
  const int64_t of_a = ElementCount(problem.k) * ElementCount(problem.a_only);
  return SaturatingMultiply(of_a, ElementCount(problem.b_only));
}

ProblemParts<ReductionProblem> DivideTerms(const ReductionProblem& problem,
                                           int64_t limit) {
  ReductionProblem first = problem;
  first.type_d = PartialType(problem);
  first.compute_type = DefaultComputeType(first.type_d);
  first.unary_c = UnaryOperator::kIdentity;
  first.kept = KeptInOrderOfA(problem);
  int64_t before = 1;
  Pack(first.kept, ReductionProblem::kC, ReductionProblem::kD, before);
  first.kept = Canonical(std::move(first.kept), ReductionProblem::kD);
  return DivideModes<ReductionProblem>(
      Spread<4>(problem.reduced, std::array{kA}), kA, limit,
      [&](const ModeVector& extents) {
        ReductionProblem part = first;
        auto extent = extents.begin();
        Resize(part.reduced, 0, extent);
        return part;
      });
}

ProblemParts<ContractionProblem> DivideTerms(const ContractionProblem& problem,
                                             int64_t limit) {
  using Problem = ContractionProblem;
  Problem first = problem;
  first.conj_c = false;
  int64_t before = 1;
  Pack(first.m, Problem::kFreeC, Problem::kFreeD, before);
  Pack(first.n, Problem::kFreeC, Problem::kFreeD, before);
  Pack(first.batch, Problem::kBatchC, Problem::kBatchD, before);
  first.m = Canonical(std::move(first.m), Problem::kFreeD);
  first.n = Canonical(std::move(first.n), Problem::kFreeD);
  first.batch = Canonical(std::move(first.batch), Problem::kBatchD);
  LoopModes<4> modes = Spread<4>(problem.k, std::array{kA, kB});
  for (const auto& [extent, strides] : problem.a_only) {
    modes.push_back({extent, {strides[0], 0, 0, 0}});
  }
  for (const auto& [extent, strides] : problem.b_only) {
    modes.push_back({extent, {0, strides[0], 0, 0}});
  }
  auto parts = DivideModes<Problem>(std::move(modes), kA, limit,
                                    [&](const ModeVector& extents) {
                                      Problem part = first;
                                      auto extent = extents.begin();
                                      Resize(part.k, Problem::kSumA, extent);
                                      Resize(part.a_only, 0, extent);
                                      Resize(part.b_only, 0, extent);
                                      return part;
                                    });
  Align(parts);
  return parts;
}

ReductionProblem JoinOf(const ReductionProblem& problem, int64_t part_count) {
  ReductionProblem join = problem;
  join.type_a = PartialType(problem);
  join.unary_a = UnaryOperator::kIdentity;
  join.kept = KeptInOrderOfA(problem);
  int64_t before = 1;
  for (auto& mode : join.kept) {
    mode.strides[ReductionProblem::kA] = before;
    before *= mode.extent;
  }
  join.kept = Canonical(std::move(join.kept), ReductionProblem::kD);
  join.reduced = JoinedModes(part_count, before);
  return join;
}

ReductionProblem JoinOf(const ContractionProblem& problem, int64_t part_count) {
  ReductionProblem join{.type_a = PartialType(problem),
                        .type_d = problem.type_d,
                        .compute_type = DefaultComputeType(problem.type_d),
                        .unary_c = problem.conj_c ? UnaryOperator::kConj
                                                  : UnaryOperator::kIdentity,
                        .kept = {},
                        .reduced = {}};
  int64_t before = 1;
  for (const auto& [extent, strides] : KeptModesOf(problem)) {
    join.kept.push_back({extent, {before, strides[kC], strides[kD]}});
    before *= extent;
  }
  join.kept = Canonical(std::move(join.kept), ReductionProblem::kD);
  join.reduced = JoinedModes(part_count, before);
  return join;
}

}  // namespace tensord::core::cuda
