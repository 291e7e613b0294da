#include "core/notation/path/symbolic.h"

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/notation/path/find_path.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/core/notation/path/random_network.h"

namespace tensord::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<std::string>& AllLabels() {
  static const auto& labels =
      *new std::vector<std::string>{"a", "b", "c", "d", "e'", "-1"};
  return labels;
}

std::vector<std::string> TextsOf(absl::string_view costs) {
  const SymbolicExtents extents = ParseCosts(costs, AllLabels()).value();
  std::vector<std::string> texts;
  for (const Polynomial& extent : extents.extents) {
    texts.push_back(ToText(extent, extents.variable));
  }
  return texts;
}

TEST(PolynomialTest, TheHighestDegreeDecides) {
  const Polynomial small{{1000, 5}}, large{{0, 0, 1}}, larger{{1, 0, 1}};
  EXPECT_LT(small, large);
  EXPECT_LT(large, larger);
  EXPECT_FALSE(large < large);
  EXPECT_LT(Polynomial{}, small);
  EXPECT_LT((Polynomial{{0, 7, 1}}), (Polynomial{{0, 0, 2}}));
}

TEST(PolynomialTest, IsWrittenFromTheHighestDegree) {
  EXPECT_EQ(ToText({{5, 1, 0, 2}}, "χ"), "2*χ^3 + χ + 5");
  EXPECT_EQ(ToText({}, "χ"), "0");
  EXPECT_EQ(ToText({{1}}, "D"), "1");
  EXPECT_EQ(ToText({{0, 0, 123456789012345}}, "D"), "123456789012345*D^2");
}

TEST(ParseCostsTest, ListedLabelsCostTheVariable) {
  EXPECT_THAT(TextsOf("(a,c, e')"), ElementsAre("χ", "1", "χ", "1", "χ", "1"));
  EXPECT_THAT(TextsOf("!(a,-1)"), ElementsAre("1", "χ", "χ", "χ", "χ", "1"));
  EXPECT_THAT(TextsOf(""), ElementsAre("χ", "χ", "χ", "χ", "χ", "χ"));
  EXPECT_THAT(TextsOf("()"), ElementsAre("1", "1", "1", "1", "1", "1"));
}

TEST(ParseCostsTest, LabelsCostWhatIsSaid) {
  EXPECT_THAT(TextsOf("(a=>χ, b=>χ^2, c=>2*χ, e'=>5)"),
              ElementsAre("χ", "χ^2", "2*χ", "1", "5", "1"));
  EXPECT_THAT(TextsOf("(a=D, b=3D^2*D, c=D*D+2*D + 7, -1=2^10)"),
              ElementsAre("D", "3*D^3", "D^2 + 2*D + 7", "1", "1", "1024"));
  EXPECT_THAT(TextsOf("(a=>chi,zzz=>chi^9)"),
              ElementsAre("chi", "1", "1", "1", "1", "1"));
}

TEST(ParseCostsTest, SeveralLabelsHaveOneCost) {
  for (const char* text : {"((a,d)=>5, (b,c, e')=>χ)", "(a,d)=>5, (b,c,e')=>χ",
                           "(a,d)=>5, b=>χ, (c,e')=χ"}) {
    EXPECT_THAT(TextsOf(text), ElementsAre("5", "χ", "χ", "5", "χ", "1"))
        << text;
  }
  EXPECT_THAT(TextsOf("((a)=>2*D)"),
              ElementsAre("2*D", "1", "1", "1", "1", "1"));
}

TEST(ParseCostsTest, SaysWhereATextIsWrong) {
  const auto message = [](absl::string_view text) {
    const auto extents = ParseCosts(text, AllLabels());
    EXPECT_EQ(extents.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(ReasonOf(extents.status()), "COST_MALFORMED");
    return std::string(extents.status().message());
  };
  EXPECT_THAT(message("!a,b"),
              HasSubstr("costs, column 2: got 'a', wanted '('"));
  EXPECT_THAT(message("a b"), HasSubstr("column 3: got 'b', wanted ','"));
  EXPECT_THAT(message("a,"),
              HasSubstr("column 3: got the end, wanted a label"));
  EXPECT_THAT(message("a, b=>χ"), HasSubstr("column 5: wanted ',', as before"));
  EXPECT_THAT(message("(a,b"), HasSubstr("column 5: got the end, wanted ','"));
  EXPECT_THAT(message("(a,,b)"),
              HasSubstr("column 4: got ',', wanted a label"));
  EXPECT_THAT(message("(a,b) c"),
              HasSubstr("column 7: got 'c', wanted the end"));
  EXPECT_THAT(message("(a=>χ, a=>χ)"), HasSubstr("column 8: label 'a' has"));
  EXPECT_THAT(message("(a=>χ, b=>D)"),
              HasSubstr("column 11: got the variable 'D', wanted 'χ'"));
  EXPECT_THAT(message("(a=>χ*)"), HasSubstr("column 7: got ')'"));
  EXPECT_THAT(message("(a=>χ^x)"), HasSubstr("column 7: got 'x'"));
  EXPECT_THAT(message("(a=>χ^999)"), HasSubstr("column 7: wanted an exponent"));
  EXPECT_THAT(message("(a=>0)"), HasSubstr("column 5: got 0"));
  EXPECT_THAT(message("(a=>-2)"), HasSubstr("column 5: got '-'"));
  EXPECT_THAT(message("(a=>99999999999999999999)"), HasSubstr("column 5"));
  EXPECT_THAT(message("(a=>χ, b)"),
              HasSubstr("column 9: wanted '=>' and a cost"));
  EXPECT_THAT(message("(a, b=>χ)"),
              HasSubstr("column 6: wanted ',' or ')', as before"));
  EXPECT_THAT(message("((a,b), c)"),
              HasSubstr("column 7: got ',', wanted '=>' and a cost behind"));
  EXPECT_THAT(message("()=>χ, a=>2"),
              HasSubstr("column 3: got '=', wanted the end"));
  EXPECT_THAT(message("(()=>χ)"),
              HasSubstr("column 3: got ')', wanted a label"));
  EXPECT_THAT(message("((a,b=>5)"), HasSubstr("column 6: got '=', wanted ')'"));
  EXPECT_THAT(message("(a,b)=>5, (b,c)=>2"), HasSubstr("column 12: label 'b'"));
  EXPECT_THAT(message("(a=>2)=>5"), HasSubstr("column 7: got '=', wanted"));
  EXPECT_THAT(message("!(a,b)=>5"), HasSubstr("column 7: got '=', wanted"));
  EXPECT_THAT(message("!(a=>χ)"), HasSubstr("column 4: got '=', wanted ','"));
}

TEST(ParseCostsTest, ParenthesesMayBeLeftOut) {
  EXPECT_THAT(TextsOf("a=>χ, b=>χ^2, e'=>5"),
              ElementsAre("χ", "χ^2", "1", "1", "5", "1"));
  EXPECT_THAT(TextsOf(" c,a "), ElementsAre("χ", "1", "χ", "1", "1", "1"));
}

TEST(ParseCostsTest, SaysWhichLabelsATextNames) {
  const SymbolicExtents extents =
      ParseCosts("(é=>χ, zzz=>2, -7=>3)", AllLabels()).value();
  std::vector<std::string> named;
  for (const auto& [label, column] : extents.named) {
    named.push_back(absl::StrCat(label, " ", column));
  }
  EXPECT_THAT(named, ElementsAre("é 2", "zzz 8", "-7 16"));
}

TEST(FindSymbolicPathTest, TheCostsDecideWhichTreeIsBest) {
  // D[a,b,c] = A[a,e,f,c] * B[g,d,e] * C[g,f,b,d]
  const Network network = {{{0, 4, 5, 2}, {6, 3, 4}, {6, 5, 1, 3}},
                           {0, 1, 2},
                           {1, 1, 1, 1, 1, 1, 1}};
  const std::vector<std::string> labels = {"a", "b", "c", "d", "e", "f", "g"};
  const auto costs = [&](absl::string_view text) {
    const SymbolicExtents extents = ParseCosts(text, labels).value();
    const SymbolicPath path =
        FindSymbolicPath(network, extents.extents).value();
    return absl::StrCat(
        absl::StrCat(path.tree.steps[0].first, path.tree.steps[0].second), ": ",
        ToText(path.cost, extents.variable));
  };
  EXPECT_EQ(costs(""), "12: 2*χ^5");
  EXPECT_EQ(costs("(a,b,c,e)"), "01: 2*χ^3");
  EXPECT_EQ(costs("!(a,b,c,e)"), "12: χ^3 + χ");
  EXPECT_EQ(costs("(a=>χ, b=>χ^2, c=>2*χ, e=>5)"), "01: 2*χ^4 + 10*χ^2");
}

TEST(FindSymbolicPathTest, IsTheOptimumOfALargeExtent) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    Network network = tensord::test::RandomNetwork(
        rng, {.min_inputs = 2, .max_inputs = 6, .max_indices = 10});
    std::vector<Polynomial> extents;
    constexpr int64_t kLarge = 1 << 12;
    for (int64_t& extent : network.extents) {
      const int degree = static_cast<int>(rng() % 2);
      const int factor = 1 + static_cast<int>(rng() % 3);
      extents.push_back(Polynomial::Power(factor, degree));
      extent = factor * (degree == 1 ? kLarge : 1);
    }
    const SymbolicPath path = FindSymbolicPath(network, extents).value();
    const int input_count = static_cast<int>(network.inputs.size());
    ASSERT_TRUE(tensord::test::IsTree(input_count, path.tree));
    double value = 0;
    for (int i = path.cost.degree(); i >= 0; --i) {
      value = value * kLarge + path.cost.coefficients[i];
    }
    // Trees of all sorts are no better.
    for (int i = 0; i < 200; ++i) {
      const ContractionTree other = tensord::test::RandomTree(rng, input_count);
      EXPECT_LE(value,
                tensord::test::MultiplicationsByDefinition(network, other));
    }
    EXPECT_EQ(value,
              tensord::test::MultiplicationsByDefinition(network, path.tree));
    EXPECT_EQ(SymbolicCostOf(network, path.tree, extents), path.cost);
  }
}

TEST(FindSymbolicPathTest, RefusesMoreInputsThanItTakes) {
  Network network;
  network.inputs.resize(kSymbolicInputLimit);
  EXPECT_TRUE(FindSymbolicPath(network, {}).ok());
  network.inputs.resize(kSymbolicInputLimit + 1);
  const auto path = FindSymbolicPath(network, {});
  EXPECT_EQ(ReasonOf(path.status()), "PATH_SEARCH_TOO_LARGE");
}

TEST(FindSymbolicPathTest, ASingleInputCostsNothing) {
  const Network network = {{{0}}, {}, {1}};
  const SymbolicPath path =
      FindSymbolicPath(network, {Polynomial::Power(1, 1)}).value();
  EXPECT_TRUE(path.tree.steps.empty());
  EXPECT_EQ(path.cost, Polynomial{});
}

}  // namespace
}  // namespace tensord::core
