#include "core/memory/pool_resource.h"

#include <algorithm>
#include <random>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "core/base/status.h"
#include "core/memory/host_resource.h"
#include "core/memory/limiting_resource.h"
#include "core/memory/tracking_resource.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord::core {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kKiB = 1024;
constexpr int64_t kMiB = 1024 * kKiB;

class PoolResourceTest : public ::testing::Test {
 protected:
  Buffer Take(int64_t bytes) { return Buffer::Allocate(pool_, bytes).value(); }
  int64_t upstream_count() const {
    return tracking_.statistics().allocation_count;
  }

  HostResource host_;
  LimitingResource limit_{host_, 16 * kMiB, "device memory"};
  TrackingResource tracking_{limit_};
  PoolResource pool_{tracking_, {.slab_bytes = 4 * kMiB}};
};

TEST_F(PoolResourceTest, FreedMemoryIsHandedOutAgain) {
  const std::byte* const first = Take(kMiB).data();
  EXPECT_EQ(Take(kMiB).data(), first);
  EXPECT_EQ(upstream_count(), 1);
  EXPECT_EQ(pool_.reserved_bytes(), 4 * kMiB);
}

TEST_F(PoolResourceTest, SmallRequestsShareASlab) {
  std::vector<Buffer> buffers;
  for (int i = 0; i < 1000; ++i) buffers.push_back(Take(kKiB));
  EXPECT_EQ(upstream_count(), 1);
}

TEST_F(PoolResourceTest, FreedNeighboursMergeInAnyOrder) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    std::vector<Buffer> buffers;
    for (int i = 0; i < 16; ++i) buffers.push_back(Take(256 * kKiB));
    std::shuffle(buffers.begin(), buffers.end(), rng);
    buffers.clear();
    const Buffer left = Take(2 * kMiB - kKiB);
    const Buffer right = Take(2 * kMiB - kKiB);
    EXPECT_EQ(upstream_count(), 1) << "the pieces did not merge";
  }
}

TEST_F(PoolResourceTest, SmallRequestDoesNotKeepALargeSlabFromOthers) {
  Buffer large = Take(10 * kMiB);
  const Buffer small = Take(800);
  large = Buffer();
  EXPECT_TRUE(Buffer::Allocate(pool_, 11 * kMiB).ok());
}

TEST_F(PoolResourceTest, SmallRequestsUseLargeSlabsWhenThereIsNothingElse) {
  std::vector<Buffer> large;
  for (int i = 0; i < 4; ++i) large.push_back(Take(3 * kMiB));
  std::vector<Buffer> small;
  for (int i = 0; i < 4; ++i) small.push_back(Take(kMiB));
  EXPECT_FALSE(Buffer::Allocate(pool_, kKiB).ok());
  large.clear();
  small.clear();
  EXPECT_TRUE(Buffer::Allocate(pool_, 16 * kMiB).ok());
}

TEST_F(PoolResourceTest, LargeRequestsUseSmallSlabsWhenThereIsNothingElse) {
  std::vector<Buffer> small;
  for (int i = 0; i < 16; ++i) small.push_back(Take(kMiB));
  EXPECT_FALSE(Buffer::Allocate(pool_, 3 * kMiB).ok());
  // Three neighbours in one slab, the rest of which stays in use.
  const auto begin = std::ranges::min_element(small, {}, &Buffer::data);
  const std::byte* const slab = begin->data();
  std::erase_if(small, [&](const Buffer& buffer) {
    return buffer.data() >= slab && buffer.data() < slab + 3 * kMiB;
  });
  EXPECT_TRUE(Buffer::Allocate(pool_, 3 * kMiB).ok());
}

TEST(PoolResourceLimitTest, AllOfALimitCanBeUsed) {
  constexpr int64_t kLimit = 27344 * kBufferAlignment;  // no whole huge pages
  HostResource host;
  LimitingResource limit(host, kLimit, "device memory");
  PoolResource pool(limit, {});
  EXPECT_TRUE(Buffer::Allocate(pool, kLimit).ok());
  const absl::Status full = Buffer::Allocate(pool, kLimit + 1).status();
  EXPECT_THAT(std::string(full.message()),
              HasSubstr(absl::StrCat(kLimit + kBufferAlignment)));
}

TEST_F(PoolResourceTest, TheSmallestFreeBlockThatFitsIsTaken) {
  Buffer wide = Take(64 * kKiB);
  const Buffer between = Take(kKiB);
  Buffer narrow = Take(8 * kKiB);
  const Buffer after = Take(kKiB);
  const std::byte* const narrow_address = narrow.data();
  wide = Buffer();
  narrow = Buffer();
  EXPECT_EQ(Take(8 * kKiB).data(), narrow_address);
}

TEST_F(PoolResourceTest, LargeRequestsStartAtTheLargeAlignment) {
  const Buffer small = Take(kKiB);
  const Buffer large = Take(2 * kMiB);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(large.data()) % (2 * kMiB), 0u);
}

TEST_F(PoolResourceTest, RequestLargerThanASlabGetsItsOwn) {
  const Buffer large = Take(6 * kMiB);
  EXPECT_EQ(pool_.reserved_bytes(), 6 * kMiB);
}

TEST_F(PoolResourceTest, TrimReturnsUnusedSlabsOnly) {
  const Buffer kept = Take(3 * kMiB);
  { const Buffer other = Take(3 * kMiB); }
  EXPECT_EQ(pool_.reserved_bytes(), 8 * kMiB);
  pool_.Trim();
  EXPECT_EQ(pool_.reserved_bytes(), 4 * kMiB);
  EXPECT_EQ(limit_.used_bytes(), 4 * kMiB);
}

TEST_F(PoolResourceTest, UnusedSlabsMakeRoomWhenUpstreamIsFull) {
  std::vector<Buffer> buffers;
  for (int i = 0; i < 4; ++i) buffers.push_back(Take(4 * kMiB));
  buffers.clear();
  EXPECT_EQ(limit_.used_bytes(), 16 * kMiB);
  EXPECT_TRUE(Buffer::Allocate(pool_, 12 * kMiB).ok());
}

TEST_F(PoolResourceTest, SlabsShrinkToTheRequestWhenUpstreamHasLittleLeft) {
  std::vector<Buffer> buffers;
  for (int i = 0; i < 3; ++i) buffers.push_back(Take(4 * kMiB));
  const Buffer other = Buffer::Allocate(limit_, 2 * kMiB).value();
  EXPECT_TRUE(Buffer::Allocate(pool_, 2 * kMiB).ok());
}

TEST_F(PoolResourceTest, RefusalSaysWhatWasAskedAndWhatIsLeft) {
  std::vector<Buffer> buffers;
  for (int i = 0; i < 4; ++i) buffers.push_back(Take(3 * kMiB));
  const auto refused = Buffer::Allocate(pool_, 2 * kMiB);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(refused.status()), "MEMORY_LIMIT");
  const std::string message(refused.status().message());
  EXPECT_THAT(message, HasSubstr("asked for 2097152 bytes, 0 of 16777216"));
  EXPECT_THAT(message, HasSubstr("4194304 more free bytes"));
}

TEST_F(PoolResourceTest, EverythingReturnsToUpstreamAtTheEnd) {
  {
    PoolResource pool(tracking_, {.slab_bytes = kMiB});
    std::vector<Buffer> buffers;
    for (int i = 0; i < 5; ++i) {
      buffers.push_back(Buffer::Allocate(pool, 700 * kKiB).value());
    }
  }
  EXPECT_EQ(limit_.used_bytes(), 0);
}

/// Takes its time when told to.
class SlowResource final : public MemoryResource {
 public:
  absl::StatusOr<void*> Allocate(int64_t bytes) override {
    if (is_slow) {
      asked.Notify();
      go_on.WaitForNotification();
    }
    return host_.Allocate(bytes);
  }
  void Deallocate(void* pointer, int64_t bytes) override {
    host_.Deallocate(pointer, bytes);
  }
  absl::Status Clear(void* pointer, int64_t bytes) override {
    return host_.Clear(pointer, bytes);
  }

  bool is_slow = false;
  absl::Notification asked, go_on;

 private:
  HostResource host_;
};

TEST(PoolResourceGrowthTest, WhoFindsWhatIsThereDoesNotWaitForUpstream) {
  SlowResource upstream;
  PoolResource pool(upstream, {});
  void* const there = pool.Allocate(1000).value();
  upstream.is_slow = true;
  std::thread grower([&] {
    void* const more = pool.Allocate(int64_t{100} << 20).value();
    pool.Deallocate(more, int64_t{100} << 20);
  });
  upstream.asked.WaitForNotification();
  pool.Deallocate(there, 1000);
  EXPECT_EQ(pool.Allocate(1000).value(), there);
  pool.Deallocate(there, 1000);
  upstream.go_on.Notify();
  grower.join();
}

}  // namespace
}  // namespace tensord::core
