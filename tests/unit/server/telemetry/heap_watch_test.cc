#include "server/telemetry/heap_watch.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tensord::server {
namespace {

using Excess = HeapWatch::Excess;

constexpr int64_t kMebibyte = int64_t{1} << 20;

int64_t held = 0;
int64_t heap = 0;
int heap_looks = 0;

/// A process that holds what the test says, in MiB; 30 at its first look.
class HeapWatchTest : public ::testing::Test {
 protected:
  HeapWatchTest() {
    heap_looks = 0;
    Look(30, 0, /*is_quiet=*/true);
  }

  Excess Look(int64_t heap_mebibytes, int64_t counted_mebibytes = 0,
              bool is_quiet = false) {
    return LookAt(heap_mebibytes, heap_mebibytes, counted_mebibytes, is_quiet);
  }
  /// Of a process that holds more than its heap does.
  Excess LookAt(int64_t held_mebibytes, int64_t heap_mebibytes,
                int64_t counted_mebibytes = 0, bool is_quiet = false) {
    held = held_mebibytes * kMebibyte;
    heap = heap_mebibytes * kMebibyte;
    return watch_.Look(counted_mebibytes * kMebibyte, is_quiet,
                       std::exchange(ended_, 0));
  }
  /// Before the next look.
  void End(int64_t calls) { ended_ = calls; }
  int64_t arriving() const { return watch_.arriving_bytes() / kMebibyte; }

  int64_t ended_ = 0;
  HeapWatch watch_{
      {.arriving_bytes = 256 * kMebibyte, .spare_bytes = 1024 * kMebibyte},
      {.held_bytes = [] { return held; },
       .heap_bytes =
           [] {
             ++heap_looks;
             return heap;
           }}};
};

TEST_F(HeapWatchTest, WhatIsNotCountedArrives) {
  EXPECT_EQ(Look(100), Excess::kNone);
  EXPECT_EQ(arriving(), 70);
  EXPECT_EQ(Look(100, 50), Excess::kNone);  // parsed, and counted
  EXPECT_EQ(arriving(), 20);
  EXPECT_EQ(Look(100, 100), Excess::kNone);  // more than it takes
  EXPECT_EQ(arriving(), 0);
}

TEST_F(HeapWatchTest, NothingArrivesWithoutCalls) {
  Look(100);
  EXPECT_EQ(Look(100, 0, /*is_quiet=*/true), Excess::kNone);
  EXPECT_EQ(arriving(), 0);
  Look(110);
  EXPECT_EQ(arriving(), 10);
}

TEST_F(HeapWatchTest, RequestsGoWhenMuchArrives) {
  EXPECT_EQ(Look(30 + 256), Excess::kNone);
  EXPECT_EQ(Look(30 + 257), Excess::kRequests);
  EXPECT_EQ(Look(30 + 10), Excess::kNone);
  EXPECT_EQ(Look(30 + 512), Excess::kRequests);
}

TEST_F(HeapWatchTest, AsLongAsRequestsAreEndedNothingElseIs) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(Look(30 + 300 + i), Excess::kRequests);
    End(1);
  }
  EXPECT_EQ(Look(30 + 513), Excess::kWaits);  // twice as much
}

TEST_F(HeapWatchTest, AllThatWaitsGoesWhereNoRequestIsEnded) {
  for (int i = 0; i < 4; ++i) EXPECT_EQ(Look(30 + 300), Excess::kRequests);
  EXPECT_EQ(Look(30 + 300), Excess::kWaits);
  End(1);
  EXPECT_EQ(Look(30 + 300), Excess::kRequests);
}

TEST_F(HeapWatchTest, NothingGoesForWhatStaysWithoutCalls) {
  int looks = 0;
  while (Look(30 + 300) != Excess::kNone) ++looks;
  EXPECT_EQ(looks, 12);
  EXPECT_EQ(arriving(), 300);
  EXPECT_EQ(Look(30 + 300 + 256), Excess::kNone);
  EXPECT_EQ(Look(30 + 300 + 257), Excess::kRequests);
  EXPECT_EQ(Look(30 + 100), Excess::kNone);  // 200 have gone
  EXPECT_EQ(Look(30 + 100 + 256), Excess::kNone);
  EXPECT_EQ(Look(30 + 100 + 257), Excess::kRequests);
}

TEST_F(HeapWatchTest, ConnectionsGoBeyondWhatMayBeThereUncounted) {
  EXPECT_EQ(Look(1024, 900), Excess::kNone);
  EXPECT_EQ(Look(1025), Excess::kConnections);
  EXPECT_EQ(Look(1025, 900), Excess::kNone);
}

TEST_F(HeapWatchTest, WhatIsCountedMayTakeFourTimesAsMuch) {
  EXPECT_NE(Look(1024 + 4 * 256, 256), Excess::kConnections);
  EXPECT_EQ(Look(1025 + 4 * 256, 256), Excess::kConnections);
}

TEST_F(HeapWatchTest, TooMuchIsSeenAsLongAsItLasts) {
  EXPECT_EQ(LookAt(3000, 2000), Excess::kConnections);
  EXPECT_EQ(LookAt(3000, 2000), Excess::kConnections);
  // Its memory is free, and not yet the system's.
  EXPECT_EQ(LookAt(3000, 30), Excess::kNone);
}

TEST_F(HeapWatchTest, TheHeapIsLookedAtOnlyWhenTheProcessHoldsMore) {
  ASSERT_EQ(heap_looks, 1);
  for (int i = 0; i < 10; ++i) LookAt(33, 33);
  EXPECT_EQ(heap_looks, 1);
  for (int i = 0; i < 10; ++i) LookAt(1000, 30);  // contents of tensors
  EXPECT_EQ(heap_looks, 2);
  LookAt(500, 30);
  EXPECT_EQ(heap_looks, 2);
  LookAt(504, 34);
  EXPECT_EQ(heap_looks, 3);
  EXPECT_EQ(arriving(), 4);
  LookAt(504, 34);  // something arrives
  EXPECT_EQ(heap_looks, 4);
}

TEST_F(HeapWatchTest, MemoryThatIsUsedAgainIsSeenWhenItIsDue) {
  LookAt(500, 500, 0, /*is_quiet=*/true);
  LookAt(500, 30, 0, /*is_quiet=*/true);
  EXPECT_EQ(heap_looks, 2);
  watch_.LookNext();
  LookAt(500, 30, 0, /*is_quiet=*/true);
  LookAt(500, 200);
  EXPECT_EQ(arriving(), 0);
  watch_.LookNext();
  LookAt(500, 200);
  EXPECT_EQ(arriving(), 170);
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
