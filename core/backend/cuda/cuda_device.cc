#include "core/backend/cuda/cuda_device.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace tensord::core {
namespace {

// cudaErrorTensorMemoryLeak and cudaErrorExternalDevice, which headers before
// CUDA 13 lack.
constexpr int kTensorMemoryLeak = 721;
constexpr int kExternalDevice = 911;

/// Whether CUDA answers every later call in this process with `error`, or says
/// that it leaves the process in an inconsistent state.
bool IsSticky(cudaError_t error) {
  if (error == kTensorMemoryLeak || error == kExternalDevice) return true;
  switch (error) {
    case cudaErrorAssert:
    case cudaErrorContained:
    case cudaErrorECCUncorrectable:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorMisalignedAddress:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorUnknown: return true;
    default: return false;
  }
}

}  // namespace

CudaDevice::CudaDevice(int ordinal)
    : ordinal_(ordinal), name_(absl::StrCat("cuda:", ordinal)) {}

absl::Status CudaDevice::Select() {
  if (is_lost_.load(std::memory_order_relaxed)) return Loss();
  return Check(cudaSetDevice(ordinal_), "cudaSetDevice");
}

void CudaDevice::ConnectTo(int ordinal) {
  if (ordinal == ordinal_) return;
  absl::MutexLock lock(&peers_mutex_);
  if (!peers_.insert(ordinal).second) return;
  for (const auto& [from, to] :
       {std::pair(ordinal_, ordinal), std::pair(ordinal, ordinal_)}) {
    int can_access = 0;
    if (cudaDeviceCanAccessPeer(&can_access, from, to) == cudaSuccess &&
        can_access != 0 && cudaSetDevice(from) == cudaSuccess) {
      cudaDeviceEnablePeerAccess(to, 0);
    }
    // The other device may have enabled it; and copies work without.
    cudaGetLastError();
  }
}

absl::Status CudaDevice::Check(cudaError_t error, absl::string_view what) {
  if (error == cudaSuccess) return absl::OkStatus();
  cudaGetLastError();  // or the next call would report it again
  const std::string message =
      absl::StrCat(what, " failed on ", name_, ": ", cudaGetErrorString(error),
                   " (", cudaGetErrorName(error), ")");
  if (error == cudaErrorMemoryAllocation) {
    return ResourceExhausted("DEVICE_MEMORY_EXHAUSTED", message);
  }
  if (!IsSticky(error)) return Internal("CUDA_ERROR", message);
  {
    absl::MutexLock lock(&mutex_);
    if (loss_.ok()) {
      loss_ = Error(absl::StatusCode::kUnavailable, "DEVICE_LOST",
                    absl::StrCat(message,
                                 "; the device is lost until the server "
                                 "starts anew"));
      is_lost_.store(true, std::memory_order_relaxed);
    }
  }
  return Loss();
}

absl::Status CudaDevice::Loss() {
  absl::MutexLock ended(&host_calls_);
  return health();
}

void CudaDevice::CallOnHost(void (*function)(void*), void* argument) {
  absl::ReaderMutexLock call(&host_calls_);
  if (!is_lost_.load(std::memory_order_relaxed)) function(argument);
}

absl::Status CudaDevice::health() const {
  absl::MutexLock lock(&mutex_);
  return loss_;
}

}  // namespace tensord::core
