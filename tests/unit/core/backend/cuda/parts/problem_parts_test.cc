// Parts of problems visit what the whole visits, each address once.
#include "core/backend/cuda/parts/problem_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include "tests/testing/random_problem.h"

namespace tensord::core::cuda {
namespace {

constexpr uint32_t kSeeds = 500;

/// Offsets of the operands, one list an element.
using Visits = std::vector<std::array<int64_t, 4>>;

Visits Origin() { return Visits(1); }

/// Each of `visits` with each element of `modes`, whose strides are those of
/// `operands`.
template <size_t operand_count>
Visits Visit(const Visits& visits, const LoopModes<operand_count>& modes,
             const std::array<size_t, operand_count>& operands) {
  Visits all;
  for (const auto& from : visits) {
    for (int64_t i = 0; i < ElementCount(modes); ++i) {
      auto at = from;
      int64_t rest = i;
      for (const auto& mode : modes) {
        for (size_t o = 0; o < operand_count; ++o) {
          at[operands[o]] += rest % mode.extent * mode.strides[o];
        }
        rest /= mode.extent;
      }
      all.push_back(at);
    }
  }
  return all;
}

using One = std::array<size_t, 1>;
using Two = std::array<size_t, 2>;
using Three = std::array<size_t, 3>;
using Four = std::array<size_t, 4>;

Visits KeptOf(const PermutationProblem& problem, const Visits& from) {
  return Visit(from, problem.modes, Two{0, 3});
}
Visits KeptOf(const ElementwiseProblem& problem, const Visits& from) {
  return Visit(from, problem.modes, Four{0, 1, 2, 3});
}
Visits KeptOf(const ReductionProblem& problem, const Visits& from) {
  return Visit(from, problem.kept, Three{0, 2, 3});
}
Visits KeptOf(const ContractionProblem& problem, const Visits& from) {
  const Visits batch = Visit(from, problem.batch, Four{0, 1, 2, 3});
  return Visit(Visit(batch, problem.m, Three{0, 2, 3}), problem.n,
               Three{1, 2, 3});
}
Visits TermsOf(const ReductionProblem& problem, const Visits& from) {
  return Visit(from, problem.reduced, One{0});
}
Visits TermsOf(const ContractionProblem& problem, const Visits& from) {
  const Visits k = Visit(from, problem.k, Two{0, 1});
  return Visit(Visit(k, problem.a_only, One{0}), problem.b_only, One{1});
}

template <typename Problem>
void ExpectCanonical(const Problem& problem) {
  const auto is_canonical = [](const auto& modes, size_t leading) {
    return Canonical(modes, leading) == modes;
  };
  if constexpr (requires { problem.modes; }) {
    EXPECT_TRUE(is_canonical(problem.modes, Problem::kD));
  } else if constexpr (requires { problem.kept; }) {
    EXPECT_TRUE(is_canonical(problem.kept, Problem::kD));
    EXPECT_TRUE(is_canonical(problem.reduced, 0));
  } else {
    EXPECT_TRUE(is_canonical(problem.batch, Problem::kBatchD));
    EXPECT_TRUE(is_canonical(problem.m, Problem::kFreeD));
    EXPECT_TRUE(is_canonical(problem.n, Problem::kFreeD));
    EXPECT_TRUE(is_canonical(problem.k, Problem::kSumA));
    EXPECT_TRUE(is_canonical(problem.a_only, 0));
    EXPECT_TRUE(is_canonical(problem.b_only, 0));
  }
}

Visits Sorted(Visits visits) {
  std::sort(visits.begin(), visits.end());
  return visits;
}

int64_t RandomLimit(std::mt19937& rng, int64_t count) {
  const auto least = std::max<int64_t>(count / 50, 1);
  return least + static_cast<int64_t>(rng()) % std::max<int64_t>(count, 1);
}

/// Calls `check` for random problems, with another limit each.
template <typename Draw, typename Check>
void ForEachProblem(Draw&& draw, Check&& check) {
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    const auto problem = Canonicalize(draw(rng).desc);
    if (KeptCount(problem) == 0) continue;
    check(problem, rng);
    if (::testing::Test::HasFailure()) return;
  }
}

template <typename Problem>
void ExpectEveryElementOnce(const Problem& problem, std::mt19937& rng) {
  const int64_t limit = RandomLimit(rng, KeptCount(problem));
  const ProblemParts<Problem> parts = DivideKept(problem, limit);
  if (KeptCount(problem) <= limit) {
    EXPECT_EQ(parts.count(), 1);
  }
  Visits visits;
  for (int64_t number = 0; number < parts.count(); ++number) {
    const Problem& part = parts.problem(number);
    ExpectCanonical(part);
    EXPECT_LE(KeptCount(part), limit);
    const Visits of_part = KeptOf(part, {parts.offsets(number)});
    visits.insert(visits.end(), of_part.begin(), of_part.end());
  }
  EXPECT_TRUE(Sorted(visits) == Sorted(KeptOf(problem, Origin())));
}

TEST(ProblemPartsTest, PermutationsVisitEveryElementOnce) {
  ForEachProblem(tensord::test::RandomPermutation,
                 [](const auto& problem, auto& rng) {
                   ExpectEveryElementOnce(problem, rng);
                 });
}

TEST(ProblemPartsTest, ElementwiseOperationsVisitEveryElementOnce) {
  ForEachProblem(tensord::test::RandomElementwise,
                 [](const auto& problem, auto& rng) {
                   ExpectEveryElementOnce(problem, rng);
                 });
}

TEST(ProblemPartsTest, ReductionsVisitEveryElementOnce) {
  ForEachProblem(tensord::test::RandomReduction,
                 [](const auto& problem, auto& rng) {
                   ExpectEveryElementOnce(problem, rng);
                 });
}

TEST(ProblemPartsTest, ContractionsVisitEveryElementOnce) {
  ForEachProblem(tensord::test::RandomContraction,
                 [](const auto& problem, auto& rng) {
                   ExpectEveryElementOnce(problem, rng);
                 });
}

/// How many parts are aligned worse than `problem`, for which their problems
/// must account.
template <typename Problem>
int64_t CountUnaligned(const Problem& problem,
                       const ProblemParts<Problem>& parts) {
  int64_t count = 0;
  const auto bytes = ElementBytes(problem);
  for (int64_t number = 0; number < parts.count(); ++number) {
    const int64_t alignment = parts.problem(number).alignment_bytes;
    const auto offsets = parts.offsets(number);
    for (size_t i = 0; i < offsets.size(); ++i) {
      EXPECT_EQ(offsets[i] * bytes[i] % alignment, 0);
    }
    EXPECT_EQ(problem.alignment_bytes % alignment, 0);
    count += alignment < problem.alignment_bytes;
  }
  return count;
}

TEST(ProblemPartsTest, NoPartIsAlignedWorseThanItsProblemSays) {
  int64_t unaligned = 0;
  ForEachProblem(tensord::test::RandomPermutation,
                 [&](PermutationProblem problem, auto& rng) {
                   problem.alignment_bytes = PermutationProblem::kWidestAccess;
                   const int64_t limit = RandomLimit(rng, KeptCount(problem));
                   unaligned +=
                       CountUnaligned(problem, DivideKept(problem, limit));
                 });
  EXPECT_GT(unaligned, 0);
  unaligned = 0;
  ForEachProblem(
      tensord::test::RandomContraction,
      [&](ContractionProblem problem, auto& rng) {
        problem.alignment_bytes = ContractionProblem::kWidestAccess;
        const int64_t limit = RandomLimit(rng, KeptCount(problem));
        unaligned += CountUnaligned(problem, DivideKept(problem, limit));
        if (TermCount(problem) == 0) return;
        const int64_t term_limit = RandomLimit(rng, TermCount(problem));
        unaligned += CountUnaligned(problem, DivideTerms(problem, term_limit));
      });
  EXPECT_GT(unaligned, 0);
}

TEST(ProblemPartsTest, LargeTransposesStayAligned) {
  constexpr int64_t kSide = 65'536;
  PermutationProblem problem{
      .type_a = ElementType::kInt8,
      .type_d = ElementType::kInt8,
      .is_move = true,
      .alignment_bytes = PermutationProblem::kWidestAccess};
  problem.modes = {{kSide, {kSide, 1}}, {kSide, {1, kSide}}};
  const auto parts = DivideKept(problem, (int64_t{1} << 31) - 1);
  EXPECT_EQ(parts.count(), 3);
  EXPECT_EQ(parts.problem(0).alignment_bytes,
            PermutationProblem::kWidestAccess);
}

template <typename Problem>
void ExpectEveryTermOnce(const Problem& problem, std::mt19937& rng) {
  if (TermCount(problem) == 0) return;
  const int64_t limit = RandomLimit(rng, TermCount(problem));
  const ProblemParts<Problem> parts = DivideTerms(problem, limit);
  if (parts.count() == 1) return;
  const ReductionProblem join = JoinOf(problem, parts.count());
  ExpectCanonical(join);

  // Where in c and d each element of a packed partial result belongs.
  const int64_t kept_count = KeptCount(problem);
  std::map<int64_t, std::array<int64_t, 4>> of_partial;
  for (const auto& at : KeptOf(join, Origin())) {
    ASSERT_LT(at[0], kept_count);
    ASSERT_TRUE(of_partial.emplace(at[0], at).second) << "twice";
  }
  EXPECT_EQ(static_cast<int64_t>(of_partial.size()), kept_count);
  ASSERT_EQ(ElementCount(join.reduced), parts.count());
  EXPECT_GE(join.reduced[0].strides[0], kept_count) << "results overlap";

  const Visits kept_by_whole = Sorted(KeptOf(problem, Origin()));
  for (const Problem& part : parts.problems) {
    ExpectCanonical(part);
    EXPECT_LE(TermCount(part), limit);
    Visits kept = KeptOf(part, Origin());
    for (auto& at : kept) {
      EXPECT_EQ(at[2], at[3]);
      const auto& joined = of_partial.at(at[3]);
      at[2] = joined[2];
      at[3] = joined[3];
    }
    EXPECT_TRUE(Sorted(kept) == kept_by_whole);
  }

  Visits terms;
  for (int64_t number = 0; number < parts.count(); ++number) {
    const auto offsets = parts.offsets(number);
    EXPECT_EQ(offsets[2], 0);
    EXPECT_EQ(offsets[3], 0);
    const Visits of_part = TermsOf(parts.problem(number), {offsets});
    terms.insert(terms.end(), of_part.begin(), of_part.end());
  }
  EXPECT_TRUE(Sorted(terms) == Sorted(TermsOf(problem, Origin())));
}

TEST(ProblemPartsTest, ReductionsTakeEveryTermOnce) {
  ForEachProblem(tensord::test::RandomReduction,
                 [](const auto& problem, auto& rng) {
                   ExpectEveryTermOnce(problem, rng);
                 });
}

TEST(ProblemPartsTest, ContractionsTakeEveryTermOnce) {
  ForEachProblem(tensord::test::RandomContraction,
                 [](const auto& problem, auto& rng) {
                   ExpectEveryTermOnce(problem, rng);
                 });
}

TEST(ProblemPartsTest, PartialResultsAreAsPreciseAsTheArithmetic) {
  ReductionProblem sums{.type_a = ElementType::kFloat16,
                        .type_d = ElementType::kFloat16,
                        .compute_type = ComputeType::kFloat16,
                        .unary_a = UnaryOperator::kAbs,
                        .unary_c = UnaryOperator::kNeg,
                        .kept = {},
                        .reduced = {{100, {1}}}};
  const ReductionProblem part = DivideTerms(sums, 60).problem(0);
  EXPECT_EQ(part.type_a, ElementType::kFloat16);
  EXPECT_EQ(part.type_d, ElementType::kFloat32);
  EXPECT_EQ(part.compute_type, ComputeType::kFloat32);
  EXPECT_EQ(part.unary_a, UnaryOperator::kAbs);
  EXPECT_EQ(part.unary_c, UnaryOperator::kIdentity);
  const ReductionProblem join = JoinOf(sums, 2);
  EXPECT_EQ(join.type_a, ElementType::kFloat32);
  EXPECT_EQ(join.type_d, ElementType::kFloat16);
  EXPECT_EQ(join.compute_type, ComputeType::kFloat16);
  EXPECT_EQ(join.unary_a, UnaryOperator::kIdentity);
  EXPECT_EQ(join.unary_c, UnaryOperator::kNeg);
}

TEST(ProblemPartsTest, TermsThatOverflowSaturate) {
  ContractionProblem problem;
  problem.a_only = {{int64_t{1} << 40, {1}}};
  problem.b_only = {{int64_t{1} << 40, {1}}};
  EXPECT_EQ(TermCount(problem), std::numeric_limits<int64_t>::max());
}

}  // namespace
}  // namespace tensord::core::cuda
