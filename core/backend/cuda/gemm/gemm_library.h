// Products of matrices on one device, by cuBLASLt.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "core/backend/cuda/cuda_device.h"
#include "core/backend/cuda/cuda_stream.h"
#include "core/backend/cuda/gemm/cublaslt.h"
#include "core/backend/cuda/gemm/gemm_call.h"
#include "core/backend/cuda/gemm/gemm_description.h"
#include "core/backend/kernel.h"
#include "core/base/heap_bytes.h"
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
};

/// One way in which the library does a GemmCall.
struct GemmAlgorithm {
  cublasLtMatmulAlgo_t algorithm;
  int64_t workspace_bytes;
};

/// A GemmCall and the ways to do it, best first.
///
/// Threads  immutable once made; share freely.
struct GemmProposal {
  GemmProposal(const CublasLt& library, const GemmCall& call)
      : call(call), description(library) {}

  const GemmCall call;
  GemmDescription description;
  std::vector<GemmAlgorithm> algorithms;

  /// Bytes of memory; about, since the library does not tell its own.
  int64_t bytes() const {
    constexpr int64_t kDescription = 512;
    return HeapBlockBytes(sizeof(*this)) + kDescription + HeapBytes(algorithms);
  }
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
/// The operands of a contraction, under the same names.
inline GemmOperands OperandsOf(const ContractionOperands& operands) {
  return {.a = operands.a,
          .b = operands.b,
          .c = operands.c,
          .d = operands.d,
          .alpha = operands.alpha,
          .beta = operands.beta};
}

/// Threads  safe for concurrent use.
/// Owner    the backend of the device; outlives its kernels.
class GemmLibrary {
 public:
  /// How many algorithms are asked for.
  static constexpr int kMostAlgorithms = 4;
  /// Most batches of one call: the most that a grid's third extent holds.
  static constexpr int64_t kMostBatches = 65535;

  /// Errors  UNAVAILABLE: the device is lost. INTERNAL: what the library says.
  static absl::StatusOr<std::unique_ptr<GemmLibrary>> Create(
      CudaDevice& device, const CublasLt& library);
  ~GemmLibrary();
  GemmLibrary(const GemmLibrary&) = delete;
  GemmLibrary& operator=(const GemmLibrary&) = delete;

  /// "13.1.0".
  std::string version() const;

  /// What the library's heuristic proposes, at most kMostAlgorithms ways. All
  /// of them add partial sums in the same order in each run, and none in d's
  /// type. `call.swaps` does not matter.
  ///
  /// The heuristic takes longer than all else in planning, and several kernels
  /// ask the same for one problem. So the latest answers are kept, refusals
  /// too: as many as a kernel asks for. Solutions keep their own.
  ///
  /// Requires  call.batch_count <= kMostBatches.
  /// Errors  UNIMPLEMENTED: it proposes none. UNAVAILABLE: the device is lost.
  ///         INTERNAL: what the library says.
  absl::StatusOr<std::shared_ptr<const GemmProposal>> Propose(
      const GemmCall& call, const GemmLimits& limits) const;

  /// Queues the product.
  ///
  /// Requires  `algorithm` is one of the proposal's, whose limits hold for the
  ///           operands; `workspace` of so many bytes, aligned to 256; alpha is
  ///           not 0; call.c is call.d when beta is 0.
  /// Errors    UNAVAILABLE: the device is lost. INTERNAL: the launch failed.
  absl::Status Launch(const GemmProposal& proposal,
                      const GemmAlgorithm& algorithm,
                      const GemmOperands& operands, void* workspace,
                      CudaStream& stream) const;

 private:
  using Answer = absl::StatusOr<std::shared_ptr<const GemmProposal>>;
  struct Asked {
    GemmCall call;
    GemmLimits limits;
    Answer answer = nullptr;  // null: nothing was asked
  };
  /// A kernel asks with c and without, for most parts of the batches and for
  /// the last one.
  static constexpr size_t kKept = 4;

  GemmLibrary(CudaDevice& device, const CublasLt& library,
              cublasLtHandle_t handle)
      : device_(device), library_(library), handle_(handle) {}

  Answer Ask(const GemmCall& call, const GemmLimits& limits) const;

  CudaDevice& device_;
  const CublasLt library_;
  const cublasLtHandle_t handle_;
  mutable absl::Mutex mutex_;
  mutable std::array<Asked, kKept> latest_ ABSL_GUARDED_BY(mutex_);
  mutable size_t oldest_ ABSL_GUARDED_BY(mutex_) = 0;  // of them
};

}  // namespace tensord::core::cuda
