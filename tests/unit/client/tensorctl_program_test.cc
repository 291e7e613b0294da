// tensorctl einsum and run, as the shell runs them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "tests/testing/places.h"
#include "tests/testing/server_process.h"
#include "tests/unit/client/tensorctl_run.h"

namespace tensord::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Values = std::vector<double>;

class TensorctlProgramTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { server_.emplace(testing::Built("tensord")); }
  static void TearDownTestSuite() { server_.reset(); }

  static Ended Run(const std::string& arguments,
                   const std::string& input = "") {
    return Tensorctl(arguments + " --address=" + server_->address(), input);
  }

  static std::string Square(const std::string& name, const Values& values) {
    return Save<double>(name, {ElementType::kFloat64, {2, 2}}, values);
  }

  static std::optional<testing::ServerProcess> server_;
  const std::string a_ = Square("a", {1, 2, 3, 4});
  const std::string b_ = Square("b", {0, 1, 1, 0});
  const std::string d_ = PathOf("d");
};

std::optional<testing::ServerProcess> TensorctlProgramTest::server_;

TEST_F(TensorctlProgramTest, EinsumTakesAnyNumberOfFiles) {
  Ended ended =
      Run("einsum 'ij,jk,kl->il' " + a_ + " " + b_ + " " + a_ + " -o " + d_);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_EQ(Load<double>(d_, 4), (Values{5, 8, 13, 20}));
  EXPECT_THAT(ended.output,
              HasSubstr("result    float64 (2, 2) -> " + d_ + "\n"));
  EXPECT_THAT(ended.output, HasSubstr("work      2 operations, 32 flops, "));
  ended = Run("einsum '...i,i' " + a_ + " '" + a_ + "[1, ::-1]' -o " + d_ +
              " --output-type float32 --path greedy --time-budget 10ms");
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_EQ(Load<float>(d_, 2), (std::vector<float>{10, 24}));
  ended = Run("einsum 'ii,jj->' " + a_ + " " + a_);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("result    float64 ()\nvalue     25\n"));
}

TEST_F(TensorctlProgramTest, SeveralResultsOfOneStatementGoToFiles) {
  const std::string s = PathOf("s");
  const Ended ended =
      Run("run 'U[i,k], S[k], V[k,j] := svd(B[i,j]; cutoff=x)\n"
          "D[i,j] := U[i,k]*Diagonal(S)[k,l]*V[l,j]' B=" +
          b_ + " x=0.5 -o D=" + d_ + " -o S=" + s);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(
      ended.output,
      HasSubstr("\nkept      2 values along k of statement 0, zeros beyond\n"));
  const Values values = Load<double>(s, 2);
  EXPECT_NEAR(values[0], 1, 1e-15);
  EXPECT_NEAR(Load<double>(d_, 4)[1], 1, 1e-15);
}

TEST_F(TensorctlProgramTest, KernelsAreChosenByTimeWhereOptionsSaySo) {
  const std::string einsum =
      "einsum 'ij,jk,kl->il' " + a_ + " " + b_ + " " + a_;
  const std::string run = "run 'D[i,l] := A[i,j]*B[j,k]*A[k,l]' A=" + a_ +
                          " B=" + b_ + " -o D=" + d_;
  for (const std::string& command : {einsum + " -o " + d_, run}) {
    const Ended ended = Run(command + " --selection measure");
    EXPECT_EQ(ended.code, 0) << ended.output;
    EXPECT_EQ(Load<double>(d_, 4), (Values{5, 8, 13, 20}));
  }
  EXPECT_THAT(Run("cache list --json").output,
              HasSubstr("\"selection\": \"measure\""));
  const Ended ended = Run(einsum + " --selection measure --deterministic");
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.output, HasSubstr("SELECTION_CONFLICTS"));
}

TEST_F(TensorctlProgramTest, EinsumKeepsToMemoryLimits) {
  const std::string t = Save<double>("t", {ElementType::kFloat64, {8, 8, 8, 8}},
                                     Values(8 * 8 * 8 * 8, 1));
  const std::string product =
      "einsum 'abcd,cdef,efgh,ghij->abij' " + t + " " + t + " " + t + " " + t;
  Ended ended = Run(product + " --memory-limit=40KB -o " + d_);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_EQ(Load<double>(d_, 4096), Values(4096, 64 * 64 * 64));
  ended = Run(product + " --memory-limit=0");
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.output, HasSubstr("[PATH_MEMORY_LIMIT]"));
}

TEST_F(TensorctlProgramTest, SymbolicCostsDecideTheOrder) {
  const std::string product =
      "einsum 'ij,jk,kl->il' " + a_ + " " + b_ + " " + a_;
  Ended ended = Run(product + " --costs='i=>χ, j=>χ, l=>χ^3' -o " + d_);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_EQ(Load<double>(d_, 4), (Values{5, 8, 13, 20}));
  ended = Run(product + " --costs='i=>χ, j=>χ, l=>χ^3' --explain");
  EXPECT_THAT(ended.output, HasSubstr("χ^4 + χ^2 multiplications"));
  ended = Run(product + " --costs '' --explain=json");
  EXPECT_THAT(ended.output, ContainsRegex("\"symbolic_cost\": *\"2.χ.3\""));
  ended = Run(product + " --costs='i,z'");
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.output, HasSubstr("costs, column 3: the program has no "
                                      "label 'z'"));
}

TEST_F(TensorctlProgramTest, InfoTellsTheLimitsOfPrograms) {
  Ended ended = Run("info");
  EXPECT_THAT(ended.output, HasSubstr("  statements     10000\n"));
  EXPECT_THAT(ended.output, HasSubstr("  parentheses    64 deep\n"));
  ended = Run("info --json");
  EXPECT_THAT(ended.output, ContainsRegex("\"max_program_bytes\": *1048576"));
  EXPECT_THAT(ended.output, ContainsRegex("\"max_search_seconds\": *60"));
}

TEST_F(TensorctlProgramTest, EinsumExplainsAsTextAndAsJson) {
  std::filesystem::remove(d_);
  const std::string chain =
      "einsum 'ij,jk,kl->il' " + a_ + " " + b_ + " '" + a_ + "[:, :1]' ";
  for (const std::string& words :
       {chain + "--explain -o " + d_, "explain " + chain}) {
    const Ended ended = Run(words);
    EXPECT_EQ(ended.code, 0) << ended.output;
    EXPECT_THAT(ended.output, StartsWith("2 operations, 16 flops"));
    EXPECT_THAT(ended.output, HasSubstr("product of statement 0, by optimal"));
    EXPECT_THAT(ended.output, HasSubstr("cpu.contract."));
    EXPECT_THAT(ended.output, HasSubstr(a_));
  }
  for (const std::string& words :
       {chain + "--explain=json", "explain " + chain + "--json"}) {
    const Ended ended = Run(words);
    EXPECT_EQ(ended.code, 0) << ended.output;
    EXPECT_THAT(ended.output, StartsWith("{\n  \"flops\": 16,\n"));
    EXPECT_THAT(ended.output, HasSubstr("\"operation\": \"contract\""));
    EXPECT_THAT(ended.output, HasSubstr("\"method\": \"optimal\""));
    EXPECT_THAT(ended.output, HasSubstr("\"labels\": [\n"));
    EXPECT_THAT(ended.output, HasSubstr("\"children\": [1, 2]"));
  }
  EXPECT_FALSE(std::filesystem::exists(d_));
  const Ended ended = Run(chain + "--explain=xml");
  EXPECT_EQ(ended.code, 2);
}

TEST_F(TensorctlProgramTest, TreesAreDrawn) {
  const std::string svg = testing::TemporaryFolder() + "/tree.svg";
  Ended ended = Run("run 'D[i,l] := A[i,j]*B[j,k]*A[k,l]' A=" + a_ +
                    " B=" + b_ + " --tree " + svg);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("by optimal"));
  std::ifstream file(svg);
  const std::string drawn{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(drawn, StartsWith("<svg "));
  for (const char* text : {">A[i,j]<", ">B[j,k]<", ">A[k,l]<", ">[i,l]<",
                           ">2x2, 16 flops<", "</svg>"}) {
    EXPECT_THAT(drawn, HasSubstr(text));
  }
  const std::string chain =
      "einsum 'ij,jk,kl' " + a_ + " " + b_ + " " + a_ + " --tree ";
  const std::string txt = testing::TemporaryFolder() + "/tree.txt";
  ended = Run(chain + txt);
  EXPECT_EQ(ended.code, 0) << ended.output;
  std::ifstream lines(txt);
  EXPECT_THAT(std::string(std::istreambuf_iterator<char>(lines), {}),
              HasSubstr("└─ [i,l]"));
  ended = Run(chain + "tree.pdf");
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.output, HasSubstr("ends with .svg, .png, .txt or .json"));
  ended = Run("einsum 'ij,jk' " + a_ + " " + b_ + " --tree " + svg);
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.output, HasSubstr("no tree to draw"));
}

TEST_F(TensorctlProgramTest, OrdersAreKeptAndGoneOnWith) {
  const std::string json = testing::TemporaryFolder() + "/tree.json";
  const std::string chain = "explain einsum 'ij,jk,kl' " + a_ + " " + b_ + " " +
                            a_ + " --tree " + json;
  const auto kept = [&] {
    std::ifstream file(json);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  Ended ended = Run(chain);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("s  10^1.505 flops, largest result 2^2"));
  EXPECT_THAT(kept(), HasSubstr("\"steps\": ["));
  // From another order than would be found, whose cost is the same.
  std::ofstream(json) << "{\"steps\": [[1, 2], [0, 1]], \"sliced\": [\"j\"]}";
  ended = Run(chain + " --path random-greedy --time-budget 5ms");
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(kept(), HasSubstr("\"log10_flops\": 1.50"));
  std::ofstream(json) << "{\"steps\": [[1, 2], [0, 7]], \"sliced\": []}";
  ended = Run(chain);
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.output, HasSubstr("PATH_MALFORMED"));
  std::ofstream(json) << "{\"steps\": [[1, 2], [0, 1]], \"sliced\": [\"q\"]}";
  ended = Run(chain);
  EXPECT_THAT(ended.output, HasSubstr("which the product does not have"));
  ended = Run(chain + " --path greedy");
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.output, HasSubstr("does not go on from"));
  EXPECT_THAT(kept(), HasSubstr("[\"q\"]"));  // as it was
  std::ofstream(json) << "nothing";
  ended = Run(chain);
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.output, HasSubstr("no order to go on with"));
  ended = Run("explain einsum 'ij,jk' " + a_ + " " + b_ + " --tree " +
              testing::TemporaryFolder() + "/none.json");
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.output, HasSubstr("0 products of three factors"));
}

// With a program in place of rsvg-convert.
TEST_F(TensorctlProgramTest, TreesArePainted) {
  const std::string folder = testing::TemporaryFolder() + "/bin";
  std::filesystem::create_directories(folder);
  const std::string png = testing::TemporaryFolder() + "/tree.png";
  const std::string chain =
      "einsum 'ij,jk,kl' " + a_ + " " + b_ + " " + a_ + " --tree " + png;
  const std::string path = std::getenv("PATH");
  setenv("PATH", folder.c_str(), 1);
  const Ended without = Run(chain);
  const std::string converter = folder + "/rsvg-convert";
  std::ofstream(converter) << "#!/bin/sh\n"
                              "[ \"$1\" = --output ] && "
                              "while read -r line; do echo \"$line\"; done "
                              "< \"$3\" > \"$2\"\n";
  std::filesystem::permissions(converter, std::filesystem::perms::owner_all);
  const Ended with = Run(chain);
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(without.code, 1);
  EXPECT_THAT(without.output, HasSubstr("librsvg2-bin"));
  EXPECT_EQ(with.code, 0) << with.output;
  std::ifstream file(png);
  EXPECT_THAT(std::string(std::istreambuf_iterator<char>(file), {}),
              StartsWith("<svg "));
  EXPECT_FALSE(std::filesystem::exists(png + ".svg"));
  std::filesystem::remove_all(folder);
}

TEST_F(TensorctlProgramTest, RunTakesStatementsOfAnySource) {
  const std::string text = "D[i,k] := x*A[i,j]*B[j,k]";
  const std::string program = testing::TemporaryFolder() + "/program";
  std::ofstream(program) << "# a product\n" << text << "\n";
  const std::string operands = " A=" + a_ + " B=" + b_ + " x=2.5 -o D=" + d_;
  struct Source {
    std::string words, input;
  };
  for (const Source& source :
       {Source{"'" + text + "'", ""}, Source{program, ""},
        Source{"-", "echo '" + text + "' |"}}) {
    SCOPED_TRACE(source.words);
    std::filesystem::remove(d_);
    const Ended ended = Run("run " + source.words + operands, source.input);
    EXPECT_EQ(ended.code, 0) << ended.output;
    EXPECT_THAT(ended.output,
                HasSubstr("D         float64 (2, 2) -> " + d_ + "\n"));
    EXPECT_EQ(Load<double>(d_, 4), (Values{5, 2.5, 10, 7.5}));
  }
}

TEST_F(TensorctlProgramTest, RunDescribesWhatHasNoFile) {
  using Number = std::complex<double>;
  const std::string a =
      Save<Number>("complex", {ElementType::kComplex128, {2, 2}}, {1, 2, 3, 4});
  const Ended ended =
      Run("run 'T[i,j] := A[i,k]*A[k,j]; s[] := z*T[i,i]' z=1+2j A=" + a);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output, StartsWith("s         complex128 ()\n"
                                       "value     29+58j\n"
                                       "work      "));
  EXPECT_THAT(ended.output, ContainsRegex("times     upload .*, prepared .*, "
                                          "queued .*, executed [^,]*\n$"));
}

TEST_F(TensorctlProgramTest, RunWritesOnlyTheFilesThatItIsTold) {
  const std::string c = Square("c", {1, 1, 1, 1});
  const std::string add = "run 'C[i,j] += A[i,j]' A=" + a_ + " C=" + c;
  Ended ended = Run(add);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output, StartsWith("work      "));
  EXPECT_EQ(Load<double>(c, 4), (Values{1, 1, 1, 1}));
  ended = Run(add + " -o C=" + d_);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_EQ(Load<double>(d_, 4), (Values{2, 3, 4, 5}));
  EXPECT_EQ(Load<double>(c, 4), (Values{1, 1, 1, 1}));
  ended = Run(add + " -o C=" + c);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_EQ(Load<double>(c, 4), (Values{2, 3, 4, 5}));
  // The output chosen, an intermediate; what is not chosen is not kept.
  ended = Run("run 'T[i,j] := A[i,k]*A[k,j]; U[i] := T[i,i]' A=" + a_ +
              " -o T=" + d_);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_EQ(Load<double>(d_, 4), (Values{7, 10, 15, 22}));
  EXPECT_THAT(ended.output, Not(HasSubstr("U   ")));
}

TEST_F(TensorctlProgramTest, PartsAreWrittenIntoTheirFileOrAloneIntoAnother) {
  const std::string c = Square("c", {1, 1, 1, 1});
  const std::string set =
      "run 'C[i] = 10*A[i]' 'A=" + a_ + "[0]' 'C=" + c + "[:, 1]' -o C=";
  Ended ended = Run(set + d_);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_EQ(Load<double>(d_, 2), (Values{10, 20}));
  EXPECT_EQ(Load<double>(c, 4), (Values{1, 1, 1, 1}));
  ended = Run(set + c);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_EQ(Load<double>(c, 4), (Values{1, 10, 1, 20}));
}

TEST_F(TensorctlProgramTest, RunExplains) {
  const std::string c = Square("c", {1, 1, 1, 1});
  const std::string program =
      "run 'C[i,j] += x*A[i,k]*A[k,j]' A=" + a_ + " C=" + c + " x=2 ";
  for (const std::string& words :
       {program + "--explain", "explain " + program}) {
    const Ended ended = Run(words);
    EXPECT_EQ(ended.code, 0) << ended.output;
    EXPECT_THAT(ended.output, StartsWith("1 operation, 16 flops"));
    EXPECT_THAT(ended.output, HasSubstr("C[i,j] = 2*A[i,k]*A[k,j] + C[i,j]"));
  }
  EXPECT_EQ(Load<double>(c, 4), (Values{1, 1, 1, 1}));
}

TEST_F(TensorctlProgramTest, MistakesSayWhatIsWanted) {
  struct Case {
    std::string words;
    int code;
    std::string message;
  };
  const std::string run = "run 'D[i,j] := A[i,j]' ";
  for (const Case& wanted : std::vector<Case>{
           {"run nothing.txt", 1, "there is no file 'nothing.txt'"},
           {run + a_, 2, "is not of the form NAME=VALUE"},
           {run + "A=" + a_ + " A=" + a_, 2, "'A' is given twice"},
           {run + "A=none.npy", 1, "none.npy"},
           {run + "'A=" + a_ + "[x]'", 2, "'x' in "},
           {run + "A=" + a_ + " x=2 -o x=" + d_, 2, "'x' is a number"},
           {run + "A=" + a_ + " -o D=" + d_ + " -o A=" + d_, 2,
            "twice, wanted two files, for D and for A"},
           {"einsum 'ij->ji' -o '' " + a_, 2, "it is empty, wanted a file"},
           {run + "A=" + a_ + " -o E=" + d_, 1, "[OUTPUT_UNKNOWN]"},
           {run, 1, "[NAME_UNKNOWN]"},
           {"run 'D[i,j] := A[i,' A=" + a_, 2, "line 1, column 15"},
           {"einsum 'ij->j->i' " + a_, 2, "[SUBSCRIPTS_MALFORMED]"},
           {"einsum 'ij,jk' " + a_, 1, "[OPERAND_COUNT_MISMATCH]"},
           {"einsum 'ij' " + a_ + " --path=best", 2, "'best' is none of auto"},
           {"einsum 'ij' " + a_ + " --time-budget=long", 2,
            "'long' is not a duration, wanted e.g. 2s"},
           {"einsum 'ij' " + a_ + " --memory-limit=-1", 2, "not a size"}}) {
    const Ended ended = Run(wanted.words);
    EXPECT_EQ(ended.code, wanted.code) << wanted.words << "\n" << ended.output;
    EXPECT_THAT(ended.output, HasSubstr(wanted.message)) << wanted.words;
  }
}

}  // namespace
}  // namespace tensord::cli
