// Builds with ThreadSanitizer: what a kernel or the host leaves unordered is
// reported as a race, however the schedule happens to fall. That the good
// kernels have none is what the other tests of such a build show.
#include <cstdlib>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/simt/fake_runtime.h"
#include "tests/simt/planted_bugs.cuh"
#include "tests/simt/simt.h"
#include "tests/simt/test_objects.h"

namespace tensord::test {
namespace {

constexpr int kExitCodeOfRaces = 66;  // ThreadSanitizer's

class RaceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    simt::ResetNode();
    simt::SetSchedule({});
  }
};

/// Expects a race whose report names `function`.
#define EXPECT_RACE(statement, function)           \
  EXPECT_EXIT(                                     \
      {                                            \
        statement;                                 \
        cudaDeviceSynchronize();                   \
        std::exit(0);                              \
      },                                           \
      ::testing::ExitedWithCode(kExitCodeOfRaces), \
      "ThreadSanitizer: data race.*" function)

/// Expects that there is none.
#define EXPECT_NO_RACE(statement) \
  EXPECT_EXIT(                    \
      {                           \
        statement;                \
        cudaDeviceSynchronize();  \
        std::exit(0);             \
      },                          \
      ::testing::ExitedWithCode(0), "")

template <typename Kernel>
void RunOnInts(Kernel kernel, const LaunchShape& shape) {
  const DeviceArray from(std::vector<int>(256, 1));
  const DeviceArray<int> to(256);
  Launch(kernel, shape, from.data(), to.data());
  cudaDeviceSynchronize();
}

constexpr size_t kSharedBytes = 64 * sizeof(int);

TEST_F(RaceTest, MissingBarriersAreRaces) {
  const LaunchShape shape{1, 64, kSharedBytes};
  EXPECT_RACE(RunOnInts(&ReverseWithoutBarrier, shape),
              "ReverseWithoutBarrier");
  EXPECT_RACE(RunOnInts(&ReverseTwiceWithOneBarrier, shape),
              "ReverseTwiceWithOneBarrier");
}

TEST_F(RaceTest, AMissingSyncwarpIsARace) {
  const LaunchShape shape{1, 64, kSharedBytes};
  EXPECT_RACE(RunOnInts(&NeighbourWithoutSyncwarp, shape),
              "NeighbourWithoutSyncwarp");
  EXPECT_NO_RACE(RunOnInts(&NeighbourWithSyncwarp, shape));
}

void RunCount() {
  const DeviceArray counter(std::vector<int>{0});
  Launch(&CountWithoutAtomics, {2, 1}, counter.data());
  cudaDeviceSynchronize();
}

TEST_F(RaceTest, BlocksThatCountWithoutAtomicsRace) {
  EXPECT_RACE(RunCount(), "CountWithoutAtomics");
}

void RunLastBlock() {
  const DeviceArray<int> values(4), sum(1);
  const DeviceArray ticket(std::vector<unsigned>{0});
  Launch(&LastBlockWithoutFence, {4, 1}, values.data(), ticket.data(),
         sum.data());
  cudaDeviceSynchronize();
}

TEST_F(RaceTest, AMissingFenceIsARace) {
  EXPECT_RACE(RunLastBlock(), "LastBlockWithoutFence");
}

/// A kernel on one stream reads what a kernel on another writes.
void CopyOnTwoStreams(bool waits_for_event) {
  cudaStream_t first = nullptr, second = nullptr;
  cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
  cudaEvent_t event = nullptr;
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  const DeviceArray from(std::vector<int>{1});
  const DeviceArray<int> between(1), to(1);
  Launch(&CopyOne, {.grid = 1, .block = 1, .stream = first}, from.data(),
         between.data());
  cudaEventRecord(event, first);
  if (waits_for_event) cudaStreamWaitEvent(second, event);
  Launch(&CopyOne, {.grid = 1, .block = 1, .stream = second}, between.data(),
         to.data());
  cudaDeviceSynchronize();
}

TEST_F(RaceTest, StreamsWithoutAnEventBetweenThemRace) {
  EXPECT_RACE(CopyOnTwoStreams(false), "CopyOne");
  EXPECT_NO_RACE(CopyOnTwoStreams(true));
}

/// The host writes staging memory that a queued copy reads.
void WriteStaging(bool waits_for_copy) {
  const DeviceArray<int> array(1);
  int* staging = nullptr;
  cudaMallocHost(&staging, sizeof(int));
  *staging = 1;
  cudaMemcpyAsync(array.data(), staging, sizeof(int), cudaMemcpyHostToDevice,
                  nullptr);
  if (waits_for_copy) cudaStreamSynchronize(nullptr);
  *staging = 2;
  cudaDeviceSynchronize();
  cudaFreeHost(staging);
}

TEST_F(RaceTest, StagingWrittenBeforeItsCopyIsARace) {
  EXPECT_RACE(WriteStaging(false), "WriteStaging");
  EXPECT_NO_RACE(WriteStaging(true));
}

/// The host reads a result once a stream that did not make it is done.
void WaitForTheWrongStream() {
  cudaStream_t right = nullptr, wrong = nullptr;
  cudaStreamCreateWithFlags(&right, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&wrong, cudaStreamNonBlocking);
  const DeviceArray array(std::vector<int>{1});
  int* result = nullptr;
  cudaMallocHost(&result, sizeof(int));
  cudaMemcpyAsync(result, array.data(), sizeof(int), cudaMemcpyDeviceToHost,
                  right);
  cudaMemsetAsync(array.data(), 0, sizeof(int), wrong);
  cudaStreamSynchronize(wrong);
  if (*result == 5) std::abort();
}

TEST_F(RaceTest, WaitingForTheWrongStreamIsARace) {
  EXPECT_RACE(WaitForTheWrongStream(), "memcpy");
}

/// The API's own locks order nothing between two threads.
void CallFromTwoThreads() {
  int shared = 0;
  // time: it is a race in any order
  std::thread other([&shared] {
    ++shared;
    cudaDeviceSynchronize();
  });
  cudaDeviceSynchronize();
  ++shared;
  cudaDeviceSynchronize();
  other.join();
}

TEST_F(RaceTest, CallsOfTheApiOrderNothingBetweenThreads) {
  EXPECT_RACE(CallFromTwoThreads(), "CallFromTwoThreads");
}

}  // namespace
}  // namespace tensord::test
