// The part of OpenBLAS that solves equations.
#pragma once

#include <complex>
#include <cstddef>
#include <tuple>

#include "absl/status/statusor.h"
#include "core/backend/cpu/gemm/blas.h"

namespace tensord::core {

/// LAPACK's steps of elimination, on one thread each and on matrices stored by
/// columns. T is float, double, std::complex<float> or std::complex<double>.
///
/// Threads   safe for concurrent use.
/// Lifetime  that of the library, which stays loaded.
class LapackEquations {
 public:
  /// Errors  UNAVAILABLE: the library was built without LAPACK.
  static absl::StatusOr<LapackEquations> Find(const Blas& blas);

  template <typename T>
  struct Matrix {
    int rows, columns;
    T* a;
    int line;  // elements between columns
  };

  /// P * L * U in place of a matrix. pivots (min(rows, columns)): with which
  /// row each one was exchanged, counted from 1. Above 0: the first pivot that
  /// is 0.
  template <typename T>
  int Getrf(const Matrix<T>& m, int* pivots) const {
    int info = 0;
    std::get<GetrfRoutine<T>>(getrf_).call(&m.rows, &m.columns, m.a, &m.line,
                                           pivots, &info);
    return info;
  }

  /// Exchanges rows as Getrf() has, as many as there are pivots.
  template <typename T>
  void Laswp(const Matrix<T>& m, int count, const int* pivots) const {
    constexpr int kOne = 1;
    std::get<LaswpRoutine<T>>(laswp_).call(&m.columns, m.a, &m.line, &kOne,
                                           &count, pivots, &kOne);
  }

  /// L of m = L * L^H in m's lower triangle. Above 0: the order of the leading
  /// part that is not positive definite.
  template <typename T>
  int Potrf(const Matrix<T>& m) const {
    int info = 0;
    std::get<PotrfRoutine<T>>(potrf_).call("L", &m.rows, m.a, &m.line, &info,
                                           1);
    return info;
  }

  struct Triangle {
    char side;      // 'L': triangle * x = m, 'R': x * triangle = m
    char part;      // 'L' or 'U'
    char form;      // 'N', or 'C' for the adjoint
    char diagonal;  // 'N', or 'U' for ones
  };
  /// x in place of m.
  template <typename T>
  void Trsm(const Triangle& triangle, const T* a, int line,
            const Matrix<T>& m) const {
    constexpr T kOne = 1;
    std::get<TrsmRoutine<T>>(trsm_).call(
        &triangle.side, &triangle.part, &triangle.form, &triangle.diagonal,
        &m.rows, &m.columns, &kOne, a, &line, m.a, &m.line, 1, 1, 1, 1);
  }

 private:
  // Types of their own for each element type, also where signatures agree; the
  // lengths of texts come last, as Fortran has it.
  using In = const int*;
  using Text = const char*;
  template <typename T>
  struct GetrfRoutine {
    void (*call)(In, In, T*, In, int*, int*);
  };
  template <typename T>
  struct LaswpRoutine {
    void (*call)(In, T*, In, In, In, In, In);
  };
  template <typename T>
  struct PotrfRoutine {
    void (*call)(Text, In, T*, In, int*, size_t);
  };
  template <typename T>
  struct TrsmRoutine {
    void (*call)(Text, Text, Text, Text, In, In, const T*, const T*, In, T*, In,
                 size_t, size_t, size_t, size_t);
  };
  template <template <typename> typename Routine>
  using OfEachType =
      std::tuple<Routine<float>, Routine<double>, Routine<std::complex<float>>,
                 Routine<std::complex<double>>>;

  OfEachType<GetrfRoutine> getrf_;
  OfEachType<LaswpRoutine> laswp_;
  OfEachType<PotrfRoutine> potrf_;
  OfEachType<TrsmRoutine> trsm_;
};

}  // namespace tensord::core
