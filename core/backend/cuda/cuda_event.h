// CUDA events.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "absl/status/statusor.h"
#include "core/backend/cuda/cuda_device.h"
#include "core/device/device.h"

namespace tensord::core {

class CudaEvent final : public Event {
 public:
  /// The point behind all that is queued on `stream`, a stream of `device`.
  /// Errors  UNAVAILABLE: the device is lost. INTERNAL.
  static absl::StatusOr<std::unique_ptr<Event>> Record(CudaDevice& device,
                                                       cudaStream_t stream);
  ~CudaEvent() override;

  cudaEvent_t get() const { return event_; }

  bool IsReached() override;
  absl::Status Wait() override;

 private:
  CudaEvent(CudaDevice& device, cudaEvent_t event)
      : device_(device), event_(event) {}

  CudaDevice& device_;
  const cudaEvent_t event_;
};

/// An event with its time.
class CudaTimedPoint final : public TimedPoint {
 public:
  /// As CudaEvent::Record().
  static absl::StatusOr<std::unique_ptr<TimedPoint>> Record(
      CudaDevice& device, cudaStream_t stream);
  ~CudaTimedPoint() override;

  absl::StatusOr<double> NanosecondsSince(
      const TimedPoint& earlier) const override;

 private:
  CudaTimedPoint(CudaDevice& device, cudaEvent_t event)
      : device_(device), event_(event) {}

  CudaDevice& device_;
  const cudaEvent_t event_;
};

}  // namespace tensord::core
