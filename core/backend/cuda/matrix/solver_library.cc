#include "core/backend/cuda/matrix/solver_library.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace tensord::core::cuda {

absl::Status SolverLibrary::Use::CheckDevice(absl::string_view what) const {
  if (stream_ == nullptr) return absl::OkStatus();
  // Libraries have a runtime of their own, which does not tell ours what went
  // wrong. Of a device that is lost, the stream says so.
  const cudaError_t state = cudaStreamQuery(stream_->get());
  if (state != cudaErrorNotReady) return library_->device_.Check(state, what);
  cudaGetLastError();
  return absl::OkStatus();
}

absl::Status SolverLibrary::Use::Check(cusolverStatus_t status,
                                       absl::string_view what) const {
  if (status == CUSOLVER_STATUS_SUCCESS) return absl::OkStatus();
  TENSORD_RETURN_IF_ERROR(CheckDevice(what));
  return CheckCusolver(status, what);
}

absl::Status SolverLibrary::Use::Check(cublasStatus_t status,
                                       absl::string_view what) const {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  TENSORD_RETURN_IF_ERROR(CheckDevice(what));
  return CheckCublas(status, what);
}

absl::StatusOr<int> SolverLibrary::Use::CheckedCount(
    cusolverStatus_t status, int count, absl::string_view what) const {
  const bool is_refused = status == CUSOLVER_STATUS_INVALID_VALUE;
  if (is_refused || (status == CUSOLVER_STATUS_SUCCESS && count < 0)) {
    return Unimplemented("MATRIX_TOO_LARGE", what,
                         " tells of no workspace for it");
  }
  TENSORD_RETURN_IF_ERROR(Check(status, what));
  return count;
}

absl::Status SolverLibrary::Use::SetStream(CudaStream& stream) {
  stream_ = &stream;
  TENSORD_RETURN_IF_ERROR(
      Check(library_->cusolver_.SetStream(handle_.solver, stream.get()),
            "cuSOLVER cannot be used"));
  return Check(library_->cublas_.SetStream(handle_.blas, stream.get()),
               "cuBLAS cannot be used");
}

SolverLibrary::~SolverLibrary() {
  device_.Select().IgnoreError();  // of a lost device, too, all is given back
  absl::MutexLock lock(&mutex_);
  for (const Handle& handle : unused_) Destroy(handle);
}

std::string SolverLibrary::version() const {
  int version = 0;
  cusolver_.GetVersion(&version);
  return absl::StrCat(version / 1000, ".", version / 100 % 10, ".",
                      version % 100);
}

absl::StatusOr<SolverLibrary::Use> SolverLibrary::Take() const {
  TENSORD_RETURN_IF_ERROR(device_.Select());
  {
    absl::MutexLock lock(&mutex_);
    if (!unused_.empty()) {
      const Handle handle = unused_.back();
      unused_.pop_back();
      return Use(*this, handle);
    }
  }
  TENSORD_ASSIGN_OR_RETURN(const Handle handle, Make());
  return Use(*this, handle);
}

absl::StatusOr<SolverLibrary::Handle> SolverLibrary::Make() const {
  constexpr absl::string_view kWhat = "cuSOLVER cannot be used";
  Handle handle;
  absl::Status status = CheckCusolver(cusolver_.Create(&handle.solver), kWhat);
  if (status.ok()) {
    status = CheckCusolver(cusolver_.CreateGesvdjInfo(&handle.gesvdj), kWhat);
  }
  if (status.ok()) {
    status = CheckCusolver(cusolver_.CreateSyevjInfo(&handle.syevj), kWhat);
  }
  if (status.ok()) {
    status = CheckCublas(cublas_.Create(&handle.blas), "cuBLAS cannot be used");
  }
  if (status.ok()) return handle;
  Destroy(handle);
  return status;
}

void SolverLibrary::Return(const Handle& handle) const {
  {
    absl::MutexLock lock(&mutex_);
    if (unused_.size() < kMostUnused) return unused_.push_back(handle);
  }
  device_.Select().IgnoreError();
  Destroy(handle);
}

void SolverLibrary::Destroy(const Handle& handle) const {
  if (handle.blas != nullptr) cublas_.Destroy(handle.blas);
  if (handle.syevj != nullptr) cusolver_.DestroySyevjInfo(handle.syevj);
  if (handle.gesvdj != nullptr) cusolver_.DestroyGesvdjInfo(handle.gesvdj);
  if (handle.solver != nullptr) cusolver_.Destroy(handle.solver);
}

}  // namespace tensord::core::cuda
