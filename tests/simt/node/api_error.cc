// cudaGetLastError and the names of errors.
#include "tests/simt/node/node.h"

using tensord::simt::Node;

namespace {

struct ErrorText {
  cudaError_t error;
  const char* name;
  const char* text;
};

#define ERROR_TEXT(error, text) \
  { error, #error, text }
constexpr ErrorText kErrorTexts[] = {
    ERROR_TEXT(cudaSuccess, "no error"),
    ERROR_TEXT(cudaErrorInvalidValue, "invalid argument"),
    ERROR_TEXT(cudaErrorMemoryAllocation, "out of memory"),
    ERROR_TEXT(cudaErrorInitializationError, "initialization error"),
    ERROR_TEXT(cudaErrorCudartUnloading, "driver shutting down"),
    ERROR_TEXT(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    ERROR_TEXT(cudaErrorInvalidPitchValue, "invalid pitch argument"),
    ERROR_TEXT(cudaErrorInvalidMemcpyDirection,
               "invalid copy direction for memcpy"),
    ERROR_TEXT(cudaErrorInsufficientDriver,
               "CUDA driver version is insufficient for CUDA runtime version"),
    ERROR_TEXT(cudaErrorDevicesUnavailable,
               "CUDA-capable device(s) is/are busy or unavailable"),
    ERROR_TEXT(cudaErrorInvalidDeviceFunction, "invalid device function"),
    ERROR_TEXT(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    ERROR_TEXT(cudaErrorInvalidDevice, "invalid device ordinal"),
    ERROR_TEXT(cudaErrorNoKernelImageForDevice,
               "no kernel image is available for execution on the device"),
    ERROR_TEXT(cudaErrorECCUncorrectable,
               "uncorrectable ECC error encountered"),
    ERROR_TEXT(cudaErrorPeerAccessUnsupported,
               "peer access is not supported between these two devices"),
    ERROR_TEXT(cudaErrorNvlinkUncorrectable,
               "uncorrectable NVLink error detected during the execution"),
    ERROR_TEXT(cudaErrorContained,
               "Invalid access of peer GPU memory over "
               "nvlink or a hardware error"),
    ERROR_TEXT(cudaErrorOperatingSystem,
               "OS call failed or operation not supported on this OS"),
    ERROR_TEXT(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    ERROR_TEXT(cudaErrorIllegalState,
               "the operation cannot be performed in the present state"),
    ERROR_TEXT(cudaErrorNotReady, "device not ready"),
    ERROR_TEXT(cudaErrorIllegalAddress,
               "an illegal memory access was encountered"),
    ERROR_TEXT(cudaErrorLaunchOutOfResources,
               "too many resources requested for launch"),
    ERROR_TEXT(cudaErrorLaunchTimeout,
               "the launch timed out and was terminated"),
    ERROR_TEXT(cudaErrorPeerAccessAlreadyEnabled,
               "peer access is already enabled"),
    ERROR_TEXT(cudaErrorPeerAccessNotEnabled,
               "peer access has not been enabled"),
    ERROR_TEXT(cudaErrorAssert, "device-side assert triggered"),
    ERROR_TEXT(cudaErrorHostMemoryAlreadyRegistered,
               "part or all of the requested memory range is already mapped"),
    ERROR_TEXT(cudaErrorHostMemoryNotRegistered,
               "pointer does not correspond to a registered memory region"),
    ERROR_TEXT(cudaErrorHardwareStackError, "hardware stack error"),
    ERROR_TEXT(cudaErrorIllegalInstruction,
               "an illegal instruction was encountered"),
    ERROR_TEXT(cudaErrorMisalignedAddress, "misaligned address"),
    ERROR_TEXT(cudaErrorInvalidAddressSpace,
               "operation not supported on global/shared address space"),
    ERROR_TEXT(cudaErrorInvalidPc, "invalid program counter"),
    ERROR_TEXT(cudaErrorLaunchFailure, "unspecified launch failure"),
    ERROR_TEXT(cudaErrorNotPermitted, "operation not permitted"),
    ERROR_TEXT(cudaErrorNotSupported, "operation not supported"),
    ERROR_TEXT(cudaErrorSystemNotReady, "system not yet initialized"),
    ERROR_TEXT(cudaErrorStreamCaptureUnsupported,
               "operation not permitted when stream is capturing"),
    ERROR_TEXT(cudaErrorStreamCaptureInvalidated,
               "operation failed due to a previous error during capture"),
    ERROR_TEXT(cudaErrorStreamCaptureMerge,
               "operation would result in a merge of separate capture "
               "sequences"),
    ERROR_TEXT(cudaErrorStreamCaptureUnmatched,
               "capture was not ended in the same stream as it began"),
    ERROR_TEXT(cudaErrorStreamCaptureUnjoined,
               "capturing stream has unjoined work"),
    ERROR_TEXT(cudaErrorStreamCaptureIsolation,
               "dependency created on uncaptured work in another stream"),
    ERROR_TEXT(cudaErrorCapturedEvent,
               "operation not permitted on an event last recorded in a "
               "capturing stream"),
    ERROR_TEXT(cudaErrorUnknown, "unknown error"),
};
#undef ERROR_TEXT

constexpr ErrorText kUnknown = {cudaErrorUnknown, "unrecognized error code",
                                "unrecognized error code"};

const ErrorText& TextOf(cudaError_t error) {
  for (const ErrorText& known : kErrorTexts) {
    if (known.error == error) return known;
  }
  return kUnknown;
}

/// The error that made the current device unusable comes first, and stays.
cudaError_t CurrentError() {
  const tensord::simt::tsan::Ignore ignore;
  Node& node = tensord::simt::TheNode();
  const std::lock_guard lock(node.lock);
  const int device = tensord::simt::CurrentDevice();
  const cudaError_t lost =
      node.IsDevice(device) ? node.streams.DeviceError(device) : cudaSuccess;
  return lost != cudaSuccess ? lost : tensord::simt::LastError();
}

}  // namespace

extern "C" {

cudaError_t cudaGetLastError() {
  const cudaError_t error = CurrentError();
  tensord::simt::SetLastError(cudaSuccess);
  return error;
}

cudaError_t cudaPeekAtLastError() { return CurrentError(); }

const char* cudaGetErrorName(cudaError_t error) { return TextOf(error).name; }

const char* cudaGetErrorString(cudaError_t error) { return TextOf(error).text; }

}  // extern "C"
