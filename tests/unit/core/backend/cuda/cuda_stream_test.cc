// Calls of the host in the order of a stream, and copies between devices, on
// the simulated node.
#include "core/backend/cuda/cuda_stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "core/backend/cuda/cuda_backend.h"
#include "core/base/status.h"
#include "tests/simt/fake_runtime.h"
#include "tests/simt/node/faults.h"
#include "tests/simt/simt.h"
#include "tests/testing/soon.h"

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
  EXPECT_TRUE(test::Soon([&] { return shared.has_begun.load(); }));
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

TEST_F(CudaStreamTest, BranchesWaitForEventsAlone) {
  for (const simt::Order order : simt::kAllOrders) {
    simt::SetSchedule({.order = order});
    Stream* const branch = stream_->Branch(0).value();
    EXPECT_EQ(stream_->Branch(0).value(), branch);
    EXPECT_NE(stream_->Branch(1).value(), branch);
    std::atomic<int> value = 0;
    const auto call = [&value](Stream& stream, void (*function)(void*)) {
      ASSERT_TRUE(stream.Call(function, &value).ok());
    };
    call(*stream_, [](void* at) { *static_cast<std::atomic<int>*>(at) += 3; });
    ASSERT_TRUE(branch->WaitFor(stream_->Record().value().get()).ok());
    call(*branch, [](void* at) {
      auto& to = *static_cast<std::atomic<int>*>(at);
      to = to * 5;
    });
    ASSERT_TRUE(stream_->WaitFor(branch->Record().value().get()).ok());
    call(*stream_, [](void* at) { *static_cast<std::atomic<int>*>(at) += 1; });
    ASSERT_TRUE(stream_->Synchronize().ok());
    EXPECT_EQ(value, 16);
  }
  simt::SetSchedule({});
}

TEST_F(CudaStreamTest, TimedPointsTellTheTimeBetweenThem) {
  const auto begin = stream_->RecordTime().value();
  ASSERT_TRUE(stream_
                  ->Call([](void*) { absl::SleepFor(absl::Milliseconds(3)); },
                         nullptr)
                  .ok());
  const auto end = stream_->RecordTime().value();
  ASSERT_TRUE(stream_->Synchronize().ok());
  const double time = end->NanosecondsSince(*begin).value();
  EXPECT_GE(time, 2.9e6);
  EXPECT_LT(time, 20e9);
}

TEST_F(CudaStreamTest, WhatIsRecordedIsDoneAtEachLaunch) {
  const Buffer from = Buffer::Allocate(backend_->memory(), 64).value();
  const Buffer to = Buffer::Allocate(backend_->memory(), 64).value();
  std::vector<char> host(64, 'x');
  const auto copy = [&] {
    return stream_->CopyBetweenDevices(to.data(), from.data(), 64);
  };
  ASSERT_TRUE(stream_->BeginRecording().value());
  ASSERT_TRUE(copy().ok());
  const std::unique_ptr<Recording> recording = stream_->EndRecording().value();
  for (const char value : {'a', 'b'}) {
    const std::vector<char> values(64, value);
    ASSERT_TRUE(stream_->CopyToDevice(from.data(), values.data(), 64).ok());
    ASSERT_TRUE(recording->Launch(*stream_).ok());
    ASSERT_TRUE(stream_->CopyToHost(host.data(), to.data(), 64).ok());
    ASSERT_TRUE(stream_->Synchronize().ok());
    EXPECT_EQ(host, values);
  }
}

TEST_F(CudaStreamTest, WhatCannotBeRecordedIsToldAndLeavesTheStreamUseful) {
  ASSERT_TRUE(stream_->BeginRecording().value());
  EXPECT_EQ(ReasonOf(stream_->Synchronize()), "CUDA_ERROR");
  EXPECT_EQ(ReasonOf(stream_->EndRecording().status()), "CUDA_ERROR");
  EXPECT_TRUE(stream_->Synchronize().ok());
  EXPECT_TRUE(backend_->health().ok());
}

class PeerAccessTest : public ::testing::Test {
 protected:
  struct Gpu {
    explicit Gpu(int ordinal)
        : backend(CreateCudaBackend(ordinal).value()),
          stream(backend->CreateStream().value()),
          memory(Buffer::Allocate(backend->memory(), 64).value()) {
      EXPECT_TRUE(memory.Clear().ok());
    }
    std::string peers() const {
      for (const auto& [key, value] : backend->info().properties) {
        if (key == "peer_access") return value;
      }
      return "";
    }
    absl::Status CopyTo(const Gpu& other) const {
      TENSORD_RETURN_IF_ERROR(stream->CopyBetweenDevices(
          other.memory.data(), memory.data(), memory.bytes()));
      return stream->Synchronize();
    }

    std::unique_ptr<Backend> backend;
    std::unique_ptr<Stream> stream;
    Buffer memory;
  };
};

TEST_F(PeerAccessTest, ComesWithTheFirstCopyAndBothWays) {
  simt::ResetNode({.device_count = 3});
  const Gpu first(0), second(1);
  EXPECT_EQ(first.peers(), "cuda:1 cuda:2");
  EXPECT_EQ(second.peers(), "cuda:0 cuda:2");
  ASSERT_TRUE(first.CopyTo(first).ok());
  for (int x = 0; x < 3; ++x) {
    for (int y = 0; y < 3; ++y) EXPECT_FALSE(simt::IsPeerAccessEnabled(x, y));
  }
  ASSERT_TRUE(first.CopyTo(second).ok());
  for (int x = 0; x < 3; ++x) {
    for (int y = 0; y < 3; ++y) {
      EXPECT_EQ(simt::IsPeerAccessEnabled(x, y), x != y && x < 2 && y < 2)
          << x << " " << y;
    }
  }
  // What the first copy enabled is no error of those after it.
  ASSERT_TRUE(second.CopyTo(first).ok());
  ASSERT_TRUE(first.CopyTo(second).ok());
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(PeerAccessTest, CopiesDoWithoutWhereThereIsNone) {
  simt::ResetNode({.can_access_peers = false});
  const Gpu first(0), second(1);
  EXPECT_EQ(first.peers(), "none");
  EXPECT_TRUE(first.CopyTo(second).ok());
  EXPECT_FALSE(simt::IsPeerAccessEnabled(0, 1));
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(PeerAccessTest, LossOfAPeerIsNoLossOfTheDevice) {
  simt::ResetNode();
  const Gpu first(0), second(1);
  simt::FailCall(simt::CallKind::kSynchronization, 1, cudaErrorIllegalAddress);
  EXPECT_EQ(ReasonOf(second.stream->Synchronize()), "DEVICE_LOST");
  // The copy hears the other one's error, which no later call hears.
  EXPECT_EQ(ReasonOf(first.CopyTo(second)), "CUDA_ERROR");
  EXPECT_TRUE(first.backend->health().ok());
  EXPECT_TRUE(first.CopyTo(first).ok());
}

TEST_F(PeerAccessTest, StreamsOfManyThreadsAskForItOnce) {
  simt::ResetNode();
  const Gpu first(0), second(1);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const Gpu& from = t % 2 == 0 ? first : second;
      const Gpu& to = t % 2 == 0 ? second : first;
      const auto stream = from.backend->CreateStream().value();
      const Buffer copy = Buffer::Allocate(to.backend->memory(), 64).value();
      for (int i = 0; i < 20; ++i) {
        EXPECT_TRUE(stream
                        ->CopyBetweenDevices(copy.data(), from.memory.data(),
                                             copy.bytes())
                        .ok());
      }
      EXPECT_TRUE(stream->Synchronize().ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(simt::IsPeerAccessEnabled(0, 1));
  EXPECT_TRUE(simt::IsPeerAccessEnabled(1, 0));
}

}  // namespace
}  // namespace tensord::core
