#include "server/session/stream_scratch.h"

#include <gtest/gtest.h>

#include "core/base/status.h"
#include "core/memory/host_resource.h"
#include "core/memory/limiting_resource.h"

namespace tensord::server {
namespace {

class StreamScratchTest : public ::testing::Test {
 protected:
  core::HostResource host_;
  core::LimitingResource memory_{host_, 10'000, "the test"};
  StreamScratch scratch_;
};

TEST_F(StreamScratchTest, ExecutionsThatAreUnderWayTogetherShareIt) {
  const auto first = scratch_.Lend(memory_, 1024).value();
  const auto second = scratch_.Lend(memory_, 512).value();
  EXPECT_EQ(first->data(), second->data());
  EXPECT_EQ(memory_.used_bytes(), 1024);
}

TEST_F(StreamScratchTest, LargerNeedGetsAnotherAndLaterOnesShareThat) {
  const auto first = scratch_.Lend(memory_, 1024).value();
  const auto second = scratch_.Lend(memory_, 2048).value();
  EXPECT_NE(first->data(), second->data());
  EXPECT_EQ(scratch_.Lend(memory_, 1024).value()->data(), second->data());
}

TEST_F(StreamScratchTest, SmallOnesDoNotHoldALargeOne) {
  auto large = scratch_.Lend(memory_, 8192).value();
  const auto small = scratch_.Lend(memory_, 1024).value();
  EXPECT_EQ(scratch_.Lend(memory_, 1024).value()->data(), small->data());
  large.reset();
  EXPECT_EQ(memory_.used_bytes(), 1024);
}

TEST_F(StreamScratchTest, ReturnsWithItsLastBorrower) {
  auto first = scratch_.Lend(memory_, 1024).value();
  auto second = scratch_.Lend(memory_, 1024).value();
  first.reset();
  EXPECT_EQ(memory_.used_bytes(), 1024);
  second.reset();
  EXPECT_EQ(memory_.used_bytes(), 0);
}

TEST_F(StreamScratchTest, WhatDoesNotFitIsRefusedAndLeavesTheRest) {
  const auto first = scratch_.Lend(memory_, 1024).value();
  EXPECT_EQ(scratch_.Lend(memory_, 1'000'000).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(scratch_.Lend(memory_, 1024).value()->data(), first->data());
}

}  // namespace
}  // namespace tensord::server
