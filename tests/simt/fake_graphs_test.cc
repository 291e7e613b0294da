// Fake graphs: what is recorded is done when it is launched, in the order that
// was recorded and no other.
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/simt/fake_runtime.h"
#include "tests/simt/sample_kernels.h"
#include "tests/simt/simt.h"
#include "tests/simt/test_objects.h"

namespace tensord::test {
namespace {

using ::testing::ElementsAre;

class FakeGraphsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    simt::ResetNode();
    simt::SetSchedule({});
  }

  static void Begin(cudaStream_t stream) {
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed),
              cudaSuccess);
  }
  static cudaGraphExec_t End(cudaStream_t stream) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    EXPECT_EQ(cudaGraphInstantiateWithFlags(&exec, graph, 0), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    return exec;
  }
};

/// Sets `array` to bytes `value`, and records or queues that.
void Set(const DeviceArray<int>& array, int value, cudaStream_t stream) {
  ASSERT_EQ(cudaMemsetAsync(array.data(), value, array.bytes(), stream),
            cudaSuccess);
}

TEST_F(FakeGraphsTest, WhatIsRecordedIsDoneWhenItIsLaunched) {
  const DeviceArray<float> values(std::vector<float>(64, 1.0f));
  const DeviceArray<float> sums(std::vector<float>(2, 0.0f));
  const TestStream stream;
  Begin(stream);
  ASSERT_EQ(LaunchWarpSums(values.data(), 2, sums.data(), stream), cudaSuccess);
  const cudaGraphExec_t graph = End(stream);
  EXPECT_THAT(sums.Download(), ElementsAre(0.0f, 0.0f));
  const int64_t launches = simt::CountCalls().launches;
  for (int i = 1; i <= 3; ++i) {
    ASSERT_EQ(cudaMemsetAsync(sums.data(), 0, sums.bytes(), stream),
              cudaSuccess);
    ASSERT_EQ(cudaGraphLaunch(graph, stream), cudaSuccess);
    EXPECT_THAT(sums.Download(), ElementsAre(32.0f, 32.0f));
    EXPECT_EQ(simt::CountCalls().graph_launches, i);
  }
  EXPECT_EQ(simt::CountCalls().launches, launches);
  EXPECT_EQ(cudaGraphExecDestroy(graph), cudaSuccess);
}

TEST_F(FakeGraphsTest, GraphsAreInTheOrderOfTheirStream) {
  for (const simt::Order order : simt::kAllOrders) {
    simt::SetSchedule({.order = order});
    const DeviceArray<int> array(1);
    const Staging between({0}), after({0});
    const TestStream stream;
    Begin(stream);
    Set(array, 1, stream);
    const cudaGraphExec_t graph = End(stream);
    Set(array, 2, stream);
    ASSERT_EQ(cudaGraphLaunch(graph, stream), cudaSuccess);
    ASSERT_EQ(cudaMemcpyAsync(between.data(), array.data(), 4,
                              cudaMemcpyDeviceToHost, stream),
              cudaSuccess);
    Set(array, 3, stream);
    // What was launched still runs.
    ASSERT_EQ(cudaGraphLaunch(graph, stream), cudaSuccess);
    ASSERT_EQ(cudaGraphExecDestroy(graph), cudaSuccess);
    ASSERT_EQ(cudaMemcpyAsync(after.data(), array.data(), 4,
                              cudaMemcpyDeviceToHost, stream),
              cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_THAT(between.values(), ElementsAre(0x01010101));
    EXPECT_THAT(after.values(), ElementsAre(0x01010101));
  }
}

/// What is left of two writes to `array` that one graph makes on two streams,
/// the later one waiting for the other's event, or not.
int LastOfTwoWrites(bool waits) {
  const DeviceArray<int> array(1);
  const TestStream first, second;
  const TestEvent fork, join, order;
  EXPECT_EQ(cudaStreamBeginCapture(first, cudaStreamCaptureModeRelaxed),
            cudaSuccess);
  EXPECT_EQ(cudaEventRecord(fork, first), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(second, fork), cudaSuccess);
  Set(array, 1, first);
  EXPECT_EQ(cudaEventRecord(order, first), cudaSuccess);
  if (waits) {
    EXPECT_EQ(cudaStreamWaitEvent(second, order), cudaSuccess);
  }
  Set(array, 2, second);
  EXPECT_EQ(cudaEventRecord(join, second), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(first, join), cudaSuccess);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(first, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphInstantiateWithFlags(&exec, graph, 0), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(exec, first), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(first), cudaSuccess);
  return array.Download()[0];
}

TEST_F(FakeGraphsTest, EventsOrderBranches) {
  for (const simt::Order order : simt::kAllOrders) {
    simt::SetSchedule({.order = order});
    EXPECT_EQ(LastOfTwoWrites(true), 0x02020202);
  }
}

#ifndef __SANITIZE_THREAD__  // which would report it
TEST_F(FakeGraphsTest, NothingElseOrdersBranches) {
  bool came_otherwise = false;
  for (const simt::Order order : simt::kAllOrders) {
    simt::SetSchedule({.order = order});
    came_otherwise |= LastOfTwoWrites(false) == 0x01010101;
  }
  EXPECT_TRUE(came_otherwise);
}
#endif

TEST_F(FakeGraphsTest, WhatCannotBeRecordedIsRefused) {
  const DeviceArray<int> array(1);
  const TestStream stream, other;
  const TestEvent event, before;
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorIllegalState);

  Begin(stream);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph),
            cudaErrorStreamCaptureInvalidated);

  ASSERT_EQ(cudaEventRecord(before, other), cudaSuccess);
  Begin(stream);
  EXPECT_EQ(cudaStreamWaitEvent(stream, before),
            cudaErrorStreamCaptureIsolation);
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph),
            cudaErrorStreamCaptureInvalidated);

  Begin(stream);
  ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(other, event), cudaSuccess);
  Set(array, 1, other);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorCapturedEvent);
  EXPECT_EQ(cudaStreamEndCapture(other, &graph),
            cudaErrorStreamCaptureUnmatched);
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph),
            cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(graph, nullptr);
  // Everything is as before.
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(other), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(stream, event), cudaErrorCapturedEvent);
}

TEST_F(FakeGraphsTest, LaunchesFailWhenTheyAreTold) {
  const DeviceArray<int> array(1);
  const TestStream stream;
  Begin(stream);
  Set(array, 1, stream);
  const cudaGraphExec_t graph = End(stream);
  simt::FailCall(simt::CallKind::kGraphLaunch, 1,
                 cudaErrorLaunchOutOfResources);
  EXPECT_EQ(cudaGraphLaunch(graph, stream), cudaErrorLaunchOutOfResources);
  cudaGetLastError();
  EXPECT_EQ(cudaGraphLaunch(graph, stream), cudaSuccess);
  simt::FailCall(simt::CallKind::kGraphLaunch, 1, cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGraphLaunch(graph, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
}

}  // namespace
}  // namespace tensord::test
