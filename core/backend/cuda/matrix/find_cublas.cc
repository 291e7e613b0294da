// Looks for cuBLAS, and sees that its functions are declared as they are.
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "core/backend/cuda/matrix/cublas.h"

namespace tensord::core::cuda {
namespace {

template <typename Declared, typename Theirs>
inline constexpr bool kSame = std::is_same_v<Declared, Theirs>;

using S = CublasRoutines<float>;
using Z = CublasRoutines<cuDoubleComplex>;

static_assert(kSame<decltype(S::Trsm), decltype(&::cublasStrsm_v2)>);
static_assert(kSame<decltype(S::TrsmBatched), decltype(&::cublasStrsmBatched)>);
static_assert(kSame<decltype(S::GemmStridedBatched),
                    decltype(&::cublasSgemmStridedBatched)>);
static_assert(
    kSame<decltype(S::GetrfBatched), decltype(&::cublasSgetrfBatched)>);
static_assert(
    kSame<decltype(S::GetrsBatched), decltype(&::cublasSgetrsBatched)>);
static_assert(kSame<decltype(Z::Trsm), decltype(&::cublasZtrsm_v2)>);
static_assert(kSame<decltype(Z::TrsmBatched), decltype(&::cublasZtrsmBatched)>);
static_assert(kSame<decltype(Z::GemmStridedBatched),
                    decltype(&::cublasZgemmStridedBatched)>);
static_assert(
    kSame<decltype(Z::GetrfBatched), decltype(&::cublasZgetrfBatched)>);
static_assert(
    kSame<decltype(Z::GetrsBatched), decltype(&::cublasZgetrsBatched)>);

}  // namespace

absl::StatusOr<Cublas> FindCublas() {
  return LoadCublas(absl::StrCat("libcublas.so.", CUBLAS_VER_MAJOR));
}

}  // namespace tensord::core::cuda
