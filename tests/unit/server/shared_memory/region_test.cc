#include "server/shared_memory/region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/memory/host_resource.h"
#include "core/memory/limiting_resource.h"
#include "gtest/gtest.h"
#include "tests/testing/memory_file.h"

namespace tensord::shared_memory {
namespace {

using ::tensord::testing::Mapped;
using ::tensord::testing::MemoryFile;
using ::tensord::testing::MemoryFileOptions;

constexpr int64_t kQuota = int64_t{1} << 20;

class RegionTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::shared_ptr<Region>> Map(int descriptor, int64_t bytes) {
    return Region::Map(descriptor,
                       {.id = 7,
                        .bytes = bytes,
                        .quota = quota_,
                        .usage = usage_,
                        .on_released = [this](uint64_t id, uint64_t adoptions) {
                          EXPECT_EQ(id, 7u);
                          released_.push_back(adoptions);
                        }});
  }
  std::string ReasonOf(int descriptor, int64_t bytes) {
    return core::ReasonOf(Map(descriptor, bytes).status());
  }
  /// Float32, `count` of them.
  static core::TensorDesc Floats(int64_t count) {
    return {core::ElementType::kFloat32, {{count}, {1}}, 0};
  }
  void ExpectNothingIsLeft() {
    EXPECT_EQ(quota_->used_bytes(), 0);
    EXPECT_EQ(usage_->regions, 0);
    EXPECT_EQ(usage_->bytes, 0);
  }

  core::HostResource host_;
  const std::shared_ptr<core::LimitingResource> quota_ =
      std::make_shared<core::LimitingResource>(host_, kQuota, "quota");
  const std::shared_ptr<Usage> usage_ = std::make_shared<Usage>();
  std::vector<uint64_t> released_;
};

TEST_F(RegionTest, BothSidesSeeTheSameBytes) {
  const Descriptor file = MemoryFile();
  std::byte* const client = Mapped(file, 4096);
  auto region = Map(file.get(), 4096);
  ASSERT_TRUE(region.ok()) << region.status();
  client[256] = std::byte{42};
  auto storage = (*region)->Adopt("t", Floats(4), 256);
  ASSERT_TRUE(storage.ok()) << storage.status();
  EXPECT_EQ((*storage)->state(), server::TensorState::kReady);
  EXPECT_EQ((*storage)->data()[0], std::byte{42});
  (*storage)->data()[1] = std::byte{43};
  EXPECT_EQ(client[257], std::byte{43});
  munmap(client, 4096);
}

TEST_F(RegionTest, QuotaAndUsageCountItWhileItIsThere) {
  const Descriptor file = MemoryFile();
  {
    const auto region = Map(file.get(), 4096);
    ASSERT_TRUE(region.ok());
    EXPECT_EQ(quota_->used_bytes(), 4096);
    EXPECT_EQ(usage_->regions, 1);
    EXPECT_EQ(usage_->bytes, 4096);
  }
  ExpectNothingIsLeft();
  const Descriptor large = MemoryFile({.bytes = kQuota + 4096});
  EXPECT_EQ(ReasonOf(large.get(), kQuota + 4096), "MEMORY_LIMIT");
  ExpectNothingIsLeft();
}

TEST_F(RegionTest, OtherDescriptorsAreRefused) {
  EXPECT_EQ(ReasonOf(-1, 4096), "SHARED_MEMORY_NOT_MEMFD");
  const Descriptor device(open("/dev/zero", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(ReasonOf(device.get(), 4096), "SHARED_MEMORY_NOT_MEMFD");
  const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(ReasonOf(socket.get(), 4096), "SHARED_MEMORY_NOT_MEMFD");
  int ends[2] = {};
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const Descriptor in(ends[0]), out(ends[1]);
  EXPECT_EQ(ReasonOf(in.get(), 4096), "SHARED_MEMORY_NOT_MEMFD");
  const Descriptor folder(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  EXPECT_EQ(ReasonOf(folder.get(), 4096), "SHARED_MEMORY_NOT_MEMFD");
  ExpectNothingIsLeft();
}

TEST_F(RegionTest, FilesThatMayChangeTheirSizeAreRefused) {
  for (const int seals :
       {0, F_SEAL_SHRINK, F_SEAL_SHRINK | F_SEAL_SEAL,
        F_SEAL_GROW | F_SEAL_SEAL, F_SEAL_SHRINK | F_SEAL_GROW}) {
    const Descriptor file = MemoryFile({.seals = seals});
    EXPECT_EQ(ReasonOf(file.get(), 4096), "SHARED_MEMORY_NOT_SEALED") << seals;
  }
  // The server writes results.
  const Descriptor read_only = MemoryFile(
      {.seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | F_SEAL_WRITE});
  EXPECT_EQ(ReasonOf(read_only.get(), 4096), "SHARED_MEMORY_NOT_SEALED");
  ExpectNothingIsLeft();
}

TEST_F(RegionTest, FilesOfAnotherSizeOrWithoutPagesAreRefused) {
  const Descriptor file = MemoryFile();
  EXPECT_EQ(ReasonOf(file.get(), 8192), "SHARED_MEMORY_SIZE_DIFFERS");
  EXPECT_EQ(ReasonOf(file.get(), 1), "SHARED_MEMORY_SIZE_DIFFERS");
  EXPECT_EQ(ReasonOf(file.get(), std::numeric_limits<int64_t>::max()),
            "SHARED_MEMORY_SIZE_DIFFERS");
  const Descriptor hollow = MemoryFile({.is_allocated = false});
  EXPECT_EQ(ReasonOf(hollow.get(), 4096), "SHARED_MEMORY_NOT_ALLOCATED");
  ExpectNothingIsLeft();
}

TEST_F(RegionTest, DescriptorsWithoutTheRightToWriteAreRefused) {
  const Descriptor file = MemoryFile();
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  const Descriptor reading(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(ReasonOf(reading.get(), 4096), "SHARED_MEMORY_NOT_MAPPED");
  ExpectNothingIsLeft();
}

TEST_F(RegionTest, TensorsLieWithinIt) {
  const Descriptor file = MemoryFile({.bytes = 8192});
  const auto region = Map(file.get(), 8192);
  ASSERT_TRUE(region.ok());
  const auto reason = [&](const core::TensorDesc& desc, int64_t offset) {
    return core::ReasonOf((*region)->Check(desc, offset));
  };
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(reason(Floats(2048), 0), "");
  EXPECT_EQ(reason(Floats(1984), 256), "");
  EXPECT_EQ(reason(Floats(0), 8192), "");
  EXPECT_EQ(reason(Floats(2049), 0), "SHARED_MEMORY_OUT_OF_RANGE");
  EXPECT_EQ(reason(Floats(1985), 256), "SHARED_MEMORY_OUT_OF_RANGE");
  EXPECT_EQ(reason(Floats(1), 8192), "SHARED_MEMORY_OUT_OF_RANGE");
  EXPECT_EQ(reason(Floats(1), -256), "SHARED_MEMORY_OUT_OF_RANGE");
  EXPECT_EQ(reason(Floats(1), kMost), "SHARED_MEMORY_OUT_OF_RANGE");
  EXPECT_EQ(reason(Floats(1), kMost - 255), "SHARED_MEMORY_OUT_OF_RANGE");
  EXPECT_EQ(reason(Floats(1), kLeast), "SHARED_MEMORY_OUT_OF_RANGE");
  EXPECT_EQ(reason(Floats(kMost / 4), 256), "SHARED_MEMORY_OUT_OF_RANGE");
  EXPECT_EQ(reason(Floats(1), 4), "SHARED_MEMORY_MISALIGNED");
  core::TensorDesc behind = Floats(4);
  behind.offset = 2045;
  EXPECT_EQ(reason(behind, 0), "SHARED_MEMORY_OUT_OF_RANGE");
  behind.offset = 2044;
  EXPECT_EQ(reason(behind, 0), "");
}

TEST_F(RegionTest, ItsLastTensorIsToldOf) {
  const Descriptor file = MemoryFile();
  const auto region = Map(file.get(), 4096);
  ASSERT_TRUE(region.ok());
  auto first = (*region)->Adopt("a", Floats(4), 0);
  auto second = (*region)->Adopt("b", Floats(4), 256);
  first->reset();
  EXPECT_TRUE(released_.empty());
  second->reset();
  EXPECT_EQ(released_, (std::vector<uint64_t>{2}));
}

TEST_F(RegionTest, WhatIsTakenBackIsReadByNobody) {
  const Descriptor file = MemoryFile();
  std::byte* const client = Mapped(file, 4096);
  const auto region = Map(file.get(), 4096);
  ASSERT_TRUE(region.ok());
  const auto storage = (*region)->Adopt("t", Floats(4), 0);
  ASSERT_TRUE(storage.ok());
  client[0] = std::byte{1};
  ASSERT_TRUE((*storage)->BeginRead().ok());
  (*region)->Drop();
  EXPECT_EQ(core::ReasonOf((*storage)->BeginRead()), "SHARED_MEMORY_GONE");
  EXPECT_EQ(core::ReasonOf((*storage)->BeginWrite()), "SHARED_MEMORY_GONE");
  EXPECT_EQ(core::ReasonOf((*storage)->BeginUpload(0)), "SHARED_MEMORY_GONE");
  EXPECT_EQ(core::ReasonOf((*storage)->CheckReady()), "SHARED_MEMORY_GONE");
  EXPECT_EQ((*storage)->state(), server::TensorState::kInvalid);
  EXPECT_EQ(core::ReasonOf((*region)->Adopt("u", Floats(4), 0).status()),
            "SHARED_MEMORY_GONE");

  EXPECT_FALSE((*region)->TryUnmap());  // Somebody reads it.
  EXPECT_EQ((*storage)->data()[0], std::byte{1});
  EXPECT_EQ(quota_->used_bytes(), 4096);
  (*storage)->EndRead();
  EXPECT_TRUE((*region)->TryUnmap());
  ExpectNothingIsLeft();
  // Who looks all the same finds zeros, and the client keeps its own.
  EXPECT_EQ((*storage)->data()[0], std::byte{0});
  (*storage)->data()[0] = std::byte{9};
  EXPECT_EQ(client[0], std::byte{1});
  munmap(client, 4096);
}

TEST_F(RegionTest, HolesThatAClientPunchesReadAsZeros) {
  const Descriptor file = MemoryFile();
  const auto region = Map(file.get(), 4096);
  ASSERT_TRUE(region.ok());
  const auto storage = (*region)->Adopt("t", Floats(4), 0);
  (*storage)->data()[0] = std::byte{1};
  ASSERT_EQ(fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                      4096),
            0);
  EXPECT_EQ((*storage)->data()[0], std::byte{0});
  EXPECT_NE(ftruncate(file.get(), 0), 0);
}

}  // namespace
}  // namespace tensord::shared_memory
