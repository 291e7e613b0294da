#include "core/memory/limiting_resource.h"

#include <atomic>
#include <thread>
#include <vector>

#include "core/base/status.h"
#include "core/memory/host_resource.h"
#include "gtest/gtest.h"

namespace tensord::core {
namespace {

class LimitingResourceTest : public ::testing::Test {
 protected:
  HostResource host_;
  LimitingResource limit_{host_, 1024, "session quota"};
};

TEST_F(LimitingResourceTest, RefusalSaysWhoAskedHowMuchIsLeftAndTheLimit) {
  const Buffer held = Buffer::Allocate(limit_, 300).value();
  const auto refused = Buffer::Allocate(limit_, 600);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(refused.status()), "MEMORY_LIMIT");
  EXPECT_EQ(refused.status().message(),
            "session quota: asked for 600 bytes, 512 of 1024 bytes left");
}

TEST_F(LimitingResourceTest, AllocationsCountRoundedUp) {
  const Buffer held = Buffer::Allocate(limit_, 1).value();
  EXPECT_EQ(limit_.used_bytes(), kBufferAlignment);
}

TEST_F(LimitingResourceTest, TheLimitItselfIsAllowed) {
  EXPECT_TRUE(Buffer::Allocate(limit_, 1024).ok());
  EXPECT_EQ(limit_.used_bytes(), 0) << "given back";
}

TEST_F(LimitingResourceTest, WhatUpstreamRefusesIsNotCounted) {
  LimitingResource outer(limit_, 1 << 20, "device");
  EXPECT_FALSE(Buffer::Allocate(outer, 4096).ok());
  EXPECT_EQ(outer.used_bytes(), 0);
}

TEST_F(LimitingResourceTest, MemoryFromElsewhereCountsHereAndUpstream) {
  LimitingResource outer(limit_, 1 << 20, "session");
  ASSERT_TRUE(outer.Charge(700).ok());
  EXPECT_EQ(outer.used_bytes(), 768);
  EXPECT_EQ(limit_.used_bytes(), 768);
  EXPECT_EQ(ReasonOf(outer.Charge(300)), "MEMORY_LIMIT");
  EXPECT_EQ(outer.used_bytes(), 768) << "what upstream refuses is not counted";
  EXPECT_FALSE(Buffer::Allocate(outer, 300).ok());
  outer.Refund(700);
  EXPECT_EQ(outer.used_bytes(), 0);
  EXPECT_EQ(limit_.used_bytes(), 0);
}

TEST_F(LimitingResourceTest, ThreadsTogetherNeverExceedTheLimit) {
  std::atomic<int> granted = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        const auto buffer = Buffer::Allocate(limit_, 512);
        if (!buffer.ok()) continue;
        EXPECT_LE(granted.fetch_add(1) + 1, 2);
        granted.fetch_sub(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(limit_.used_bytes(), 0);
}

}  // namespace
}  // namespace tensord::core
