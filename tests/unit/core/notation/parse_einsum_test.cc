#include "core/notation/parse_einsum.h"

#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/places.h"
#include "tests/unit/core/notation/encoded.h"
#include "tests/unit/core/notation/syntax_dump.h"

namespace tensord::core::test {
namespace {

using ::testing::IsEmpty;

std::string Parsed(absl::string_view subscripts,
                   const std::vector<int>& mode_counts) {
  const auto einsum = ParseEinsum(subscripts, mode_counts);
  return einsum.ok() ? Dump(*einsum) : einsum.status().ToString();
}

TEST(ParseEinsumTest, ReadsProducts) {
  EXPECT_EQ(Parsed("ij,jk->ik", {2, 2}), "i,j|j,k -> i,k");
  EXPECT_EQ(Parsed(" i j , jk -> k i ", {2, 2}), "i,j|j,k -> k,i");
  EXPECT_EQ(Parsed("ii->i", {2}), "i,i -> i");
  EXPECT_EQ(Parsed("i,i,i->", {1, 1, 1}), "i|i|i -> ");
  EXPECT_EQ(Parsed("", {0}), " -> ");
  EXPECT_EQ(Parsed(",->", {0, 0}), "| -> ");
}

TEST(ParseEinsumTest, OutputIsAlphabeticalWhenItIsLeftOut) {
  EXPECT_EQ(Parsed("ba", {2}), "b,a -> a,b");
  EXPECT_EQ(Parsed("bA", {2}), "b,A -> A,b");
  EXPECT_EQ(Parsed("ii", {2}), "i,i -> ");
  EXPECT_EQ(Parsed("kj,ji", {2, 2}), "k,j|j,i -> i,k");
  EXPECT_EQ(Parsed("c...a,b", {3, 1}), "c,...0,a|b -> ...0,a,b,c");
}

TEST(ParseEinsumTest, EllipsesAreAlignedAtTheLastMode) {
  EXPECT_EQ(Parsed("...ij,...jk", {5, 3}),
            "...0,...1,...2,i,j|...2,j,k -> ...0,...1,...2,i,k");
  EXPECT_EQ(Parsed("i...,...j->j...i", {1, 3}),
            "i|...0,...1,j -> j,...0,...1,i");
  EXPECT_EQ(Parsed("i...i->...", {3}), "i,...0,i -> ...0");
  EXPECT_EQ(Parsed("i->i...", {1}), "i -> i");
  EXPECT_EQ(Parsed("...i->i", {1}), "i -> i");
}

TEST(ParseEinsumTest, LettersAreOfAnyAlphabet) {
  EXPECT_EQ(Parsed("βα,αЖ字", {2, 3}), "β,α|α,Ж,字 -> β,Ж,字");
  EXPECT_EQ(Parsed("zéa", {3}), "z,é,a -> a,z,é");
}

TEST(ParseEinsumTest, SymbolsOfOptEinsumAreLabels) {
  // Its get_symbol() goes on behind the letters of ASCII from U+00C0 and leaves
  // surrogates out: signs, marks and blanks are among them.
  EXPECT_EQ(Parsed("a×÷,÷b->a×b", {3, 2}), "a,×,÷|÷,b -> a,×,b");
  for (char32_t c = 0xc0; c < 0x11000; ++c) {
    if (c >= 0xd800 && c < 0xe000) continue;
    const std::string symbol = Encoded(c);
    const auto einsum =
        ParseEinsum(absl::StrCat("a", symbol, ",", symbol, "b"), {{2, 2}});
    ASSERT_TRUE(einsum.ok()) << einsum.status();
    ASSERT_EQ(einsum->output.size(), 2u);
  }
}

TEST(ParseEinsumTest, PositionsCountCharacters) {
  const auto einsum = ParseEinsum("αβ, β...->α...", {{2, 2}});
  ASSERT_TRUE(einsum.ok()) << einsum.status();
  EXPECT_EQ(einsum->inputs[1][0].position, (TextPosition{1, 5}));
  EXPECT_EQ(einsum->inputs[1][1].position, (TextPosition{1, 6}));
  EXPECT_EQ(einsum->output[1].position, (TextPosition{1, 12}));
  EXPECT_THAT(einsum->order, IsEmpty());
}

struct Refusal {
  std::string subscripts;
  std::vector<int> mode_counts;
  std::string message;
};

void ExpectRefused(const std::string& reason,
                   const std::vector<Refusal>& refusals,
                   const NotationLimits& limits = {}) {
  for (const auto& [subscripts, mode_counts, message] : refusals) {
    SCOPED_TRACE(subscripts);
    const absl::Status status =
        ParseEinsum(subscripts, mode_counts, limits).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(ReasonOf(status), reason);
    EXPECT_EQ(std::string(status.message()), message);
  }
}

TEST(ParseEinsumTest, MalformedSubscriptsNameTheCharacter) {
  const std::string letters = ", wanted letters, '...', ',' and '->'";
  ExpectRefused(
      "SUBSCRIPTS_MALFORMED",
      {{"...i...", {3}, "column 5: got '.', wanted one '...' an operand"},
       {"....i", {3}, "column 4: got '.', wanted one '...' an operand"},
       {"ij,..k", {2, 3}, "column 4: got '.', wanted three dots in a row"},
       {". ..i", {3}, "column 1: got '.', wanted three dots in a row"},
       {"i->->i",
        {1},
        "column 4: got '-', wanted the letters of one output behind '->'"},
       {"i->i,i",
        {1},
        "column 5: got ',', wanted the letters of one output behind '->'"},
       {"i- >i", {1}, "column 2: got '-'" + letters},
       {"i>", {1}, "column 2: got '>'" + letters},
       {"i1", {2}, "column 2: got '1'" + letters},
       {"α_", {2}, "column 2: got '_'" + letters},
       {"i\tj", {2}, "column 2: got character U+0009" + letters},
       {"i\nj", {2}, "column 2: got character U+000a" + letters},
       {std::string("i\0", 2), {1}, "column 2: got character U+0000" + letters},
       {"αβ\xc3", {2}, "column 3: got byte 0xc3, which is not UTF-8" + letters},
       {"i²", {1}, "column 2: got '²'" + letters},
       {"e\u00a0", {1}, "column 2: got character U+00a0" + letters}});
}

TEST(ParseEinsumTest, CountsThatDoNotFitNameTheOperand) {
  ExpectRefused("OPERAND_COUNT_MISMATCH",
                {{"i,j->i",
                  {1},
                  "column 4: the subscripts end after 2 operands, wanted 1 as "
                  "there are"},
                 {"i",
                  {1, 1},
                  "column 2: the subscripts end after 1 operands, wanted 2 as "
                  "there are"},
                 {"",
                  {},
                  "column 1: the subscripts end after 1 operands, wanted 0 as "
                  "there are"}});
  ExpectRefused("MODE_COUNT_MISMATCH",
                {{"i, jk",
                  {1, 1},
                  "column 4: the subscripts of operand 1 are for 2 modes, but "
                  "it has 1"},
                 {"->",
                  {1},
                  "column 1: the subscripts of operand 0 are for 0 modes, but "
                  "it has 1"},
                 {"i...j",
                  {1},
                  "column 1: the subscripts of operand 0 are for 2 modes or "
                  "more, but it has 1"}});
}

TEST(ParseEinsumTest, OutputsThatDoNotFitNameTheLabel) {
  ExpectRefused("MODE_NOT_IN_INPUT",
                {{"ij->iβ",
                  {2},
                  "column 6: label 'β' of the output is in no operand, wanted "
                  "it in one"}});
  ExpectRefused("MODE_REPEATED",
                {{"ij->iji",
                  {2},
                  "column 7: label 'i' occurs twice in the output, first at "
                  "column 5, wanted it once"}});
  ExpectRefused("ELLIPSIS_DROPPED",
                {{"...i,i... -> i",
                  {2, 3},
                  "column 14: the output has no '...', but those of the "
                  "operands have up to 2 modes, wanted '...' here, too"}});
}

TEST(ParseEinsumTest, LengthHasLimits) {
  ExpectRefused("PROGRAM_TOO_LONG",
                {{"i,i,i",
                  {1, 1, 1},
                  "column 5: a further operand begins, the limit is 2 "
                  "operands"},
                 {"         ",
                  {0},
                  "column 1: the subscripts have 9 bytes, the limit is 8"}},
                {.max_text_bytes = 8, .max_factors = 2});
}

/// One line of numpy_einsum.tsv.
struct NumpyRow {
  std::string subscripts;
  std::vector<std::vector<int64_t>> shapes;  // (operand)(mode)
  std::string result;                        // "2x3", "scalar" or "refused"
};

std::vector<int64_t> ShapeOf(absl::string_view text) {
  std::vector<int64_t> shape;
  if (text == "scalar") return shape;
  for (const absl::string_view extent : absl::StrSplit(text, 'x')) {
    EXPECT_TRUE(absl::SimpleAtoi(extent, &shape.emplace_back())) << text;
  }
  return shape;
}

std::vector<NumpyRow> NumpyRows() {
  std::ifstream file(
      testing::InRepository("tests/unit/core/notation/numpy_einsum.tsv"));
  std::vector<NumpyRow> rows;
  for (std::string line; std::getline(file, line);) {
    if (absl::StartsWith(line, "#")) continue;
    const std::vector<std::string> columns = absl::StrSplit(line, '\t');
    NumpyRow row{
        absl::StrReplaceAll(columns.at(0), {{"\\t", "\t"}, {"\\n", "\n"}}),
        {},
        columns.at(2)};
    for (const absl::string_view shape : absl::StrSplit(columns.at(1), ' ')) {
      row.shapes.push_back(ShapeOf(shape));
    }
    rows.push_back(row);
  }
  return rows;
}

/// The shape of the result, as the labels and the operands' shapes have it.
std::string ResultOf(const EinsumSyntax& einsum, const NumpyRow& row) {
  std::map<std::string, int64_t> extents;
  for (size_t i = 0; i < row.shapes.size(); ++i) {
    EXPECT_EQ(einsum.inputs[i].size(), row.shapes[i].size());
    for (size_t mode = 0; mode < row.shapes[i].size(); ++mode) {
      const auto [at, is_new] =
          extents.emplace(einsum.inputs[i][mode].text, row.shapes[i][mode]);
      EXPECT_EQ(at->second, row.shapes[i][mode]) << "label " << at->first;
    }
  }
  std::vector<int64_t> shape;
  for (const Label& label : einsum.output) {
    shape.push_back(extents.at(label.text));
  }
  return shape.empty() ? "scalar" : absl::StrJoin(shape, "x");
}

TEST(ParseEinsumTest, AcceptsWhatNumpyAcceptsAndRefusesWhatItRefuses) {
  const std::vector<NumpyRow> rows = NumpyRows();
  ASSERT_EQ(rows.size(), 600);
  for (const NumpyRow& row : rows) {
    std::vector<int> mode_counts;
    for (const auto& shape : row.shapes) {
      mode_counts.push_back(static_cast<int>(shape.size()));
    }
    SCOPED_TRACE(absl::StrCat("'", row.subscripts, "' of modes ",
                              absl::StrJoin(mode_counts, ", ")));
    const auto einsum = ParseEinsum(row.subscripts, mode_counts);
    if (einsum.ok()) {
      EXPECT_EQ(ResultOf(*einsum, row), row.result);
    } else {
      EXPECT_EQ(row.result, "refused") << einsum.status();
      EXPECT_NE(ReasonOf(einsum.status()), "");
    }
  }
}

}  // namespace
}  // namespace tensord::core::test
