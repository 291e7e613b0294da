// Problems in parts: the arithmetic of it, without kernels or addresses.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/backend/cuda/parts/loop_parts.h"
#include "core/problem/contraction_problem.h"
#include "core/problem/elementwise_problem.h"
#include "core/problem/permutation_problem.h"
#include "core/problem/reduction_problem.h"

namespace tensord::core::cuda {

/// A problem in parts that run one after the other.
///
/// Invariant  the problems are canonical as their headers say.
/// Threads    immutable value; share freely.
template <typename Problem>
struct ProblemParts {
  LoopParts loops;
  LoopModes<4> modes;             // what `loops` divides: a, b, c, d
  std::vector<Problem> problems;  // (shape), by loops.shapes()

  int64_t count() const { return loops.count(); }
  const Problem& problem(int64_t number) const {
    return problems[loops.shape(number)];
  }
  /// Elements from each operand's first one to the part's: a, b, c, d.
  std::array<int64_t, 4> offsets(int64_t number) const {
    const ModeVector first = loops.first(number);
    std::array<int64_t, 4> offsets = {};
    for (size_t m = 0; m < modes.size(); ++m) {
      for (size_t i = 0; i < offsets.size(); ++i) {
        offsets[i] += first[m] * modes[m].strides[i];
      }
    }
    return offsets;
  }
};

/// Bytes of an element of a, b, c and d; 0 for what the operation lacks.
std::array<int64_t, 4> ElementBytes(const PermutationProblem& problem);
std::array<int64_t, 4> ElementBytes(const ElementwiseProblem& problem);
std::array<int64_t, 4> ElementBytes(const ReductionProblem& problem);
std::array<int64_t, 4> ElementBytes(const ContractionProblem& problem);

/// Elements of d.
int64_t KeptCount(const PermutationProblem& problem);
int64_t KeptCount(const ElementwiseProblem& problem);
int64_t KeptCount(const ReductionProblem& problem);
int64_t KeptCount(const ContractionProblem& problem);

/// Parts that each compute some of d's elements, at most `limit`. Their
/// alignment is the problem's, or the largest that all of them begin at
/// multiples of.
///
/// Requires  d has elements.
ProblemParts<PermutationProblem> DivideKept(const PermutationProblem& problem,
                                            int64_t limit);
ProblemParts<ElementwiseProblem> DivideKept(const ElementwiseProblem& problem,
                                            int64_t limit);
ProblemParts<ReductionProblem> DivideKept(const ReductionProblem& problem,
                                          int64_t limit);
ProblemParts<ContractionProblem> DivideKept(const ContractionProblem& problem,
                                            int64_t limit);

/// Terms of each element of d; INT64_MAX when there are more.
int64_t TermCount(const ReductionProblem& problem);
int64_t TermCount(const ContractionProblem& problem);

/// Parts that each take some of the terms, at most `limit`, of every element of
/// d, without factors and without c. The d of a part is packed; one after the
/// other, each aligned, they are the a of JoinOf(). Their elements have the
/// type that the arithmetic runs in, or d's own when they are integers, which
/// may wrap at any time.
///
/// A contraction's operands are rounded to the compute type as ever; terms of a
/// reduction are not, only what JoinOf() makes of them is.
///
/// Requires  TermCount(problem) > 0; in a contraction, d's elements are
///           integers, or as precise as its sums: not of 16 bits.
ProblemParts<ReductionProblem> DivideTerms(const ReductionProblem& problem,
                                           int64_t limit);
ProblemParts<ContractionProblem> DivideTerms(const ContractionProblem& problem,
                                             int64_t limit);

/// The reduction that makes d of `part_count` results of DivideTerms(), of c
/// and of the factors. Without alpha it reads no a, as ever.
///
/// Requires  part_count > 1.
ReductionProblem JoinOf(const ReductionProblem& problem, int64_t part_count);
ReductionProblem JoinOf(const ContractionProblem& problem, int64_t part_count);

}  // namespace tensord::core::cuda
