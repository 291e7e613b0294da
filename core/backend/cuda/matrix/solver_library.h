// cuSOLVER and cuBLAS on one device.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "core/backend/cuda/cuda_device.h"
#include "core/backend/cuda/cuda_stream.h"
#include "core/backend/cuda/matrix/cublas.h"
#include "core/backend/cuda/matrix/cusolver.h"

namespace tensord::core::cuda {

/// What calls go through. A handle has memory of its own on the device; one is
/// made when all others are in use, and a few are kept for the next.
///
/// Threads  safe for concurrent use.
/// Owner    the backend of the device; outlives its kernels.
class SolverLibrary {
  struct Handle {
    cusolverDnHandle_t solver = nullptr;
    cublasHandle_t blas = nullptr;
    gesvdjInfo_t gesvdj = nullptr;
    syevjInfo_t syevj = nullptr;
  };

 public:
  /// A handle that nobody else uses meanwhile.
  ///
  /// Threads   used by one thread at a time.
  /// Lifetime  the library outlives it.
  class Use {
   public:
    Use(const SolverLibrary& library, const Handle& handle)
        : library_(&library), handle_(handle) {}
    Use(Use&& other) noexcept
        : library_(std::exchange(other.library_, nullptr)),
          handle_(other.handle_) {}
    Use& operator=(Use&&) = delete;
    ~Use() {
      if (library_ != nullptr) library_->Return(handle_);
    }

    template <typename T>
    const CusolverRoutines<T>& routines() const {
      return library_->cusolver_.of<T>();
    }
    template <typename T>
    const CublasRoutines<T>& blas_routines() const {
      return library_->cublas_.of<T>();
    }
    cusolverDnHandle_t solver() const { return handle_.solver; }
    cublasHandle_t blas() const { return handle_.blas; }
    gesvdjInfo_t gesvdj() const { return handle_.gesvdj; }
    syevjInfo_t syevj() const { return handle_.syevj; }

    /// OK, or why a call failed whose outcome is `status`.
    ///
    /// Errors  as CheckCusolver(); UNAVAILABLE: the device is lost.
    absl::Status Check(cusolverStatus_t status, absl::string_view what) const;
    absl::Status Check(cublasStatus_t status, absl::string_view what) const;
    /// The same of a question for workspace: the elements that it says.
    ///
    /// Errors  besides, UNIMPLEMENTED, reason MATRIX_TOO_LARGE: the library
    ///         refuses, or does not count so far.
    absl::StatusOr<int> CheckedCount(cusolverStatus_t status, int count,
                                     absl::string_view what) const;

    /// Has calls queue on `stream`.
    absl::Status SetStream(CudaStream& stream);

   private:
    /// Of the device, after a call that failed.
    absl::Status CheckDevice(absl::string_view what) const;

    const SolverLibrary* library_;
    const Handle handle_;
    CudaStream* stream_ = nullptr;
  };

  SolverLibrary(CudaDevice& device, const Cusolver& cusolver,
                const Cublas& cublas)
      : device_(device), cusolver_(cusolver), cublas_(cublas) {}
  ~SolverLibrary();
  SolverLibrary(const SolverLibrary&) = delete;
  SolverLibrary& operator=(const SolverLibrary&) = delete;

  /// Of cuSOLVER: "12.0.4".
  std::string version() const;

  /// Makes the device that of the calling thread.
  ///
  /// Errors  UNAVAILABLE: the device is lost. RESOURCE_EXHAUSTED: no memory for
  ///         another handle. INTERNAL: what the library says.
  absl::StatusOr<Use> Take() const;

 private:
  static constexpr size_t kMostUnused = 4;

  absl::StatusOr<Handle> Make() const;
  void Return(const Handle& handle) const;
  void Destroy(const Handle& handle) const;

  CudaDevice& device_;
  const Cusolver cusolver_;
  const Cublas cublas_;
  mutable absl::Mutex mutex_;
  mutable std::vector<Handle> unused_ ABSL_GUARDED_BY(mutex_);
};

/// The libraries, or UNIMPLEMENTED with the reason why one is missing:
/// every kernel then refuses with it.
using MaybeSolverLibrary = absl::StatusOr<std::unique_ptr<SolverLibrary>>;

}  // namespace tensord::core::cuda
