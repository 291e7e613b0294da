// OpenBLAS, loaded while the program runs.
#pragma once

#include <array>
#include <complex>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/backend/cpu/cpu_features.h"
#include "core/base/status.h"

namespace tensord::core {

/// How a routine reads a matrix. The values are those of the C interface.
enum class MatrixOp : int {
  kAsIs = 111,
  kTransposed = 112,
  kConjugateTransposed = 113,
  kConjugated = 114,  // an extension of OpenBLAS
};

/// The routines of OpenBLAS that kernels call, on one thread each and on
/// matrices stored by columns. T is float, double, std::complex<float> or
/// std::complex<double>.
///
/// Threads   safe for concurrent use.
/// Lifetime  the library stays loaded until the process ends.
class Blas {
 public:
  /// Loads the library with the kernels that `features` allow. Its own choice
  /// goes by model numbers and is several times slower on a CPU that is newer
  /// than the library. A choice in the environment, by OPENBLAS_CORETYPE,
  /// stands.
  ///
  /// Errors  UNAVAILABLE: there is no such library, or it lacks a routine.
  static absl::StatusOr<std::unique_ptr<const Blas>> Load(
      const CpuFeatures& features);

  /// E.g. "OpenBLAS 0.3.21 SkylakeX".
  const std::string& description() const { return description_; }

  /// The kernels in use, by the CPU they were written for: "SkylakeX".
  const std::string& core_type() const { return core_type_; }

  /// Finds a routine of the library, by the name that linkers know.
  /// Errors  UNAVAILABLE: it has none of that name.
  template <typename Function>
  absl::Status Resolve(const char* name, Function*& function) const {
    TENSORD_ASSIGN_OR_RETURN(void* const address, Find(name));
    function = reinterpret_cast<Function*>(address);
    return absl::OkStatus();
  }

  /// Finds the routines of the four element types: float, double, and the
  /// complex ones. Each of `routines` has a function, `call`.
  /// Errors  UNAVAILABLE: it has none of some name.
  template <typename Routines>
  absl::Status Resolve(const std::array<const char*, 4>& names,
                       Routines& routines) const {
    auto& [s, d, c, z] = routines;
    TENSORD_RETURN_IF_ERROR(Resolve(names[0], s.call));
    TENSORD_RETURN_IF_ERROR(Resolve(names[1], d.call));
    TENSORD_RETURN_IF_ERROR(Resolve(names[2], c.call));
    return Resolve(names[3], z.call);
  }

  /// c (m, n) = alpha * op_a(a) (m, k) * op_b(b) (k, n) + beta * c.
  /// c is not read when beta is 0.
  template <typename T>
  struct GemmArguments {
    MatrixOp op_a, op_b;
    int m, n, k;
    T alpha;
    const T* a;
    int lda;
    const T* b;
    int ldb;
    T beta;
    T* c;
    int ldc;
  };
  template <typename T>
  void Gemm(const GemmArguments<T>& g) const {
    std::get<GemmRoutine<T>>(gemm_).call(kByColumns, static_cast<int>(g.op_a),
                                         static_cast<int>(g.op_b), g.m, g.n,
                                         g.k, Passed(g.alpha), g.a, g.lda, g.b,
                                         g.ldb, Passed(g.beta), g.c, g.ldc);
  }

  /// y += alpha * op(a) * x, where a is stored as rows x columns. Real only.
  template <typename T>
  struct GemvArguments {
    MatrixOp op;
    int rows, columns;
    T alpha;
    const T* a;
    int lda;
    const T* x;
    int x_stride;
    T* y;
    int y_stride;
  };
  template <typename T>
  void Gemv(const GemvArguments<T>& g) const {
    std::get<GemvRoutine<T>>(gemv_)(kByColumns, static_cast<int>(g.op), g.rows,
                                    g.columns, g.alpha, g.a, g.lda, g.x,
                                    g.x_stride, T(1), g.y, g.y_stride);
  }

 private:
  static constexpr int kByColumns = 102;

  // Complex factors go by address, real ones by value.
  template <typename T>
  static constexpr bool kIsComplex = !std::is_floating_point_v<T>;
  template <typename T>
  using Factor = std::conditional_t<kIsComplex<T>, const void*, T>;
  template <typename T>
  static Factor<T> Passed(const T& factor) {
    if constexpr (kIsComplex<T>) {
      return &factor;
    } else {
      return factor;
    }
  }

  // A type of its own for each element type, also where signatures agree.
  template <typename T>
  struct GemmRoutine {
    void (*call)(int, int, int, int, int, int, Factor<T>, const void*, int,
                 const void*, int, Factor<T>, void*, int);
  };
  template <typename T>
  using GemvRoutine = void (*)(int, int, int, int, T, const void*, int,
                               const void*, int, T, void*, int);

  explicit Blas(void* library) : library_(library) {}

  absl::StatusOr<void*> Find(const char* name) const;

  void* const library_;
  std::string description_;
  std::string core_type_;
  std::tuple<GemmRoutine<float>, GemmRoutine<double>,
             GemmRoutine<std::complex<float>>,
             GemmRoutine<std::complex<double>>>
      gemm_;
  std::tuple<GemvRoutine<float>, GemvRoutine<double>> gemv_;
};

}  // namespace tensord::core
