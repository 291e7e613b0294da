#include "core/backend/cuda/cuda_event.h"

#include "core/base/status.h"

namespace tensord::core {

absl::StatusOr<std::unique_ptr<Event>> CudaEvent::Record(CudaDevice& device,
                                                         cudaStream_t stream) {
  TENSORD_RETURN_IF_ERROR(device.Select());
  cudaEvent_t event = nullptr;
  // Without times, and with waits that leave the processor to others.
  TENSORD_RETURN_IF_ERROR(
      device.Check(cudaEventCreateWithFlags(
                       &event, cudaEventDisableTiming | cudaEventBlockingSync),
                   "cudaEventCreateWithFlags"));
  std::unique_ptr<Event> result(new CudaEvent(device, event));
  TENSORD_RETURN_IF_ERROR(
      device.Check(cudaEventRecord(event, stream), "cudaEventRecord"));
  return result;
}

CudaEvent::~CudaEvent() {
  if (!device_.Select().ok()) return;
  device_.Check(cudaEventDestroy(event_), "cudaEventDestroy").IgnoreError();
}

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

}  // namespace tensord::core
