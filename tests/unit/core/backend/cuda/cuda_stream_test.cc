// Calls of the host in the order of a stream, on the simulated node.
#include "core/backend/cuda/cuda_stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "absl/time/clock.h"
#include "core/backend/cuda/cuda_backend.h"
#include "core/base/status.h"
#include "tests/simt/fake_runtime.h"
#include "tests/simt/node/faults.h"

namespace tensord::core {
namespace {

class CudaStreamTest : public ::testing::Test {
 protected:
  CudaStreamTest() {
    simt::ResetNode({.memory_bytes = int64_t{1} << 20});
    backend_ = CreateCudaBackend(0).value();
    stream_ = backend_->CreateStream().value();
  }

  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Stream> stream_;
};

TEST_F(CudaStreamTest, CallsComeInTheOrderOfTheStream) {
  int value = 0;
  ASSERT_TRUE(
      stream_->Call([](void* at) { *static_cast<int*>(at) += 3; }, &value)
          .ok());
  ASSERT_TRUE(
      stream_->Call([](void* at) { *static_cast<int*>(at) *= 5; }, &value)
          .ok());
  ASSERT_TRUE(stream_->Synchronize().ok());
  EXPECT_EQ(value, 15);
}

// What a call uses may go when the loss is known.
TEST_F(CudaStreamTest, LossOfTheDeviceIsToldWhenNoCallIsUnderWay) {
  struct Shared {
    std::atomic<bool> has_begun = false, may_end = false, has_ended = false;
  } shared;
  ASSERT_TRUE(stream_
                  ->Call(
                      [](void* data) {
                        auto& to = *static_cast<Shared*>(data);
                        to.has_begun = true;
                        while (!to.may_end) std::this_thread::yield();
                        to.has_ended = true;
                      },
                      &shared)
                  .ok());
  while (!shared.has_begun) std::this_thread::yield();
  const auto other = backend_->CreateStream().value();
  simt::FailCall(simt::CallKind::kSynchronization, 1, cudaErrorIllegalAddress);
  std::atomic<bool> is_told = false;
  std::thread loser([&] {
    EXPECT_EQ(ReasonOf(other->Synchronize()), "DEVICE_LOST");
    is_told = true;
  });
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_FALSE(is_told);
  shared.may_end = true;
  loser.join();
  EXPECT_TRUE(shared.has_ended);
  // Nor does any begin.
  EXPECT_EQ(ReasonOf(stream_->Call([](void*) { FAIL(); }, nullptr)),
            "DEVICE_LOST");
}

TEST_F(CudaStreamTest, EveryErrorThatLosesTheDeviceIsToldAsThat) {
  int count = 0;
  for (int number = 1; number < 1000; ++number) {
    const auto error = static_cast<cudaError_t>(number);
    if (!simt::LosesDevice(error)) continue;
    SCOPED_TRACE(number);
    ++count;
    stream_.reset();
    backend_.reset();
    simt::ResetNode({.memory_bytes = int64_t{1} << 20});
    backend_ = CreateCudaBackend(0).value();
    stream_ = backend_->CreateStream().value();
    simt::FailCall(simt::CallKind::kSynchronization, 1, error);
    EXPECT_EQ(ReasonOf(stream_->Synchronize()), "DEVICE_LOST");
    EXPECT_FALSE(backend_->health().ok());
  }
  EXPECT_GE(count, 13);
}

TEST_F(CudaStreamTest, OtherErrorsLeaveTheDeviceUseful) {
  simt::FailCall(simt::CallKind::kSynchronization, 1,
                 cudaErrorLaunchOutOfResources);
  EXPECT_EQ(ReasonOf(stream_->Synchronize()), "CUDA_ERROR");
  EXPECT_TRUE(backend_->health().ok());
  EXPECT_TRUE(stream_->Synchronize().ok());
}

}  // namespace
}  // namespace tensord::core
