// What statements are refused, where, and in which words.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"
#include "core/notation/parse_program.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord::core::test {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

struct Refusal {
  std::string text;
  std::string message;
};

void ExpectRefused(const std::string& reason,
                   const std::vector<Refusal>& refusals,
                   const NotationLimits& limits = {}) {
  for (const auto& [text, message] : refusals) {
    SCOPED_TRACE(text);
    const absl::Status status = ParseProgram(text, limits).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(ReasonOf(status), reason);
    EXPECT_EQ(std::string(status.message()), message);
  }
}

/// The same with the message's beginning only.
void ExpectRefusedAt(const std::string& reason,
                     const std::vector<Refusal>& refusals,
                     const NotationLimits& limits = {}) {
  for (const auto& [text, message] : refusals) {
    SCOPED_TRACE(text);
    const absl::Status status = ParseProgram(text, limits).status();
    EXPECT_EQ(ReasonOf(status), reason) << status;
    EXPECT_EQ(std::string(status.message().substr(0, message.size())), message);
  }
}

TEST(ProgramErrorsTest, UnmatchedLabelNamesTheSideThatLacksIt) {
  ExpectRefused(
      "LABEL_UNMATCHED",
      {{"D[a] = A[a,b]",
        "line 1, column 12: label 'b' occurs once in this term and not in the "
        "output 'D', wanted it in both, or twice in the term to be summed"},
       {"D[a,c] = A[a,c] +\n  A[a]",
        "line 1, column 5: label 'c' of the output does not occur in the term "
        "at line 2, column 3, wanted it in every term"},
       {"D[a] := alpha",
        "line 1, column 3: label 'a' of the output does not occur in the term "
        "at column 9, wanted it in every term"},
       {"D[:] = A[-1,a]",
        "line 1, column 13: label 'a' occurs once in this term and not in the "
        "output 'D', whose [:] stands for negative integers, wanted it in "
        "both, or twice in the term to be summed"}});
  ExpectRefusedAt("LABEL_UNMATCHED",
                  {{"D[a] = A[a]*(B[i]*(C[j]*E[i]))", "line 1, column 22: "},
                   {"D[a] = A[a] - B[a,f']", "line 1, column 19: label 'f''"},
                   {"D[a] = A[a,'f']", "line 1, column 12: label 'f' "},
                   {"D = A[1]", "line 1, column 7: "},
                   {"D[:] = A[-1,1]", "line 1, column 13: "},
                   {"D[:] = A[-1] + B[-2]", "line 1, column 18: "},
                   {"D[:] = A[-1,-2] + B[-2]", "line 1, column 3: "},
                   {"X = Y\nD[åå,ß] = Å[åå]", "line 2, column 6: "}});
}

TEST(ProgramErrorsTest, RepeatedLabelNamesItsFirstPlace) {
  ExpectRefused(
      "LABEL_REPEATED",
      {{"D = 1;\nD[a] = A[a,b]*B[b]*C[b]",
        "line 2, column 22: label 'b' occurs three times in this term, first "
        "at column 12, wanted it at most twice; for a vector v[k] there is "
        "Diagonal(v)[k,l]"},
       {"D[a] = A[a,b]*\nB[b]*\nC[b]",
        "line 3, column 3: label 'b' occurs three times in this term, first "
        "at line 1, column 12, wanted it at most twice; for a vector v[k] "
        "there is Diagonal(v)[k,l]"},
       {"D[a,b,a] = A[a,b]",
        "line 1, column 7: label 'a' occurs twice in the output, first at "
        "column 3, wanted it once"},
       {"D[:] = A[-1,-1]",
        "line 1, column 13: label '-1' occurs twice in this term, first at "
        "column 10, wanted negative labels once where the output is [:]"}});
  ExpectRefusedAt(
      "LABEL_REPEATED",
      {{"D[a] = A[a,b,b,b]", "line 1, column 16: "},
       {"D[a] = A[a]*A[a]*A[a]", "line 1, column 20: label 'a'"},
       {"D[a] = A[a,i]*(B[i]*C)*E[i]", "line 1, column 26: "},
       {"D = (A[i]*A[i]*A[i])*B", "line 1, column 18: "},
       {"D = (A[i] + 2*B[i])*C[i]*E[i]", "line 1, column 28: "},
       {"D = (A[i] - B[i])*(A[i] - B[i])*(A[i] + B[i])", "line 1, column 36: "},
       {"D[:] = A[-1] + B[-1,-1]", "line 1, column 21: "}});
}

TEST(ProgramErrorsTest, ReusedLabelNamesThePlacesInTheGroup) {
  ExpectRefused("LABEL_REUSED",
                {{"D[a] = A[a]*(B[i]*C[i])*E[i]",
                  "line 1, column 27: label 'i' occurs again outside the "
                  "parentheses that have it twice, at column 16 and column 21, "
                  "wanted another label"}});
  ExpectRefusedAt("LABEL_REUSED",
                  {{"D = E[i]*(B[i]*C[i])", "line 1, column 7: "},
                   {"D = (A[i,i])*(B[i,i])", "line 1, column 17: "},
                   {"D = (x*((A[i,i])))*(B[i]*y)", "line 1, column 23: "},
                   {"D = (A[i,i] + x)*B[i]*C[i]", "line 1, column 20: "},
                   {"D = (x + A[i,i])*B[i]*C[i]", "line 1, column 20: "}});
}

TEST(ProgramErrorsTest, DifferentLabelsOfTermsNameTheOneThatIsMissing) {
  ExpectRefused(
      "LABELS_DIFFER",
      {{"D[a] = (A[a,i] + B[a])*C[i]",
        "line 1, column 18: this term lacks label 'i' of the sum's first term, "
        "at column 13, wanted the same labels in every term"},
       {"D[a] = (A[a] +\n B[a,i])*C[i]",
        "line 2, column 6: label 'i' of this term is not among those of the "
        "sum's first term at line 1, column 9, wanted the same labels in every "
        "term"}});
  ExpectRefusedAt(
      "LABELS_DIFFER",
      {{"D[b] = (A[b,b] + B[c,c])", "line 1, column 18: "},
       {"D = (A[i]*(B[j] + C[k])*E[j,k])*F[i]", "line 1, column 21: "}});
}

TEST(ProgramErrorsTest, UnexpectedWordsSayWhatIsWanted) {
  const std::string factor =
      "wanted a tensor, a scalar, a number, a function or '('";
  const std::string statement =
      "wanted a statement such as D[i,j] = A[i,k]*B[k,j]";
  ExpectRefused(
      "SYNTAX_ERROR",
      {{"D[a] =", "line 1, column 7: got the end of the text, " + factor},
       {"D[a] = A[a]*;", "line 1, column 13: got ';', " + factor},
       {"D[a] == A[a]",
        "line 1, column 6: got '==', wanted '=', ':=', '+=' or '-=' behind "
        "the output"},
       {"D = ()", "line 1, column 6: got ')', " + factor},
       {"D = A*/B", "line 1, column 7: got '/', " + factor},
       {"3 = A", "line 1, column 1: got '3', " + statement},
       {"D = A\n + B", "line 2, column 2: got '+', " + statement +
                           "; a statement goes on in the next line when the "
                           "line ends with the operator"},
       {"D[a]",
        "line 1, column 5: got the end of the text, wanted '=', ':=', '+=' or "
        "'-=' behind the output"},
       {"D *= 2",
        "line 1, column 3: got '*', wanted '=', ':=', '+=' or '-=' behind the "
        "output"},
       {"D = A B",
        "line 1, column 7: got 'B', wanted an operator or the end of the "
        "statement"},
       {"D = sine(A)",
        "line 1, column 5: got 'sine' in front of '(', the nearest is 'sin', "
        "wanted a function such as sqrt(), max(), where() or conj(); labels "
        "stand in [ ]"},
       {"D = (A\n; B)", "line 2, column 1: got ';', wanted an operator or ')'"},
       {"D = A[i",
        "line 1, column 8: got the end of the text, wanted ',', ';', a blank "
        "or ']' behind a label"},
       {"D = A[i,]",
        "line 1, column 9: got ']', wanted a label: a name, an integer or a "
        "quoted character"},
       {"D = A[:]",
        "line 1, column 7: got ':', wanted a label: a name, an integer or a "
        "quoted character"},
       {"D[:,a] = A[a]", "line 1, column 4: got ',', wanted ']' behind '[:'"},
       {"D = A[1.5]",
        "line 1, column 7: got '1.5', wanted an integer for a label"},
       {"D = A[2im]",
        "line 1, column 7: got '2im', wanted an integer for a label"},
       {"D = A[-9223372036854775809]",
        "line 1, column 8: got '9223372036854775809', wanted an integer of 64 "
        "bits for a label"},
       {"D = A[-i]", "line 1, column 8: got 'i', wanted an integer behind '-'"},
       {"D = conj A", "line 1, column 10: got 'A', wanted '(' behind conj"},
       {"conj = A",
        "line 1, column 1: got 'conj', a function's name, wanted another"},
       {"D = A\n\xef\xbb\xbfGarbage",
        "line 2, column 9: got the end of the "
        "text, wanted '=', ':=', '+=' or '-=' "
        "behind the output"}});
}

TEST(ProgramErrorsTest, LabelsAreSeparatedInOneWay) {
  const std::string label =
      "wanted a label: a name, an integer or a quoted character";
  ExpectRefused(
      "SYNTAX_ERROR",
      {{"D = A[i j, i]",
        "line 1, column 10: got ',', wanted a blank or ']', as between the "
        "labels before"},
       {"D = A[i, j i]",
        "line 1, column 12: got 'i', wanted ',' or ']', as between the labels "
        "before"},
       {"D = A[i, j; i j]",
        "line 1, column 15: got 'j', wanted ',' or ']', as between the labels "
        "before"},
       {"D = A['i''i']",
        "line 1, column 10: got 'i', wanted ',', ';', a blank or ']' behind "
        "a label"},
       {"D = A[1-2]",
        "line 1, column 8: got '-', wanted ',', ';', a blank or ']' behind a "
        "label"},
       {"D = A[1 - 2]",
        "line 1, column 9: got '-' between blanks, wanted a label such as -1"},
       {"D = A[i;j;k]",
        "line 1, column 10: got ';', wanted ']', as two groups of labels are "
        "all"},
       {"D = A[;i]", "line 1, column 7: got ';', " + label},
       {"D = A[i;]", "line 1, column 9: got ']', " + label},
       {"D = A[(i,i)]",
        "line 1, column 12: got ']', wanted ';' behind labels in parentheses"},
       {"D = A[i;(i,j) j]",
        "line 1, column 15: got 'j', wanted ']' behind labels in parentheses"},
       {"D = A[(i j);k]",
        "line 1, column 10: got 'j', wanted ',' or ')' behind a label"},
       {"D = A[i,(j)]", "line 1, column 9: got '(', " + label},
       {"D = A[(i;j)]",
        "line 1, column 9: got ';', wanted ',' or ')' behind a label"},
       {"D[i = A[i]",
        "line 1, column 5: got '=', wanted ',', ';', a blank or ']' behind a "
        "label"}});
  ExpectRefusedAt("PROGRAM_TOO_LONG",
                  {{"D = A[i i j]", "line 1, column 11: "},
                   {"D = A[i;(i,j)]", "line 1, column 12: "}},
                  {.max_labels = 2});
}

TEST(ProgramErrorsTest, FunctionsSayWhatTheyTake) {
  ExpectRefused(
      "SYNTAX_ERROR",
      {{"D[i,j] = Diagonal(2)[i,j]",
        "line 1, column 19: got '2', wanted the name of a vector in "
        "Diagonal()"},
       {"D[i,j] = Diagonal(A[i])[i,j]",
        "line 1, column 20: got '[', wanted ')' behind the name of a vector in "
        "Diagonal()"},
       {"D = Diagonal(A)",
        "line 1, column 16: got the end of the text, wanted two labels behind "
        "Diagonal(), such as Diagonal(A)[i,j]"},
       {"D[i] = Diagonal(A)[i]",
        "line 1, column 8: got Diagonal() with 1 labels, wanted two"},
       {"Diagonal(D)[i,j] = A[i,j]",
        "line 1, column 9: got '(', wanted '=', ':=', '+=' or '-=' behind the "
        "output"},
       {"D[i]' = A[i]",
        "line 1, column 5: got a prime, wanted '=', ':=', '+=' or '-=' behind "
        "the "
        "output"},
       {"D[i] = A[i] '",
        "line 1, column 13: got the end of the text behind a quote, wanted one "
        "character between quotes, such as 'f'"}});
  ExpectRefused(
      "LABEL_UNMATCHED",
      {{"D[i] = tensorscalar(A[i])",
        "line 1, column 23: label 'i' is not summed in tensorscalar() at "
        "column 8, wanted it twice there"},
       {"D = B[i]*tensorscalar(A[i])",
        "line 1, column 25: label 'i' is not summed in tensorscalar() at "
        "column 10, wanted it twice there"},
       {"D[i] = tensorscalar(A[i,i])",
        "line 1, column 3: label 'i' of the output does not occur in the term "
        "at column 8, wanted it in every term"},
       {"D[i] = B[i]/(2*A[j,j])/C[j]",
        "line 1, column 26: label 'j' occurs once in this term and not in the "
        "output 'D', wanted it in both, or twice in the term to be summed"},
       {"D[i] = 2/(A[i]*C[i])",
        "line 1, column 3: label 'i' of the output does not occur in the term "
        "at column 8, wanted it in every term"}});
  ExpectRefusedAt("LABEL_REPEATED",
                  {{"D = tensorscalar(A[i,i,i])", "line 1, column 24: "},
                   {"D = tensorscalar(A[i,i]*B[i])", "line 1, column 27: "},
                   {"D[j] = B[j]/(A[i,i]*B[i])", "line 1, column 23: "}});
  ExpectRefusedAt(
      "LABELS_DIFFER",
      {{"D[i] = B[i]*tensorscalar(A[j,j] + B[j,k])", "line 1, column 37: "}});
  ExpectRefusedAt("LABEL_REUSED",
                  {{"D[i] = (2\\A[i,j,j])*B[j,j]", "line 1, column 23: "}});
}

TEST(ProgramErrorsTest, FunctionsOfElementsSayWhatTheyTake) {
  ExpectRefused(
      "SYNTAX_ERROR",
      {{"D[i] = max(A[i])",
        "line 1, column 16: got ')', wanted ',' behind argument 1 of 2 of "
        "max()"},
       {"D[i] = sqrt(A[i], 2)",
        "line 1, column 17: got ',', wanted ')' behind argument 1, which is "
        "sqrt()'s last"},
       {"D[i] = where(A[i] > 0, A[i]",
        "line 1, column 28: got the end of the text, wanted ',' behind "
        "argument 2 of 3 of where()"},
       {"D[i] = exp()",
        "line 1, column 12: got ')', wanted a tensor, a scalar, a number, a "
        "function or '('"},
       {"D[i] = (0 < A[i] < 1)",
        "line 1, column 18: got '<', wanted one comparison of two sides; of "
        "three it is written (a < b)*(b < c)"},
       {"D[i] = A[i]^",
        "line 1, column 13: got the end of the text, wanted a tensor, a "
        "scalar, a number, a function or '('"},
       {"D[i] = A(i)",
        "line 1, column 8: got 'A' in front of '(', wanted a function such as "
        "sqrt(), max(), where() or conj(); labels stand in [ ]"}});
  ExpectRefusedAt("LABEL_UNMATCHED",
                  {{"D[i] = exp(A[i,j])", "line 1, column 16: label 'j'"},
                   {"D[i,j] = exp(A[i])", "line 1, column 5: label 'j'"},
                   {"D = max(A[i], B[i])", "line 1, column 11: label 'i'"}});
  ExpectRefusedAt(
      "LABEL_REPEATED",
      {{"D[i] = A[i]/B[i]/C[i]", "line 1, column 20: label 'i'"},
       {"D[i] = exp(A[i])*B[i]*C[i]", "line 1, column 25: label 'i'"}});
  ExpectRefusedAt("LABEL_REUSED",
                  {{"D = exp(A[i]*B[i])*C[i,i]", "line 1, column 22: "}});
  ExpectRefusedAt("LABELS_DIFFER",
                  {{"D[i] = exp(A[i] + B[j])*C[j]", "line 1, column 21: "}});
  ExpectRefusedAt("PROGRAM_TOO_DEEP",
                  {{"D = 2^2^2^2", "line 1, column 10: an exponent begins "},
                   {"D = exp(exp(exp(A)))", "line 1, column 16: paren"}},
                  {.max_depth = 2});
  ExpectRefusedAt("PROGRAM_TOO_LONG",
                  {{"D[i] = max(A[i], B[j,k])*C[j,k]", "line 1, column 8: "}},
                  {.max_labels = 2});
}

TEST(ProgramErrorsTest, CharactersThatBeginNothingAreShown) {
  const std::string wanted =
      ", wanted a name, a number, an operator or a bracket";
  ExpectRefused(
      "SYNTAX_ERROR",
      {{"D = A $ B", "line 1, column 7: got '$'" + wanted},
       {"Då = å × B", "line 1, column 8: got '×'" + wanted},
       {std::string("D\0", 2),
        "line 1, column 2: got character U+0000" + wanted},
       {"D = \u200bA", "line 1, column 5: got character U+200b" + wanted},
       {"D = A[\u0301]", "line 1, column 7: got character U+0301" + wanted},
       {"å\xff",
        "line 1, column 2: got byte 0xff, which is not UTF-8" + wanted},
       {"D = 😀", "line 1, column 5: got '😀'" + wanted},
       {"D = 1..2",
        "line 1, column 7: got '.' behind number '1.', wanted an operator, a "
        "comma or a bracket"},
       {"D = 2A",
        "line 1, column 6: got 'A' behind number '2', wanted an "
        "operator, a comma or a bracket"},
       {"D = 2ima",
        "line 1, column 8: got 'a' behind number '2im', wanted an "
        "operator, a comma or a bracket"},
       {"D = 2e+",
        "line 1, column 6: got 'e' behind number '2', wanted an "
        "operator, a comma or a bracket"},
       {"D = A[1',1']",
        "line 1, column 8: got ''' behind number '1', wanted "
        "an operator, a comma or a bracket"},
       {"D = 1e999",
        "line 1, column 5: number '1e999' is beyond the range of float64"},
       {"D = A['fg']",
        "line 1, column 7: got 'g' behind a quote and a character, wanted one "
        "character between quotes, such as 'f'"},
       {"D = A['",
        "line 1, column 7: got the end of the text behind a quote, "
        "wanted one character between quotes, such as 'f'"},
       {"D = A['\n']",
        "line 1, column 7: got character U+000a behind a quote, "
        "wanted one character between quotes, such as 'f'"}});
}

TEST(ProgramErrorsTest, EveryKindOfBrokenUtf8HasItsColumn) {
  for (const char* broken :
       {"\x80", "\xc3", "\xc3(", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80",
        "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xe2\x82", "\xfe"}) {
    ExpectRefusedAt("SYNTAX_ERROR", {{absl::StrCat("ñ[i] = é[", broken),
                                      "line 1, column 10: got byte 0x"},
                                     {absl::StrCat("D = A['", broken, "']"),
                                      "line 1, column 7: got byte 0x"}});
  }
}

TEST(ProgramErrorsTest, LongNamesAreCutInMessages) {
  const std::string name(1000, 'x');
  const absl::Status status =
      ParseProgram(absl::StrCat("D = A[", name, "]")).status();
  EXPECT_THAT(status.message(), SizeIs(testing::Lt(300)));
  EXPECT_THAT(std::string(status.message()), HasSubstr("xxx...'"));
}

std::string Repeated(int count, const std::string& text) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

TEST(ProgramErrorsTest, DepthHasALimit) {
  const auto nested = [](int depth, const std::string& opening) {
    return absl::StrCat("D = ", Repeated(depth, opening), "x",
                        Repeated(depth, ")"));
  };
  for (const char* opening : {"(", "conj(", "-(", "2*("}) {
    EXPECT_TRUE(ParseProgram(nested(64, opening)).ok()) << opening;
  }
  ExpectRefused("PROGRAM_TOO_DEEP",
                {{nested(65, "("),
                  "line 1, column 69: parentheses open inside 64 others, the "
                  "limit is a depth of 64"}});
  ExpectRefusedAt("PROGRAM_TOO_DEEP",
                  {{nested(65, "conj("), "line 1, column 329: "},
                   {nested(100'000, "("), "line 1, column 69: "},
                   {nested(100'000, "-conj("), "line 1, column "}});
  ExpectRefusedAt("PROGRAM_TOO_DEEP", {{"D = (x)", "line 1, column 5: "}},
                  {.max_depth = 0});
}

TEST(ProgramErrorsTest, ManySignsAndTermsNeedNoDepth) {
  EXPECT_TRUE(
      ParseProgram(absl::StrCat("D = ", Repeated(400'000, "-+"), "x")).ok());
  EXPECT_TRUE(
      ParseProgram(absl::StrCat("D = x", Repeated(100'000, " - x"))).ok());
}

TEST(ProgramErrorsTest, LengthHasLimits) {
  const NotationLimits limits{.max_text_bytes = 40,
                              .max_statements = 2,
                              .max_factors = 3,
                              .max_labels = 2};
  for (const char* text : {"D = A; E = A;;", "D = A*A*A + B*B*B", "D = A*(B)",
                           "D[a,b] = A[a]*B[b]"}) {
    EXPECT_TRUE(ParseProgram(text, limits).ok()) << text;
  }
  ExpectRefused(
      "PROGRAM_TOO_LONG",
      {{std::string(41, ' '),
        "line 1, column 1: the text has 41 bytes, the limit is 40"},
       {"D = A\nE = A\nF = A",
        "line 3, column 1: a further statement begins, the limit is 2 "
        "statements"},
       {"D = A*A*A*A",
        "line 1, column 11: a further factor begins, the limit is 3 factors "
        "in a term"},
       {"D = A*(B + 2)",
        "line 1, column 12: a further factor begins, the limit is 3 factors "
        "in a term"},
       {"D = A[i,j,k]",
        "line 1, column 11: a further label begins, the limit is 2 labels in "
        "a tensor"},
       {"D = (A[i,j]*B[k])",
        "line 1, column 5: what is in these parentheses has 3 labels, the "
        "limit is 2"}},
      limits);
}

TEST(ProgramErrorsTest, DefaultLimitsHold) {
  ExpectRefusedAt(
      "PROGRAM_TOO_LONG",
      {{std::string((1 << 20) + 1, '#'), "line 1, column 1: "},
       {Repeated(10'001, "D = A\n"), "line 10001, column 1: "},
       {absl::StrCat("D = 2", Repeated(4096, "*2")), "line 1, column 8197: "},
       {absl::StrCat("D = A[0", Repeated(64, ",0"), "]"),
        "line 1, column 135: "}});
  EXPECT_TRUE(ParseProgram(Repeated(10'000, "D = A\n")).ok());
}

TEST(ProgramErrorsTest, TheFirstOfSeveralWrongLabelsIsNamed) {
  // Labels lie in hash tables, whose order differs from run to run.
  std::vector<std::string> labels;
  for (int i = 0; i < 50; ++i) labels.push_back(absl::StrCat("i", i));
  const std::string list = absl::StrJoin(labels, ",");
  for (int repeat = 0; repeat < 20; ++repeat) {
    ExpectRefusedAt(
        "LABEL_REPEATED",
        {{absl::StrCat("D = A[", list, "]*(B[", list, "])*(C[", list, "])"),
          absl::StrCat("line 1, column ", 18 + 2 * list.size(),
                       ": label 'i0' ")}});
  }
}

}  // namespace
}  // namespace tensord::core::test
