#include "server/telemetry/heap_watch.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tensord::server {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;

int64_t held = 0;
int64_t heap = 0;
int heap_looks = 0;

/// A process that holds what the test says.
class HeapWatchTest : public ::testing::Test {
 protected:
  HeapWatchTest() { held = heap = heap_looks = 0; }

  void Hold(int64_t held_mebibytes, int64_t heap_mebibytes) {
    held = held_mebibytes * kMebibyte;
    heap = heap_mebibytes * kMebibyte;
  }

  HeapWatch watch_{1024 * kMebibyte,
                   {.held_bytes = [] { return held; },
                    .heap_bytes =
                        [] {
                          ++heap_looks;
                          return heap;
                        }}};
};

TEST_F(HeapWatchTest, WhatIsNotCountedIsTooMuchBeyondWhatMayBe) {
  Hold(1100, 1024);
  EXPECT_EQ(watch_.Overflow(0), std::nullopt);
  Hold(1300, 1025);
  EXPECT_EQ(watch_.Overflow(0), heap);
  EXPECT_EQ(watch_.Overflow(kMebibyte), std::nullopt);
}

TEST_F(HeapWatchTest, WhatIsCountedMayTakeFourTimesAsMuch) {
  Hold(4000, 1024 + 4 * 256);
  EXPECT_EQ(watch_.Overflow(256 * kMebibyte), std::nullopt);
  Hold(4100, 1024 + 4 * 256 + 1);
  EXPECT_EQ(watch_.Overflow(256 * kMebibyte), heap);
}

TEST_F(HeapWatchTest, AnOverflowIsSeenAsLongAsItLasts) {
  Hold(3000, 2000);
  EXPECT_EQ(watch_.Overflow(0), heap);
  EXPECT_EQ(watch_.Overflow(0), heap);
  Hold(3000, 100);  // its memory is free, and not yet the system's
  EXPECT_EQ(watch_.Overflow(0), std::nullopt);
}

TEST_F(HeapWatchTest, TheHeapIsLookedAtOnlyWhenTheProcessHoldsMore) {
  Hold(1000, 900);
  EXPECT_EQ(watch_.Overflow(0), std::nullopt);
  EXPECT_EQ(heap_looks, 0);
  Hold(3000, 900);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(watch_.Overflow(0), std::nullopt);
  EXPECT_EQ(heap_looks, 1);
  Hold(2000, 900);  // tensors have gone
  EXPECT_EQ(watch_.Overflow(0), std::nullopt);
  EXPECT_EQ(heap_looks, 1);
  Hold(2900, 1800);
  EXPECT_EQ(watch_.Overflow(0), heap);
}

TEST(HeapWatchSystemTest, TheSystemSaysWhatTheProcessHolds) {
  const HeapWatch::Source system = HeapWatch::System();
  EXPECT_GT(system.held_bytes(), 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const int64_t before = system.heap_bytes();
  const std::vector<std::string> pieces(1 << 14, std::string(1 << 10, 'x'));
  EXPECT_GE(system.heap_bytes() - before, 1 << 24);
#endif
}

}  // namespace
}  // namespace tensord::server
