// The part of OpenBLAS that factorizes matrices.
#pragma once

#include <cassert>
#include <complex>
#include <memory>
#include <tuple>

#include "absl/status/statusor.h"
#include "core/backend/cpu/gemm/blas.h"

namespace tensord::core {

/// LAPACK's routines, on one thread each and on matrices stored by columns. T
/// is float, double, std::complex<float> or std::complex<double>.
///
/// Threads   safe for concurrent use.
/// Lifetime  that of the library, which stays loaded.
class Lapack {
 public:
  /// Errors  UNAVAILABLE: the library was built without LAPACK.
  static absl::StatusOr<Lapack> Find(const Blas& blas);

  /// Reflectors that are applied together, at most.
  static constexpr int kBlock = 64;
  /// A matrix of rows x columns, and as many scratch elements as `columns`
  /// times `block`, 1 to kBlock.
  template <typename T>
  struct QrArguments {
    int rows, columns, block;
    T* a;  // by columns, without gaps
    T* tau;
    T* scratch;
  };

  /// a = Q * R: R at and above the diagonal, Q as reflectors below, whose
  /// factors go to tau, one for each element of the diagonal.
  template <typename T>
  void FactorQr(const QrArguments<T>& qr) const {
    const int scratch_count = qr.columns * qr.block;
    int info = 0;
    std::get<Geqrf<T>>(geqrf_).call(&qr.rows, &qr.columns, qr.a, &qr.rows,
                                    qr.tau, qr.scratch, &scratch_count, &info);
    assert(info == 0);
  }
  /// The first columns of Q in place of that many reflectors: as many as
  /// `columns`, at most `rows`.
  template <typename T>
  void FormQ(const QrArguments<T>& qr) const {
    const int scratch_count = qr.columns * qr.block;
    int info = 0;
    std::get<Orgqr<T>>(orgqr_).call(&qr.rows, &qr.columns, &qr.columns, qr.a,
                                    &qr.rows, qr.tau, qr.scratch,
                                    &scratch_count, &info);
    assert(info == 0);
  }

 private:
  // Types of their own for each element type, also where signatures agree.
  template <typename T>
  struct Geqrf {
    void (*call)(const int*, const int*, T*, const int*, T*, T*, const int*,
                 int*);
  };
  template <typename T>
  struct Orgqr {
    void (*call)(const int*, const int*, const int*, T*, const int*, const T*,
                 T*, const int*, int*);
  };

  std::tuple<Geqrf<float>, Geqrf<double>, Geqrf<std::complex<float>>,
             Geqrf<std::complex<double>>>
      geqrf_;
  std::tuple<Orgqr<float>, Orgqr<double>, Orgqr<std::complex<float>>,
             Orgqr<std::complex<double>>>
      orgqr_;
};

}  // namespace tensord::core
