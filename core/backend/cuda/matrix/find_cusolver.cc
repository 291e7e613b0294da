// Looks for cuSOLVER, and sees that its functions are declared as they are.
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "core/backend/cuda/matrix/cusolver.h"

namespace tensord::core::cuda {
namespace {

template <typename Declared, typename Theirs>
inline constexpr bool kSame = std::is_same_v<Declared, Theirs>;

using S = CusolverRoutines<float>;
using Z = CusolverRoutines<cuDoubleComplex>;

static_assert(
    kSame<decltype(S::GeqrfSize), decltype(&::cusolverDnSgeqrf_bufferSize)>);
static_assert(kSame<decltype(S::Geqrf), decltype(&::cusolverDnSgeqrf)>);
static_assert(
    kSame<decltype(S::OrgqrSize), decltype(&::cusolverDnSorgqr_bufferSize)>);
static_assert(kSame<decltype(S::Orgqr), decltype(&::cusolverDnSorgqr)>);
static_assert(
    kSame<decltype(S::GesvdSize), decltype(&::cusolverDnSgesvd_bufferSize)>);
static_assert(kSame<decltype(S::Gesvd), decltype(&::cusolverDnSgesvd)>);
static_assert(
    kSame<decltype(S::GesvdjSize), decltype(&::cusolverDnSgesvdj_bufferSize)>);
static_assert(kSame<decltype(S::Gesvdj), decltype(&::cusolverDnSgesvdj)>);
static_assert(kSame<decltype(S::GesvdjBatchedSize),
                    decltype(&::cusolverDnSgesvdjBatched_bufferSize)>);
static_assert(
    kSame<decltype(S::GesvdjBatched), decltype(&::cusolverDnSgesvdjBatched)>);
static_assert(
    kSame<decltype(S::SyevdSize), decltype(&::cusolverDnSsyevd_bufferSize)>);
static_assert(kSame<decltype(S::Syevd), decltype(&::cusolverDnSsyevd)>);
static_assert(kSame<decltype(S::SyevjBatchedSize),
                    decltype(&::cusolverDnSsyevjBatched_bufferSize)>);
static_assert(
    kSame<decltype(S::SyevjBatched), decltype(&::cusolverDnSsyevjBatched)>);
static_assert(
    kSame<decltype(S::PotrfSize), decltype(&::cusolverDnSpotrf_bufferSize)>);
static_assert(kSame<decltype(S::Potrf), decltype(&::cusolverDnSpotrf)>);
static_assert(
    kSame<decltype(S::PotrfBatched), decltype(&::cusolverDnSpotrfBatched)>);
static_assert(
    kSame<decltype(S::GetrfSize), decltype(&::cusolverDnSgetrf_bufferSize)>);
static_assert(kSame<decltype(S::Getrf), decltype(&::cusolverDnSgetrf)>);
static_assert(kSame<decltype(S::Getrs), decltype(&::cusolverDnSgetrs)>);
static_assert(
    kSame<decltype(Z::GeqrfSize), decltype(&::cusolverDnZgeqrf_bufferSize)>);
static_assert(kSame<decltype(Z::Geqrf), decltype(&::cusolverDnZgeqrf)>);
static_assert(
    kSame<decltype(Z::OrgqrSize), decltype(&::cusolverDnZungqr_bufferSize)>);
static_assert(kSame<decltype(Z::Orgqr), decltype(&::cusolverDnZungqr)>);
static_assert(
    kSame<decltype(Z::GesvdSize), decltype(&::cusolverDnZgesvd_bufferSize)>);
static_assert(kSame<decltype(Z::Gesvd), decltype(&::cusolverDnZgesvd)>);
static_assert(
    kSame<decltype(Z::GesvdjSize), decltype(&::cusolverDnZgesvdj_bufferSize)>);
static_assert(kSame<decltype(Z::Gesvdj), decltype(&::cusolverDnZgesvdj)>);
static_assert(kSame<decltype(Z::GesvdjBatchedSize),
                    decltype(&::cusolverDnZgesvdjBatched_bufferSize)>);
static_assert(
    kSame<decltype(Z::GesvdjBatched), decltype(&::cusolverDnZgesvdjBatched)>);
static_assert(
    kSame<decltype(Z::SyevdSize), decltype(&::cusolverDnZheevd_bufferSize)>);
static_assert(kSame<decltype(Z::Syevd), decltype(&::cusolverDnZheevd)>);
static_assert(kSame<decltype(Z::SyevjBatchedSize),
                    decltype(&::cusolverDnZheevjBatched_bufferSize)>);
static_assert(
    kSame<decltype(Z::SyevjBatched), decltype(&::cusolverDnZheevjBatched)>);
static_assert(
    kSame<decltype(Z::PotrfSize), decltype(&::cusolverDnZpotrf_bufferSize)>);
static_assert(kSame<decltype(Z::Potrf), decltype(&::cusolverDnZpotrf)>);
static_assert(
    kSame<decltype(Z::PotrfBatched), decltype(&::cusolverDnZpotrfBatched)>);
static_assert(
    kSame<decltype(Z::GetrfSize), decltype(&::cusolverDnZgetrf_bufferSize)>);
static_assert(kSame<decltype(Z::Getrf), decltype(&::cusolverDnZgetrf)>);
static_assert(kSame<decltype(Z::Getrs), decltype(&::cusolverDnZgetrs)>);

}  // namespace

absl::StatusOr<Cusolver> FindCusolver() {
  return LoadCusolver(absl::StrCat("libcusolver.so.", CUSOLVER_VER_MAJOR));
}

}  // namespace tensord::core::cuda
