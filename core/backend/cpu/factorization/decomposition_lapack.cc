#include "core/backend/cpu/factorization/decomposition_lapack.h"

#include <algorithm>
#include <complex>
#include <limits>
#include <utility>

#include "core/backend/cpu/factorization/decomposition.h"
#include "core/backend/cpu/factorization/lapack_decompositions.h"
#include "core/base/status.h"
#include "core/problem/refused_matrix.h"

namespace tensord::core {
namespace {

using P = FactorizationProblem;
using Counts = LapackDecompositions::ScratchCounts;

/// FlopCount()'s of one thread, in float64; float32 is twice as fast. SVD and
/// EIGH divide and conquer, which saves many of them.
constexpr double FlopsPerNanosecond(FactorizationMethod method) {
  switch (method) {
    case FactorizationMethod::kSvd: return 90;
    case FactorizationMethod::kEigh: return 30;
    default: return 8;
  }
}
constexpr double kNanosecondsPerElement = 3;  // to copy in and out
/// Of an SVD besides, for each element of a square of the shorter side: work
/// that is bound by memory. Complex numbers are faster than their flops.
constexpr double kNanosecondsPerSvdElement = 60;
constexpr double kFasterComplexSvd = 1.6;
/// What LAPACK takes for the smallest matrix, where it iterates.
constexpr double kNanosecondsPerMatrix = 10'000;

Counts CountsFor(const P& problem, const LapackDecompositions& lapack) {
  Counts counts;
  VisitMatrixType(problem.type, [&]<typename T>(T) {
    const auto rows = static_cast<int>(ElementCount(problem.rows));
    const auto columns = static_cast<int>(ElementCount(problem.columns));
    switch (problem.method) {
      case FactorizationMethod::kSvd:
        counts = lapack.SvdScratch<T>(rows, columns);
        break;
      case FactorizationMethod::kEigh:
        counts = lapack.EighScratch<T>(rows);
        break;
      default: break;
    }
  });
  return counts;
}

/// See DecompositionSolution.
class LapackRoutines {
 public:
  template <typename T>
  using Work = T;
  static constexpr bool kHearsStops = false;

  LapackRoutines(const P& problem, const LapackDecompositions& lapack)
      : lapack_(lapack), counts_(CountsFor(problem, lapack)) {}

  static int64_t ValueCount(const P& problem) {
    return std::min(ElementCount(problem.rows), ElementCount(problem.columns));
  }
  int64_t ScratchBytes(const P& problem) const {
    const int64_t element = SizeOf(problem.type);
    return Workspace::BytesFor(counts_.work * element) +
           Workspace::BytesFor(counts_.real * element) +
           Workspace::BytesFor(counts_.integers *
                               static_cast<int64_t>(sizeof(int)));
  }
  double Nanoseconds(const P& problem) const {
    const auto batch = static_cast<double>(ElementCount(problem.batch));
    const double elements = static_cast<double>(ElementCount(problem.rows)) *
                            static_cast<double>(ElementCount(problem.columns));
    const bool is_single = RealPartOf(problem.type) == ElementType::kFloat32;
    const bool iterates = problem.method != FactorizationMethod::kCholesky;
    const bool is_svd = problem.method == FactorizationMethod::kSvd;
    const double faster =
        (is_single ? 2 : 1) *
        (is_svd && IsComplex(problem.type) ? kFasterComplexSvd : 1);
    const auto inner = static_cast<double>(ValueCount(problem));
    return (iterates ? kNanosecondsPerMatrix : 0) +
           FlopCount(problem) / batch / FlopsPerNanosecond(problem.method) /
               faster +
           (is_svd ? kNanosecondsPerSvdElement * inner * inner : 0) +
           2 * kNanosecondsPerElement * elements;
  }

  template <typename W>
  absl::StatusOr<double> Svd(const Decomposed<W>& m,
                             absl::FunctionRef<void()> reload) const {
    const LapackDecompositions::SvdArguments<W> arguments{
        .m = static_cast<int>(m.rows),
        .n = static_cast<int>(m.columns),
        .a = m.matrix,
        .s = m.values,
        .u = m.left,
        .v = m.right};
    if (lapack_.Gesdd(arguments, ScratchAt(m)) == 0) return 0.0;
    reload();
    if (lapack_.Gesvd(arguments, ScratchAt(m)) == 0) return 0.0;
    return DidNotConverge(FactorizationMethod::kSvd, m.name);
  }
  template <typename W>
  absl::Status Eigh(const Decomposed<W>& m) const {
    const int info = lapack_.Heevd(static_cast<int>(m.inner), m.matrix,
                                   m.values, ScratchAt(m));
    return info == 0 ? absl::OkStatus()
                     : DidNotConverge(FactorizationMethod::kEigh, m.name);
  }
  template <typename W>
  absl::Status Cholesky(const Decomposed<W>& m) const {
    const int info = lapack_.Potrf(static_cast<int>(m.inner), m.matrix);
    if (info != 0) return NotPositiveDefinite(m.name, info);
    for (int64_t k = 0; k < m.inner; ++k) {  // it overlooks NaN
      if (!(std::real(m.matrix[k * (m.rows + 1)]) > 0)) {
        return NotPositiveDefinite(m.name, k + 1);
      }
    }
    return absl::OkStatus();
  }

 private:
  template <typename W>
  LapackDecompositions::Scratch<W> ScratchAt(const Decomposed<W>& m) const {
    const auto element = static_cast<int64_t>(sizeof(W));
    std::byte* next = m.scratch;
    const auto take = [&](int64_t bytes) {
      return std::exchange(next, next + Workspace::BytesFor(bytes));
    };
    return {.work = reinterpret_cast<W*>(take(counts_.work * element)),
            .real = reinterpret_cast<RealOf<W>*>(take(counts_.real * element)),
            .integers = reinterpret_cast<int*>(next),
            .work_count = static_cast<int>(counts_.work),
            .real_count = static_cast<int>(counts_.real),
            .integer_count = static_cast<int>(counts_.integers)};
  }

  const LapackDecompositions& lapack_;
  const Counts counts_;
};

class LapackDecomposition final : public FactorizationKernel {
 public:
  LapackDecomposition(ThreadPool& threads,
                      absl::StatusOr<std::shared_ptr<const Blas>> blas)
      : threads_(threads),
        lapack_(blas.ok() ? LapackDecompositions::Find(**blas)
                          : blas.status()) {}

  absl::string_view name() const override {
    return "cpu.factorize.decomposition";
  }

  Solved Solve(const P& problem) const override {
    if (problem.method == FactorizationMethod::kQr) {
      return Unimplemented("OTHER_METHOD",
                           "qr is wanted, this is svd, eigh and cholesky");
    }
    if (!lapack_.ok()) {
      return Unimplemented("NO_LAPACK", lapack_.status().message());
    }
    const int64_t rows = ElementCount(problem.rows);
    const int64_t columns = ElementCount(problem.columns);
    // So that scratch, up to 6 squares of the shorter side, is counted by int.
    constexpr int64_t kMostShort = 15000, kMostLong = 1 << 28;
    if (std::min(rows, columns) > kMostShort ||
        std::max(rows, columns) > kMostLong ||
        rows * columns > std::numeric_limits<int>::max()) {
      return Unimplemented("MATRIX_TOO_LARGE", "the matrix has ", rows, " x ",
                           columns, " elements, LAPACK takes sides of up to ",
                           kMostShort, " and ", kMostLong,
                           " and 2^31 elements");
    }
    return std::make_unique<DecompositionSolution<LapackRoutines>>(
        problem, threads_, LapackRoutines(problem, *lapack_));
  }

 private:
  ThreadPool& threads_;
  const absl::StatusOr<LapackDecompositions> lapack_;
};

}  // namespace

std::unique_ptr<const FactorizationKernel> CreateLapackDecomposition(
    ThreadPool& threads, absl::StatusOr<std::shared_ptr<const Blas>> blas) {
  return std::make_unique<LapackDecomposition>(threads, std::move(blas));
}

}  // namespace tensord::core
