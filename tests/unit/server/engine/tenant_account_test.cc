#include "server/engine/tenant_account.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/status.h"
#include "core/memory/memory_resource.h"
#include "server/engine/engine.h"
#include "server/engine/quota.h"

namespace tensord::server {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;

class TenantAccountTest : public ::testing::Test {
 protected:
  Device& device() { return *engine_->devices().front(); }
  core::MemoryResource& MemoryOf(TenantAccount& account) {
    return account.On(device()).memory;
  }

  std::unique_ptr<Engine> engine_ =
      Engine::Create({.cpu_threads = 1,
                      .memory_limit_bytes = 4 * kMebibyte,
                      .clears_memory = true})
          .value();
  TenantAccount red_{"red", nullptr};
  TenantAccount blue_{"blue", nullptr};
};

TEST_F(TenantAccountTest, DeviceBytesAreLimitedAndSaidByNameLimitAndUse) {
  red_.SetQuotas({.device_bytes = kMebibyte});
  const auto most = core::Buffer::Allocate(MemoryOf(red_), kMebibyte - 256);
  ASSERT_TRUE(most.ok());
  const absl::Status refused =
      core::Buffer::Allocate(MemoryOf(red_), 257).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(core::ReasonOf(refused), "TENANT_QUOTA_EXCEEDED");
  EXPECT_EQ(refused.message(),
            "tenant red: asked for 512 more of device_bytes, 1048320 are in "
            "use, its limit is 1048576; give some back, and retry");
  const auto quota = QuotaOf(refused);
  ASSERT_TRUE(quota.has_value());
  EXPECT_EQ(quota->quota, "device_bytes");
  EXPECT_EQ(quota->limit, kMebibyte);
  EXPECT_EQ(quota->used, kMebibyte - 256);
  EXPECT_FALSE(quota->retry_after.has_value());
  EXPECT_TRUE(core::Buffer::Allocate(MemoryOf(red_), 256).ok());
  EXPECT_TRUE(core::Buffer::Allocate(MemoryOf(blue_), 2 * kMebibyte).ok());
}

TEST_F(TenantAccountTest, MemoryFromElsewhereCountsInAllQuotas) {
  red_.SetQuotas({.device_bytes = 3 * kMebibyte});
  // What the pool keeps for reuse makes room.
  ASSERT_TRUE(core::Buffer::Allocate(MemoryOf(blue_), 2 * kMebibyte).ok());
  ASSERT_TRUE(MemoryOf(red_).Charge(3 * kMebibyte).ok());
  EXPECT_EQ(core::ReasonOf(MemoryOf(red_).Charge(256)),
            "TENANT_QUOTA_EXCEEDED");
  EXPECT_EQ(core::ReasonOf(MemoryOf(blue_).Charge(2 * kMebibyte)),
            "MEMORY_LIMIT");
  EXPECT_FALSE(core::Buffer::Allocate(MemoryOf(blue_), 2 * kMebibyte).ok());
  EXPECT_EQ(device().memory_statistics().used_bytes, 0);
  MemoryOf(red_).Refund(3 * kMebibyte);
  EXPECT_TRUE(core::Buffer::Allocate(MemoryOf(blue_), 4 * kMebibyte).ok());
}

TEST_F(TenantAccountTest, LowerLimitRefusesWhatIsNewOnly) {
  auto has = core::Buffer::Allocate(MemoryOf(red_), kMebibyte);
  ASSERT_TRUE(has.ok());
  red_.SetQuotas({.device_bytes = kMebibyte / 2});
  EXPECT_FALSE(core::Buffer::Allocate(MemoryOf(red_), 1).ok());
  EXPECT_TRUE(has->Clear().ok());
  *has = core::Buffer();
  EXPECT_TRUE(core::Buffer::Allocate(MemoryOf(red_), kMebibyte / 2).ok());
}

TEST_F(TenantAccountTest, NobodyTakesWhatIsReservedForOthers) {
  red_.SetQuotas({.reserved_bytes = 2 * kMebibyte});
  ASSERT_EQ(red_.On(device()).memory.quota().reserved_bytes, 2 * kMebibyte);
  const auto rest = core::Buffer::Allocate(MemoryOf(blue_), 2 * kMebibyte);
  ASSERT_TRUE(rest.ok());
  const absl::Status refused =
      core::Buffer::Allocate(MemoryOf(blue_), 1).status();
  EXPECT_EQ(core::ReasonOf(refused), "MEMORY_LIMIT");
  EXPECT_THAT(std::string(refused.message()),
              ::testing::HasSubstr("2097152 are reserved for other tenants"));
  {
    const auto own = core::Buffer::Allocate(MemoryOf(red_), 2 * kMebibyte);
    EXPECT_TRUE(own.ok()) << own.status();
  }
  red_.SetQuotas({});
  EXPECT_TRUE(core::Buffer::Allocate(MemoryOf(blue_), 2 * kMebibyte).ok());
}

TEST_F(TenantAccountTest, MemoryThatChangesTenantIsCleared) {
  constexpr int64_t kBytes = 3 * kMebibyte;
  constexpr int64_t kBlues = 2 * kMebibyte;  // large enough for the same slab
  std::byte* place = nullptr;
  {
    const auto reds = core::Buffer::Allocate(MemoryOf(red_), kBytes).value();
    place = reds.data();
    std::memset(place, 0x5a, kBytes);
  }
  const auto count = [](const core::Buffer& buffer) {
    return std::count(buffer.data(), buffer.data() + buffer.bytes(),
                      std::byte{0x5a});
  };
  {  // Its own memory it finds as it left it: nothing is cleared in vain.
    const auto again = core::Buffer::Allocate(MemoryOf(red_), kBytes).value();
    ASSERT_EQ(again.data(), place);
    EXPECT_EQ(count(again), kBytes);
  }
  {
    const auto blues = core::Buffer::Allocate(MemoryOf(blue_), kBlues).value();
    ASSERT_GE(blues.data(), place);
    ASSERT_LT(blues.data(), place + kBytes);
    EXPECT_EQ(count(blues), 0);
  }
  // What blue did not have is still red's.
  const auto rest = core::Buffer::Allocate(MemoryOf(red_), kBytes).value();
  EXPECT_EQ(count(rest), kBytes - kBlues);
}

TEST_F(TenantAccountTest, HostMemoryAndTensorsAreLimitedTogether) {
  red_.SetQuotas({.host_bytes = 1000, .tensors = 2});
  const auto one = std::make_shared<HostLedger>(
      "session", HostLimits{{{9, 9000}, {9, 9000}}}, 9000, red_.host_memory());
  const auto other = std::make_shared<HostLedger>(
      "session", HostLimits{{{9, 9000}, {9, 9000}}}, 9000, red_.host_memory());
  HostHold first, second, third, plan;
  ASSERT_TRUE(first.Take(one, HostUse::kTensors, 300).ok());
  ASSERT_TRUE(second.Take(other, HostUse::kTensors, 300).ok());
  const absl::Status many = third.Take(other, HostUse::kTensors, 1);
  EXPECT_EQ(QuotaOf(many)->quota, "tensors");
  EXPECT_EQ(QuotaOf(many)->used, 2);
  const absl::Status large = plan.Take(one, HostUse::kPlans, 401);
  EXPECT_EQ(QuotaOf(large)->quota, "host_bytes");
  EXPECT_EQ(QuotaOf(large)->used, 600);
  EXPECT_TRUE(plan.Take(one, HostUse::kPlans, 400).ok());
  EXPECT_EQ(one->used(HostUse::kTensors).count, 1);
  EXPECT_EQ(red_.host_memory()->used_bytes(), 1000);
}

TEST_F(TenantAccountTest, TellsUsesOfQuotasThatAreSet) {
  EXPECT_TRUE(red_.uses(absl::Now()).empty());
  red_.SetQuotas({.device_bytes = kMebibyte, .tensors = 7, .running = 2});
  const auto has = core::Buffer::Allocate(MemoryOf(red_), 1000);
  std::vector<std::string> told;
  for (const auto& use : red_.uses(absl::Now())) {
    told.push_back(absl::StrCat(use.quota, " ", use.device, " ", use.used, "/",
                                use.limit));
  }
  EXPECT_THAT(told, ::testing::UnorderedElementsAre(
                        "tensors  0/7", "device_bytes cpu:0 1024/1048576",
                        "running cpu:0 0/2"));
}

TEST(SearchBudgetTest, ComesBackWithinAMinute) {
  SearchBudget budget("red");
  const absl::Time now = absl::UnixEpoch() + absl::Hours(1);
  budget.Count(now, absl::Hours(1));  // without a limit nobody counts
  budget.SetLimit(6);
  EXPECT_TRUE(budget.Check(now).ok());
  budget.Count(now, absl::Seconds(9));
  const absl::Status refused = budget.Check(now);
  EXPECT_EQ(core::ReasonOf(refused), "TENANT_QUOTA_EXCEEDED");
  const auto quota = QuotaOf(refused);
  EXPECT_EQ(quota->quota, "search_seconds");
  EXPECT_EQ(quota->limit, 6);
  EXPECT_EQ(quota->used, 9);
  // 3 s too much, of which 6 come back a minute.
  ASSERT_TRUE(quota->retry_after.has_value());
  EXPECT_GE(*quota->retry_after, absl::Seconds(30));
  EXPECT_LE(*quota->retry_after, absl::Seconds(32));
  EXPECT_FALSE(budget.Check(now + absl::Seconds(29)).ok());
  EXPECT_TRUE(budget.Check(now + *quota->retry_after).ok());
  EXPECT_EQ(budget.used(now + absl::Minutes(2)), absl::ZeroDuration());
}

TEST(SearchBudgetTest, NoWaitingHelpsWhatAsksForMoreThanThereIs) {
  SearchBudget budget("red");
  budget.SetLimit(6);
  const absl::Status refused = budget.Check(absl::Now(), absl::Seconds(7));
  EXPECT_EQ(QuotaOf(refused)->quota, "search_seconds");
  EXPECT_FALSE(QuotaOf(refused)->retry_after.has_value());
  EXPECT_TRUE(budget.Check(absl::Now(), absl::Seconds(6)).ok());
}

TEST(QuotaTest, OtherStatusesSayNothingOfQuotas) {
  EXPECT_FALSE(QuotaOf(absl::OkStatus()).has_value());
  EXPECT_FALSE(QuotaOf(core::ResourceExhausted("X", "y")).has_value());
}

}  // namespace
}  // namespace tensord::server
