// Fake streams: the order that CUDA promises holds, and no other.
#include <atomic>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/simt/fake_runtime.h"
#include "tests/simt/planted_bugs.cuh"
#include "tests/simt/sample_kernels.h"
#include "tests/simt/simt.h"
#include "tests/simt/test_objects.h"
#include "tests/testing/soon.h"

namespace tensord::test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FakeStreamsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    simt::ResetNode();
    simt::SetSchedule({});
  }
};

TEST_F(FakeStreamsTest, AskingAgainAndAgainMovesOn) {
  const DeviceArray<int> array(3);
  const TestStream stream;
  const TestEvent event;
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);  // never recorded
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(cudaMemsetAsync(array.data(), i, array.bytes(), stream),
              cudaSuccess);
  }
  ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  int asked = 0;
  while (cudaEventQuery(event) == cudaErrorNotReady) ASSERT_LT(++asked, 100);
  EXPECT_EQ(asked, 5);
  EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotReady);
}

TEST_F(FakeStreamsTest, EventsTellTheTimeBetweenThem) {
  const TestStream stream;
  const TestEvent start(cudaEventDefault), end(cudaEventDefault), timeless;
  float ms = -1.0f;
  EXPECT_EQ(cudaEventElapsedTime(&ms, start, end),
            cudaErrorInvalidResourceHandle);
  ASSERT_EQ(cudaEventRecord(start, stream), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(end, stream), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(timeless, stream), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&ms, start, end), cudaErrorNotReady);
  ASSERT_EQ(cudaEventSynchronize(end), cudaSuccess);
  ASSERT_EQ(cudaEventElapsedTime(&ms, start, end), cudaSuccess);
  EXPECT_GE(ms, 0.0f);
  EXPECT_EQ(cudaEventElapsedTime(&ms, start, timeless),
            cudaErrorInvalidResourceHandle);
}

/// Copies a pattern to `array` on one stream and back on another, and returns
/// what came back.
std::vector<int> CopyThroughTwoStreams(const DeviceArray<int>& array,
                                       bool waits_for_event) {
  const Staging from({1, 2, 3}), to({0, 0, 0});
  const TestStream first, second;
  const TestEvent event;
  EXPECT_EQ(cudaMemcpyAsync(array.data(), from.data(), from.bytes(),
                            cudaMemcpyHostToDevice, first),
            cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event, first), cudaSuccess);
  if (waits_for_event) {
    EXPECT_EQ(cudaStreamWaitEvent(second, event), cudaSuccess);
  }
  EXPECT_EQ(cudaMemcpyAsync(to.data(), array.data(), to.bytes(),
                            cudaMemcpyDeviceToHost, second),
            cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(second), cudaSuccess);
  std::vector<int> came_back = to.values();
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  return came_back;
}

TEST_F(FakeStreamsTest, EventsOrderStreams) {
  for (const simt::Order order : simt::kAllOrders) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      simt::SetSchedule({.order = order, .seed = seed});
      const DeviceArray<int> array(3);
      EXPECT_THAT(CopyThroughTwoStreams(array, true), ElementsAre(1, 2, 3));
    }
  }
}

TEST_F(FakeStreamsTest, AnEventStandsForItsLastRecordOnly) {
  const DeviceArray<int> array(1);
  const Staging to({0});
  const TestStream first, second;
  const TestEvent event;
  simt::SetSchedule({.order = simt::Order::kReverse});
  ASSERT_EQ(cudaEventRecord(event, first), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(array.data(), 1, 4, first), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, first), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(second, event), cudaSuccess);
  // Later records are no matter for a wait that is queued.
  ASSERT_EQ(cudaEventRecord(event, second), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(to.data(), array.data(), 4, cudaMemcpyDeviceToHost,
                            second),
            cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(second), cudaSuccess);
  EXPECT_THAT(to.values(), ElementsAre(0x01010101));
}

/// What is left of two writes, the first on a new stream and the second on the
/// null stream, when the latter may go first.
int LastWriteOfTwo(unsigned flags_of_stream) {
  const DeviceArray<int> array(1);
  const TestStream stream(flags_of_stream);
  EXPECT_EQ(cudaMemsetAsync(array.data(), 1, 4, stream), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(array.data(), 2, 4, nullptr), cudaSuccess);
  return array.Download().front();
}

TEST_F(FakeStreamsTest, TheNullStreamWaitsForBlockingStreams) {
  EXPECT_EQ(LastWriteOfTwo(cudaStreamDefault), 0x02020202);
}

TEST_F(FakeStreamsTest, WorkOfADestroyedStreamIsStillDone) {
  const DeviceArray<int> array(1);
  const Staging to({0});
  {
    const TestStream stream;
    ASSERT_EQ(cudaMemsetAsync(array.data(), 1, 4, stream), cudaSuccess);
    ASSERT_EQ(cudaMemcpyAsync(to.data(), array.data(), 4,
                              cudaMemcpyDeviceToHost, stream),
              cudaSuccess);
  }
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_THAT(to.values(), ElementsAre(0x01010101));
}

TEST_F(FakeStreamsTest, HandlesThatAreNoneAreRefused) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
            cudaSuccess);
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamDestroy(nullptr), cudaErrorInvalidResourceHandle);
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
            cudaSuccess);
  ASSERT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(event), cudaErrorInvalidResourceHandle);
}

TEST_F(FakeStreamsTest, HandlesOfAnEarlierNodeAreVoid) {
  const TestStream stream;
  simt::ResetNode();
  const TestStream other;
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamSynchronize(other), cudaSuccess);
}

TEST_F(FakeStreamsTest, AStreamIsUsedOnItsOwnDevice) {
  const TestStream stream;
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  const TestEvent event;
  EXPECT_EQ(cudaEventRecord(event, stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(Launch(&CopyOne, {.grid = 1, .block = 1, .stream = stream}, nullptr,
                   nullptr),
            cudaErrorInvalidResourceHandle);
}

TEST_F(FakeStreamsTest, StagingFreedBeforeItsCopyIsReported) {
  simt::ReportCapture capture;
  const DeviceArray<int> array(1);
  int* staging = nullptr;
  ASSERT_EQ(cudaMallocHost(&staging, 4), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(array.data(), staging, 4, cudaMemcpyHostToDevice,
                            nullptr),
            cudaSuccess);
  EXPECT_EQ(cudaFreeHost(staging), cudaErrorInvalidValue);
  EXPECT_THAT(capture.Take(), ElementsAre(HasSubstr("cudaFreeHost")));
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(staging), cudaSuccess);
  EXPECT_THAT(capture.Take(), IsEmpty());
}

// To ThreadSanitizer these are races: race_test.cc.
#ifndef __SANITIZE_THREAD__

TEST_F(FakeStreamsTest, NothingMovesBeforeTheHostWaits) {
  const DeviceArray<int> array(3);
  const Staging to({0, 0, 0});
  const TestStream stream;
  ASSERT_EQ(cudaMemsetAsync(array.data(), 1, array.bytes(), stream),
            cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(to.data(), array.data(), to.bytes(),
                            cudaMemcpyDeviceToHost, stream),
            cudaSuccess);
  EXPECT_THAT(to.values(), Each(0));
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_THAT(to.values(), Each(0x01010101));
}

TEST_F(FakeStreamsTest, TheNullStreamDoesNotWaitForOtherStreams) {
  EXPECT_EQ(LastWriteOfTwo(cudaStreamNonBlocking), 0x01010101);
}

TEST_F(FakeStreamsTest, AMissingEventWaitShowsInSomeOrder) {
  int wrong_count = 0;
  for (const simt::Order order : simt::kAllOrders) {
    simt::SetSchedule({.order = order});
    const DeviceArray<int> array(3);
    wrong_count +=
        CopyThroughTwoStreams(array, false) != std::vector<int>{1, 2, 3};
  }
  EXPECT_GE(wrong_count, 1);
}

TEST_F(FakeStreamsTest, StagingWrittenBeforeItsCopyShows) {
  const DeviceArray<int> array(1);
  const Staging staging({1});
  ASSERT_EQ(cudaMemcpyAsync(array.data(), staging.data(), 4,
                            cudaMemcpyHostToDevice, nullptr),
            cudaSuccess);
  *staging.data() = 2;
  EXPECT_THAT(array.Download(), ElementsAre(2));
}

#endif

// Threads.

TEST_F(FakeStreamsTest, HostFunctionsRunInOrderThoughNobodyWaits) {
  const DeviceArray<int> array(1);
  const Staging staging({0});
  struct Shared {
    std::atomic<bool> is_done = false;
    const int* value = nullptr;
    int seen = 0;
    cudaError_t error_of_call = cudaSuccess;
  } shared;
  shared.value = staging.data();
  const TestStream stream;
  ASSERT_EQ(cudaMemsetAsync(array.data(), 1, 4, stream), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(staging.data(), array.data(), 4,
                            cudaMemcpyDeviceToHost, stream),
            cudaSuccess);
  ASSERT_EQ(cudaLaunchHostFunc(
                stream,
                [](void* data) {
                  auto& to = *static_cast<Shared*>(data);
                  to.seen = *to.value;
                  to.error_of_call = cudaDeviceSynchronize();
                  to.is_done = true;
                },
                &shared),
            cudaSuccess);
  EXPECT_TRUE(Soon([&] { return shared.is_done.load(); }));
  EXPECT_EQ(shared.seen, 0x01010101);
  EXPECT_EQ(shared.error_of_call, cudaErrorNotPermitted);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
}

TEST_F(FakeStreamsTest, AHeldLaunchHoldsItsStreamAndNoOther) {
  const DeviceArray from(std::vector<int>{7});
  const DeviceArray<int> to(1), other(1);
  const Staging held({0}), copied({0});
  const TestStream first, second;
  simt::LaunchHold hold;
  ASSERT_EQ(Launch(&CopyOne, {.grid = 1, .block = 1, .stream = first},
                   from.data(), to.data()),
            cudaSuccess);
  EXPECT_TRUE(hold.HasCaught());
  ASSERT_EQ(
      cudaMemcpyAsync(held.data(), to.data(), 4, cudaMemcpyDeviceToHost, first),
      cudaSuccess);
  ASSERT_EQ(Launch(&CopyOne, {.grid = 1, .block = 1, .stream = second},
                   from.data(), other.data()),
            cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(copied.data(), other.data(), 4,
                            cudaMemcpyDeviceToHost, second),
            cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(second), cudaSuccess);
  EXPECT_THAT(copied.values(), ElementsAre(7));
  EXPECT_EQ(cudaStreamQuery(first), cudaErrorNotReady);
  // Whoever waits for it goes on when it does.
  std::atomic<bool> has_waited = false;
  std::thread waiter([&] {
    EXPECT_EQ(cudaStreamSynchronize(first), cudaSuccess);
    has_waited = true;
  });
  for (int i = 0; i < 100; ++i) std::this_thread::yield();
  EXPECT_FALSE(has_waited);
  hold.Release();
  waiter.join();
  EXPECT_THAT(held.values(), ElementsAre(7));
}

/// What a worker of the server does over and over: its own streams, staging and
/// events, on a device that others use too.
void WorkOnDevice(int device, int round_count) {
  ASSERT_EQ(cudaSetDevice(device), cudaSuccess);
  const TestStream copies, kernels;
  const TestEvent uploaded, computed;
  constexpr int kSums = 4;
  std::vector<float> values(32 * kSums);
  std::iota(values.begin(), values.end(), 0.0f);
  for (int round = 0; round < round_count; ++round) {
    const DeviceArray<float> from(values.size()), sums(kSums);
    float *staged = nullptr, *result = nullptr;
    ASSERT_EQ(cudaMallocHost(&staged, from.bytes()), cudaSuccess);
    ASSERT_EQ(cudaMallocHost(&result, sums.bytes()), cudaSuccess);
    std::memcpy(staged, values.data(), from.bytes());
    ASSERT_EQ(cudaMemcpyAsync(from.data(), staged, from.bytes(),
                              cudaMemcpyHostToDevice, copies),
              cudaSuccess);
    ASSERT_EQ(cudaEventRecord(uploaded, copies), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(kernels, uploaded), cudaSuccess);
    ASSERT_EQ(LaunchWarpSums(from.data(), kSums, sums.data(), kernels),
              cudaSuccess);
    ASSERT_EQ(cudaEventRecord(computed, kernels), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(copies, computed), cudaSuccess);
    ASSERT_EQ(cudaMemcpyAsync(result, sums.data(), sums.bytes(),
                              cudaMemcpyDeviceToHost, copies),
              cudaSuccess);
    if (round % 2 == 0) {
      ASSERT_EQ(cudaStreamSynchronize(copies), cudaSuccess);
    } else {
      EXPECT_TRUE(
          Soon([&] { return cudaStreamQuery(copies) != cudaErrorNotReady; }));
    }
    for (int i = 0; i < kSums; ++i) {
      ASSERT_EQ(result[i], static_cast<float>(32 * 32 * i + 31 * 32 / 2));
    }
    ASSERT_EQ(cudaFreeHost(staged), cudaSuccess);
    ASSERT_EQ(cudaFreeHost(result), cudaSuccess);
  }
}

TEST_F(FakeStreamsTest, ThreadsWaitAndQueueAtTheSameTime) {
  simt::SetSchedule({.order = simt::Order::kRandom, .seed = 3});
  std::vector<std::thread> workers;
  for (int i = 0; i < 4; ++i) {
    workers.emplace_back([i] { WorkOnDevice(i % 2, 30); });
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(simt::DeviceBytesInUse(0), 0);
  EXPECT_EQ(simt::DeviceBytesInUse(1), 0);
  EXPECT_EQ(simt::HostBytesInUse(), 0);
  EXPECT_EQ(simt::CountCalls().launches, 4 * 30);
}

}  // namespace
}  // namespace tensord::test
