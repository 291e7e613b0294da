#include "server/engine/host_memory.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "core/base/status.h"
#include "core/memory/host_resource.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/control_groups.h"
#include "tests/testing/places.h"

namespace tensord::server {
namespace {

class HostMemoryTest : public ::testing::Test {
 protected:
  static void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  /// Of the test's own file system.
  static std::string root() {
    return testing::TemporaryFolder() + "/" +
           ::testing::UnitTest::GetInstance()->current_test_info()->name();
  }
};

TEST_F(HostMemoryTest, WithoutGroupsItIsTheMachines) {
  EXPECT_EQ(HostMemoryBytes(root()), core::HostMemoryBytes());
}

TEST_F(HostMemoryTest, TheLeastLimitOfAGroupAndThoseAroundItCounts) {
  Write("/proc/self/cgroup", "0::/pod/container\n");
  Write("/sys/fs/cgroup/pod/container/memory.max", "max\n");
  EXPECT_EQ(HostMemoryBytes(root()), core::HostMemoryBytes());
  Write("/sys/fs/cgroup/pod/memory.max", "1048576\n");
  EXPECT_EQ(HostMemoryBytes(root()), 1 << 20);
  Write("/sys/fs/cgroup/pod/container/memory.max", "65536\n");
  EXPECT_EQ(HostMemoryBytes(root()), 65536);
  // As a container sees itself.
  Write("/proc/self/cgroup", "0::/\n");
  Write("/sys/fs/cgroup/memory.max", "131072\n");
  EXPECT_EQ(HostMemoryBytes(root()), 131072);
}

TEST_F(HostMemoryTest, TooLittleForAServerIsToldWithWhatIsWanted) {
  EXPECT_TRUE(CheckHostMemory(root()).ok());
  Write("/proc/self/cgroup", "0::/\n");
  Write("/sys/fs/cgroup/memory.max", "134217728\n");
  EXPECT_TRUE(CheckHostMemory(root()).ok());
  Write("/sys/fs/cgroup/memory.max", "67108864\n");
  const absl::Status refused = CheckHostMemory(root());
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(core::ReasonOf(refused), "HOST_MEMORY_TOO_SMALL");
  EXPECT_THAT(std::string(refused.message()),
              ::testing::HasSubstr("67108864 bytes of memory, wanted at least "
                                   "134217728"));
}

TEST_F(HostMemoryTest, GroupsOfVersion1Count) {
  Write("/proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/a\n0::/\n");
  Write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "262144\n");
  EXPECT_EQ(HostMemoryBytes(root()), 262144);
}

TEST_F(HostMemoryTest, CoresAreThoseThatGroupsPayFor) {
  EXPECT_EQ(CoreQuota(root()), std::nullopt);
  Write("/proc/self/cgroup", "0::/pod/container\n");
  Write("/sys/fs/cgroup/pod/container/cpu.max", "max 100000\n");
  EXPECT_EQ(CoreQuota(root()), std::nullopt);
  Write("/sys/fs/cgroup/pod/cpu.max", "250000 100000\n");
  EXPECT_EQ(CoreQuota(root()), 2.5);
  Write("/proc/self/cgroup", "5:cpu,cpuacct:/a\n");
  Write("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n");
  Write("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CoreQuota(root()), std::nullopt);
  Write("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "50000\n");
  EXPECT_EQ(CoreQuota(root()), 0.5);
}

TEST_F(HostMemoryTest, LimitsLeaveRoom) {
  constexpr int64_t kGibibyte = int64_t{1} << 30;
  EXPECT_EQ(DefaultMemoryLimit(16 * kGibibyte, true), 12 * kGibibyte);
  EXPECT_EQ(DefaultMemoryLimit(3 * kGibibyte, true), 2 * kGibibyte);
  EXPECT_EQ(DefaultMemoryLimit(kGibibyte, true), kGibibyte / 2);
  EXPECT_EQ(DefaultMemoryLimit(2 * kGibibyte, false), kGibibyte * 3 / 2);
}

/// One that lets two tensors, of 100 bytes together, and one request be.
HostLimits FewLimits() {
  HostLimits limits = {};
  limits[static_cast<int>(HostUse::kTensors)] = {2, 100};
  limits[static_cast<int>(HostUse::kRequests)] = {1, 100};
  return limits;
}

TEST(HostLedgerTest, RefusesWhatGoesBeyondALimitAndCountsNothingThen) {
  const auto ledger = std::make_shared<HostLedger>("session", FewLimits(), 150);
  HostHold first, second, third, request;
  EXPECT_TRUE(first.Take(ledger, HostUse::kTensors, 60).ok());
  const absl::Status large = second.Take(ledger, HostUse::kTensors, 41);
  EXPECT_EQ(large.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(core::ReasonOf(large), "HOST_MEMORY_LIMIT");
  EXPECT_EQ(large.message(),
            "tensors need 41 bytes of host memory, tensors of the session have "
            "60, the limit is 100; end some, or retry later");
  EXPECT_TRUE(second.Take(ledger, HostUse::kTensors, 40).ok());
  EXPECT_EQ(core::ReasonOf(third.Take(ledger, HostUse::kTensors, 0)),
            "TOO_MANY_TENSORS");
  EXPECT_EQ(ledger->used(HostUse::kTensors).count, 2);
  EXPECT_EQ(ledger->used(HostUse::kTensors).bytes, 100);
  // All uses together.
  EXPECT_EQ(core::ReasonOf(request.Take(ledger, HostUse::kRequests, 51)),
            "HOST_MEMORY_LIMIT");
  EXPECT_TRUE(request.Take(ledger, HostUse::kRequests, 50).ok());
}

TEST(HostLedgerTest, WhatASessionTakesIsTheServersToo) {
  const auto server = std::make_shared<HostLedger>("server", FewLimits(), 150);
  const auto one =
      std::make_shared<HostLedger>("session", FewLimits(), 150, server);
  const auto other =
      std::make_shared<HostLedger>("session", FewLimits(), 150, server);
  HostHold others;
  {
    HostHold first, second;
    ASSERT_TRUE(first.Take(one, HostUse::kTensors, 10).ok());
    ASSERT_TRUE(second.Take(one, HostUse::kTensors, 10).ok());
    EXPECT_TRUE(second.Grow(30).ok());
    EXPECT_EQ(core::ReasonOf(second.Grow(51)), "HOST_MEMORY_LIMIT");
    EXPECT_EQ(server->used(HostUse::kTensors).bytes, 50);
    const absl::Status refused = others.Take(other, HostUse::kTensors, 10);
    EXPECT_EQ(core::ReasonOf(refused), "TOO_MANY_TENSORS");
    EXPECT_EQ(refused.message(),
              "the server has 2 tensors, its limit is 2; end some, or retry "
              "later");
    EXPECT_EQ(other->used(HostUse::kTensors).count, 0);
  }
  EXPECT_EQ(server->used(HostUse::kTensors).count, 0);
  EXPECT_EQ(server->used(HostUse::kTensors).bytes, 0);
  EXPECT_TRUE(others.Take(other, HostUse::kTensors, 10).ok());
  // What is there is counted, whatever the limit, and keeps others out.
  others.Add(1000);
  EXPECT_EQ(server->used(HostUse::kTensors).bytes, 1010);
  HostHold more;
  EXPECT_EQ(core::ReasonOf(more.Take(one, HostUse::kTensors, 1)),
            "HOST_MEMORY_LIMIT");
  // It goes with who holds it.
  { const HostHold moved = std::move(others); }
  EXPECT_EQ(server->used(HostUse::kTensors).count, 0);
}

TEST(HostHoldTest, TakesOneThingInsteadOfAnother) {
  const auto server = std::make_shared<HostLedger>("server", FewLimits(), 150);
  const auto one =
      std::make_shared<HostLedger>("session", FewLimits(), 150, server);
  HostHold hold;
  hold.TakeAnyway(server, HostUse::kRequests, 60);
  // What it has counts until then.
  EXPECT_EQ(core::ReasonOf(hold.Take(one, HostUse::kRequests, 41)),
            "HOST_MEMORY_LIMIT");
  EXPECT_EQ(one->used_bytes(), 0);
  EXPECT_EQ(server->used_bytes(), 60);
  EXPECT_TRUE(hold.Take(one, HostUse::kRequests, 40).ok());
  EXPECT_EQ(one->used(HostUse::kRequests).count, 1);
  EXPECT_EQ(one->used_bytes(), 40);
  EXPECT_EQ(server->used_bytes(), 40);
  hold.TakeAnyway(server, HostUse::kRequests, 1000);
  EXPECT_EQ(one->used(HostUse::kRequests).count, 0);
  EXPECT_EQ(one->used_bytes(), 0);
  EXPECT_EQ(server->used_bytes(), 1000);
}

}  // namespace
}  // namespace tensord::server
