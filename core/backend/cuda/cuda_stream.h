// CUDA streams.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/backend/cuda/cuda_device.h"
#include "core/device/device.h"

namespace tensord::core {

class CudaStream final : public Stream {
 public:
  /// Errors  UNAVAILABLE: the device is lost. INTERNAL.
  static absl::StatusOr<std::unique_ptr<Stream>> Create(CudaDevice& device);
  ~CudaStream() override;

  absl::Status CopyToDevice(void* to, const void* from, int64_t bytes) override;
  absl::Status CopyToHost(void* to, const void* from, int64_t bytes) override;
  absl::Status CopyBetweenDevices(void* to, const void* from,
                                  int64_t bytes) override;
  absl::Status Call(void (*function)(void*), void* argument) override;
  absl::StatusOr<std::unique_ptr<Event>> Record() override;
  absl::StatusOr<std::unique_ptr<TimedPoint>> RecordTime() override;
  absl::Status Synchronize() override;
  /// Copies to the host what has been written when all that is queued is done,
  /// even if the work is stopped meanwhile. Others launch theirs until then.
  ///
  /// Errors  as Synchronize().
  absl::Status Await(void* to, const void* from, int64_t bytes);
  absl::StatusOr<Stream*> Branch(int number) override;
  absl::Status WaitFor(const Event* event) override;
  absl::StatusOr<bool> BeginRecording() override;
  absl::StatusOr<std::unique_ptr<Recording>> EndRecording() override;

  CudaDevice& device() const { return device_; }
  cudaStream_t get() const { return stream_; }

 private:
  CudaStream(CudaDevice& device, cudaStream_t stream)
      : device_(device), stream_(stream) {}

  absl::Status Copy(void* to, const void* from, int64_t bytes);

  CudaDevice& device_;
  const cudaStream_t stream_;
  std::vector<std::unique_ptr<Stream>> branches_;
};

/// Requires  `stream` comes from a CUDA backend.
inline CudaStream& AsCuda(Stream& stream) {
  return static_cast<CudaStream&>(stream);
}

}  // namespace tensord::core
