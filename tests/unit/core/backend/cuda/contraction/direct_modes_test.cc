// The orders of terms.
#include "core/backend/cuda/contraction/direct_modes.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <utility>
#include <vector>

namespace tensord::core::cuda {
namespace {

constexpr TermOrder kOrders[] = {TermOrder::kAsInA, TermOrder::kAsInB,
                                 TermOrder::kInBlocks};

/// The offsets of every term, in order.
std::vector<std::array<int64_t, 2>> TermsOf(const LoopModes<2>& modes) {
  std::vector<std::array<int64_t, 2>> terms;
  for (int64_t i = 0; i < ElementCount(modes); ++i) {
    std::array<int64_t, 2> offsets = {};
    int64_t rest = i;
    for (const auto& mode : modes) {
      for (size_t o = 0; o < 2; ++o) {
        offsets[o] += rest % mode.extent * mode.strides[o];
      }
      rest /= mode.extent;
    }
    terms.push_back(offsets);
  }
  return terms;
}

/// a (k, l, x), b (x, l, k).
ContractionProblem Transposed(int64_t k, int64_t l, int64_t x) {
  ContractionProblem problem;
  problem.k = {{k, {1, x * l}}, {l, {k, x}}, {x, {k * l, 1}}};
  return problem;
}

TEST(DirectModesTest, EveryOrderHasTheSameTerms) {
  for (const auto& [k, l, x] :
       {std::array<int64_t, 3>{24, 3, 20}, {8, 1, 16}, {5, 2, 7}}) {
    const ContractionProblem problem = Transposed(k, l, x);
    for (const bool swaps : {false, true}) {
      std::set<std::set<std::array<int64_t, 2>>> found;
      for (const TermOrder order : kOrders) {
        const auto modes = DirectModesOf(problem, swaps, order);
        ASSERT_TRUE(modes.has_value());
        const auto terms = TermsOf(modes->k);
        EXPECT_EQ(terms.size(), static_cast<size_t>(k * l * x));
        found.emplace(terms.begin(), terms.end());
      }
      EXPECT_EQ(found.size(), 1u);
      EXPECT_EQ(found.begin()->size(), static_cast<size_t>(k * l * x));
    }
  }
}

TEST(DirectModesTest, BlocksAreRunsOfBoth) {
  const auto terms = TermsOf(
      DirectModesOf(Transposed(24, 3, 20), false, TermOrder::kInBlocks)->k);
  for (int64_t i = 0; i < 80; ++i) {  // 8 of k, 10 of x
    EXPECT_EQ(terms[i][0], i % 8 + i / 8 * 72) << i;
    EXPECT_EQ(terms[i][1], i % 8 * 60 + i / 8) << i;
  }
  EXPECT_EQ(terms[80][0], 8);
}

TEST(DirectModesTest, ThereAreNotAlwaysBlocks) {
  const auto has_blocks = [](const ContractionProblem& problem) {
    return DirectModesOf(problem, false, TermOrder::kInBlocks).has_value();
  };
  EXPECT_TRUE(has_blocks(Transposed(24, 3, 20)));
  EXPECT_FALSE(has_blocks(Transposed(23, 3, 20)));  // a prime
  EXPECT_FALSE(has_blocks(Transposed(24, 3, 2)));
  ContractionProblem alike;
  alike.k = {{24, {1, 1}}, {20, {24, 30}}};
  EXPECT_FALSE(has_blocks(alike));
  EXPECT_FALSE(has_blocks(ContractionProblem{}));
}

TEST(DirectModesTest, WhatOneInputHasAloneIsSummedToo) {
  ContractionProblem problem = Transposed(24, 3, 20);
  problem.a_only = {{3, {9000}}};
  problem.b_only = {{4, {8000}}};
  for (const TermOrder order : kOrders) {
    for (const bool swaps : {false, true}) {
      const DirectModes modes = *DirectModesOf(problem, swaps, order);
      EXPECT_EQ(ElementCount(modes.k), 24 * 3 * 20 * 3 * 4);
      LoopMode<2> of_a{3, {9000, 0}}, of_b{4, {0, 8000}};
      if (swaps) {
        std::swap(of_a.strides[0], of_a.strides[1]);
        std::swap(of_b.strides[0], of_b.strides[1]);
      }
      EXPECT_EQ(modes.k[modes.k.size() - 2], of_a);
      EXPECT_EQ(modes.k.back(), of_b);
    }
  }
}

}  // namespace
}  // namespace tensord::core::cuda
