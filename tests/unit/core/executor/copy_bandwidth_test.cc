#include "core/executor/copy_bandwidth.h"

#include "core/base/status.h"
#include "gtest/gtest.h"
#include "tests/unit/core/plan/fake_backend.h"

namespace tensord::core {
namespace {

using tensord::test::FakeBackend;
using tensord::test::FakeStream;

constexpr int64_t kBytes = 1'000'000;

TEST(MeasureCopyBandwidthTest, CountsWhatIsReadAndWhatIsWritten) {
  FakeBackend backend(
      {{.name = "only", .launch_time = absl::Milliseconds(10)}});
  FakeStream stream;
  const auto bandwidth = MeasureCopyBandwidth(backend, kBytes, stream);
  ASSERT_TRUE(bandwidth.ok()) << bandwidth.status();
  // A copy takes at least what the kernel sleeps.
  EXPECT_GT(*bandwidth, 0);
  EXPECT_LE(*bandwidth, 2.0 * kBytes / 10e6);
}

TEST(MeasureCopyBandwidthTest, TakesManyShortCopiesAtATime) {
  int launches = 0;
  FakeBackend backend({{.name = "only",
                        .launch_count = &launches,
                        .launch_time = absl::Microseconds(50)}});
  FakeStream stream;
  // Each way to warm up, and three spans: at once, unless the machine does so
  // much else that a copy seems long.
  for (int i = 0; i < 100 && launches < 2 + 3 * 2; ++i) {
    launches = 0;
    ASSERT_TRUE(MeasureCopyBandwidth(backend, kBytes, stream).ok());
  }
  EXPECT_GE(launches, 2 + 3 * 2);
  EXPECT_LE(launches, 2 + 3 * 50);
}

TEST(MeasureCopyBandwidthTest, TakesTheKernelThatIsPlanned) {
  int slow = 0;
  FakeBackend backend(
      {{.name = "slow", .nanoseconds = 2, .launch_count = &slow},
       {.name = "fast", .nanoseconds = 1, .workspace_bytes = 4096}});
  FakeStream stream;
  EXPECT_TRUE(MeasureCopyBandwidth(backend, kBytes, stream).ok());
  EXPECT_EQ(slow, 0);
}

TEST(MeasureCopyBandwidthTest, ErrorsReachTheCaller) {
  FakeStream stream;
  FakeBackend declining(
      {{.name = "only", .supports = Unimplemented("NO", "")}});
  EXPECT_EQ(MeasureCopyBandwidth(declining, kBytes, stream).status().code(),
            absl::StatusCode::kUnimplemented);
  FakeBackend failing({{.name = "only", .launch = Internal("LAUNCH", "x")}});
  EXPECT_EQ(ReasonOf(MeasureCopyBandwidth(failing, kBytes, stream).status()),
            "LAUNCH");
  FakeBackend backend({{.name = "only"}});
  EXPECT_EQ(
      MeasureCopyBandwidth(backend, int64_t{1} << 60, stream).status().code(),
      absl::StatusCode::kResourceExhausted);
  stream.status = Internal("KERNEL_FAILED", "later");
  EXPECT_EQ(ReasonOf(MeasureCopyBandwidth(backend, kBytes, stream).status()),
            "KERNEL_FAILED");
}

}  // namespace
}  // namespace tensord::core
