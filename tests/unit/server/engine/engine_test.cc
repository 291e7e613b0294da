#include "server/engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/backend/cpu/cpu_backend.h"
#include "core/base/status.h"
#include "server/engine/module_loader.h"

namespace tensord::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

TEST(LoadBackendModuleTest, RefusesALibraryThatIsNoBackend) {
  const auto loaded = LoadBackendModule("libm.so.6");
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(loaded.status().message()),
              HasSubstr("libm.so.6 is no backend"));
}

}  // namespace
}  // namespace tensord::server
