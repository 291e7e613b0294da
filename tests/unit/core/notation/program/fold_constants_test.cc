#include "core/notation/program/fold_constants.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/status.h"
#include "core/notation/parse_program.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/core/notation/program/interpreter.h"
#include "tests/unit/core/notation/program/program_inputs.h"

namespace tensord::core::test {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMatrixBytes = 256;  // 3x3 of complex128, rounded up

class FoldConstantsTest : public ::testing::Test {
 protected:
  FoldConstantsTest() {
    for (const char* name : {"A", "B", "C", "X"}) {
      inputs_.Add(name, RandomValues({3, 3}, rng_));
    }
    inputs_.constants = {"A", "B", "C"};
  }

  static size_t FoldedCount(const Program& program) {
    return program.has_folded_block() ? program.blocks[0].steps.size() : 0;
  }

  std::mt19937 rng_{1};
  Inputs inputs_;
};

TEST_F(FoldConstantsTest, WhatConstantsGiveAloneIsKept) {
  const Program program = Lower(
                              "T[i,k] := A[i,j]*B[j,k]\n"
                              "U[i,k] := T[i,j]*C[j,k] + T[k,i]\n"
                              "D[i,k] := U[i,j]*X[j,k]",
                              inputs_)
                              .value();
  // T, and both terms of U; of those the rest reads U alone.
  EXPECT_EQ(FoldedCount(program), 3);
  EXPECT_EQ(program.kept_bytes, kMatrixBytes);
  EXPECT_EQ(program.arena_bytes, kMatrixBytes);
  ASSERT_EQ(program.blocks.size(), 2);
  EXPECT_EQ(program.blocks[1].steps.size(), 1);
  EXPECT_EQ(program.operand_folded,
            std::vector<bool>({true, true, true, false}));
  EXPECT_EQ(program.operand_only_folded, program.operand_folded);
}

TEST_F(FoldConstantsTest, WithoutConstantsNothingIs) {
  inputs_.constants.clear();
  const Program program =
      Lower("T[i,k] := A[i,j]*B[j,k]; D[i,k] := T[i,j]*X[j,k]", inputs_)
          .value();
  EXPECT_FALSE(program.has_folded_block());
  EXPECT_EQ(program.kept_bytes, 0);
}

TEST_F(FoldConstantsTest, OutputsAndOperandsAreWrittenEveryTime) {
  const Program program =
      Lower("D[i,k] := A[i,j]*B[j,k]; X[i,k] += A[i,k]", inputs_).value();
  EXPECT_FALSE(program.has_folded_block());
  EXPECT_EQ(program.operand_folded, std::vector<bool>(4, false));
}

TEST_F(FoldConstantsTest, ValuesThatAreReadBeforeTheirLastWriteAreNotKept) {
  const Program program = Lower(
                              "T[i,j] := A[i,j]; D[i,k] := T[i,j]*X[j,k]\n"
                              "T[i,j] += B[i,j]; E[i,k] := T[i,j]*X[j,k]",
                              inputs_)
                              .value();
  EXPECT_FALSE(program.has_folded_block());
}

TEST_F(FoldConstantsTest, ConstantsThatOthersReadTooAreNotOnlyFolded) {
  const Program program =
      Lower("D[i,l] := (A[i,j]*B[j,k])*(X[k,m]*A[m,l])", inputs_).value();
  EXPECT_EQ(FoldedCount(program), 1);
  EXPECT_EQ(program.operand_folded,
            std::vector<bool>({true, true, false, false}));
  EXPECT_EQ(program.operand_only_folded,
            std::vector<bool>({false, true, false, false}));
}

TEST_F(FoldConstantsTest, SlicedProductsReadWhatIsKept) {
  Inputs inputs;
  for (const char* name : {"A", "B", "X", "Y", "Z"}) {
    inputs.Add(name, RandomValues({8, 8}, rng_));
  }
  inputs.constants = {"A", "B"};
  LoweringOptions options;
  options.memory_limit_bytes = 512;
  const Program program =
      Lower("D[i] := (A[i,j]*B[j,k])*X[k,l]*Y[l,m]*Z[m,i]", inputs, options)
          .value();
  EXPECT_EQ(FoldedCount(program), 1);
  EXPECT_EQ(program.kept_bytes, 1024);
  EXPECT_LE(program.arena_bytes, 512);
  EXPECT_GT(program.blocks[1].slice_count(), 1);
}

TEST_F(FoldConstantsTest, AConstantMustNotBeWritten) {
  const absl::Status status =
      Lower("D[i,j] := A[i,j]\n  B[i,j] += X[i,j]", inputs_).status();
  EXPECT_EQ(ReasonOf(status), "CONSTANT_WRITTEN");
  EXPECT_THAT(status.message(), HasSubstr("line 2, column 3: operand 'B'"));
  // A new tensor of that name is another one.
  EXPECT_TRUE(Lower("A[i,j] := X[i,j]; A[i,j] += B[i,j]", inputs_).ok());
}

TEST_F(FoldConstantsTest, ScalarsThatMatterMakeADifference) {
  const absl::string_view text =
      "T[i,k] := x*A[i,j]*B[j,k]; D[i,k] := y*T[i,j]*X[j,k]";
  const auto with = [&](double x, double y) {
    inputs_.scalars = {{"x", {x, 0}}, {"y", {y, 0}}};
    return Lower(text, inputs_).value();
  };
  const Program program = with(2, 3);
  EXPECT_TRUE(FoldAlike(program, with(2, 5)));
  EXPECT_FALSE(FoldAlike(program, with(4, 3)));
  EXPECT_FALSE(
      FoldAlike(program, Lower("D[i,k] := x*y*X[i,k]", inputs_).value()));
}

TEST_F(FoldConstantsTest, MeansTheSameInRandomPrograms) {
  int folded = 0;
  for (uint32_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    Inputs inputs;
    const std::string text = RandomProgram(rng, inputs);
    SCOPED_TRACE(text);
    const auto syntax = ParseProgram(text);
    if (!syntax.ok()) continue;
    for (const std::string& name : inputs.names) {
      if (rng() % 3 > 0) inputs.constants.insert(name);
    }
    auto program = Lower(text, inputs);
    while (ReasonOf(program.status()) == "CONSTANT_WRITTEN") {
      inputs.constants.erase(std::prev(inputs.constants.end()));
      program = Lower(text, inputs);
    }
    ASSERT_TRUE(program.ok()) << program.status();
    folded += program->has_folded_block();
    std::vector<Number> kept;
    for (int run = 0; run < 2; ++run) {
      SCOPED_TRACE(run);
      // All but constants is new.
      for (size_t i = 0; run > 0 && i < inputs.names.size(); ++i) {
        if (inputs.constants.contains(inputs.names[i])) continue;
        for (Number& value : inputs.values[i].data) value *= -0.5;
      }
      ValuesByName meant = inputs.ByName();
      Evaluate(*syntax, inputs.scalars, meant);
      std::vector<Values> operands = inputs.values;
      const std::vector<Values> outputs = RunProgram(*program, operands, &kept);
      for (size_t i = 0; i < outputs.size(); ++i) {
        const std::string& name = program->tensors[program->outputs[i]].name;
        ExpectNear(outputs[i], meant.at(name), kBound, name);
      }
      for (size_t i = 0; i < operands.size(); ++i) {
        ExpectNear(operands[i], meant.at(inputs.names[i]), kBound,
                   inputs.names[i]);
      }
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(folded, 50);
}

TEST_F(FoldConstantsTest, DecompositionsAreKeptWhenNoResultIsGivenAway) {
  const std::string text =
      "U[i,k], S[k], V[k,j] := svd(A[i,j]; cutoff=1e-3); D[i,l] := "
      "U[i,k]*X[k,l]";
  const Program program = Lower(text, inputs_, {}, {{.name = "D"}}).value();
  EXPECT_EQ(FoldedCount(program), 1);
  EXPECT_EQ(program.kept_bytes, kMatrixBytes);
  EXPECT_EQ(program.operand_only_folded,
            std::vector<bool>({true, false, false, false}));
  EXPECT_TRUE(FoldAlike(program, program));
  const Program other = Lower(absl::StrReplaceAll(text, {{"1e-3", "1e-4"}}),
                              inputs_, {}, {{.name = "D"}})
                            .value();
  EXPECT_FALSE(FoldAlike(program, other));
  EXPECT_EQ(
      FoldedCount(
          Lower(text, inputs_, {}, {{.name = "D"}, {.name = "S"}}).value()),
      0);
}

}  // namespace
}  // namespace tensord::core::test
