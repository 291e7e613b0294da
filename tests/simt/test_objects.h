// Memory, streams and events of a fake node that end with the test, and
// launches in a line. Failures fail the test.
#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

#include "cuda_runtime.h"
#include "gtest/gtest.h"

namespace tensord::test {

/// An array on the device that is current when it is made.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t count) : count_(count) {
    EXPECT_EQ(cudaMalloc(&data_, count * sizeof(T)), cudaSuccess);
  }
  explicit DeviceArray(const std::vector<T>& values)
      : DeviceArray(values.size()) {
    EXPECT_EQ(cudaMemcpy(data_, values.data(), count_ * sizeof(T),
                         cudaMemcpyHostToDevice),
              cudaSuccess);
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return data_; }
  size_t bytes() const { return count_ * sizeof(T); }

  /// After all that is queued on the device.
  std::vector<T> Download() const {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    std::vector<T> values(count_);
    EXPECT_EQ(cudaMemcpy(values.data(), data_, bytes(), cudaMemcpyDeviceToHost),
              cudaSuccess);
    return values;
  }

 private:
  size_t count_;
  T* data_ = nullptr;
};

/// A stream of the current device.
class TestStream {
 public:
  explicit TestStream(unsigned flags = cudaStreamNonBlocking) {
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, flags), cudaSuccess);
  }
  ~TestStream() { cudaStreamDestroy(stream_); }
  TestStream(const TestStream&) = delete;
  TestStream& operator=(const TestStream&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class TestEvent {
 public:
  explicit TestEvent(unsigned flags = cudaEventDisableTiming) {
    EXPECT_EQ(cudaEventCreateWithFlags(&event_, flags), cudaSuccess);
  }
  ~TestEvent() { cudaEventDestroy(event_); }
  TestEvent(const TestEvent&) = delete;
  TestEvent& operator=(const TestEvent&) = delete;
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Pinned memory.
class Staging {
 public:
  explicit Staging(std::vector<int> values) : count_(values.size()) {
    EXPECT_EQ(cudaMallocHost(&data_, bytes()), cudaSuccess);
    std::memcpy(data_, values.data(), bytes());
  }
  ~Staging() { cudaFreeHost(data_); }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  int* data() const { return data_; }
  size_t bytes() const { return count_ * sizeof(int); }
  std::vector<int> values() const { return {data_, data_ + count_}; }

 private:
  size_t count_;
  int* data_ = nullptr;
};

/// Launches `kernel` on the null stream unless told otherwise.
struct LaunchShape {
  dim3 grid;
  dim3 block;
  size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
};

template <typename... Parameters, typename... Arguments>
cudaError_t Launch(void (*kernel)(Parameters...), const LaunchShape& shape,
                   Arguments... arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = shape.stream;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

}  // namespace tensord::test
