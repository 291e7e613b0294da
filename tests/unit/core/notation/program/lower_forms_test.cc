// Forms of statements: results without brackets, divisors, diagonal matrices.
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/notation/program/program.h"
#include "core/ops/any_desc.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/core/notation/program/program_inputs.h"

namespace tensord::core::test {
namespace {

using ::testing::HasSubstr;

/// A text and the reason for which it is refused.
using Refusals = std::vector<std::pair<std::string, std::string>>;

void ExpectRefused(const Inputs& inputs, const Refusals& refusals) {
  for (const auto& [text, reason] : refusals) {
    EXPECT_EQ(ReasonOf(Lower(text, inputs).status()), reason) << text;
  }
}

class LowerFormsTest : public ProgramTest {};

TEST_F(LowerFormsTest, MakesScalarsWithoutBrackets) {
  Inputs inputs =
      Make({{"A", {3, 2, 3, 2}}, {"S", {3, 3}}, {"v", {4}}, {"r", {}}});
  const Program program = RunAndCompare(
      "s = A[a,b,a,b]\n"
      "t = S[i,j]*S[i,j]\n"
      "D[a] := s*v[a]/t\n"
      "r = tensorscalar(S[i,i]) - s\n"
      "u = r*r",
      inputs);
  // What is an operand is written, and what is read later is not kept.
  ASSERT_EQ(program.outputs.size(), 2);
  EXPECT_EQ(program.tensors[program.outputs[0]].name, "D");
  EXPECT_EQ(program.tensors[program.outputs[1]].name, "u");
  EXPECT_EQ(program.operand_written, std::vector<bool>({0, 0, 0, 1}));
  // The second time it is there.
  RunAndCompare("s = S[i,i]; s = 2*s - v[a]*v[a]; s += s", inputs);
}

TEST_F(LowerFormsTest, KeepsNamesWhatTheyAre) {
  Inputs inputs = Make({{"S", {3, 3}}});
  inputs.scalars["x"] = {2, 0};
  ExpectRefused(inputs, {{"x = S[i,i]", "NAME_IS_SCALAR"},
                         {"S = S[i,i]", "MODE_COUNT_MISMATCH"},
                         {"s += S[i,i]", "NAME_UNKNOWN"},
                         {"s[] = S[i,i]", "NAME_UNKNOWN"},
                         {"s = s*S[i,i]", "NAME_UNKNOWN"}});
}

TEST_F(LowerFormsTest, ScalarsSumTheirOwnLabels) {
  const Inputs inputs = Make({{"A", {3, 3}}, {"B", {2, 2}}, {"v", {3}}});
  RunAndCompare(
      "D[a,c] := A[a,b]*tensorscalar(B[b,b])*A[b,c]\n"
      "E[a,c] := A[a,b]*A[b,c]/tensorscalar(B[b,b])\n"
      "F[a,c] := (B[a,b]*B[b,a]) \\ (A[a,b]*A[b,c])\n"
      "G[a] := v[a]*tensorscalar(A[a,a])'",
      inputs);
  RunAndCompare("D[:] := A[-1,1]*tensorscalar(B[2,1]*B[1,2])*A[1,2]*A[2,-2]",
                inputs);
}

TEST_F(LowerFormsTest, DividesByWhatHasNoLabels) {
  Inputs inputs = Make({{"A", {3, 4}}, {"v", {4}}, {"s", {}}});
  inputs.scalars["x"] = {2, 1};
  RunAndCompare("t := 1/s; s = 1/s; u := v[a]*v[a]/conj(t*s)", inputs);
  RunAndCompare(
      "D[a] := v[a]/(v[b]*v[b]); E[a] := (x*s) \\ v[a]/(1 + x)/(s - 3)'",
      inputs);
  const Program program = RunAndCompare(
      "D[a] := A[a,b]*v[b]/s + 2*A[a,b]*v[b]/s/s; E[b] := s \\ v[b]/(x*s)",
      inputs);
  // One reciprocal.
  EXPECT_EQ(CountSteps<PermutationDesc>(program), 1);
  ExpectRefused(inputs, {{"D[a] := v[a]/A", "NAME_IS_TENSOR"},
                         {"D[a] := v[a]/(x - x)", "DIVISION_BY_ZERO"},
                         {"D[a] := 0 \\ v[a]", "DIVISION_BY_ZERO"}});
}

TEST_F(LowerFormsTest, MultipliesByDiagonalMatrices) {
  const Inputs inputs = Make({{"A", {4, 4, 4, 4}}, {"B", {4}}, {"F", {3, 2}}});
  const Program program = RunAndCompare(
      "C1[l,i,k,j] := A[a,i,k,j]*Diagonal(B)[a,l]\n"
      "C2[l,i,k,j] := conj(Diagonal(B)[a,j])*A[l,a,k,i]\n"
      "D[i,j] := A[i,j,a,b]*Diagonal(B)[a,b]\n"
      "E := Diagonal(B)[a,b]*Diagonal(B)[a,b]\n"
      "F1[i,a] := (A[i,j,k,a]*Diagonal(B)[j,m])*Diagonal(B)[k,m]\n"
      "F2[i,a] := A[i,j,k,a]*(Diagonal(B)[j,k])\n",
      inputs);
  // None is made.
  for (const ProgramTensor& tensor : program.tensors) {
    EXPECT_FALSE(tensor.place == ProgramTensor::Place::kTemporary &&
                 tensor.layout.extents == ModeVector({4, 4}))
        << tensor.name;
  }
}

TEST_F(LowerFormsTest, WritesDiagonalMatrices) {
  const Inputs inputs = Make({{"A", {4, 4}},
                              {"B", {4}},
                              {"C", {4, 4}},
                              {"v", {1}},
                              {"F", {3, 2}},
                              {"s", {}}});
  for (const char* text :
       {"D[a,b] := Diagonal(B)[a,b]",
        "C[a,b] = Diagonal(B)[b,a]",
        "C[a,b] += 2*Diagonal(B)[b,a] - conj(Diagonal(B)[a,b])",
        "C[a,b] -= Diagonal(B)[a,k]*Diagonal(B)[b,k]",
        "C[a,b] = C[b,a] - Diagonal(B)[b,a]*s + A[a,c]*A[c,b]",
        "D[a,b] := A[a,b]*Diagonal(B)[a,b]",
        "D[a,c,b,d] := F[a,b]*Diagonal(B)[c,d]",
        "D[a,b,c,d] := Diagonal(B)[a,c]*Diagonal(B)[d,b]",
        "D[a,b,c] := Diagonal(B)[a,b]*Diagonal(B)[b,c]",
        "D[a,b,c] := Diagonal(B)[c,b]*Diagonal(B)[a,b]*A[c,a]",
        "D[a] := Diagonal(B)[a,a]",
        "D := Diagonal(B)[a,a]",
        "D[a,b] := Diagonal(v)[a,b]",
        "D[a] := Diagonal(v)[a,b]*v[b]",
        "D[a,c] := (A[a,b] + Diagonal(B)[a,b])*A[b,c]",
        "D[a,c] := (A[a,b] + Diagonal(B)[a,b])*(A[b,c] - Diagonal(B)[b,c])'",
        "D[a,b] := (A[a,c]*B[b])*Diagonal(B)[c,b]",
        "D[x] := (A[x,a]*B[b] + A[x,b]*B[a])*Diagonal(B)[a,b]",
        "D[a,b] := (A[a,b] + Diagonal(B)[a,b])*Diagonal(B)[b,a]",
        "D[:] := A[-1,1]*Diagonal(B)[1,2]*A[2,3]*Diagonal(B)[3,-2]"}) {
    RunAndCompare(text, inputs);
    if (HasFailure()) FAIL() << text;
  }
}

TEST_F(LowerFormsTest, WantsVectorsOnDiagonals) {
  Inputs inputs = Make({{"A", {4, 4}}, {"B", {4}}, {"C", {3, 4}}});
  inputs.scalars["x"] = {2, 1};
  ExpectRefused(inputs,
                {{"D[a,b] := Diagonal(A)[a,b]", "MODE_COUNT_MISMATCH"},
                 {"D[a,b] := Diagonal(x)[a,b]", "NAME_IS_SCALAR"},
                 {"D[a,b] := Diagonal(y)[a,b]", "NAME_UNKNOWN"},
                 {"D[a,c] := Diagonal(B)[a,b]*C[b,c]", "MODE_EXTENT_MISMATCH"},
                 {"C[a,b] = Diagonal(B)[a,b]", "MODE_EXTENT_MISMATCH"}});
  EXPECT_THAT(
      std::string(
          Lower("D[a,b] := Diagonal(A)[a,b]", inputs).status().message()),
      HasSubstr("'A' in Diagonal() has 2 modes, wanted a vector"));
}

}  // namespace
}  // namespace tensord::core::test
