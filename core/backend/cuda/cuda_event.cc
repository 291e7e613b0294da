#include "core/backend/cuda/cuda_event.h"

#include "core/base/status.h"

namespace tensord::core {
namespace {

absl::StatusOr<cudaEvent_t> CreateEvent(CudaDevice& device,
                                        unsigned int flags) {
  TENSORD_RETURN_IF_ERROR(device.Select());
  cudaEvent_t event = nullptr;
  TENSORD_RETURN_IF_ERROR(device.Check(cudaEventCreateWithFlags(&event, flags),
                                       "cudaEventCreateWithFlags"));
  return event;
}

void DestroyEvent(CudaDevice& device, cudaEvent_t event) {
  if (!device.Select().ok()) return;
  device.Check(cudaEventDestroy(event), "cudaEventDestroy").IgnoreError();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Event>> CudaEvent::Record(CudaDevice& device,
                                                         cudaStream_t stream) {
  // Without times, and with waits that leave the processor to others.
  TENSORD_ASSIGN_OR_RETURN(
      const cudaEvent_t event,
      CreateEvent(device, cudaEventDisableTiming | cudaEventBlockingSync));
  std::unique_ptr<Event> result(new CudaEvent(device, event));
  TENSORD_RETURN_IF_ERROR(
      device.Check(cudaEventRecord(event, stream), "cudaEventRecord"));
  return result;
}

CudaEvent::~CudaEvent() { DestroyEvent(device_, event_); }

bool CudaEvent::IsReached() {
  // Errors are for Wait() to tell.
  if (!device_.Select().ok()) return true;
  const cudaError_t error = cudaEventQuery(event_);
  // Kept by CUDA as the thread's last error.
  if (error == cudaErrorNotReady) cudaGetLastError();
  return error != cudaErrorNotReady;
}

absl::Status CudaEvent::Wait() {
  TENSORD_RETURN_IF_ERROR(device_.Select());
  return device_.Check(cudaEventSynchronize(event_), "work on a stream");
}

absl::StatusOr<std::unique_ptr<TimedPoint>> CudaTimedPoint::Record(
    CudaDevice& device, cudaStream_t stream) {
  TENSORD_ASSIGN_OR_RETURN(const cudaEvent_t event,
                           CreateEvent(device, cudaEventDefault));
  std::unique_ptr<TimedPoint> result(new CudaTimedPoint(device, event));
  TENSORD_RETURN_IF_ERROR(
      device.Check(cudaEventRecord(event, stream), "cudaEventRecord"));
  return result;
}

CudaTimedPoint::~CudaTimedPoint() { DestroyEvent(device_, event_); }

absl::StatusOr<double> CudaTimedPoint::NanosecondsSince(
    const TimedPoint& earlier) const {
  TENSORD_RETURN_IF_ERROR(device_.Select());
  float milliseconds = 0;
  TENSORD_RETURN_IF_ERROR(device_.Check(
      cudaEventElapsedTime(&milliseconds,
                           static_cast<const CudaTimedPoint&>(earlier).event_,
                           event_),
      "cudaEventElapsedTime"));
  return 1e6 * static_cast<double>(milliseconds);
}

}  // namespace tensord::core
