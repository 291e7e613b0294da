// The part of OpenBLAS that decomposes matrices.
#pragma once

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>

#include "absl/status/statusor.h"
#include "core/backend/cpu/gemm/blas.h"

namespace tensord::core {

/// LAPACK's drivers, on one thread each and on matrices stored by columns
/// without gaps. T is float, double, std::complex<float> or
/// std::complex<double>. Each gives LAPACK's `info`: 0, or why it failed.
///
/// Threads   safe for concurrent use.
/// Lifetime  that of the library, which stays loaded.
class LapackDecompositions {
 public:
  template <typename T>
  using Real = decltype(std::abs(T()));

  /// Errors  UNAVAILABLE: the library was built without LAPACK.
  static absl::StatusOr<LapackDecompositions> Find(const Blas& blas);

  /// Scratch of the calls below. `work` holds numbers, `real` those that are
  /// real beside complex ones.
  struct ScratchCounts {
    int64_t work = 0, real = 0, integers = 0;
  };
  template <typename T>
  struct Scratch {
    T* work;
    Real<T>* real;
    int* integers;
    int work_count, real_count, integer_count;
  };

  /// a (m, n) = u (m, k) * diag(s) * v (k, n) with k = min(m, n). Overwrites a.
  template <typename T>
  struct SvdArguments {
    int m, n;
    T* a;
    Real<T>* s;
    T* u;
    T* v;
  };
  template <typename T>
  ScratchCounts SvdScratch(int m, int n) const {
    const int k = std::min(m, n);
    T work[2] = {};
    const SvdArguments<T> nothing{m, n, nullptr, nullptr, nullptr, nullptr};
    Gesdd(nothing, {&work[0], nullptr, nullptr, -1, 0, 0});
    Gesvd(nothing, {&work[1], nullptr, nullptr, -1, 0, 0});
    const int64_t of_real =
        int64_t{k} * std::max<int64_t>(5 * int64_t{k} + 7,
                                       2 * int64_t{std::max(m, n)} + 2 * k + 1);
    return {std::max(CountOf(work[0]), CountOf(work[1])),
            std::is_floating_point_v<T> ? 0 : of_real, int64_t{8} * k};
  }
  /// By dividing and conquering.
  template <typename T>
  int Gesdd(const SvdArguments<T>& x, const Scratch<T>& scratch) const {
    const int k = std::min(x.m, x.n);
    const int u_line = std::max(x.m, 1), v_line = std::max(k, 1);
    int info = 0;
    if constexpr (std::is_floating_point_v<T>) {
      std::get<GesddRoutine<T>>(gesdd_).call(
          "S", &x.m, &x.n, x.a, &u_line, x.s, x.u, &u_line, x.v, &v_line,
          scratch.work, &scratch.work_count, scratch.integers, &info, 1);
    } else {
      std::get<GesddRoutine<T>>(gesdd_).call(
          "S", &x.m, &x.n, x.a, &u_line, x.s, x.u, &u_line, x.v, &v_line,
          scratch.work, &scratch.work_count, scratch.real, scratch.integers,
          &info, 1);
    }
    return info;
  }
  /// By QR iterations: slower, and converges where the other does not.
  template <typename T>
  int Gesvd(const SvdArguments<T>& x, const Scratch<T>& scratch) const {
    const int k = std::min(x.m, x.n);
    const int u_line = std::max(x.m, 1), v_line = std::max(k, 1);
    int info = 0;
    if constexpr (std::is_floating_point_v<T>) {
      std::get<GesvdRoutine<T>>(gesvd_).call(
          "S", "S", &x.m, &x.n, x.a, &u_line, x.s, x.u, &u_line, x.v, &v_line,
          scratch.work, &scratch.work_count, &info, 1, 1);
    } else {
      std::get<GesvdRoutine<T>>(gesvd_).call(
          "S", "S", &x.m, &x.n, x.a, &u_line, x.s, x.u, &u_line, x.v, &v_line,
          scratch.work, &scratch.work_count, scratch.real, &info, 1, 1);
    }
    return info;
  }

  template <typename T>
  ScratchCounts EighScratch(int n) const {
    T work = {};
    Real<T> real = 0;
    int integers = 0;
    Heevd(n, static_cast<T*>(nullptr), static_cast<Real<T>*>(nullptr),
          Scratch<T>{&work, &real, &integers, -1, -1, -1});
    return {CountOf(work), CountOf(real), integers};
  }
  /// Puts the eigenvectors of a (n, n), given by its lower triangle, in a.
  template <typename T>
  int Heevd(int n, T* a, Real<T>* values, const Scratch<T>& scratch) const {
    int info = 0;
    if constexpr (std::is_floating_point_v<T>) {
      std::get<HeevdRoutine<T>>(heevd_).call(
          "V", "L", &n, a, &n, values, scratch.work, &scratch.work_count,
          scratch.integers, &scratch.integer_count, &info, 1, 1);
    } else {
      std::get<HeevdRoutine<T>>(heevd_).call(
          "V", "L", &n, a, &n, values, scratch.work, &scratch.work_count,
          scratch.real, &scratch.real_count, scratch.integers,
          &scratch.integer_count, &info, 1, 1);
    }
    return info;
  }

  /// Puts l of a = l * l^H in a's lower triangle. Above 0: the order of the
  /// leading part that is not positive definite.
  template <typename T>
  int Potrf(int n, T* a) const {
    int info = 0;
    std::get<PotrfRoutine<T>>(potrf_).call("L", &n, a, &n, &info, 1);
    return info;
  }

 private:
  /// What a query answers, rounded up where T does not count so far.
  template <typename T>
  static int64_t CountOf(const T& answer) {
    const auto count = static_cast<double>(std::real(answer));
    return static_cast<int64_t>(count * (1 + 1e-6)) + 1;
  }

  // Types of their own for each element type, also where signatures agree; the
  // lengths of texts come last, as Fortran has it.
  using In = const int*;
  using Text = const char*;
  template <typename T, typename... Middle>
  using SvdRoutine = void (*)(Text, In, In, T*, In, Real<T>*, T*, In, T*, In,
                              T*, In, Middle..., int*, size_t);
  template <typename T>
  struct GesddRoutine {
    std::conditional_t<std::is_floating_point_v<T>, SvdRoutine<T, int*>,
                       SvdRoutine<T, Real<T>*, int*>>
        call;
  };
  template <typename T, typename... Middle>
  using SlowSvdRoutine = void (*)(Text, Text, In, In, T*, In, Real<T>*, T*, In,
                                  T*, In, T*, In, Middle..., int*, size_t,
                                  size_t);
  template <typename T>
  struct GesvdRoutine {
    std::conditional_t<std::is_floating_point_v<T>, SlowSvdRoutine<T>,
                       SlowSvdRoutine<T, Real<T>*>>
        call;
  };
  template <typename T, typename... Middle>
  using EigenRoutine = void (*)(Text, Text, In, T*, In, Real<T>*, T*, In,
                                Middle..., int*, In, int*, size_t, size_t);
  template <typename T>
  struct HeevdRoutine {
    std::conditional_t<std::is_floating_point_v<T>, EigenRoutine<T>,
                       EigenRoutine<T, Real<T>*, In>>
        call;
  };
  template <typename T>
  struct PotrfRoutine {
    void (*call)(Text, In, T*, In, int*, size_t);
  };
  template <template <typename> typename Routine>
  using OfEachType =
      std::tuple<Routine<float>, Routine<double>, Routine<std::complex<float>>,
                 Routine<std::complex<double>>>;

  OfEachType<GesddRoutine> gesdd_;
  OfEachType<GesvdRoutine> gesvd_;
  OfEachType<HeevdRoutine> heevd_;
  OfEachType<PotrfRoutine> potrf_;
};

}  // namespace tensord::core
