#include <cuda_runtime_api.h>

#include <limits>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "tests/gpu/bench/node.h"

namespace tensord::test {
namespace {

absl::Status Check(cudaError_t error, absl::string_view what) {
  if (error == cudaSuccess) return absl::OkStatus();
  cudaGetLastError();
  return core::Internal("CUDA_ERROR", what,
                        " failed: ", cudaGetErrorString(error));
}

/// The default pool of device 0, which keeps what is given back.
class DriverPool final : public StreamOrderedMemory {
 public:
  DriverPool(cudaMemPool_t pool, cudaStream_t stream)
      : pool_(pool), stream_(stream) {}
  ~DriverPool() override {
    Trim().IgnoreError();
    cudaStreamDestroy(stream_);
  }

  absl::StatusOr<void*> Allocate(int64_t bytes) override {
    void* pointer = nullptr;
    TENSORD_RETURN_IF_ERROR(
        Check(cudaMallocAsync(&pointer, static_cast<size_t>(bytes), stream_),
              "cudaMallocAsync"));
    return pointer;
  }
  void Deallocate(void* pointer, int64_t) override {
    Check(cudaFreeAsync(pointer, stream_), "cudaFreeAsync").IgnoreError();
  }
  absl::Status Clear(void* pointer, int64_t bytes) override {
    return Check(
        cudaMemsetAsync(pointer, 0, static_cast<size_t>(bytes), stream_),
        "cudaMemsetAsync");
  }
  absl::StatusOr<int64_t> ReservedBytes() override {
    uint64_t bytes = 0;
    TENSORD_RETURN_IF_ERROR(
        Check(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent,
                                      &bytes),
              "cudaMemPoolGetAttribute"));
    return static_cast<int64_t>(bytes);
  }
  absl::Status Trim() override {
    TENSORD_RETURN_IF_ERROR(
        Check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"));
    return Check(cudaMemPoolTrimTo(pool_, 0), "cudaMemPoolTrimTo");
  }

 private:
  const cudaMemPool_t pool_;
  const cudaStream_t stream_;
};

}  // namespace

void PrepareNode() {}

absl::StatusOr<std::unique_ptr<StreamOrderedMemory>>
CreateStreamOrderedMemory() {
  cudaMemPool_t pool = nullptr;
  TENSORD_RETURN_IF_ERROR(
      Check(cudaDeviceGetDefaultMemPool(&pool, 0), "the default pool"));
  uint64_t threshold = std::numeric_limits<uint64_t>::max();
  TENSORD_RETURN_IF_ERROR(
      Check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold,
                                    &threshold),
            "setting the release threshold"));
  cudaStream_t stream = nullptr;
  TENSORD_RETURN_IF_ERROR(
      Check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
            "cudaStreamCreateWithFlags"));
  return std::make_unique<DriverPool>(pool, stream);
}

}  // namespace tensord::test
