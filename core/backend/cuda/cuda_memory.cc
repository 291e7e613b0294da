#include "core/backend/cuda/cuda_memory.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace tensord::core {
namespace {

class RegisteredRange final : public PinnedRange {
 public:
  RegisteredRange(CudaDevice& device, void* start)
      : device_(device), start_(start) {}
  ~RegisteredRange() override {
    // Also of a lost device: the process keeps the pages otherwise.
    device_.Select().IgnoreError();
    device_.Check(cudaHostUnregister(start_), "cudaHostUnregister")
        .IgnoreError();
  }

 private:
  CudaDevice& device_;
  void* const start_;
};

}  // namespace

absl::StatusOr<void*> CudaMemory::Allocate(int64_t bytes) {
  TENSORD_RETURN_IF_ERROR(device_.Select());
  void* pointer = nullptr;
  const cudaError_t error = cudaMalloc(&pointer, static_cast<size_t>(bytes));
  if (error == cudaSuccess) return pointer;
  const absl::Status failed = device_.Check(error, "cudaMalloc");
  if (!absl::IsResourceExhausted(failed)) return failed;
  size_t free_bytes = 0;
  size_t all_bytes = 0;
  TENSORD_RETURN_IF_ERROR(
      device_.Check(cudaMemGetInfo(&free_bytes, &all_bytes), "cudaMemGetInfo"));
  return ResourceExhausted("DEVICE_MEMORY_EXHAUSTED", device_.name(), " has ",
                           free_bytes, " of ", all_bytes,
                           " bytes free, asked were ", bytes);
}

void CudaMemory::Deallocate(void* pointer, int64_t) {
  // A lost device has taken its memory with it.
  if (device_.Select().ok())
    device_.Check(cudaFree(pointer), "cudaFree").IgnoreError();
}

absl::Status CudaMemory::Clear(void* pointer, int64_t bytes) {
  TENSORD_RETURN_IF_ERROR(device_.Select());
  // Not the default stream: it waits for, and holds up, no other.
  cudaStream_t stream = nullptr;
  TENSORD_RETURN_IF_ERROR(
      device_.Check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                    "cudaStreamCreateWithFlags"));
  absl::Status status = device_.Check(
      cudaMemsetAsync(pointer, 0, static_cast<size_t>(bytes), stream),
      "cudaMemsetAsync");
  status.Update(
      device_.Check(cudaStreamSynchronize(stream), "clearing memory"));
  status.Update(device_.Check(cudaStreamDestroy(stream), "cudaStreamDestroy"));
  return status;
}

absl::StatusOr<void*> PinnedMemory::Allocate(int64_t bytes) {
  TENSORD_RETURN_IF_ERROR(device_.Select());
  void* pointer = nullptr;
  TENSORD_RETURN_IF_ERROR(device_.Check(
      cudaMallocHost(&pointer, static_cast<size_t>(bytes)),
      absl::StrCat("allocating ", bytes, " bytes of pinned host memory")));
  return pointer;
}

void PinnedMemory::Deallocate(void* pointer, int64_t) {
  if (device_.Select().ok()) {
    device_.Check(cudaFreeHost(pointer), "cudaFreeHost").IgnoreError();
  }
}

absl::Status PinnedMemory::Clear(void* pointer, int64_t bytes) {
  std::memset(pointer, 0, static_cast<size_t>(bytes));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<PinnedRange>> PinHostMemory(CudaDevice& device,
                                                           void* start,
                                                           int64_t bytes) {
  TENSORD_RETURN_IF_ERROR(device.Select());
  int has_same_addresses = 0;
  TENSORD_RETURN_IF_ERROR(device.Check(
      cudaDeviceGetAttribute(&has_same_addresses,
                             cudaDevAttrCanUseHostPointerForRegisteredMem,
                             device.ordinal()),
      "cudaDeviceGetAttribute"));
  if (has_same_addresses == 0) {
    return Unimplemented("HOST_MEMORY_OUT_OF_REACH", device.name(),
                         " does not reach host memory at the host's addresses");
  }
  TENSORD_RETURN_IF_ERROR(device.Check(
      cudaHostRegister(start, static_cast<size_t>(bytes),
                       cudaHostRegisterMapped),
      absl::StrCat("registering ", bytes, " bytes of host memory")));
  return std::make_unique<RegisteredRange>(device, start);
}

}  // namespace tensord::core
