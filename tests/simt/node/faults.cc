#include "tests/simt/node/faults.h"

#include <algorithm>

namespace tensord::simt {

bool LosesDevice(cudaError_t error) {
  // cudaErrorTensorMemoryLeak, cudaErrorExternalDevice
  if (error == 721 || error == 911) return true;
  switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorUnknown: return true;
    default: return false;
  }
}

void Faults::Reset() {
  counts_ = {};
  faults_.clear();
}

void Faults::FailCall(CallKind kind, int64_t n, cudaError_t error) {
  faults_.push_back({kind, n, error});
}

cudaError_t Faults::Count(CallKind kind) {
  switch (kind) {
    case CallKind::kDeviceAllocation: ++counts_.device_allocations; break;
    case CallKind::kHostAllocation: ++counts_.host_allocations; break;
    case CallKind::kCopy: ++counts_.copies; break;
    case CallKind::kLaunch: ++counts_.launches; break;
    case CallKind::kRecordedLaunch: break;
    case CallKind::kGraphLaunch: ++counts_.graph_launches; break;
    case CallKind::kSynchronization: ++counts_.synchronizations; break;
  }
  cudaError_t error = cudaSuccess;
  for (Fault& fault : faults_) {
    if (fault.kind == kind && --fault.calls_left == 0) error = fault.error;
  }
  std::erase_if(faults_, [](const Fault& f) { return f.calls_left <= 0; });
  return error;
}

}  // namespace tensord::simt
