#include "server/engine/slowness.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace tensord::server {
namespace {

TEST(SlownessTest, WhatOneOwnerLearnsIsNoOthers) {
  Slowness slowness;
  for (int i = 0; i < 100; ++i) {
    slowness.Learn("slow", absl::Seconds(1), absl::Seconds(4));
    slowness.Learn("quick", absl::Seconds(1), absl::Milliseconds(500));
  }
  EXPECT_NEAR(slowness.Of("slow"), 4, 0.1);
  EXPECT_NEAR(slowness.Of("quick"), 0.5, 0.1);
  EXPECT_EQ(slowness.Of("other"), 1);
}

TEST(SlownessTest, NothingIsLearnedAtOnceOrBeyondBounds) {
  Slowness slowness;
  slowness.Learn("a", absl::Milliseconds(1), absl::Hours(1));
  EXPECT_LT(slowness.Of("a"), 2);
  for (int i = 0; i < 1000; ++i) {
    slowness.Learn("a", absl::Milliseconds(1), absl::Hours(1));
    slowness.Learn("b", absl::Hours(1), absl::Milliseconds(1));
  }
  EXPECT_LE(slowness.Of("a"), Slowness::kMost);
  EXPECT_GE(slowness.Of("b"), 1 / Slowness::kMost);
}

TEST(SlownessTest, WhoHasLearnedNothingForLongestIsForgotten) {
  Slowness slowness;
  const auto learn = [&](const std::string& owner) {
    slowness.Learn(owner, absl::Seconds(1), absl::Seconds(2));
  };
  learn("first");
  learn("second");
  for (size_t i = 2; i < Slowness::kMostOwners; ++i) learn(absl::StrCat(i));
  learn("first");
  learn("one more");
  EXPECT_GT(slowness.Of("first"), 1);
  EXPECT_GT(slowness.Of("one more"), 1);
  EXPECT_EQ(slowness.Of("second"), 1);
}

}  // namespace
}  // namespace tensord::server
