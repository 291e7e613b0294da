#include "core/backend/cuda/cuda_recording.h"

#include "core/backend/cuda/cuda_stream.h"
#include "core/base/status.h"

namespace tensord::core {

absl::StatusOr<std::unique_ptr<Recording>> CudaRecording::End(
    CudaDevice& device, cudaStream_t stream) {
  TENSORD_RETURN_IF_ERROR(device.Select());
  cudaGraph_t captured = nullptr;
  TENSORD_RETURN_IF_ERROR(device.Check(cudaStreamEndCapture(stream, &captured),
                                       "cudaStreamEndCapture"));
  cudaGraphExec_t graph = nullptr;
  const absl::Status status =
      device.Check(cudaGraphInstantiateWithFlags(&graph, captured, 0),
                   "cudaGraphInstantiate");
  device.Check(cudaGraphDestroy(captured), "cudaGraphDestroy").IgnoreError();
  TENSORD_RETURN_IF_ERROR(status);
  return std::unique_ptr<Recording>(new CudaRecording(device, graph));
}

CudaRecording::~CudaRecording() {
  if (!device_.Select().ok()) return;
  // What was launched still runs.
  device_.Check(cudaGraphExecDestroy(graph_), "cudaGraphExecDestroy")
      .IgnoreError();
}

absl::Status CudaRecording::Launch(Stream& stream) {
  TENSORD_RETURN_IF_ERROR(device_.Select());
  return device_.Check(cudaGraphLaunch(graph_, AsCuda(stream).get()),
                       "cudaGraphLaunch");
}

}  // namespace tensord::core
