#include "core/backend/cuda/factorization/solver_library.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace tensord::core::cuda {

absl::Status SolverLibrary::Use::Check(cusolverStatus_t status,
                                       absl::string_view what) const {
  if (status == CUSOLVER_STATUS_SUCCESS) return absl::OkStatus();
  // The library has a runtime of its own, which does not tell ours what went
  // wrong. Of a device that is lost, the stream says so.
  if (stream_ != nullptr) {
    const cudaError_t state = cudaStreamQuery(stream_->get());
    if (state == cudaErrorNotReady) {
      cudaGetLastError();
    } else {
      TENSORD_RETURN_IF_ERROR(library_->device_.Check(state, what));
    }
  }
  return CheckCusolver(status, what);
}

absl::Status SolverLibrary::Use::SetStream(CudaStream& stream) {
  stream_ = &stream;
  return Check(library_->functions_.SetStream(handle_.solver, stream.get()),
               "cuSOLVER cannot be used");
}

SolverLibrary::~SolverLibrary() {
  if (!device_.Select().ok()) return;
  absl::MutexLock lock(&mutex_);
  for (const Handle& handle : unused_) Destroy(handle);
}

std::string SolverLibrary::version() const {
  int version = 0;
  functions_.GetVersion(&version);
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
  Handle handle;
  cusolverStatus_t status = functions_.Create(&handle.solver);
  if (status == CUSOLVER_STATUS_SUCCESS) {
    status = functions_.CreateGesvdjInfo(&handle.gesvdj);
  }
  if (status == CUSOLVER_STATUS_SUCCESS) {
    status = functions_.CreateSyevjInfo(&handle.syevj);
  }
  if (status == CUSOLVER_STATUS_SUCCESS) return handle;
  Destroy(handle);
  return CheckCusolver(status, "cuSOLVER cannot be used");
}

void SolverLibrary::Return(const Handle& handle) const {
  absl::MutexLock lock(&mutex_);
  unused_.push_back(handle);
}

void SolverLibrary::Destroy(const Handle& handle) const {
  if (handle.syevj != nullptr) functions_.DestroySyevjInfo(handle.syevj);
  if (handle.gesvdj != nullptr) functions_.DestroyGesvdjInfo(handle.gesvdj);
  if (handle.solver != nullptr) functions_.Destroy(handle.solver);
}

}  // namespace tensord::core::cuda
