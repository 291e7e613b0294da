// Kernels on the CPU: good ones compute the right values in every order, and
// each that breaks a rule is found.
#include "tests/simt/simt.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/simt/fake_runtime.h"
#include "tests/simt/planted_bugs.cuh"
#include "tests/simt/sample_kernels.h"
#include "tests/simt/test_objects.h"

namespace tensord::test {
namespace {

using simt::ReportCapture;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kSeeds = 5;

/// 0, 1, 2, ...
template <typename T>
std::vector<T> Counting(size_t count) {
  std::vector<T> values(count);
  std::iota(values.begin(), values.end(), T{0});
  return values;
}

std::vector<simt::Schedule> AllSchedules() {
  std::vector<simt::Schedule> schedules = {
      {.order = simt::Order::kInOrder},
      {.order = simt::Order::kReverse},
      {.order = simt::Order::kInOrder, .worker_count = 3}};
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    schedules.push_back({.order = simt::Order::kRandom, .seed = seed});
  }
  return schedules;
}

class SimtTest : public ::testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    simt::ResetNode();
    simt::SetSchedule({});
  }
};

// Kernels without a fault.

class SampleKernelTest : public SimtTest {
 protected:
  /// Calls `body` under every schedule.
  template <typename Body>
  void UnderEverySchedule(const Body& body) {
    for (const simt::Schedule& schedule : AllSchedules()) {
      SCOPED_TRACE(static_cast<int>(schedule.order));
      SCOPED_TRACE(schedule.seed);
      simt::SetSchedule(schedule);
      body();
    }
  }
};

TEST_F(SampleKernelTest, TransposeMovesEveryElement) {
  const TransposeShape shape{
      .row_count = 45, .column_count = 70, .batch_count = 3};
  const size_t matrix = 45 * 70;
  const auto values = Counting<float>(3 * matrix);
  std::vector<float> wanted(values.size());
  for (size_t batch = 0; batch < 3; ++batch) {
    for (size_t row = 0; row < 45; ++row) {
      for (size_t column = 0; column < 70; ++column) {
        wanted[batch * matrix + column * 45 + row] =
            values[batch * matrix + row * 70 + column];
      }
    }
  }
  UnderEverySchedule([&] {
    const DeviceArray from(values);
    const DeviceArray<float> to(values.size());
    ASSERT_EQ(LaunchTranspose(shape, from.data(), to.data(), nullptr),
              cudaSuccess);
    EXPECT_EQ(to.Download(), wanted);
  });
}

TEST_F(SampleKernelTest, ShufflesSumEveryWarp) {
  constexpr int kSums = 11;
  std::vector<float> wanted;
  for (int i = 0; i < kSums; ++i) {
    wanted.push_back(static_cast<float>(32 * 32 * i + 31 * 32 / 2));
  }
  UnderEverySchedule([&] {
    const DeviceArray values(Counting<float>(32 * kSums));
    const DeviceArray<float> sums(kSums);
    ASSERT_EQ(LaunchWarpSums(values.data(), kSums, sums.data(), nullptr),
              cudaSuccess);
    EXPECT_EQ(sums.Download(), wanted);
  });
}

// Every partial sum is a whole number that float32 holds, so order is no
// matter.
TEST_F(SampleKernelTest, SumsOfOneAndTwoKernelsAreExact) {
  constexpr int kCount = 5003;
  constexpr float kWanted = 5003.0f * 5002.0f / 2.0f;
  UnderEverySchedule([&] {
    const DeviceArray values(Counting<float>(kCount));
    const DeviceArray<float> partial(kPartialSums);
    const DeviceArray<float> two_kernels(1), one_kernel(1);
    const DeviceArray ticket(std::vector<unsigned>{0});
    ASSERT_EQ(LaunchSum(values.data(), kCount, partial.data(),
                        two_kernels.data(), nullptr),
              cudaSuccess);
    ASSERT_EQ(LaunchSumOfLastBlock(values.data(), kCount, partial.data(),
                                   ticket.data(), one_kernel.data(), nullptr),
              cudaSuccess);
    EXPECT_THAT(two_kernels.Download(), ElementsAre(kWanted));
    EXPECT_THAT(one_kernel.Download(), ElementsAre(kWanted));
    EXPECT_THAT(ticket.Download(), ElementsAre(0u));
  });
}

TEST_F(SampleKernelTest, AsynchronousCopiesRunATileAhead) {
  constexpr int kTiles = 7;
  const auto values = Counting<float>(kTiles * kReverseTile);
  std::vector<float> wanted = values;
  for (int tile = 0; tile < kTiles; ++tile) {
    const auto first = wanted.begin() + tile * kReverseTile;
    std::reverse(first, first + kReverseTile);
  }
  UnderEverySchedule([&] {
    const DeviceArray from(values);
    const DeviceArray<float> to(values.size());
    ASSERT_EQ(LaunchReverseTiles(from.data(), kTiles, to.data(), nullptr),
              cudaSuccess);
    EXPECT_EQ(to.Download(), wanted);
  });
}

TEST_F(SampleKernelTest, LanesExchangeThroughMemoryAfterSyncwarp) {
  UnderEverySchedule([&] {
    const DeviceArray from(Counting<int>(64));
    const DeviceArray<int> to(64);
    ASSERT_EQ(Launch(&NeighbourWithSyncwarp, {1, 64, 64 * sizeof(int)},
                     from.data(), to.data()),
              cudaSuccess);
    const std::vector<int> values = to.Download();
    for (int i = 0; i < 64; ++i) EXPECT_EQ(values[i], i ^ 1) << i;
  });
}

// Kernels that break a rule and are reported.

class PlantedBugTest : public SimtTest {
 protected:
  /// What is reported when `kernel` runs in one block, in each order. The
  /// launch must fail with `error`, and so must all that follows on the device.
  template <typename... Parameters, typename... Arguments>
  std::vector<std::string> ReportsOf(
      const ::testing::Matcher<cudaError_t>& error,
      void (*kernel)(Parameters...), dim3 block, Arguments... arguments) {
    std::vector<std::string> all_reports;
    for (const simt::Order order : simt::kAllOrders) {
      simt::ResetNode();
      simt::SetSchedule({.order = order});
      ReportCapture capture;
      const DeviceArray<int> values(1024);
      EXPECT_EQ(Launch(kernel, {1, block, 1024}, values.data(), arguments...),
                cudaSuccess);
      EXPECT_THAT(cudaDeviceSynchronize(), error);
      int* more = nullptr;
      EXPECT_THAT(cudaMalloc(&more, 4), error);
      const std::vector<std::string> reports = capture.Take();
      EXPECT_THAT(reports, ElementsAre(HasSubstr("block (0,0,0)")));
      all_reports.insert(all_reports.end(), reports.begin(), reports.end());
    }
    return all_reports;
  }
};

TEST_F(PlantedBugTest, BarriersAtDifferentPlacesAreReported) {
  EXPECT_THAT(ReportsOf(cudaErrorLaunchFailure, &DivergentBarrier, 64),
              Each(AllOf(HasSubstr("planted_bugs.cuh:"),
                         HasSubstr("threads of the block are at different "
                                   "barriers, thread ("))));
}

TEST_F(PlantedBugTest, ABarrierThatSomeThreadsNeverReachIsADeadlock) {
  EXPECT_THAT(
      ReportsOf(cudaErrorLaunchTimeout, &BarrierAfterReturn, 64, 50u),
      Each(AllOf(HasSubstr("deadlock"), HasSubstr("50 at barrier "),
                 HasSubstr("planted_bugs.cuh:"), HasSubstr("14 ended"))));
}

TEST_F(PlantedBugTest, BadMasksAreReported) {
  EXPECT_THAT(ReportsOf(cudaErrorLaunchFailure, &LaneOutsideItsMask, 32),
              Each(AllOf(HasSubstr("planted_bugs.cuh:"),
                         HasSubstr("lane is not in its own mask"))));
  EXPECT_THAT(ReportsOf(AnyOf(cudaErrorLaunchFailure, cudaErrorLaunchTimeout),
                        &DifferentMasks, 32),
              Each(AllOf(HasSubstr("planted_bugs.cuh:"),
                         AnyOf(HasSubstr("with different masks"),
                               HasSubstr("16 at warp collective ")))));
  EXPECT_THAT(ReportsOf(cudaErrorLaunchFailure, &OddWidth, 32),
              Each(HasSubstr("width is a power of two")));
}

TEST_F(PlantedBugTest, MisalignedAccessesAreReported) {
  EXPECT_THAT(ReportsOf(cudaErrorMisalignedAddress, &MisalignedStore, 1),
              Each(AllOf(HasSubstr("planted_bugs.cuh:"),
                         HasSubstr("not aligned to 16 bytes, thread"))));
  EXPECT_THAT(ReportsOf(cudaErrorMisalignedAddress, &MisalignedAsyncCopy, 1),
              Each(AllOf(HasSubstr("planted_bugs.cuh:"),
                         HasSubstr("not aligned to 16 bytes"))));
}

TEST_F(PlantedBugTest, AsynchronousCopiesOfOddSizesAreReported) {
  EXPECT_THAT(ReportsOf(cudaErrorLaunchFailure, &AsyncCopyOfTwoBytes, 1),
              Each(HasSubstr("4, 8 or 16 bytes")));
}

TEST_F(PlantedBugTest, WithoutACaptureAReportEndsTheProcess) {
  const auto run = [] {
    const DeviceArray<int> values(64);
    Launch(&DivergentBarrier, {1, 64}, values.data());
    cudaDeviceSynchronize();
  };
  EXPECT_DEATH(
      run(),
      "simt: .*planted_bugs.cuh:[0-9]+: threads of the block are at different");
}

TEST_F(PlantedBugTest, OtherBlocksOfABadLaunchAreGivenUp) {
  for (const int workers : {1, 3}) {
    simt::ResetNode();
    simt::SetSchedule({.worker_count = workers});
    ReportCapture capture;
    const DeviceArray<int> values(64);
    ASSERT_EQ(Launch(&DivergentBarrier, {100, 64}, values.data()), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
    EXPECT_EQ(capture.Take().size(), 1u);
  }
}

// Kernels that break a rule and compute wrong values.

/// How many orders, of kernels over one block of 64, give wrong values.
template <typename Kernel, typename IsWrong>
int CountWrongOrders(Kernel kernel, unsigned grid, size_t count,
                     const IsWrong& is_wrong) {
  int wrong_count = 0;
  for (const simt::Order order : simt::kAllOrders) {
    simt::SetSchedule({.order = order});
    const DeviceArray from(Counting<int>(count));
    const DeviceArray<int> to(count);
    EXPECT_EQ(
        Launch(kernel, {grid, 64, 64 * sizeof(int)}, from.data(), to.data()),
        cudaSuccess);
    wrong_count += is_wrong(to.Download());
  }
  return wrong_count;
}

TEST_F(PlantedBugTest, ForgottenWaitLeavesWrongValues) {
  EXPECT_EQ(CountWrongOrders(&ForgottenWait, 1, 64,
                             [](const std::vector<int>& values) {
                               return values[5] != 63 - 5;
                             }),
            3);
}

TEST_F(PlantedBugTest, SharedMemoryStartsWithThePattern) {
  for (const uint8_t fill : {0xCB, 0x5A}) {
    simt::SetSchedule({.shared_memory_fill = fill});
    const DeviceArray<int> to(8);
    // A first launch that leaves something else behind.
    ASSERT_EQ(Launch(&WriteBesideSharedMemory, {1, 1, 32}, 3), cudaSuccess);
    ASSERT_EQ(Launch(&CopySharedMemory, {1, 8, 32}, to.data()), cudaSuccess);
    EXPECT_THAT(to.Download(), Each(Eq(static_cast<int>(fill * 0x01010101u))));
  }
}

#ifdef __SANITIZE_ADDRESS__

TEST_F(PlantedBugTest, AccessesBesideSharedMemoryDie) {
  const auto run = [](int index) {
    Launch(&WriteBesideSharedMemory, {1, 1, 4 * sizeof(int)}, index);
    cudaDeviceSynchronize();
  };
  EXPECT_DEATH(run(4), "use-after-poison.*WriteBesideSharedMemory");
  EXPECT_DEATH(run(-1), "use-after-poison.*WriteBesideSharedMemory");
}

TEST_F(PlantedBugTest, AccessesPastAnAllocationDie) {
  const auto run = [] {
    const DeviceArray<int> from(3), to(4);
    Launch(&CopyOne, {4, 1}, from.data(), to.data());
    cudaDeviceSynchronize();
  };
  EXPECT_DEATH(run(), "AddressSanitizer.*CopyOne");
}

#else

TEST_F(PlantedBugTest, WritesBesideSharedMemoryAreReported) {
  for (const int index : {4, -1}) {
    simt::ResetNode();
    ReportCapture capture;
    ASSERT_EQ(Launch(&WriteBesideSharedMemory, {1, 1, 4 * sizeof(int)}, index),
              cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    EXPECT_THAT(capture.Take(),
                ElementsAre("block (0,0,0) wrote beside its 16 bytes of "
                            "shared memory"));
    // The next block starts afresh.
    simt::ResetNode();
    ASSERT_EQ(Launch(&WriteBesideSharedMemory, {1, 1, 4 * sizeof(int)}, 3),
              cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_THAT(capture.Take(), IsEmpty());
  }
}

#endif

#ifdef TENSORD_SIMT_UBSAN

TEST_F(PlantedBugTest, AMisalignedPlainStoreDies) {
  const auto run = [] {
    const DeviceArray<int> to(8);
    Launch(&MisalignedPlainStore, {1, 1}, to.data());
    cudaDeviceSynchronize();
  };
  EXPECT_DEATH(run(), "planted_bugs.cuh:[0-9]+.*misaligned address");
}

#endif

// To ThreadSanitizer these are races: race_test.cc.
#ifndef __SANITIZE_THREAD__

TEST_F(PlantedBugTest, AMissingBarrierShowsInSomeOrder) {
  const auto is_wrong = [](const std::vector<int>& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] != static_cast<int>(i / 64 * 64 + 63 - i % 64)) return true;
    }
    return false;
  };
  EXPECT_GE(CountWrongOrders(&ReverseWithoutBarrier, 1, 64, is_wrong), 1);
  EXPECT_GE(CountWrongOrders(&ReverseTwiceWithOneBarrier, 1, 128, is_wrong), 1);
}

TEST_F(PlantedBugTest, AMissingSyncwarpShowsInSomeOrder) {
  const auto is_wrong = [](const std::vector<int>& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] != static_cast<int>(i ^ 1)) return true;
    }
    return false;
  };
  EXPECT_GE(CountWrongOrders(&NeighbourWithoutSyncwarp, 1, 64, is_wrong), 1);
}

#endif

}  // namespace
}  // namespace tensord::test
