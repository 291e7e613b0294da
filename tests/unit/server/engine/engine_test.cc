#include "server/engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/backend/cpu/cpu_backend.h"
#include "core/base/status.h"
#include "core/memory/limiting_resource.h"
#include "server/engine/host_memory.h"
#include "server/engine/module_loader.h"
#include "server/engine/quota.h"
#include "server/engine/tenant_account.h"
#include "tests/testing/stand_in_backend.h"

namespace tensord::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

// A module whose two devices are CPUs.
absl::StatusOr<int> CountTwo() { return 2; }
absl::StatusOr<int> CountNone() {
  return core::Error(absl::StatusCode::kUnavailable, "NO_CUDA_DEVICE",
                     "there is no driver");
}
absl::StatusOr<std::unique_ptr<core::Backend>> CreateCpu(int ordinal) {
  if (ordinal < 2) return core::CreateCpuBackend({.thread_count = 1});
  return core::Error(absl::StatusCode::kUnavailable, "NO_CUDA_DEVICE",
                     "there is no such device");
}
absl::StatusOr<std::unique_ptr<core::Backend>> CreateTheSecond(int ordinal) {
  return CreateCpu(ordinal == 1 ? 1 : 2);
}
constexpr core::BackendModule kSecondAlone{core::kBackendBuild, &CountTwo,
                                           &CreateTheSecond};
constexpr core::BackendModule kTwoDevices{core::kBackendBuild, &CountTwo,
                                          &CreateCpu};
constexpr core::BackendModule kNoDevices{core::kBackendBuild, &CountNone,
                                         &CreateCpu};

/// A device with memory of its own, of which it has `bytes` bytes.
class RemoteBackend final : public testing::StandInBackend {
 public:
  explicit RemoteBackend(int64_t bytes)
      : memory_(cpu_->memory(), bytes, "memory of the device") {
    info_.name = "cuda:0";
    info_.uses_host_memory = false;
  }
  core::MemoryResource& memory() override { return memory_; }

 private:
  core::LimitingResource memory_;
};

constexpr int64_t kMiB = 1 << 20;

// A module whose device has memory of its own, 2 MiB.
absl::StatusOr<int> CountOne() { return 1; }
absl::StatusOr<std::unique_ptr<core::Backend>> CreateRemote(int) {
  return std::make_unique<RemoteBackend>(2 * kMiB);
}
constexpr core::BackendModule kRemote{core::kBackendBuild, &CountOne,
                                      &CreateRemote};

std::string CopyRateOf(const Device& device) {
  for (const auto& [key, value] : device.info().properties) {
    if (key == "copy_gb_per_s") return value;
  }
  return "";
}

absl::StatusOr<std::unique_ptr<Engine>> Create(
    absl::string_view devices, const core::BackendModule& cuda) {
  EngineOptions options;
  options.devices = *ParseDevices(devices);
  options.linked_cuda = &cuda;
  return Engine::Create(options);
}

TEST(EngineTest, AutoTakesEveryGpuAndThenTheCpu) {
  const auto engine = Create("auto", kTwoDevices);
  ASSERT_TRUE(engine.ok()) << engine.status();
  EXPECT_EQ((*engine)->devices().size(), 3u);
  EXPECT_THAT((*engine)->omissions(), IsEmpty());
  EXPECT_TRUE((*engine)->health().ok());
}

TEST(EngineTest, AutoSaysWhyThereIsNoGpu) {
  const auto engine = Create("auto", kNoDevices);
  ASSERT_TRUE(engine.ok()) << engine.status();
  EXPECT_EQ((*engine)->devices().size(), 1u);
  EXPECT_THAT((*engine)->omissions(), ElementsAre("there is no driver"));
  EXPECT_EQ((*engine)->missing_gpu(), "there is no driver");
  EXPECT_EQ((*Create("auto", kRemote))->missing_gpu(), "");
}

TEST(EngineTest, AGpuThatIsRequiredMustBeThere) {
  const auto create = [](absl::string_view devices,
                         const core::BackendModule& cuda) {
    return Engine::Create({.devices = *ParseDevices(devices),
                           .requires_gpu = true,
                           .linked_cuda = &cuda});
  };
  EXPECT_TRUE(create("auto", kRemote).ok());
  EXPECT_TRUE(create("cpu,cuda", kRemote).ok());
  const absl::Status refused = create("auto", kNoDevices).status();
  EXPECT_EQ(core::ReasonOf(refused), "GPU_REQUIRED");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("there is no driver"));
  EXPECT_EQ(core::ReasonOf(create("cpu", kRemote).status()), "GPU_REQUIRED");
}

TEST(EngineTest, AutoGoesOnBehindAGpuThatCannotBeUsed) {
  const auto engine = Create("auto", kSecondAlone);
  ASSERT_TRUE(engine.ok()) << engine.status();
  EXPECT_EQ((*engine)->devices().size(), 2u);
  EXPECT_THAT((*engine)->omissions(), ElementsAre("there is no such device"));
  EXPECT_FALSE(Create("cuda", kSecondAlone).ok());
}

TEST(EngineTest, DeviceThatWasNamedMustBeThere) {
  EXPECT_TRUE(Create("cuda:1", kTwoDevices).ok());
  for (const char* devices : {"cuda:2", "cpu,cuda:7"}) {
    SCOPED_TRACE(devices);
    EXPECT_EQ(Create(devices, kTwoDevices).status().code(),
              absl::StatusCode::kUnavailable);
  }
  EXPECT_EQ(Create("cuda", kNoDevices).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(EngineTest, LibraryThatWasNamedMustBeThere) {
  EngineOptions options;
  options.cuda_module = "/nowhere/libtensord_cuda.so";
  EXPECT_THAT(std::string(Engine::Create(options).status().message()),
              HasSubstr("/nowhere/libtensord_cuda.so"));
}

TEST(EngineTest, StagingMemoryIsLimitedAndCounted) {
  const auto engine = Engine::Create({.devices = *ParseDevices("cuda"),
                                      .linked_cuda = &kRemote,
                                      .staging_limit_bytes = kMiB});
  ASSERT_TRUE(engine.ok()) << engine.status();
  Device& device = *(*engine)->devices().front();
  EXPECT_EQ(device.staging_limit_bytes(), kMiB);
  EXPECT_EQ(device.staging_reserved_bytes(), 0);
  {
    const auto fits = core::Buffer::Allocate(device.staging_memory(), kMiB);
    ASSERT_TRUE(fits.ok()) << fits.status();
    EXPECT_EQ(device.staging_statistics().used_bytes, kMiB);
    const absl::Status refused =
        core::Buffer::Allocate(device.staging_memory(), 1).status();
    EXPECT_EQ(core::ReasonOf(refused), "MEMORY_LIMIT");
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr("staging memory of cuda:0: asked for "));
  }
  EXPECT_EQ(device.staging_statistics().used_bytes, 0);
  EXPECT_EQ(device.staging_statistics().peak_bytes, kMiB);
  EXPECT_EQ(device.staging_reserved_bytes(), kMiB);
  EXPECT_EQ(device.memory_statistics().peak_bytes, 0);
}

TEST(EngineTest, ATenantsStagingMemoryIsLimitedForAWhile) {
  const auto engine = Engine::Create({.devices = *ParseDevices("cuda"),
                                      .linked_cuda = &kRemote,
                                      .staging_limit_bytes = kMiB});
  ASSERT_TRUE(engine.ok()) << engine.status();
  TenantAccount red("red", nullptr);
  red.SetQuotas({.staging_bytes = kMiB / 4});
  core::MemoryResource& staging = red.On(*(*engine)->devices().front()).staging;
  const auto held = core::Buffer::Allocate(staging, kMiB / 4);
  ASSERT_TRUE(held.ok()) << held.status();
  const auto quota = QuotaOf(core::Buffer::Allocate(staging, 1).status());
  ASSERT_TRUE(quota.has_value());
  EXPECT_EQ(quota->quota, "staging_bytes");
  EXPECT_TRUE(quota->retry_after.has_value());
}

/// Counts what is cleared.
class ClearCounter final : public core::MemoryResource {
 public:
  ClearCounter(core::MemoryResource& upstream, int64_t& cleared_bytes)
      : upstream_(upstream), cleared_bytes_(cleared_bytes) {}

  absl::StatusOr<void*> Allocate(int64_t bytes) override {
    return upstream_.Allocate(bytes);
  }
  void Deallocate(void* pointer, int64_t bytes) override {
    upstream_.Deallocate(pointer, bytes);
  }
  absl::Status Clear(void* pointer, int64_t bytes) override {
    cleared_bytes_ += bytes;
    return upstream_.Clear(pointer, bytes);
  }

 private:
  core::MemoryResource& upstream_;
  int64_t& cleared_bytes_;
};

/// Bytes that are cleared when `tenants` have 1 MiB, one after the other.
int64_t ClearedFor(absl::string_view device, bool clears,
                   const std::vector<std::string>& tenants) {
  int64_t cleared_bytes = 0;
  const auto engine = Engine::Create(
      {.devices = *ParseDevices(device),
       .linked_cuda = &kRemote,
       .memory_limit_bytes = 2 * kMiB,
       .clears_memory = clears,
       .memory_filter = [&](core::MemoryResource& upstream) {
         return std::make_unique<ClearCounter>(upstream, cleared_bytes);
       }});
  if (!engine.ok()) {
    ADD_FAILURE() << engine.status();
    return -1;
  }
  std::map<std::string, std::unique_ptr<TenantAccount>> accounts;
  for (const std::string& tenant : tenants) {
    auto& account = accounts[tenant];
    if (account == nullptr) {
      account = std::make_unique<TenantAccount>(tenant, nullptr);
    }
    core::MemoryResource& memory =
        account->On(*(*engine)->devices().front()).memory;
    EXPECT_TRUE(core::Buffer::Allocate(memory, kMiB).ok());
  }
  return cleared_bytes;
}

TEST(EngineTest, MemoryIsClearedWhenItChangesTenantAlone) {
  // The host's is clear when it is new; what a GPU gives may be anybody's.
  EXPECT_EQ(ClearedFor("cpu", true, {"red", "red", "red"}), 0);
  EXPECT_EQ(ClearedFor("cpu", true, {"red", "blue", "blue", "red"}), 2 * kMiB);
  EXPECT_EQ(ClearedFor("cuda", true, {"red", "red", "red"}), kMiB);
  EXPECT_EQ(ClearedFor("cuda", true, {"red", "blue", "blue", "red"}), 3 * kMiB);
  for (const char* device : {"cpu", "cuda"}) {
    EXPECT_EQ(ClearedFor(device, false, {"red", "blue", "red"}), 0);
  }
}

TEST(EngineTest, StagingMemoryIsAnEighthOfTheHostsUnlessTold) {
  const auto engine = Create("cuda,cpu", kRemote);
  ASSERT_TRUE(engine.ok()) << engine.status();
  EXPECT_EQ((*engine)->devices()[0]->staging_limit_bytes(),
            HostMemoryBytes() / 8);
  EXPECT_EQ((*engine)->devices()[1]->staging_limit_bytes(), 0);
}

TEST(EngineTest, CopyBandwidthIsMeasuredOnDemand) {
  EngineOptions options{.devices = *ParseDevices("cuda,cpu"),
                        .linked_cuda = &kRemote,
                        .memory_limit_bytes = 8 * kMiB};
  auto engine = Engine::Create(options);
  ASSERT_TRUE(engine.ok()) << engine.status();
  for (const auto& device : (*engine)->devices()) {
    EXPECT_EQ(CopyRateOf(*device), "");
  }
  // Two buffers of an eighth of the limit are all that the first device has.
  options.bandwidth_bytes = 1024 * kMiB;
  engine = Engine::Create(options);
  ASSERT_TRUE(engine.ok()) << engine.status();
  for (const auto& device : (*engine)->devices()) {
    EXPECT_THAT(CopyRateOf(*device), MatchesRegex("[0-9]+"));
    EXPECT_EQ(device->memory_statistics().peak_bytes, 0);
  }
  EXPECT_THAT((*engine)->omissions(), IsEmpty());
  EXPECT_EQ((*engine)->plans().statistics().miss_count, 0);
  EXPECT_EQ((*engine)->plans().statistics().entry_count, 0);
}

TEST(EngineTest, DeviceThatCannotBeMeasuredIsThereAllTheSame) {
  const auto engine = Engine::Create({.devices = *ParseDevices("cuda"),
                                      .linked_cuda = &kRemote,
                                      .memory_limit_bytes = 800 * kMiB,
                                      .bandwidth_bytes = 100 * kMiB});
  ASSERT_TRUE(engine.ok()) << engine.status();
  EXPECT_EQ(CopyRateOf(*(*engine)->devices().front()), "");
  EXPECT_THAT((*engine)->omissions(),
              ElementsAre(HasSubstr("the copy bandwidth of cuda:0 is not "
                                    "known: memory of the device: asked for "
                                    "104857600 bytes")));
}

TEST(LoadBackendModuleTest, RefusesALibraryThatIsNoBackend) {
  const auto loaded = LoadBackendModule("libm.so.6");
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(loaded.status().message()),
              HasSubstr("libm.so.6 is no backend"));
}

}  // namespace
}  // namespace tensord::server
