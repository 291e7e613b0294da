// Functions of elements in programs: on float32 numbers that each of them takes
// to numbers that are exact.
#include <string>
#include <vector>

#include "tests/conformance/rpc_program.h"

namespace tensord {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class RpcFunctionTest : public RpcProgramTest {
 protected:
  /// The result of one statement that makes D of some of `operands`, which have
  /// names of one letter.
  std::vector<float> Made(const std::string& text, const Operands& operands) {
    Operands used;
    for (const auto& operand : operands) {
      const std::string& name = operand.first;
      if (absl::StrContains(text, name + "[")) used.push_back(operand);
    }
    v1::ExecuteProgramResponse response;
    const Outcome outcome = Execute(Statements(text, used), &response);
    EXPECT_THAT(outcome, IsOk()) << text << ": " << outcome;
    if (response.results_size() != 1) return {};
    const v1::Tensor& tensor = response.results(0).tensor();
    EXPECT_EQ(tensor.element_type(), v1::ELEMENT_TYPE_FLOAT32) << text;
    const std::vector<float> values = Values(tensor.name());
    EXPECT_THAT(Delete(tensor.name()), IsOk());
    return values;
  }
};

// A = 0 2 4 / 1 3 5, v = 0 1 2.
TEST_F(RpcFunctionTest, FunctionsAreComputedElementByElement) {
  const Operands named = {{"A", Filled({2, 3})}, {"v", Filled({3})}};
  EXPECT_THAT(Made("D[i,j] := sqrt(A[i,j]^2)", named),
              ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(Made("D[j,i] := max(A[i,j], 2)", named),
              ElementsAre(2, 2, 4, 2, 3, 5));
  EXPECT_THAT(Made("D[i,j] := min(A[i,j], 2*v[j])", named),
              ElementsAre(0, 0, 2, 2, 4, 4));
  EXPECT_THAT(Made("D[i,j] := abs(A[i,j] - 3) + 1", named),
              ElementsAre(4, 3, 2, 1, 2, 3));
  EXPECT_THAT(Made("D[i,j] := floor(A[i,j]/2)", named),
              ElementsAre(0, 0, 1, 1, 2, 2));
  EXPECT_THAT(Made("D[i,j] := where(A[i,j] >= 2, A[i,j], -v[j])", named),
              ElementsAre(0, 0, 2, 3, 4, 5));
  EXPECT_THAT(Made("D[i,j] := (A[i,j] != 3)*A[i,j]", named),
              ElementsAre(0, 1, 2, 0, 4, 5));
  EXPECT_THAT(Made("D[i] := exp(A[i,j]*(v[j] - v[j]))", named),
              ElementsAre(1, 1));
}

TEST_F(RpcFunctionTest, QuotientsAreRoundedOnce) {
  const Operands named = {{"A", Filled({2, 3})}, {"v", Filled({3})}};
  std::vector<float> wanted;
  for (int e = 0; e < 6; ++e) {
    wanted.push_back(static_cast<float>(e) / static_cast<float>(3 + e / 2));
  }
  EXPECT_EQ(Made("D[i,j] := A[i,j]/(v[j] + 3)", named), wanted);
  EXPECT_EQ(Made("D[i,j] := (v[j] + 3)\\A[i,j]", named), wanted);
  for (int e = 0; e < 6; ++e) wanted[e] = 10 / static_cast<float>(7 + e);
  EXPECT_EQ(Made("D[i,j] := 10/(A[i,j] + 7)", named), wanted);
  // Summed over what divides: 0/1 + 2/2 + 4/4 and 1/1 + 3/2 + 5/4.
  EXPECT_THAT(Made("D[i] := A[i,j]/max(2*v[j], 1)", named),
              ElementsAre(2, 3.75));
  // In parentheses a divisor sums labels that it has twice: 0 + 1 + 4 - 1.
  EXPECT_THAT(Made("D[i,j] := A[i,j]/(v[k]*v[k] - 1)", named),
              ElementsAre(0, 0.25, 0.5, 0.75, 1, 1.25));
}

TEST_F(RpcFunctionTest, ComparisonsGiveBools) {
  const std::string a = Filled({2, 3}), v = Filled({3});
  v1::ProgramSpec spec = Statements(
      "M[i,j] := A[i,j] > 2*v[j]\nD[i,j] := where(M[i,j], 1, A[i,j])",
      {{"A", a}, {"v", v}});
  spec.add_outputs()->set_name("M");
  spec.mutable_outputs(0)->set_inline_(true);
  spec.add_outputs()->set_name("D");
  v1::ExecuteProgramResponse response;
  ASSERT_THAT(Execute(spec, &response), IsOk());
  ASSERT_EQ(response.results_size(), 2);
  EXPECT_EQ(response.results(0).tensor().element_type(), v1::ELEMENT_TYPE_BOOL);
  EXPECT_EQ(response.results(0).data(), std::string("\0\1\0\1\0\1", 6));
  EXPECT_THAT(Values(response.results(1).tensor().name()),
              ElementsAre(0, 1, 2, 1, 4, 1));
  // One operation each.
  EXPECT_EQ(response.report().operation_count(), 2);
}

TEST_F(RpcFunctionTest, ExplanationsShowThem) {
  const std::string a = Filled({2, 3}), v = Filled({3});
  v1::ProgramExplanation explanation;
  ASSERT_THAT(
      Explain(
          Statements("D[i,j] := exp(A[i,j])/v[j]\n"
                     "E[i,j] := where(A[i,j] < 2*v[j], v[j], max(A[i,j], 0))",
                     {{"A", a}, {"v", v}}),
          &explanation),
      IsOk());
  std::vector<std::string> texts;
  for (const auto& operation : explanation.operations()) {
    texts.push_back(operation.text());
  }
  ASSERT_THAT(texts, SizeIs(5));
  EXPECT_THAT(texts[0], HasSubstr(" = exp(A[i,j])"));
  EXPECT_THAT(texts[1], HasSubstr("D[i,j] = "));
  EXPECT_THAT(texts[1], HasSubstr(" / v[j]"));
  EXPECT_THAT(texts[2], HasSubstr("A[i,j] < (2*v[j])"));
  EXPECT_THAT(texts[3], HasSubstr("max(A[i,j],0)"));
  EXPECT_THAT(texts[4], HasSubstr("E[i,j] = where("));
}

TEST_F(RpcFunctionTest, WhatIsNotDefinedIsRefusedAtItsPlace) {
  const std::string a = Filled({2, 3});
  v1::ProgramSpec spec =
      Statements("D[i,j] := 2 + max(A[i,j], 1im)", {{"A", a}});
  const Outcome complex = Execute(spec);
  EXPECT_THAT(complex,
              FailsWith(grpc::INVALID_ARGUMENT, "OPERATOR_NEEDS_ORDER"));
  EXPECT_THAT(complex.status.error_message(),
              HasSubstr("line 1, column 15: operator MAX is not defined on "
                        "complex64"));
  EXPECT_THAT(Execute(Statements("D[i,j] := A[i,j]/(sqrt(4) - x)",
                                 {{"A", a}, {"x", 2.0}})),
              FailsWith(grpc::INVALID_ARGUMENT, "DIVISION_BY_ZERO"));
  EXPECT_THAT(
      Execute(Statements("D[i] := max(A[i,j], A[i,i])*A[i,j]", {{"A", a}})),
      FailsWith(grpc::INVALID_ARGUMENT, "MODE_EXTENT_MISMATCH"));
  EXPECT_EQ(TensorCount(), 1);
}

// A = 0 2 4 / 1 3 5, v = 0 1 2.
TEST_F(RpcFunctionTest, FunctionsGoAlongALabel) {
  const Operands named = {{"A", Filled({2, 3})}, {"v", Filled({3})}};
  EXPECT_THAT(Made("D[i,j] := cumsum(A[i,j]; along=j)", named),
              ElementsAre(0, 1, 2, 4, 6, 9));
  EXPECT_THAT(Made("D[j,i] := cumsum(A[i,j]; along=i)", named),
              ElementsAre(0, 2, 4, 1, 5, 9));
  EXPECT_THAT(Made("D[i,j] := cumprod(A[i,j]*v[j]; along=i)", named),
              ElementsAre(0, 0, 2, 6, 8, 80));
  EXPECT_THAT(Made("D[i,j] := cummax(5 - A[i,j]; along=j)", named),
              ElementsAre(5, 4, 5, 4, 5, 4));
  EXPECT_THAT(Made("D[i] := cummin(v[i] + v[i])", named), ElementsAre(0, 0, 0));
  EXPECT_THAT(Made("I[j] := argsort(v[j]; descending=true)\n"
                   "D[i,j] := A[i,I[j]]",
                   named),
              ElementsAre(4, 5, 2, 3, 0, 1));
  // Also where it was.
  const std::string v = Filled({3});
  EXPECT_THAT(Execute(Statements("v[i] = cumsum(v[i] + v[i])", {{"v", v}})),
              IsOk());
  EXPECT_THAT(Values(v), ElementsAre(0, 2, 6));
}

TEST_F(RpcFunctionTest, FunctionsAlongALabelWantOne) {
  const Operands operands = {{"A", Filled({2, 3})}};
  const auto refused = [&](const std::string& text, const std::string& reason,
                           const std::string& message) {
    const Outcome outcome = Execute(Statements(text, operands));
    EXPECT_THAT(outcome, FailsWith(grpc::INVALID_ARGUMENT, reason)) << text;
    EXPECT_THAT(outcome.status.error_message(), HasSubstr(message)) << text;
  };
  refused("D[i,j] := cumsum(A[i,j])", "SYNTAX_ERROR",
          "cumsum() has an argument of 2 labels, wanted the one along which");
  refused("D[i,j] := cumsum(A[i,j]; along=k)", "LABEL_UNMATCHED",
          "line 1, column 26: along is k, wanted a label that the argument of "
          "cumsum() has and does not sum: i, j");
  refused("D[i] := cumsum(A[i,j]; along=j)", "MODE_NOT_IN_OUTPUT",
          "cumsum() of a = 'A[i,j]': mode 'j' of a");
  refused("D[i,j,k] := cumsum(A[i,j]; along=j)", "MODE_NOT_IN_INPUT",
          "mode 'k' of d is not in a");
  refused("D[i,j] := cumsum(A[i,j]; along=j, descending=true)", "SYNTAX_ERROR",
          "got option 'descending', wanted one of along");
  refused("D[i,j] += cumsum(A[i,j]; along=j)", "SYNTAX_ERROR",
          "wanted ':=' or '='");
  refused("D[i,j] := argsort(A[i,j]; along=j, descending=2)", "SYNTAX_ERROR",
          "wanted one of true, false");
  refused("D[i,j], E[i] := argsort(A[i,j]; along=j)", "RESULT_COUNT_MISMATCH",
          "got 2 results of argsort(), wanted one");
}

}  // namespace
}  // namespace tensord
