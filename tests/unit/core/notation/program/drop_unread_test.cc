#include "core/notation/program/drop_unread.h"

#include <string>
#include <vector>

#include "core/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/core/notation/program/interpreter.h"
#include "tests/unit/core/notation/program/program_inputs.h"

namespace tensord::core::test {
namespace {

class DropUnreadTest : public ::testing::Test {
 protected:
  DropUnreadTest() {
    for (const char* name : {"A", "B", "C", "D"}) {
      inputs_.Add(name, RandomValues({3, 3}, rng_));
    }
  }
  static std::vector<NamedOutput> Keeping(const std::string& name) {
    return {{name, std::nullopt, Order::kFirstModeFastest}};
  }
  static int StepCount(const Program& program) {
    int count = 0;
    for (const ProgramBlock& block : program.blocks) {
      EXPECT_FALSE(block.steps.empty());
      count += static_cast<int>(block.steps.size());
    }
    return count;
  }

  std::mt19937 rng_{1};
  Inputs inputs_;
};

TEST_F(DropUnreadTest, WhatLeadsToNothingIsNotComputed) {
  const Program program = Lower(
                              "T[i,k] := A[i,j]*B[j,k]\n"
                              "U[i,k] := 2*T[i,k]\n"
                              "V[i,k] := B[i,j]*C[j,l]*A[l,k]\n"
                              "W[i,k] := A[i,j]*C[j,k]",
                              inputs_, {}, Keeping("W"))
                              .value();
  EXPECT_EQ(StepCount(program), 1);
  EXPECT_EQ(program.arena_bytes, 0);
  EXPECT_EQ(program.flops, 54);
  EXPECT_EQ(program.operand_read,
            std::vector<bool>({true, false, true, false}));
  EXPECT_FALSE(program.products.at(0).is_computed);
}

TEST_F(DropUnreadTest, WhatIsWrittenForTheClientIsComputed) {
  const Program program =
      Lower("T[i,k] := A[i,j]*B[j,k]; D[i,k] += T[i,k]; U[i,k] := T[i,k]",
            inputs_, {}, Keeping("U"))
          .value();
  EXPECT_EQ(StepCount(program), 3);
}

TEST_F(DropUnreadTest, LaterWritesThatNobodyReadsGo) {
  const Program program =
      Lower("T[i,j] := A[i,j]; U[i,j] := T[j,i]; T[i,j] += B[i,j]", inputs_, {},
            Keeping("U"))
          .value();
  EXPECT_EQ(StepCount(program), 2);
  std::vector<Values> operands = inputs_.values;
  const Values made = RunProgram(program, operands).at(0);
  EXPECT_EQ(made.At({0, 1}), inputs_.values[0].At({1, 0}));
}

TEST_F(DropUnreadTest, ValuesThatAreUsedAgainStay) {
  // U reads the product that T has begun with.
  const Program program = Lower(
                              "T[i,l] := (A[i,j]*B[j,k])*C[k,l]\n"
                              "U[i,l] := (A[i,j]*B[j,k])*D[k,l]",
                              inputs_, {}, Keeping("U"))
                              .value();
  EXPECT_EQ(StepCount(program), 2);
  EXPECT_EQ(program.operand_read, std::vector<bool>({true, true, false, true}));
}

TEST_F(DropUnreadTest, SlicedProductsGoAsAWhole) {
  LoweringOptions options;
  options.memory_limit_bytes = 512;
  Inputs inputs;
  for (const char* name : {"A", "B", "C"}) {
    inputs.Add(name, RandomValues({8, 8}, rng_));
  }
  const absl::string_view text =
      "T[i,m] := A[i,j]*B[j,k]*C[k,l]*A[l,m]\nU[i] := A[i,i]";
  const Program kept = Lower(text, inputs, options).value();
  bool is_sliced = false;
  for (const ProgramBlock& block : kept.blocks) {
    is_sliced |= !block.slice_extents.empty();
  }
  ASSERT_TRUE(is_sliced);
  const Program program = Lower(text, inputs, options, Keeping("U")).value();
  EXPECT_EQ(StepCount(program), 1);
  EXPECT_EQ(program.arena_bytes, 0);
}

TEST_F(DropUnreadTest, PathsAreTakenOverAllTheSame) {
  const absl::string_view text =
      "T[i,l] := A[i,j]*B[j,k]*C[k,l]; U[i,l] := B[i,j]*C[j,k]*D[k,l]";
  const Program first = Lower(text, inputs_, {}, Keeping("U")).value();
  LoweringOptions options;
  options.like = &first;
  const Program second = Lower(text, inputs_, options, Keeping("U")).value();
  EXPECT_EQ(second.products.at(1).tree, first.products.at(1).tree);
  EXPECT_FALSE(second.products.at(0).is_computed);
  EXPECT_TRUE(second.products.at(1).is_computed);
}

TEST_F(DropUnreadTest, ErrorsAreReportedAllTheSame) {
  EXPECT_EQ(ReasonOf(Lower("T[i] := A[i,j]*Q[j]; U[i,j] := A[i,j]", inputs_, {},
                           Keeping("U"))
                         .status()),
            "NAME_UNKNOWN");
}

TEST_F(DropUnreadTest, OfSeveralResultsOneThatIsReadIsEnough) {
  const std::string text =
      "U[i,k], S[k], V[k,j] := svd(A[i,j]); W[i,k] := B[i,j]*C[j,k]";
  for (const auto& [name, steps] :
       {std::pair<std::string, int>{"S", 1}, {"V", 1}, {"W", 1}}) {
    const Program program = Lower(text, inputs_, {}, Keeping(name)).value();
    EXPECT_EQ(StepCount(program), steps);
    EXPECT_EQ(program.kept_extents.size(), name == "W" ? 0 : 1);
    // What nobody reads is written all the same.
    EXPECT_EQ(program.arena_bytes, name == "W" ? 0 : 2 * 256) << name;
  }
}

}  // namespace
}  // namespace tensord::core::test
