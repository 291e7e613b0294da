// The part of OpenBLAS that factorizes matrices.
#pragma once

#include <algorithm>
#include <cassert>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>

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

  /// Scratch elements that calls on so many columns, with so many reflectors,
  /// take.
  static constexpr int64_t ScratchFor(int64_t columns, int64_t reflectors) {
    return columns * std::min(kBlock, reflectors) +
           (reflectors > kFewReflectors ? kKeptElements : 0);
  }

  /// Neighbouring columns of a matrix stored by columns.
  template <typename T>
  struct Columns {
    int rows, columns;
    T* a;
    int line;  // elements between columns
  };
  template <typename T>
  struct Scratch {
    T* data;
    int count;  // ScratchFor() the columns of a call, or more
  };

  /// a = Q * R: R at and above the diagonal, Q as reflectors below, whose
  /// factors go to tau, one for each element of the diagonal.
  template <typename T>
  void FactorQr(const Columns<T>& a, T* tau, const Scratch<T>& scratch) const {
    int info = 0;
    std::get<Geqrf<T>>(geqrf_).call(&a.rows, &a.columns, a.a, &a.line, tau,
                                    scratch.data, &scratch.count, &info);
    assert(info == 0);
  }

  /// c = Q * c or, if `adjoint`, Q^H * c, of the reflectors in `q`.
  /// Requires  as many rows of c as of q.
  template <typename T>
  void ApplyQ(const Columns<T>& q, const T* tau, bool adjoint,
              const Columns<T>& c, const Scratch<T>& scratch) const {
    constexpr char kLeft = 'L';
    const char form = !adjoint ? 'N' : std::is_floating_point_v<T> ? 'T' : 'C';
    int info = 0;
    std::get<Ormqr<T>>(ormqr_).call(&kLeft, &form, &c.rows, &c.columns,
                                    &q.columns, q.a, &q.line, tau, c.a, &c.line,
                                    scratch.data, &scratch.count, &info, 1, 1);
    assert(info == 0);
  }

  /// The first columns of Q in place of that many reflectors: as many as
  /// q.columns, at most q.rows.
  template <typename T>
  void FormQ(const Columns<T>& q, const T* tau,
             const Scratch<T>& scratch) const {
    int info = 0;
    std::get<Orgqr<T>>(orgqr_).call(&q.rows, &q.columns, &q.columns, q.a,
                                    &q.line, tau, scratch.data, &scratch.count,
                                    &info);
    assert(info == 0);
  }

 private:
  // Reflectors that are applied together, unless they are few, and what LAPACK
  // keeps of them then.
  static constexpr int64_t kBlock = 64;
  static constexpr int64_t kFewReflectors = 16;
  static constexpr int64_t kKeptElements = (kBlock + 1) * kBlock;

  // Types of their own for each element type, also where signatures agree.
  template <typename T>
  struct Geqrf {
    void (*call)(const int*, const int*, T*, const int*, T*, T*, const int*,
                 int*);
  };
  // Lengths of the two texts follow, as Fortran has it.
  template <typename T>
  struct Ormqr {
    void (*call)(const char*, const char*, const int*, const int*, const int*,
                 const T*, const int*, const T*, T*, const int*, T*, const int*,
                 int*, size_t, size_t);
  };
  template <typename T>
  struct Orgqr {
    void (*call)(const int*, const int*, const int*, T*, const int*, const T*,
                 T*, const int*, int*);
  };

  std::tuple<Geqrf<float>, Geqrf<double>, Geqrf<std::complex<float>>,
             Geqrf<std::complex<double>>>
      geqrf_;
  std::tuple<Ormqr<float>, Ormqr<double>, Ormqr<std::complex<float>>,
             Ormqr<std::complex<double>>>
      ormqr_;
  std::tuple<Orgqr<float>, Orgqr<double>, Orgqr<std::complex<float>>,
             Orgqr<std::complex<double>>>
      orgqr_;
};

}  // namespace tensord::core
