#include "core/backend/cpu/linear_solve/linear_solve_lapack.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "core/backend/cpu/linear_solve/equations.h"
#include "core/backend/cpu/linear_solve/equations_solution.h"
#include "core/backend/cpu/linear_solve/lapack_equations.h"
#include "core/base/checked_math.h"
#include "core/base/status.h"
#include "core/device/interruption.h"

namespace tensord::core {
namespace {

using P = LinearSolveProblem;
using Triangle = LapackEquations::Triangle;

/// Of one thread, in float64; float32 is twice as fast.
constexpr double kFlopsPerNanosecond = 20;
constexpr double kNanosecondsPerElement = 3;  // to copy in and out
constexpr double kNanosecondsPerMatrix = 500;
constexpr double kPanelColumns = 128;
/// Of an exponential, which is made of products: what it adds up is ten sums
/// and norms.
constexpr double kFlopsOfProductsPerNanosecond = 36;
constexpr double kNanosecondsPerElementOfSums = 30;
constexpr double kNanosecondsPerExponential = 2000;

/// What is known of the steps of one elimination.
template <typename W>
class LapackElimination {
 public:
  LapackElimination(const Blas& blas, const LapackEquations& lapack,
                    const Equations<W>& equations, ForParts for_parts)
      : blas_(blas),
        lapack_(lapack),
        equations_(equations),
        n_(equations.extent),
        panel_(n_ >= kLargeExtent ? 2 * kPanel : kPanel),
        for_parts_(for_parts) {}

  /// P * L * U = matrix, and L^-1 * P^-1 of what is right of it.
  int64_t FactorGeneral() const {
    const int64_t end = n_ + equations_.sides;
    for (int64_t first = 0; first < n_ && !Stops(); first += panel_) {
      const int64_t width = std::min(panel_, n_ - first);
      const int64_t behind = first + width;
      const int info =
          lapack_.Getrf(Block(first, n_, first, behind), equations_.pivots);
      if (info > 0) return first + info;
      ForSlabs(behind, end, [&](int64_t c, int64_t c_end) {
        lapack_.Laswp(Block(first, n_, c, c_end), static_cast<int>(width),
                      equations_.pivots);
        Solve({'L', 'L', 'N', 'U'}, first, Block(first, behind, c, c_end));
        Subtract(behind, n_, first, behind, c, c_end);
      });
    }
    return 0;
  }

  /// L * L^H = matrix, of which the lower triangle is read and written.
  int64_t FactorPositiveDefinite() const {
    for (int64_t first = 0; first < n_ && !Stops(); first += panel_) {
      const int64_t behind = std::min(first + panel_, n_);
      const int info = lapack_.Potrf(Block(first, behind, first, behind));
      if (info > 0) return first + info;
      for (int64_t k = first; k < behind; ++k) {  // it overlooks NaN
        if (!(std::real(*At(k, k)) > 0)) return k + 1;
      }
      ForSlabs(behind, n_, [&](int64_t r, int64_t r_end) {
        Solve({'R', 'L', 'C', 'N'}, first, Block(r, r_end, first, behind));
      });
      ForSlabs(behind, n_, [&](int64_t c, int64_t c_end) {
        Subtract(MatrixOp::kAsIs, At(c, first), kAdjoint, At(c, first),
                 behind - first, Block(c, n_, c, c_end));
      });
    }
    return 0;
  }

  /// L^-1 of the right sides, L in the lower triangle.
  void SolveLower(bool has_unit_diagonal) const {
    const char diagonal = has_unit_diagonal ? 'U' : 'N';
    for (int64_t first = 0; first < n_ && !Stops(); first += kBlock) {
      const int64_t behind = std::min(first + kBlock, n_);
      ForSides([&](int64_t c, int64_t c_end) {
        Solve({'L', 'L', 'N', diagonal}, first, Block(first, behind, c, c_end));
        Subtract(behind, n_, first, behind, c, c_end);
      });
    }
  }
  /// U^-1, U in the upper triangle.
  void SolveUpper(bool has_unit_diagonal) const {
    const char diagonal = has_unit_diagonal ? 'U' : 'N';
    Backwards([&](int64_t first, int64_t behind, int64_t c, int64_t c_end) {
      Solve({'L', 'U', 'N', diagonal}, first, Block(first, behind, c, c_end));
      Subtract(0, first, first, behind, c, c_end);
    });
  }
  /// L^-H, L in the lower triangle.
  void SolveLowerAdjoint() const {
    Backwards([&](int64_t first, int64_t behind, int64_t c, int64_t c_end) {
      Solve({'L', 'L', 'C', 'N'}, first, Block(first, behind, c, c_end));
      Subtract(kAdjoint, At(first, 0), MatrixOp::kAsIs, At(first, c),
               behind - first, Block(0, first, c, c_end));
    });
  }
  void Multiply(const W* a, const W* b, W* to) const {
    const int64_t tile = TileOfProducts(), tiles = CeilDivide(n_, tile);
    for_parts_(tiles * tiles, [&](int64_t part) {
      const int64_t row = part % tiles * tile, column = part / tiles * tile;
      blas_.Gemm<W>({.op_a = MatrixOp::kAsIs,
                     .op_b = MatrixOp::kAsIs,
                     .m = static_cast<int>(std::min(tile, n_ - row)),
                     .n = static_cast<int>(std::min(tile, n_ - column)),
                     .k = static_cast<int>(n_),
                     .alpha = W(1),
                     .a = a + row,
                     .lda = static_cast<int>(n_),
                     .b = b + column * n_,
                     .ldb = static_cast<int>(n_),
                     .beta = W(0),
                     .c = to + row + column * n_,
                     .ldc = static_cast<int>(n_)});
    });
  }

 private:
  // Columns that are factorized together, and rows that are solved for.
  static constexpr int64_t kPanel = 64, kLargeExtent = 2048, kBlock = 256;
  static constexpr MatrixOp kAdjoint = std::is_floating_point_v<W>
                                           ? MatrixOp::kTransposed
                                           : MatrixOp::kConjugateTransposed;

  static bool Stops() { return CurrentWork::ShouldStop(); }

  W* At(int64_t row, int64_t column) const {
    return equations_.matrix + row + column * n_;
  }
  LapackEquations::Matrix<W> Block(int64_t row, int64_t row_end, int64_t column,
                                   int64_t column_end) const {
    return {.rows = static_cast<int>(row_end - row),
            .columns = static_cast<int>(column_end - column),
            .a = At(row, column),
            .line = static_cast<int>(n_)};
  }
  /// By the triangle whose diagonal begins at row and column `first`.
  void Solve(const Triangle& triangle, int64_t first,
             const LapackEquations::Matrix<W>& block) const {
    lapack_.Trsm(triangle, At(first, first), static_cast<int>(n_), block);
  }
  /// Takes the product of two parts of the matrix, of `depth` terms, from `to`.
  void Subtract(MatrixOp op_a, const W* a, MatrixOp op_b, const W* b,
                int64_t depth, const LapackEquations::Matrix<W>& to) const {
    if (to.rows == 0) return;
    blas_.Gemm<W>({.op_a = op_a,
                   .op_b = op_b,
                   .m = to.rows,
                   .n = to.columns,
                   .k = static_cast<int>(depth),
                   .alpha = W(-1),
                   .a = a,
                   .lda = to.line,
                   .b = b,
                   .ldb = to.line,
                   .beta = W(1),
                   .c = to.a,
                   .ldc = to.line});
  }
  /// From rows [row, row_end) of columns [c, c_end) those of columns
  /// [first, behind) times rows [first, behind).
  void Subtract(int64_t row, int64_t row_end, int64_t first, int64_t behind,
                int64_t c, int64_t c_end) const {
    Subtract(MatrixOp::kAsIs, At(row, first), MatrixOp::kAsIs, At(first, c),
             behind - first, Block(row, row_end, c, c_end));
  }

  /// The side of what is computed of a product at a time: some milliseconds'
  /// work, which cannot be interrupted, and enough parts for all threads.
  int64_t TileOfProducts() const {
    constexpr double kFlops = 400e6;
    constexpr int64_t kSmall = 128;
    if (n_ <= kSmall) return n_;
    const double per_element =
        2 * static_cast<double>(n_) * (std::is_floating_point_v<W> ? 1 : 4);
    const auto most = static_cast<int64_t>(std::sqrt(kFlops / per_element));
    return std::clamp(most, int64_t{64},
                      std::max(kSmall / 2, CeilDivide(n_, 4)));
  }

  /// Calls body(begin, end) for slabs of [first, end), each of some
  /// milliseconds: what is under way cannot be interrupted.
  template <typename Body>
  void ForSlabs(int64_t first, int64_t end, const Body& body) const {
    if (first >= end) return;
    constexpr double kFlops = 200e6;
    const double per_column = 2 * static_cast<double>(n_) *
                              static_cast<double>(std::min(kBlock, n_)) *
                              (std::is_floating_point_v<W> ? 1 : 4);
    const int64_t most = std::clamp<int64_t>((end - first) / 8, 64, 256);
    const int64_t slab = std::clamp<int64_t>(
        static_cast<int64_t>(kFlops / per_column), 16, most);
    for_parts_((end - first + slab - 1) / slab, [&](int64_t part) {
      const int64_t begin = first + part * slab;
      body(begin, std::min(end, begin + slab));
    });
  }
  template <typename Body>
  void ForSides(const Body& body) const {
    ForSlabs(n_, n_ + equations_.sides, body);
  }
  /// Blocks from the last to the first.
  template <typename Body>
  void Backwards(const Body& body) const {
    for (int64_t block = (n_ + kBlock - 1) / kBlock; block-- > 0 && !Stops();) {
      const int64_t first = block * kBlock;
      ForSides([&](int64_t c, int64_t c_end) {
        body(first, std::min(first + kBlock, n_), c, c_end);
      });
    }
  }

  const Blas& blas_;
  const LapackEquations& lapack_;
  const Equations<W>& equations_;
  const int64_t n_;
  const int64_t panel_;
  ForParts for_parts_;
};

/// See EquationsSolution.
class LapackRoutines {
 public:
  template <typename T>
  using Work = T;

  LapackRoutines(const Blas& blas, const LapackEquations& lapack)
      : blas_(&blas), lapack_(&lapack) {}

  static double Nanoseconds(const P& problem, int thread_count) {
    const auto batch =
        static_cast<double>(std::max<int64_t>(1, ElementCount(problem.batch)));
    const auto n = static_cast<double>(ElementCount(problem.columns));
    const auto sides = static_cast<double>(ElementCount(problem.sides));
    const bool is_single = RealPartOf(problem.type) == ElementType::kFloat32;
    const double flops = FlopCount(problem) / batch / (is_single ? 2 : 1);
    if (problem.is_exponential()) {
      return kNanosecondsPerExponential +
             (flops / kFlopsOfProductsPerNanosecond +
              kNanosecondsPerElementOfSums * n * n) /
                 thread_count;
    }
    const double arithmetic = flops / kFlopsPerNanosecond;
    // Panels have one thread: so much of a factorization, or of few sides.
    const double alone = std::min(1.0, kPanelColumns / n);
    return kNanosecondsPerMatrix +
           arithmetic * (alone + (1 - alone) / thread_count) +
           kNanosecondsPerElement * n * (n + 2 * sides);
  }

  template <typename W>
  LapackElimination<W> Begin(const Equations<W>& equations,
                             ForParts for_parts) const {
    return {*blas_, *lapack_, equations, for_parts};
  }

 private:
  const Blas* blas_;
  const LapackEquations* lapack_;
};

class LapackLinearSolve final : public LinearSolveKernel {
 public:
  LapackLinearSolve(ThreadPool& threads,
                    absl::StatusOr<std::shared_ptr<const Blas>> blas)
      : threads_(threads),
        blas_(std::move(blas)),
        lapack_(blas_.ok() ? LapackEquations::Find(**blas_) : blas_.status()) {}

  absl::string_view name() const override { return "cpu.solve.lapack"; }

  Solved Solve(const P& problem) const override {
    using Solution = EquationsSolution<LapackRoutines>;
    if (!lapack_.ok()) {
      return Unimplemented("NO_LAPACK", lapack_.status().message());
    }
    TENSORD_RETURN_IF_ERROR(Solution::CheckSize(problem));
    return std::make_unique<Solution>(problem, threads_,
                                      LapackRoutines(**blas_, *lapack_));
  }

 private:
  ThreadPool& threads_;
  const absl::StatusOr<std::shared_ptr<const Blas>> blas_;
  const absl::StatusOr<LapackEquations> lapack_;
};

}  // namespace

std::unique_ptr<const LinearSolveKernel> CreateLapackLinearSolve(
    ThreadPool& threads, absl::StatusOr<std::shared_ptr<const Blas>> blas) {
  return std::make_unique<LapackLinearSolve>(threads, std::move(blas));
}

}  // namespace tensord::core
