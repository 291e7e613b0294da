// Work that is recorded as a CUDA graph.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/backend/cuda/cuda_device.h"
#include "core/device/device.h"

namespace tensord::core {

class CudaRecording final : public Recording {
 public:
  /// What `stream` has captured since cudaStreamBeginCapture().
  ///
  /// Errors  INTERNAL, reason CUDA_ERROR; UNAVAILABLE: the device is lost. The
  ///         capture has ended then, too.
  static absl::StatusOr<std::unique_ptr<Recording>> End(CudaDevice& device,
                                                        cudaStream_t stream);
  ~CudaRecording() override;

  absl::Status Launch(Stream& stream) override;

 private:
  CudaRecording(CudaDevice& device, cudaGraphExec_t graph)
      : device_(device), graph_(graph) {}

  CudaDevice& device_;
  const cudaGraphExec_t graph_;
};

}  // namespace tensord::core
