// GemmCalls in cuBLASLt's words.
#pragma once

#include <complex>

#include "absl/status/status.h"
#include "core/backend/cuda/gemm/cublaslt.h"
#include "core/backend/cuda/gemm/gemm_call.h"
#include "core/ops/scalar.h"

namespace tensord::core::cuda {

/// Owns a description that the library made.
template <typename Handle>
class Described {
 public:
  using DestroyFunction = cublasStatus_t (*)(Handle);

  explicit Described(DestroyFunction destroy) : destroy_(destroy) {}
  ~Described() {
    if (handle_ != nullptr) destroy_(handle_);
  }
  Described(const Described&) = delete;
  Described& operator=(const Described&) = delete;

  Handle* out() { return &handle_; }
  Handle get() const { return handle_; }

 private:
  const DestroyFunction destroy_;
  Handle handle_ = nullptr;
};

/// A product and its four matrices.
///
/// Threads  the library only reads them: share freely.
struct GemmDescription {
  explicit GemmDescription(const CublasLt& library)
      : operation(library.MatmulDescDestroy),
        a(library.MatrixLayoutDestroy),
        b(library.MatrixLayoutDestroy),
        c(library.MatrixLayoutDestroy),
        d(library.MatrixLayoutDestroy) {}

  Described<cublasLtMatmulDesc_t> operation;
  Described<cublasLtMatrixLayout_t> a, b, c, d;
};

/// Fills in `description`, which is new, for `call`.
///
/// Errors  INTERNAL: what the library says.
absl::Status Describe(const CublasLt& library, const GemmCall& call,
                      GemmDescription& description);

/// Alpha or beta in memory, as the library reads it.
class GemmFactor {
 public:
  GemmFactor(const Scalar& scalar, const GemmCall& call);

  const void* get() const {
    return is_wide_ ? static_cast<const void*>(&wide_) : &narrow_;
  }

 private:
  std::complex<double> wide_;   // the real part comes first
  std::complex<float> narrow_;  // likewise
  bool is_wide_;
};

}  // namespace tensord::core::cuda
