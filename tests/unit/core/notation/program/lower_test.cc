#include "core/notation/program/lower.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "core/base/status.h"
#include "core/notation/parse_einsum.h"
#include "core/notation/parse_program.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/core/notation/program/interpreter.h"
#include "tests/unit/core/notation/program/program_inputs.h"

namespace tensord::core::test {
namespace {

using ::testing::HasSubstr;

class LowerTest : public ProgramTest {};

TEST_F(LowerTest, ComputesTracesContractionsAndSums) {
  Inputs inputs = Make({{"A", {3, 2, 4, 5, 4, 6}},
                        {"B", {6, 7, 2}},
                        {"C", {5, 3, 7}},
                        {"D", {3, 7, 5}}});
  inputs.scalars["alpha"] = {0.5, -2};
  const Program program = RunAndCompare(
      "D[a,b,c] = A[a,e,f,c,f,g]*B[g,b,e] + alpha*C[c,a,b]\n"
      "E[a,b,c] := A[a,e,f,c,f,g]*B[g,b,e] + alpha*C[c,a,b]",
      inputs);
  EXPECT_EQ(program.outputs.size(), 1);
  EXPECT_EQ(program.operand_written, std::vector<bool>({0, 0, 0, 1, 0}));
  EXPECT_EQ(program.operand_read, std::vector<bool>({1, 1, 1, 0, 0}));
}

TEST_F(LowerTest, AddsLinearCombinationsWithoutTemporaries) {
  Inputs inputs = Make({{"A", {3, 4, 5}},
                        {"B", {3, 6, 5, 6, 4}},
                        {"C", {4, 5, 3}},
                        {"D", {3, 5, 4}}});
  inputs.scalars["alpha"] = {0.5, 0};
  const Program program = RunAndCompare(
      "D[a,b,c] = alpha*A[a,c,b] + B[a,d,b,d,c] - conj(C[c,b,a])\n"
      "D[a,b,c] += 2*A[a,c,b] - 3im*C[c,b,a] + 4*A[a,c,b] - D[a,b,c]/4",
      inputs);
  EXPECT_EQ(program.arena_bytes, 0);
  EXPECT_EQ(program.blocks.size(), 1);
  EXPECT_EQ(program.blocks[0].steps.size(), 4);
}

TEST_F(LowerTest, ReadsWhatAStatementWritesBeforeItIsWritten) {
  const Inputs inputs = Make({{"D", {4, 4}}, {"A", {4, 4}}});
  RunAndCompare("D[a,b] = D[b,a] + A[a,b]", inputs);
  RunAndCompare("D[a,b] -= D[a,c]*D[c,b]", inputs);
  RunAndCompare("D[a,b] = 2*D[a,b] - A[a,c]*A[c,b] + D[b,a]", inputs);
  RunAndCompare("D[a,b] = 3*D[a,b]", inputs);
  RunAndCompare("D[a,b] = D[a,b] - D[a,b]", inputs);
  RunAndCompare("D[a,b] := D[b,a]; D[a,b] += D[b,a]; E[a,b] := D[a,b]*A[a,b]",
                inputs);
}

TEST_F(LowerTest, ComputesWhatOccursAgainOnce) {
  const Inputs inputs =
      Make({{"A", {3, 4}}, {"B", {4, 5}}, {"C", {5, 3}}, {"D", {5, 3}}});
  const Program program = RunAndCompare(
      "E[i,k] := (A[i,j]*B[j,l])*C[l,k]\n"
      "F[i,k] := (A[i,m]*B[m,n])*D[n,k]\n"
      "G[x,z] := (2*C[x,z] - D[x,z])*(A[z,y]*B[y,x])*1\n",
      inputs);
  // A*B once, and then one of each statement but the last, which multiplies
  // element by element.
  EXPECT_EQ(CountSteps<ContractionDesc>(program), 3);
}

TEST_F(LowerTest, ComputesFunctionsAndQuotientsInOneStep) {
  const Inputs inputs = Make({{"A", {3, 4}}, {"B", {3, 4}}, {"v", {4}}});
  for (const absl::string_view text :
       {"D[i,j] := exp(A[i,j])", "D[j,i] := A[i,j]/v[j]", "D[j] := 2/v[j]",
        "D[i,j] := 2*A[i,j]/B[i,j]", "D[i,j] := conj(A[i,j])^v[j]",
        "D[i,j] := v[j] \\ A[i,j]", "D[i,j] := (A[i,j]/v[j])"}) {
    const Program program = RunAndCompare(text, inputs);
    EXPECT_EQ(program.blocks[0].steps.size(), 1) << text;
    EXPECT_EQ(CountSteps<ContractionDesc>(program), 0) << text;
  }
}

TEST_F(LowerTest, ComputesInPlaceWhereElementsDoNotMeet) {
  const Inputs inputs = Make({{"D", {3, 3}}, {"B", {3, 3}}, {"v", {3}}});
  const std::vector<std::pair<absl::string_view, size_t>> steps = {
      {"D[i,j] = D[i,j]/v[j]", 1},        {"D[i,j] = B[i,j]^D[i,j]", 2},
      {"D[i,j] = exp(D[j,i])/D[i,j]", 2}, {"D[i,j] = D[j,i]/v[j]", 2},
      {"D[i,j] = exp(D[i,j])", 2},        {"D[i,j] += D[i,j]/v[j]", 2}};
  for (const auto& [text, count] : steps) {
    const Program program = RunAndCompare(text, inputs);
    EXPECT_EQ(program.blocks[0].steps.size(), count) << text;
  }
}

TEST_F(LowerTest, RepeatsWhatLacksLabels) {
  Inputs inputs = Make({{"A", {3, 4}}, {"B", {4, 3}}, {"v", {4}}, {"t", {}}});
  inputs.scalars["x"] = {0.5, -2};
  RunAndCompare("D[i,j] := A[i,j] + x - 1", inputs);
  RunAndCompare("D[i,j] := t*t + A[i,j] - 2*t", inputs);
  RunAndCompare("D[i,j] := A[i,j] - tensorscalar(A[i,j]*B[j,i])", inputs);
  RunAndCompare("D[i,j] := A[i,j]*(1 + v[j])", inputs);
  RunAndCompare("A[i,j] = 3; D[i,j] := A[i,j]; D[i,j] -= t - x", inputs);
  RunAndCompare("D[i,k] := (t + A[i,j])*(B[j,k] - x)", inputs);
  RunAndCompare("A[i,j] = A[i,j] + 2; A[i,j] -= A[i,j] + t", inputs);
  RunAndCompare("D[:] := 1 + A[-2,-1]", inputs);
}

TEST_F(LowerTest, ComputesFunctionsOfWhatTheyAreGiven) {
  const Inputs inputs =
      Make({{"A", {3, 4}}, {"B", {4, 3}}, {"M", {3, 3}}, {"v", {4}}});
  RunAndCompare("D[i,k] := exp(A[i,j]*B[j,k]/8)", inputs);
  RunAndCompare("D[i,k] := exp(A[i,j])*sin(B[j,k]')", inputs);
  RunAndCompare("D[i,j] := (exp(A[i,j])*v[j])^v[j]", inputs);
  RunAndCompare("D[i] := exp(M[i,i]) - tensorscalar(exp(M[j,j]/8))", inputs);
  RunAndCompare("s = exp(A[i,j]*B[j,i]/8)*v[k]*v[k]", inputs);
  RunAndCompare("D[i,j] := exp(Diagonal(v)[i,j])/(3 + M[k,k])", inputs);
  RunAndCompare("D[i,j] := Diagonal(v)[i,j]/exp(v[j])", inputs);
  RunAndCompare("D[i] := A[i,j]/(2 - v[j])", inputs);
  RunAndCompare("D[i,j] := A[i,j]/exp(B[j,k]*A[k,j]/8)", inputs);
  RunAndCompare("D[i,j] := (A[i,j]/exp(v[j]))*v[j]/M[i,i]", inputs);
  RunAndCompare("D[i,j] := A[i,j]/exp(M[k,k]/8)/M[k,k]", inputs);
  RunAndCompare("D[i,j] := (v[j]*v[j])*A[i,j]/(v[j]*v[j])", inputs);
  RunAndCompare("D[i,j] := A[i,j]/(v[j]*(12 + B[j,i]))", inputs);
  RunAndCompare("D[i,j,k] := exp(A[i,j])*v[k]/exp(B[j,i])", inputs);
  RunAndCompare("M[i,j] = exp(M[j,i]) - M[i,j]/exp(M[j,i])", inputs);
  RunAndCompare("D[:] := A[-1,1]*(exp(B[1,2])*sin(A[2,-2]))", inputs);
  const Program program = RunAndCompare(
      "D[i,j] := exp(A[i,j]/4)*v[j]\nE[j,i] := exp(A[i,j]/4)*v[j]", inputs);
  // A/4 and exp() once, and E is D, transposed.
  EXPECT_EQ(CountSteps<PermutationDesc>(program), 3);
  EXPECT_EQ(CountSteps<ElementwiseDesc>(program), 1);
}

TEST_F(LowerTest, ComputesFunctionsThatOccurAgainOnce) {
  const Inputs inputs = Make({{"A", {3, 3}}, {"E", {3, 3}}, {"v", {3}}});
  const Program program = RunAndCompare(
      "X[i,j] := exp(A[i,j]); Y[j,i] := 2*exp(A[i,j]); Z[k,l] := exp(A[k,l])",
      inputs);
  int count = 0;
  for (const ProgramStep& step : program.blocks[0].steps) {
    const auto* const desc = std::get_if<PermutationDesc>(&step.desc);
    count += desc != nullptr && desc->a.unary == UnaryOperator::kExp;
  }
  EXPECT_EQ(count, 1);
  for (const absl::string_view text :
       {"E[i,j] = exp(A[i,j]); E[i,j] = 2*exp(A[i,j])",
        "E[i,j] = exp(A[i,j]); E[i,j] = exp(A[j,i])",
        "E[i,j] = exp(A[i,j]); E[i,j] = exp(A[j,i])/E[i,j]",
        "E[i,j] = exp(A[i,j]); E[j,i] += exp(A[i,j])*v[j]",
        "E[i,j] = exp(A[i,j]); E[i,j] = E[i,j]/exp(A[j,i])/3",
        "E[i,j] = exp(v[i])/A[i,j]; E[i,j] -= exp(v[j])/A[j,i]",
        "E[i,j] = exp(A[i,j]); A[i,j] = v[i]*v[j]; E[i,j] += exp(A[i,j])",
        "E[i,j] = exp(A[i,j]); X[i,k] := exp(A[i,j])*exp(A[j,k])"}) {
    RunAndCompare(text, inputs);
  }
}

TEST_F(LowerTest, FunctionsOfNumbersAreNumbers) {
  Inputs inputs = Make({{"A", {3}}});
  inputs.scalars["x"] = {0.5, -2};
  const Program program =
      RunAndCompare("D[i] := sqrt(2)*A[i]/exp(x)^2*sin(3^-0.5)", inputs);
  EXPECT_EQ(program.blocks[0].steps.size(), 1);
}

TEST_F(LowerTest, ComputesAgainWhatWasWrittenMeanwhile) {
  const Inputs inputs = Make({{"A", {3, 3}}, {"B", {3, 3}}});
  RunAndCompare(
      "E[i,k] := (A[i,j]*B[j,l])*B[l,k]\n"
      "A[i,j] += B[j,i]\n"
      "F[i,k] := (A[i,j]*B[j,l])*B[l,k]\n"
      "B[i,j] = E[i,j]\n"
      "G[i,k] := (A[i,j]*B[j,l])*B[l,k]",
      inputs);
}

TEST_F(LowerTest, DoesNotReadTheProductThatItAddsTo) {
  const Inputs inputs =
      Make({{"A", {3, 3}}, {"B", {3, 3}}, {"C", {3, 3}}, {"D", {3, 3}}});
  for (const absl::string_view text :
       {"E[a,b] := A[a,c]*B[c,b] + A[a,c]*B[c,d]*C[d,b]",
        "E[a,b] := A[a,c]*B[c,b] - 2*A[b,c]*B[c,a]",
        "D[a,b] = A[a,c]*B[c,b]\nD[b,a] = A[a,c]*B[c,b]",
        "D[a,b] = A[a,c]*B[c,b]\nD[b,a] += A[a,c]*B[c,b]",
        "E[a,b] := (A[a,p]+B[a,p])*C[p,b] - (A[b,p]+B[b,p])*C[p,a]"}) {
    RunAndCompare(text, inputs);
  }
}

// Statements of few products, as they are and turned, so that much occurs
// again.
TEST_F(LowerTest, MeansWhatIsWrittenWhereMuchOccursAgain) {
  const std::vector<std::string> products = {
      "A[$,p]*B[p,%]",           "A[$,p]*B[p,q]*C[q,%]",
      "A[p,$]*C[p,%]",           "A[$,%]",
      "(A[$,p]*B[p,q])*C[%,q]",  "A[$,p]*B[p,q]*C[q,r]*A[r,%]",
      "(A[$,p] + B[$,p])*C[p,%]"};
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    const Inputs inputs = Make({{"A", {3, 3}},
                                {"B", {3, 3}},
                                {"C", {3, 3}},
                                {"D", {3, 3}},
                                {"E", {3, 3}}});
    std::string text;
    for (unsigned statement = 0; statement < 1 + seed % 4; ++statement) {
      const std::string name =
          std::vector<std::string>{"D", "E", "T"}[rng() % 3];
      const std::string assignment =
          name == "T" ? ":="
                      : std::vector<std::string>{"=", "+=", "-="}[rng() % 3];
      absl::StrAppend(&text, name, "[a,b] ", assignment);
      for (unsigned term = 0; term < 1 + rng() % 3; ++term) {
        std::string product = products[rng() % products.size()];
        const bool is_turned = rng() % 5 < 2;
        product = absl::StrReplaceAll(product, {{"$", is_turned ? "b" : "a"},
                                                {"%", is_turned ? "a" : "b"}});
        absl::StrAppend(&text, " ", term == 0 ? "" : "+ ",
                        std::vector<std::string>{"", "", "2*", "-"}[rng() % 4],
                        product);
      }
      text += "\n";
    }
    SCOPED_TRACE(text);
    RunAndCompare(text, inputs);
    if (HasFailure()) return;
  }
}

TEST_F(LowerTest, FollowsNconLabels) {
  const Inputs inputs = Make({{"A", {3, 4}}, {"B", {4, 5}}, {"C", {5, 6}}});
  RunAndCompare("D[:] := A[-1,1]*B[1,2]*C[2,-2]", inputs);
  RunAndCompare("D[-2,-1] := A[-1,2]*B[2,1]*C[1,-2]", inputs);
}

TEST_F(LowerTest, TakesScalarsAndNumbers) {
  Inputs inputs = Make({{"A", {}}, {"B", {3}}});
  inputs.scalars["x"] = {0.25, 1};
  RunAndCompare(
      "s := A*2 - x/4 + 1im\n"
      "t[] := s*conj(x)*A[]\n"
      "D[i] := t*B[i]/x + (s - A)*B[i]\n"
      "u := 3 + 1im",
      inputs);
}

TEST_F(LowerTest, MeansWhatIsWrittenInRandomPrograms) {
  int tried = 0;
  for (uint32_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    Inputs inputs;
    const std::string text = RandomProgram(rng, inputs);
    SCOPED_TRACE(text);
    // Labels of one group that another sums are not allowed.
    const absl::Status parsed = ParseProgram(text).status();
    if (ReasonOf(parsed) == "LABEL_REUSED") continue;
    ASSERT_TRUE(parsed.ok()) << parsed;
    ++tried;
    RunAndCompare(text, inputs);
    if (HasFailure()) return;
  }
  EXPECT_GT(tried, 200);
}

TEST_F(LowerTest, MeansWhatNumpyMeansInRandomEinsums) {
  for (uint32_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    std::map<char, int64_t> extents;
    for (const char label : absl::string_view("abcdefg")) {
      extents[label] = 1 + rng() % 4;
    }
    // Any label anywhere, and extents of 1 in place of others.
    std::vector<std::string> terms(1 + rng() % 5);
    Inputs inputs;
    std::string used;
    std::vector<int> counts;
    for (std::string& term : terms) {
      ModeVector shape;
      std::string in_term;
      for (int m = static_cast<int>(rng() % 4); m > 0; --m) {
        const char label = "abcdefg"[rng() % 7];
        const bool is_repeated = in_term.find(label) != std::string::npos;
        shape.push_back(!is_repeated && rng() % 6 == 0 ? 1 : extents[label]);
        // An operand's own labels have one extent.
        if (is_repeated) shape.back() = shape[in_term.find(label)];
        in_term += label;
        if (used.find(label) == std::string::npos) used += label;
      }
      term = in_term;
      counts.push_back(static_cast<int>(shape.size()));
      inputs.Add(absl::StrCat("operand ", counts.size() - 1),
                 RandomValues(shape, rng));
    }
    std::shuffle(used.begin(), used.end(), rng);
    const std::string output = used.substr(0, rng() % (used.size() + 1));
    const std::string text =
        absl::StrCat(absl::StrJoin(terms, ","), "->", output);
    SCOPED_TRACE(text);
    const auto syntax = ParseEinsum(text, counts);
    ASSERT_TRUE(syntax.ok()) << syntax.status();
    const auto program =
        LowerEinsum(*syntax, inputs.Described(), {"result", std::nullopt}, {});
    ASSERT_TRUE(program.ok()) << program.status();
    const std::vector<Values> got = RunProgram(*program, inputs.values);
    ExpectNear(got.at(0), Evaluate(*syntax, inputs.values), kBound, "result");
    if (HasFatalFailure()) return;
  }
}

TEST_F(LowerTest, KeepsToTheMemoryLimit) {
  // A ring of matrices with a long way round, and two open ends.
  const Inputs inputs = Make({{"A", {3, 3, 4}},
                              {"B", {4, 3, 3}},
                              {"C", {3, 3, 2}},
                              {"D", {2, 3, 3}},
                              {"E", {3, 3, 3}}});
  const absl::string_view text =
      "R[x,y] := A[x,a,b]*B[b,c,d]*C[d,e,f]*D[f,a,g]*E[e,y,h]*B[i,g,h]*"
      "A[c,j,i]*S[j]";
  Inputs with = inputs;
  with.Add("S", RandomValues({3}, rng_));
  const auto syntax = ParseProgram(text);
  ASSERT_TRUE(syntax.ok()) << syntax.status();
  ValuesByName meant;
  for (size_t i = 0; i < with.names.size(); ++i) {
    meant[with.names[i]] = with.values[i];
  }
  Evaluate(*syntax, {}, meant);
  const auto unlimited = Lower(text, with);
  ASSERT_TRUE(unlimited.ok()) << unlimited.status();
  EXPECT_EQ(unlimited->blocks.size(), 1);
  ASSERT_GT(unlimited->arena_bytes, 600);
  int sliced_count = 0;
  for (int64_t limit = unlimited->arena_bytes; limit > 600;
       limit = limit * 2 / 3) {
    SCOPED_TRACE(limit);
    const auto program = Lower(text, with, {.memory_limit_bytes = limit});
    if (!program.ok()) {
      EXPECT_EQ(ReasonOf(program.status()), "PATH_MEMORY_LIMIT");
      continue;
    }
    EXPECT_LE(program->arena_bytes, limit);
    const std::vector<Values> got = RunProgram(*program, with.values);
    ExpectNear(got.at(0), meant.at("R"), kBound, "R");
    for (const ProgramBlock& block : program->blocks) {
      sliced_count += block.slice_count() > 1;
    }
  }
  EXPECT_GT(sliced_count, 0);
}

TEST_F(LowerTest, SaysThatAMemoryLimitIsTooSmall) {
  const Inputs inputs = Make({{"A", {6, 6}}, {"B", {6, 6}}, {"C", {6, 6}}});
  const auto program = Lower("T[i,k] := A[i,j]*B[j,k]\nD[i,l] := T[i,k]*C[k,l]",
                             inputs, {.memory_limit_bytes = 100});
  EXPECT_EQ(program.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(program.status().message(), HasSubstr("limit of 100 bytes"));
  EXPECT_THAT(program.status().message(), HasSubstr("768 bytes"));
}

TEST_F(LowerTest, TakesPathsOver) {
  Inputs inputs =
      Make({{"A", {3, 4}}, {"B", {4, 5}}, {"C", {5, 6}}, {"D", {6, 2}}});
  inputs.scalars["x"] = {2, 0};
  const absl::string_view text = "R[i,m] := x*A[i,j]*B[j,k]*C[k,l]*D[l,m]";
  const auto first = Lower(text, inputs);
  ASSERT_TRUE(first.ok()) << first.status();
  inputs.scalars["x"] = {-3, 0};
  LoweringOptions options;
  options.like = &*first;
  const Program second = RunAndCompare(text, inputs, options);
  EXPECT_EQ(second.products.at(0).tree, first->products.at(0).tree);
}

// Equal scalars let products occur again that others do not.
TEST_F(LowerTest, TakesPathsOverWhateverScalarsAre) {
  const Inputs tensors = Make({{"A", {3, 3}},
                               {"B", {3, 3}},
                               {"C", {3, 3}},
                               {"E", {3, 3}},
                               {"F", {3, 3}}});
  const absl::string_view text =
      "D[] := (x*A[a,c]*B[c,d]*C[d,b])*E[b,a] + "
      "(y*A[a,c]*B[c,d]*C[d,b])*F[b,a] + "
      "A[a,c]*B[c,d]*E[d,e]*F[e,f]*C[f,a]";
  const auto with = [&](double x, double y) {
    Inputs inputs = tensors;
    inputs.scalars = {{"x", {x, 0}}, {"y", {y, 0}}};
    return inputs;
  };
  const auto equal = Lower(text, with(2, 2));
  const auto different = Lower(text, with(1, 2));
  ASSERT_TRUE(equal.ok() && different.ok());
  EXPECT_NE(equal->products.size(), different->products.size());
  for (const Program* const like : {&*equal, &*different}) {
    LoweringOptions options;
    options.like = like;
    RunAndCompare(text, with(3, 3), options);
    RunAndCompare(text, with(1, 3), options);
  }
}

TEST_F(LowerTest, FlopsAreThoseOfTheTreeInSlices) {
  const Inputs inputs =
      Make({{"A", {6, 6}}, {"B", {6, 6}}, {"C", {6, 6}}, {"D", {6, 6}}});
  const absl::string_view text = "R[i,m] := A[i,j]*B[j,k]*C[k,l]*D[l,m]";
  const auto whole = Lower(text, inputs);
  ASSERT_TRUE(whole.ok());
  int sliced_count = 0;
  for (int64_t limit = whole->arena_bytes; limit > 256; limit /= 2) {
    const auto program = Lower(text, inputs, {.memory_limit_bytes = limit});
    if (!program.ok()) continue;
    EXPECT_DOUBLE_EQ(program->flops, program->products.at(0).cost.flops);
    sliced_count += program->blocks[0].slice_count() > 1;
  }
  EXPECT_GT(sliced_count, 0);
}

TEST_F(LowerTest, FlopsAreThoseOfTheTree) {
  const Inputs inputs =
      Make({{"A", {3, 4}}, {"B", {4, 5}}, {"C", {5, 6}}, {"D", {6, 2}}});
  const auto program = Lower("R[i,m] := A[i,j]*B[j,k]*C[k,l]*D[l,m]", inputs);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->flops, program->products.at(0).cost.flops);
  EXPECT_EQ(CountSteps<PermutationDesc>(*program), 0);
}

struct Refusal {
  absl::string_view text;
  absl::string_view reason;
  absl::string_view message;
};

// Issue 26: such sums made products dearer than opt_einsum's best.
TEST_F(LowerTest, SumsNothingOverOneElement) {
  const Inputs inputs = Make({{"operand 0", {1, 3}}, {"operand 1", {3, 4}}});
  const auto program =
      LowerEinsum(ParseEinsum("ab,bc->c", {2, 2}).value(), inputs.Described(),
                  {"result", std::nullopt}, {});
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(CountSteps<ReductionDesc>(*program), 0);
  EXPECT_EQ(CountSteps<ContractionDesc>(*program), 1);
}

TEST_F(LowerTest, SaysWhatDoesNotFit) {
  Inputs inputs = Make({{"A", {3, 4}}, {"B", {5, 6}}, {"D", {3, 3}}});
  inputs.scalars["x"] = {2, 0};
  inputs.scalars["zero"] = {0, 0};
  for (const Refusal& wanted : std::vector<Refusal>{
           {"R[i,k] := A[i,j]*B[j,k]", "MODE_EXTENT_MISMATCH",
            "line 1, column 20, in 'B[j,k]': label 'j' has extent 5, but 4 in "
            "line 1, column 15, in 'A[i,j]'"},
           {"R[i] := A[i,j]*Z[j]", "NAME_UNKNOWN",
            "line 1, column 16: name 'Z' stands for nothing"},
           {"R[i] := A[i]", "MODE_COUNT_MISMATCH",
            "line 1, column 9: 'A[i]' has 1 labels, but the tensor has 2"},
           {"\nD[i,j] = A[i,j]", "MODE_EXTENT_MISMATCH",
            "line 2, column 1, in the output 'D[i,j]': label 'j' has extent 3, "
            "but 4 in line 2, column 14"},
           {"R[i,j] = A[i,j]", "NAME_UNKNOWN", "name 'R' stands for nothing"},
           {"R[i,j] := x[i,j]", "NAME_IS_SCALAR", "'x' is a scalar"},
           {"x = A[i,j]*A[i,j]", "NAME_IS_SCALAR", "'x' is a scalar"},
           {"R[i,j] := A[i,j]/zero", "DIVISION_BY_ZERO", "column 18"},
       }) {
    const auto program = Lower(wanted.text, inputs);
    EXPECT_EQ(ReasonOf(program.status()), wanted.reason) << wanted.text;
    EXPECT_THAT(program.status().message(), HasSubstr(wanted.message))
        << wanted.text;
  }
  const auto missing = Lower("R[i,j] := A[i,j]", inputs, {},
                             {{"Q", std::nullopt, Order::kFirstModeFastest}});
  EXPECT_EQ(ReasonOf(missing.status()), "OUTPUT_UNKNOWN");
}

TEST_F(LowerTest, FactorsOfWhatIsWrittenHaveToFitIt) {
  const auto lower = [](absl::string_view text, ElementType type) {
    NamedOperand d;
    d.name = "D";
    d.element_type = type;
    d.layout = PackedLayout({3, 3}, Order::kFirstModeFastest);
    return LowerProgram(*ParseProgram(text), {d}, {}, {}).status();
  };
  for (const absl::string_view text :
       {"D[a,b] = 2im*D[a,b]", "D[a,b] = 2im*D[a,b] + D[b,a]"}) {
    EXPECT_EQ(lower(text, ElementType::kFloat64).code(),
              absl::StatusCode::kInvalidArgument)
        << text;
    EXPECT_TRUE(lower(text, ElementType::kComplex128).ok());
  }
  for (const absl::string_view text :
       {"D[a,b] = 0.5*D[a,b]", "D[a,b] = D[a,b] - 3.5*D[a,b]"}) {
    EXPECT_EQ(lower(text, ElementType::kInt64).code(),
              absl::StatusCode::kInvalidArgument)
        << text;
  }
  EXPECT_TRUE(lower("D[a,b] = -2*D[a,b]", ElementType::kInt64).ok());
}

TEST_F(LowerTest, KeepsWhatIsAskedFor) {
  const Inputs inputs = Make({{"A", {3, 4}}});
  const absl::string_view text =
      "T[i,j] := 2*A[i,j]; U[j,i] := T[i,j]; V[i] := T[i,j]*A[i,j]";
  const auto names = [](const Program& program) {
    std::vector<std::string> names;
    for (const int32_t output : program.outputs) {
      names.push_back(program.tensors[output].name);
    }
    return names;
  };
  EXPECT_THAT(names(*Lower(text, inputs)), ::testing::ElementsAre("U", "V"));
  EXPECT_THAT(names(*Lower(text, inputs, {},
                           {{"T", std::nullopt, Order::kLastModeFastest}})),
              ::testing::ElementsAre("T"));
}

}  // namespace
}  // namespace tensord::core::test
