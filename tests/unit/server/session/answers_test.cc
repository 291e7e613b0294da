#include "server/session/answers.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "server/engine/host_memory.h"

namespace tensord::server {
namespace {

class AnswersTest : public ::testing::Test {
 protected:
  static HostLimits Limits() {
    HostLimits limits{};
    limits[static_cast<int>(HostUse::kAnswers)] = {3, 4096};
    return limits;
  }
  std::string Reason(absl::string_view id, absl::string_view request) {
    return core::ReasonOf(answers_.Begin(id, request).status());
  }
  /// What a call is answered that ends with `answer` if it is carried out.
  std::string Call(absl::string_view id, std::string answer) {
    const auto earlier = answers_.Begin(id, "request");
    EXPECT_TRUE(earlier.ok()) << earlier.status();
    if (*earlier) return **earlier;
    answers_.End(id, answer);
    return answer;
  }

  const std::shared_ptr<HostLedger> ledger_ =
      std::make_shared<HostLedger>("session", Limits(), 1 << 20);
  Answers answers_{ledger_};
};

TEST_F(AnswersTest, RepeatedCallHasTheFirstAnswer) {
  EXPECT_EQ(Call("a", "one"), "one");
  EXPECT_EQ(Call("a", "two"), "one");
  EXPECT_EQ(Call("b", "two"), "two");
}

TEST_F(AnswersTest, CallUnderWayIsNotCarriedOutASecondTime) {
  ASSERT_EQ(*answers_.Begin("a", "request"), std::nullopt);
  EXPECT_EQ(Reason("a", "request"), "REQUEST_UNDER_WAY");
  answers_.End("a", "one");
  EXPECT_EQ(Call("a", "two"), "one");
}

TEST_F(AnswersTest, CallThatFailedIsTriedAgain) {
  ASSERT_EQ(*answers_.Begin("a", "request"), std::nullopt);
  answers_.End("a", std::nullopt);
  EXPECT_EQ(Call("a", "two"), "two");
}

TEST_F(AnswersTest, IdIsOfOneRequest) {
  Call("a", "one");
  EXPECT_EQ(Reason("a", "another"), "REQUEST_ID_REUSED");
}

TEST_F(AnswersTest, TheOldestAreForgottenForNewOnes) {
  for (const char* const id : {"a", "b", "c", "d"}) Call(id, "first");
  EXPECT_EQ(ledger_->used(HostUse::kAnswers).count, 3);
  EXPECT_EQ(Call("b", "second"), "first");
  EXPECT_EQ(Call("a", "second"), "second");
}

TEST_F(AnswersTest, LongAnswersTakeThePlaceOfMany) {
  Call("a", "first");
  Call("b", std::string(5000, 'x'));  // kept all the same: it is the last
  EXPECT_EQ(ledger_->used(HostUse::kAnswers).count, 1);
  EXPECT_EQ(Call("b", "second"), std::string(5000, 'x'));
  Call("c", "first");
  EXPECT_EQ(Call("c", "second"), "first");
  EXPECT_LE(ledger_->used(HostUse::kAnswers).bytes, 4096);
}

TEST_F(AnswersTest, WhatIsUnderWayIsNotForgotten) {
  for (const char* const id : {"a", "b", "c"}) {
    ASSERT_EQ(*answers_.Begin(id, "request"), std::nullopt);
  }
  EXPECT_EQ(Reason("d", "request"), "TOO_MANY_ANSWERS");
  answers_.End("b", "one");
  EXPECT_EQ(Call("d", "one"), "one");
  EXPECT_EQ(Reason("a", "request"), "REQUEST_UNDER_WAY");
}

}  // namespace
}  // namespace tensord::server
