// The fake node: what it has, what it refuses, and what can be made to fail.
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/simt/fake_runtime.h"
#include "tests/simt/planted_bugs.cuh"
#include "tests/simt/simt.h"
#include "tests/simt/test_objects.h"

namespace tensord::test {
namespace {

using simt::CallKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FakeNodeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    simt::ResetNode();
    simt::SetSchedule({});
  }
};

// The node.

TEST_F(FakeNodeTest, TheNodeIsAsDescribed) {
  simt::ResetNode({.device_count = 3,
                   .device_name = "Imagined",
                   .memory_bytes = 1 << 20,
                   .compute_capability_major = 8,
                   .compute_capability_minor = 6,
                   .multiprocessor_count = 7});
  int count = 0;
  ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(count, 3);
  cudaDeviceProp properties;
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 2), cudaSuccess);
  EXPECT_STREQ(properties.name, "Imagined");
  EXPECT_EQ(properties.totalGlobalMem, 1u << 20);
  EXPECT_EQ(properties.major, 8);
  EXPECT_EQ(properties.minor, 6);
  EXPECT_EQ(properties.multiProcessorCount, 7);
  int multiprocessors = 0;
  ASSERT_EQ(cudaDeviceGetAttribute(&multiprocessors,
                                   cudaDevAttrMultiProcessorCount, 2),
            cudaSuccess);
  EXPECT_EQ(multiprocessors, 7);
  EXPECT_EQ(cudaGetDeviceProperties(&properties, 3), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaSetDevice(3), cudaErrorInvalidDevice);
}

TEST_F(FakeNodeTest, WithoutADriverEveryCallSaysSo) {
  for (const cudaError_t error :
       {cudaErrorInsufficientDriver, cudaErrorNoDevice}) {
    simt::ResetNode({.driver_error = error});
    int count = -1;
    EXPECT_EQ(cudaGetDeviceCount(&count), error);
    EXPECT_EQ(count, -1);
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, 8), error);
    EXPECT_EQ(cudaDeviceSynchronize(), error);
    EXPECT_EQ(cudaGetLastError(), error);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    int version = -1;
    EXPECT_EQ(cudaRuntimeGetVersion(&version), cudaSuccess);
    EXPECT_EQ(version, 13000);
  }
  simt::ResetNode({.driver_error = cudaErrorInsufficientDriver});
  int version = -1;
  EXPECT_EQ(cudaDriverGetVersion(&version), cudaSuccess);
  EXPECT_EQ(version, 0);
}

TEST_F(FakeNodeTest, TheCurrentDeviceIsTheThreadsOwn) {
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  std::thread([] {
    int device = -1;
    EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
    EXPECT_EQ(device, 0);
  }).join();
  const DeviceArray<int> array(10);
  EXPECT_EQ(simt::DeviceBytesInUse(1), 40);
  EXPECT_EQ(simt::DeviceBytesInUse(0), 0);
}

TEST_F(FakeNodeTest, ErrorsHaveTheirNames) {
  EXPECT_STREQ(cudaGetErrorName(cudaErrorMemoryAllocation),
               "cudaErrorMemoryAllocation");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
  EXPECT_STREQ(cudaGetErrorName(static_cast<cudaError_t>(12345)),
               "unrecognized error code");
}

// Memory.

TEST_F(FakeNodeTest, MemoryEnds) {
  simt::ResetNode({.memory_bytes = 1000});
  void *first = nullptr, *second = nullptr;
  ASSERT_EQ(cudaMalloc(&first, 600), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&second, 401), cudaErrorMemoryAllocation);
  EXPECT_EQ(second, nullptr);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  size_t free_bytes = 0, total_bytes = 0;
  ASSERT_EQ(cudaMemGetInfo(&free_bytes, &total_bytes), cudaSuccess);
  EXPECT_EQ(free_bytes, 400u);
  EXPECT_EQ(total_bytes, 1000u);
  ASSERT_EQ(cudaFree(first), cudaSuccess);
  EXPECT_EQ(simt::DeviceBytesInUse(0), 0);
  EXPECT_EQ(cudaMalloc(&first, 1000), cudaSuccess);
}

TEST_F(FakeNodeTest, OnlyWhatWasAllocatedIsFreed) {
  const DeviceArray<int> array(4);
  const Staging staging({1, 2, 3});
  int local = 0;
  EXPECT_EQ(cudaFree(&local), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(array.data() + 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(staging.data()), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeHost(array.data()), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(nullptr), cudaSuccess);
  EXPECT_EQ(simt::HostBytesInUse(), 12);
}

TEST_F(FakeNodeTest, MemoryOfTheHostIsRegisteredOnce) {
  std::vector<int> host(8);
  const Staging staging({1, 2, 3});
  EXPECT_EQ(cudaHostRegister(nullptr, 4, 0), cudaErrorInvalidValue);
  EXPECT_EQ(cudaHostRegister(host.data(), 0, 0), cudaErrorInvalidValue);
  EXPECT_EQ(cudaHostRegister(staging.data(), 4, 0),
            cudaErrorHostMemoryAlreadyRegistered);
  ASSERT_EQ(cudaHostRegister(host.data(), 32, cudaHostRegisterMapped),
            cudaSuccess);
  EXPECT_EQ(cudaHostRegister(host.data() + 7, 4, 0),
            cudaErrorHostMemoryAlreadyRegistered);
  cudaPointerAttributes attributes;
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, host.data() + 7),
            cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  EXPECT_EQ(simt::HostBytesInUse(), 12);  // It was there before.
  EXPECT_EQ(cudaHostUnregister(host.data() + 1),
            cudaErrorHostMemoryNotRegistered);
  ASSERT_EQ(cudaHostUnregister(host.data()), cudaSuccess);
  EXPECT_EQ(cudaHostUnregister(host.data()), cudaErrorHostMemoryNotRegistered);
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, host.data()), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
}

TEST_F(FakeNodeTest, CopiesThatDoNotFitAreRefused) {
  const DeviceArray<int> array(4);
  std::vector<int> host(5);
  EXPECT_EQ(cudaMemcpyAsync(array.data(), host.data(), 20,
                            cudaMemcpyHostToDevice, nullptr),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(host.data(), array.data() + 1, 16,
                            cudaMemcpyDeviceToHost, nullptr),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(host.data(), array.data(), 16,
                            cudaMemcpyHostToDevice, nullptr),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemsetAsync(host.data(), 0, 16, nullptr),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy2DAsync(array.data(), 4, host.data(), 8, 8, 2,
                              cudaMemcpyHostToDevice, nullptr),
            cudaErrorInvalidPitchValue);
  EXPECT_EQ(simt::CountCalls().copies, 0);
}

TEST_F(FakeNodeTest, RowsAreCopiedByTheirPitches) {
  const DeviceArray<int> array(std::vector<int>(12, 0));
  std::vector<int> host = {1, 2, -1, 3, 4, -1, 5, 6};
  ASSERT_EQ(cudaMemcpy2DAsync(array.data(), 16, host.data(), 12, 8, 3,
                              cudaMemcpyHostToDevice, nullptr),
            cudaSuccess);
  EXPECT_THAT(array.Download(),
              ElementsAre(1, 2, 0, 0, 3, 4, 0, 0, 5, 6, 0, 0));
}

TEST_F(FakeNodeTest, DevicesCopyToEachOther) {
  const DeviceArray first(std::vector<int>{1, 2, 3});
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  const DeviceArray<int> second(3);
  EXPECT_EQ(cudaMemcpyPeerAsync(second.data(), 0, first.data(), 1, 12, nullptr),
            cudaErrorInvalidValue);
  ASSERT_EQ(cudaMemcpyPeerAsync(second.data(), 1, first.data(), 0, 12, nullptr),
            cudaSuccess);
  EXPECT_THAT(second.Download(), ElementsAre(1, 2, 3));
}

TEST_F(FakeNodeTest, PeerAccessIsEnabledOnce) {
  int can_access = 0;
  ASSERT_EQ(cudaDeviceCanAccessPeer(&can_access, 0, 1), cudaSuccess);
  EXPECT_EQ(can_access, 1);
  EXPECT_FALSE(simt::IsPeerAccessEnabled(0, 1));
  EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);
  EXPECT_TRUE(simt::IsPeerAccessEnabled(0, 1));
  EXPECT_FALSE(simt::IsPeerAccessEnabled(1, 0));
  EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0),
            cudaErrorPeerAccessAlreadyEnabled);
  EXPECT_EQ(cudaGetLastError(), cudaErrorPeerAccessAlreadyEnabled);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(2, 0), cudaErrorInvalidDevice);
  simt::ResetNode({.can_access_peers = false});
  ASSERT_EQ(cudaDeviceCanAccessPeer(&can_access, 0, 1), cudaSuccess);
  EXPECT_EQ(can_access, 0);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessUnsupported);
}

TEST_F(FakeNodeTest, PointersTellWhoseMemoryTheyAreTo) {
  const Staging pinned({1, 2});
  const int pageable = 0;
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  const DeviceArray<int> array(3);
  cudaPointerAttributes attributes;
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, array.data() + 2),
            cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(attributes.device, 1);
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, pinned.data() + 1),
            cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, &pageable), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, nullptr),
            cudaErrorInvalidValue);
}

#ifdef __SANITIZE_ADDRESS__

TEST_F(FakeNodeTest, HostCodeThatTouchesDeviceMemoryDies) {
  const DeviceArray array(std::vector<int>{1, 2, 3});
  EXPECT_DEATH(array.data()[1] = 5, "use-after-poison");
  const simt::HostAccess access;
  EXPECT_EQ(array.data()[1], 2);
}

TEST_F(FakeNodeTest, KernelsThatTouchAnotherDeviceDieUnlessEnabled) {
  const DeviceArray other(std::vector<int>{7});
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  const DeviceArray<int> own(1);
  const auto run = [&] {
    EXPECT_EQ(Launch(&CopyOne, {1, 1}, other.data(), own.data()), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  };
  EXPECT_DEATH(run(), "use-after-poison.*CopyOne");
  ASSERT_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaSuccess);
  run();
  EXPECT_THAT(own.Download(), ElementsAre(7));
}

TEST_F(FakeNodeTest, PageableMemoryFreedBeforeItsCopyDies) {
  const auto run = [] {
    const DeviceArray<int> array(4);
    auto* const values = new std::vector<int>(4);
    cudaMemcpyAsync(array.data(), values->data(), 16, cudaMemcpyHostToDevice,
                    nullptr);
    delete values;
    cudaDeviceSynchronize();
  };
  EXPECT_DEATH(run(), "heap-use-after-free");
}

#endif

// Launches.

TEST_F(FakeNodeTest, ConfigurationsBeyondTheLimitsAreRefused) {
  const auto launch = [](dim3 grid, dim3 block) {
    return Launch(&CopyOne, {grid, block}, nullptr, nullptr);
  };
  EXPECT_EQ(launch(1, 1025), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(1, dim3(64, 17)), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(1, dim3(1, 1, 65)), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(0, 32), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(dim3(1, 65536), 32), cudaErrorInvalidConfiguration);
  EXPECT_EQ(simt::CountCalls().launches, 0);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
}

TEST_F(FakeNodeTest, MuchSharedMemoryMustBeAskedFor) {
  const auto launch = [](size_t shared_bytes) {
    return Launch(&WriteBesideSharedMemory, {1, 1, shared_bytes}, 0);
  };
  constexpr int kDefault = 48 * 1024, kMost = 227 * 1024;
  EXPECT_EQ(launch(kDefault), cudaSuccess);
  EXPECT_EQ(launch(kDefault + 1), cudaErrorInvalidValue);
  const auto allow = [](int bytes) {
    return cudaFuncSetAttribute(&WriteBesideSharedMemory,
                                cudaFuncAttributeMaxDynamicSharedMemorySize,
                                bytes);
  };
  EXPECT_EQ(allow(kMost + 1), cudaErrorInvalidValue);
  EXPECT_EQ(allow(kMost), cudaSuccess);
  EXPECT_EQ(launch(kMost), cudaSuccess);
  EXPECT_EQ(launch(kMost + 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  // Each device wants to be asked.
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(launch(kMost), cudaErrorInvalidValue);
}

TEST_F(FakeNodeTest, OccupancyFollowsThreadsAndSharedMemory) {
  const auto blocks = [](int threads, size_t shared_bytes) {
    int count = -1;
    EXPECT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                  &count, &CopyOne, threads, shared_bytes),
              cudaSuccess);
    return count;
  };
  EXPECT_EQ(blocks(1024, 0), 2);
  EXPECT_EQ(blocks(65, 0), 21);
  EXPECT_EQ(blocks(32, 0), 32);
  // Nobody has more than that without asking.
  EXPECT_EQ(blocks(128, 48 * 1024), 4);
  EXPECT_EQ(blocks(128, 100 * 1024), 0);
  ASSERT_EQ(cudaFuncSetAttribute(reinterpret_cast<const void*>(&CopyOne),
                                 cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 227 * 1024),
            cudaSuccess);
  EXPECT_EQ(blocks(128, 100 * 1024), 2);
  EXPECT_EQ(blocks(128, 227 * 1024), 1);
  EXPECT_EQ(blocks(2048, 0), 0);
}

// Faults.

TEST_F(FakeNodeTest, TheNthCallOfAKindFails) {
  simt::FailCall(CallKind::kDeviceAllocation, 2, cudaErrorMemoryAllocation);
  simt::FailCall(CallKind::kLaunch, 1, cudaErrorLaunchOutOfResources);
  simt::FailCall(CallKind::kCopy, 2, cudaErrorInvalidValue);
  simt::FailCall(CallKind::kHostAllocation, 1, cudaErrorMemoryAllocation);
  simt::FailCall(CallKind::kSynchronization, 2, cudaErrorNotSupported);
  const DeviceArray from(std::vector<int>{1});  // allocates and copies
  int* to = nullptr;
  EXPECT_EQ(cudaMalloc(&to, 4), cudaErrorMemoryAllocation);
  ASSERT_EQ(cudaMalloc(&to, 4), cudaSuccess);
  EXPECT_EQ(cudaMemset(to, 0, 4), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(to, 0, 4), cudaSuccess);
  EXPECT_EQ(Launch(&CopyOne, {1, 1}, from.data(), to),
            cudaErrorLaunchOutOfResources);
  EXPECT_EQ(Launch(&CopyOne, {1, 1}, from.data(), to), cudaSuccess);
  void* pinned = nullptr;
  EXPECT_EQ(cudaMallocHost(&pinned, 4), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorNotSupported);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  ASSERT_EQ(cudaFree(to), cudaSuccess);
  const simt::CallCounts counts = simt::CountCalls();
  EXPECT_EQ(counts.device_allocations, 3);
  EXPECT_EQ(counts.host_allocations, 1);
  EXPECT_EQ(counts.copies, 3);
  EXPECT_EQ(counts.copied_bytes, 4);
  EXPECT_EQ(counts.launches, 2);
  EXPECT_EQ(counts.synchronizations, 3);
}

TEST_F(FakeNodeTest, AnErrorThatLosesTheDeviceStays) {
  const DeviceArray<int> array(1);
  const TestStream stream;
  simt::FailCall(CallKind::kCopy, 1, cudaErrorIllegalAddress);
  // The copy is queued; the error comes when it would be done.
  EXPECT_EQ(cudaMemsetAsync(array.data(), 0, 4, stream), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(array.data(), 0, 4, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 4), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  // The other device goes on.
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&memory, 4), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  ASSERT_EQ(cudaFree(memory), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  simt::ResetNode();
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

TEST_F(FakeNodeTest, StreamsThatWaitForALostDeviceGoOn) {
  const TestEvent event;
  simt::FailCall(CallKind::kCopy, 1, cudaErrorECCUncorrectable);
  const DeviceArray<int> array(1);
  ASSERT_EQ(cudaMemsetAsync(array.data(), 0, 4, nullptr), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, nullptr), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  const TestStream other;
  ASSERT_EQ(cudaStreamWaitEvent(other, event), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(other), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(event), cudaErrorECCUncorrectable);
}

}  // namespace
}  // namespace tensord::test
