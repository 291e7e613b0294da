// Products of matrices on one device, by cuBLASLt.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "core/backend/cuda/cuda_device.h"
#include "core/backend/cuda/cuda_stream.h"
#include "core/backend/cuda/gemm/cublaslt.h"
#include "core/backend/cuda/gemm/gemm_call.h"
#include "core/ops/scalar.h"

namespace tensord::core::cuda {

/// What an algorithm may count on.
struct GemmLimits {
  int64_t workspace_bytes = 0;
  /// What the addresses of a, b, c and d are multiples of: a power of two, at
  /// most kWidestAccess.
  std::array<int64_t, 4> alignment_bytes = {1, 1, 1, 1};

  static constexpr int64_t kWidestAccess = ContractionProblem::kWidestAccess;

  bool operator==(const GemmLimits&) const = default;

  template <typename H>
  friend H AbslHashValue(H h, const GemmLimits& limits) {
    return H::combine(std::move(h), limits.workspace_bytes,
                      limits.alignment_bytes);
  }
};

/// One way in which the library does a GemmCall.
struct GemmAlgorithm {
  cublasLtMatmulAlgo_t algorithm;
  int64_t workspace_bytes;
};

/// The operands of a GemmCall, as it calls them.
struct GemmOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* c = nullptr;  // may be null when beta is 0
  void* d = nullptr;
  Scalar alpha = kOne;
  Scalar beta = kZero;
};

/// Threads  safe for concurrent use.
/// Owner    the backend of the device; outlives its kernels.
class GemmLibrary {
 public:
  /// How many algorithms are asked for.
  static constexpr int kMostAlgorithms = 4;

  /// Errors  UNAVAILABLE: the device is lost. INTERNAL: what the library says.
  static absl::StatusOr<std::unique_ptr<GemmLibrary>> Create(
      CudaDevice& device, const CublasLt& library);
  ~GemmLibrary();
  GemmLibrary(const GemmLibrary&) = delete;
  GemmLibrary& operator=(const GemmLibrary&) = delete;

  /// "13.1.0".
  std::string version() const;

  /// The algorithms that the library's heuristic proposes, best first, at most
  /// kMostAlgorithms; for equal questions the same ones. None of them adds
  /// partial sums in another order from run to run, or in d's type.
  ///
  /// Errors  UNIMPLEMENTED: it proposes none. UNAVAILABLE: the device is lost.
  ///         INTERNAL: what the library says.
  absl::StatusOr<std::vector<GemmAlgorithm>> Propose(
      const GemmCall& call, const GemmLimits& limits) const;

  /// Queues the product.
  ///
  /// Requires  `algorithm` was proposed for `call` and limits that hold for the
  ///           operands; `workspace` of so many bytes, aligned to 256; alpha is
  ///           not 0.
  /// Errors    UNAVAILABLE: the device is lost. INTERNAL: the launch failed.
  absl::Status Launch(const GemmCall& call, const GemmAlgorithm& algorithm,
                      const GemmOperands& operands, void* workspace,
                      CudaStream& stream) const;

 private:
  using Question = std::pair<GemmCall, GemmLimits>;

  GemmLibrary(CudaDevice& device, const CublasLt& library,
              cublasLtHandle_t handle)
      : device_(device), library_(library), handle_(handle) {}

  absl::StatusOr<std::vector<GemmAlgorithm>> Ask(
      const GemmCall& call, const GemmLimits& limits) const;

  CudaDevice& device_;
  const CublasLt library_;
  const cublasLtHandle_t handle_;
  mutable absl::Mutex mutex_;
  /// Answers, so that launches need not ask; forgotten all at once.
  mutable absl::flat_hash_map<Question, std::vector<GemmAlgorithm>> answers_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord::core::cuda
