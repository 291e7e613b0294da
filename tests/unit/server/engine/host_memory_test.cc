#include "server/engine/host_memory.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/memory/host_resource.h"
#include "gtest/gtest.h"
#include "tests/testing/temporary_folder.h"

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

TEST_F(HostMemoryTest, GroupsOfVersion1Count) {
  Write("/proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/a\n0::/\n");
  Write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "262144\n");
  EXPECT_EQ(HostMemoryBytes(root()), 262144);
}

TEST_F(HostMemoryTest, LimitsLeaveRoom) {
  constexpr int64_t kGibibyte = int64_t{1} << 30;
  EXPECT_EQ(DefaultMemoryLimit(16 * kGibibyte, true), 12 * kGibibyte);
  EXPECT_EQ(DefaultMemoryLimit(3 * kGibibyte, true), 2 * kGibibyte);
  EXPECT_EQ(DefaultMemoryLimit(kGibibyte, true), kGibibyte / 2);
  EXPECT_EQ(DefaultMemoryLimit(2 * kGibibyte, false), kGibibyte * 3 / 2);
}

}  // namespace
}  // namespace tensord::server
