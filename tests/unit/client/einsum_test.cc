#include "client/cpp/src/einsum.h"

#include <gtest/gtest.h>

#include "tensord/status.h"

namespace tensord::internal {
namespace {

using Kind = EinsumOperation::Kind;

void ExpectOperation(std::string_view subscripts,
                     const std::vector<int>& mode_counts, Kind kind,
                     const std::vector<Modes>& inputs, const Modes& output) {
  SCOPED_TRACE(subscripts);
  const auto operation = ParseEinsum(subscripts, mode_counts);
  ASSERT_TRUE(operation.ok()) << operation.status();
  EXPECT_EQ(operation->kind, kind);
  EXPECT_EQ(operation->inputs, inputs);
  EXPECT_EQ(operation->output, output);
}

void ExpectRefusal(std::string_view subscripts,
                   const std::vector<int>& mode_counts, std::string_view reason,
                   std::string_view words) {
  SCOPED_TRACE(subscripts);
  const auto operation = ParseEinsum(subscripts, mode_counts);
  ASSERT_FALSE(operation.ok());
  EXPECT_EQ(ReasonOf(operation.status()), reason);
  EXPECT_NE(operation.status().message().find(
                absl::string_view(words.data(), words.size())),
            absl::string_view::npos)
      << operation.status();
}

TEST(EinsumTest, TwoTensorsAreContracted) {
  ExpectOperation("ijk,kjl->il", {3, 3}, Kind::kContract, {"ijk", "kjl"}, "il");
  ExpectOperation("bij,bjk->bik", {3, 3}, Kind::kContract, {"bij", "bjk"},
                  "bik");
  ExpectOperation("i,j->ij", {1, 1}, Kind::kContract, {"i", "j"}, "ij");
  ExpectOperation("ij,ij->", {2, 2}, Kind::kContract, {"ij", "ij"}, "");
  ExpectOperation(",->", {0, 0}, Kind::kContract, {"", ""}, "");
}

TEST(EinsumTest, OneTensorIsPermutedOrSummed) {
  ExpectOperation("ijk->kij", {3}, Kind::kPermute, {"ijk"}, "kij");
  ExpectOperation("ijk->k", {3}, Kind::kReduce, {"ijk"}, "k");
  ExpectOperation("ij->", {2}, Kind::kReduce, {"ij"}, "");
  ExpectOperation("->", {0}, Kind::kPermute, {""}, "");
}

TEST(EinsumTest, OutputLeftOutHasTheSingleLabelsInAlphabeticalOrder) {
  ExpectOperation("kj,ji", {2, 2}, Kind::kContract, {"kj", "ji"}, "ik");
  ExpectOperation("ba", {2}, Kind::kPermute, {"ba"}, "ab");
  ExpectOperation("aB", {2}, Kind::kPermute, {"aB"}, "Ba");
}

TEST(EinsumTest, SpacesAreIgnored) {
  ExpectOperation(" i j , j k -> i k ", {2, 2}, Kind::kContract, {"ij", "jk"},
                  "ik");
}

TEST(EinsumTest, RefusesWhatIsNotOneOperation) {
  constexpr std::string_view kReason = "EINSUM_NOT_ONE_OPERATION";
  ExpectRefusal("ij,jk,kl->il", {2, 2, 2}, kReason, "3 tensors");
  ExpectRefusal("ii->i", {2}, kReason, "'i' occurs twice in 'ii'");
  ExpectRefusal("iij,jk->ik", {3, 2}, kReason, "diagonal");
  ExpectRefusal("...i->i...", {3}, kReason, "ellipsis");
}

TEST(EinsumTest, SaysHowTextIsMalformed) {
  constexpr std::string_view kReason = "EINSUM_MALFORMED";
  ExpectRefusal("ij->j->i", {2}, kReason, "more than one '->'");
  ExpectRefusal(" ->i", {0}, kReason, "einsum '->i': ");
  ExpectRefusal("i1->i", {2}, kReason, "'1' is not a label");
  ExpectRefusal("ij->ik", {2}, kReason, "'k' of the output is in no term");
  ExpectRefusal("ij->ii", {2}, kReason, "'i' occurs twice in the output");
  ExpectRefusal("ij,jk->ik", {2}, kReason, "2 terms for 1 tensors");
  ExpectRefusal("ij,jk->ik", {2, 3}, kReason,
                "term 1 'jk' has 2 labels, but its tensor has 3 modes");
}

}  // namespace
}  // namespace tensord::internal
