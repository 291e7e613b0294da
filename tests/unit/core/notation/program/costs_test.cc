// Products whose order symbolic costs decide.
#include <string>
#include <vector>

#include "core/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/core/notation/program/interpreter.h"
#include "tests/unit/core/notation/program/program_inputs.h"

namespace tensord::core::test {
namespace {

using ::testing::HasSubstr;

class CostsTest : public ::testing::Test {
 protected:
  CostsTest() {
    const auto add = [&](std::string name, const ModeVector& extents) {
      inputs_.Add(std::move(name), RandomValues(extents, rng_));
    };
    // a, b, c: 2; d, e, f, g: 3.
    add("A", {2, 3, 3, 2});
    add("B", {3, 3, 3});
    add("C", {3, 3, 2, 3});
  }

  LoweringOptions With(std::string costs) const {
    LoweringOptions options;
    options.costs = std::move(costs);
    return options;
  }
  /// That the program gives what it means.
  void ExpectRight(const Program& program) {
    std::vector<Values> operands = inputs_.values;
    const std::vector<Values> got = RunProgram(program, operands);
    const Program by_extents = Lower(kText, inputs_).value();
    ExpectNear(got.at(0), RunProgram(by_extents, operands).at(0), kBound, "D");
  }

  static constexpr absl::string_view kText =
      "D[a,b,c] := A[a,e,f,c]*B[g,d,e]*C[g,f,b,d]";
  std::mt19937 rng_{1};
  Inputs inputs_;
};

TEST_F(CostsTest, DecideTheTreeWhateverTheExtentsAre) {
  const auto first_pair = [&](absl::string_view costs) {
    const Program program =
        Lower(kText, inputs_, With(std::string(costs))).value();
    ExpectRight(program);
    const ProgramProduct& product = program.products.at(0);
    EXPECT_EQ(product.method, "optimal");
    EXPECT_EQ(program.flops, product.cost.flops);
    const auto [x, y] = product.tree.steps.at(0);
    return absl::StrCat(x, y, ": ", product.symbolic_cost);
  };
  EXPECT_EQ(first_pair(""), "12: 2*χ^5");
  EXPECT_EQ(first_pair("(a,b,c,e)"), "01: 2*χ^3");
  EXPECT_EQ(first_pair("a,b,c,e"), "01: 2*χ^3");
  EXPECT_EQ(first_pair("!(a,b,c,e)"), "12: χ^3 + χ");
  EXPECT_EQ(first_pair("a=>χ, b=>χ^2, c=>2*χ, e=>5"), "01: 2*χ^4 + 10*χ^2");
  EXPECT_EQ(first_pair("a=>n, b=>n^2"), "01: n^3 + n");
}

TEST_F(CostsTest, AreToldOfOrdersThatAreGiven) {
  LoweringOptions options = With("");
  options.given_path = {{0, 2}, {0, 1}};
  Inputs chain;
  for (const char* name : {"A", "B", "C"}) {
    chain.Add(name, RandomValues({3, 3}, rng_));
  }
  const auto syntax = ParseEinsum("ij,jk,kl->il", {2, 2, 2}).value();
  const Program given =
      LowerEinsum(syntax, chain.Described(), {"r", {}}, options).value();
  EXPECT_EQ(given.products.at(0).symbolic_cost, "2*χ^4");
  EXPECT_EQ(given.products.at(0).method, "given");
  const Program ncon =
      Lower("D[:] := A[-1,1]*B[1,2]*C[2,-2]", chain, With("1=>n, 2=>3"))
          .value();
  EXPECT_EQ(ncon.products.at(0).symbolic_cost, "3*n + 3");
}

TEST_F(CostsTest, AMemoryLimitSlicesTheTree) {
  const Program whole = Lower(kText, inputs_, With("(a,b,c,e)")).value();
  ASSERT_GT(whole.arena_bytes, 512);
  LoweringOptions options = With("(a,b,c,e)");
  options.memory_limit_bytes = 512;
  const Program sliced = Lower(kText, inputs_, options).value();
  EXPECT_LE(sliced.arena_bytes, 512);
  EXPECT_FALSE(sliced.products.at(0).sliced.empty());
  EXPECT_EQ(sliced.products.at(0).symbolic_cost, "2*χ^3");
  ExpectRight(sliced);
}

TEST_F(CostsTest, AreTakenOverWithPaths) {
  const Program first = Lower(kText, inputs_, With("(a,b,c,e)")).value();
  LoweringOptions options = With("(a,b,c,e)");
  options.like = &first;
  const Program second = Lower(kText, inputs_, options).value();
  EXPECT_EQ(second.products.at(0).tree, first.products.at(0).tree);
  EXPECT_EQ(second.products.at(0).symbolic_cost, "2*χ^3");
}

TEST_F(CostsTest, OfTwoFactorsThereIsNothingToDecide) {
  const Program program =
      Lower("T[f,g,d] := A[a,e,f,a]*B[g,d,e]; D[g,f,d] := 2*T[f,g,d]", inputs_,
            With("a=>5"))
          .value();
  EXPECT_TRUE(program.products.empty());
}

TEST_F(CostsTest, SaysWhatIsWrong) {
  const auto error = [&](LoweringOptions options) {
    const absl::Status status = Lower(kText, inputs_, options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return absl::StrCat(ReasonOf(status), ": ", status.message());
  };
  EXPECT_THAT(error(With("a=>χ, b=>")),
              HasSubstr("COST_MALFORMED: costs, column 10: got the end"));
  EXPECT_EQ(error(With("a=>χ, zz=>χ^2")),
            "COST_LABEL_UNKNOWN: costs, column 7: the program has no label "
            "'zz', wanted one of a, b, c, d, e, f, g");
  LoweringOptions conflict = With("a");
  conflict.path.method = PathMethod::kGreedy;
  EXPECT_THAT(error(conflict), HasSubstr("COST_CONFLICT: costs are given "
                                         "together with the method greedy"));
}

TEST_F(CostsTest, AProductMayHaveTooManyFactors) {
  Inputs inputs;
  inputs.Add("v", RandomValues({2}, rng_));
  std::string many = "D := v[i0]*v[i0]";
  for (int i = 1; i < 7; ++i) {
    absl::StrAppend(&many, "*v[i", i, "]*v[i", i, "]");
  }
  const absl::Status status = Lower(many, inputs, With("")).status();
  EXPECT_EQ(ReasonOf(status), "PATH_SEARCH_TOO_LARGE");
}

}  // namespace
}  // namespace tensord::core::test
