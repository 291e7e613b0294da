#include "core/backend/cpu/factorization/sampled_svd.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>
#include <utility>

#include "core/backend/cpu/factorization/decomposition.h"
#include "core/backend/cpu/factorization/lapack.h"
#include "core/backend/cpu/factorization/lapack_decompositions.h"
#include "core/base/checked_math.h"
#include "core/base/status.h"
#include "core/problem/refused_matrix.h"

namespace tensord::core {
namespace {

using P = FactorizationProblem;
using Counts = LapackDecompositions::ScratchCounts;

/// Of products, which all threads compute, and of what LAPACK computes, in
/// float64 on one thread; float32 is twice as fast.
constexpr double kFlopsOfProductsPerNanosecond = 48;
constexpr double kFlopsPerNanosecond = 12;
constexpr double kFasterComplex = 1.8;        // of LAPACK
constexpr double kNanosecondsPerElement = 4;  // to copy, and to add up squares
constexpr double kNanosecondsPerMatrix = 30'000;

/// What a library that has LAPACK has of it.
struct Routines {
  const Blas* blas;
  Lapack qr;
  LapackDecompositions svd;

  static absl::StatusOr<Routines> Find(const Blas& blas) {
    TENSORD_ASSIGN_OR_RETURN(const Lapack qr, Lapack::Find(blas));
    TENSORD_ASSIGN_OR_RETURN(const LapackDecompositions svd,
                             LapackDecompositions::Find(blas));
    return Routines{&blas, qr, svd};
  }
};

/// Even bits of any two numbers.
uint64_t Mixed(uint64_t seed, uint64_t index) {
  uint64_t bits = seed * 0x9e3779b97f4a7c15 + index;
  for (int round = 0; round < 2; ++round) {
    bits = (bits ^ (bits >> 32)) * 0xd6e8feb86659fd93;
  }
  return bits ^ (bits >> 32);
}

/// A random number of mean 0, nearly normally distributed: the sum of four.
double RandomNumber(uint64_t seed, uint64_t index) {
  const uint64_t bits = Mixed(seed, index);
  constexpr double kMean = 2 * 65535;
  double sum = 0;
  for (int shift = 0; shift < 64; shift += 16) {
    sum += static_cast<double>((bits >> shift) & 0xffff);
  }
  return (sum - kMean) / 65536;
}

/// One matrix and its sample.
template <typename W>
class Sample {
 public:
  struct Room {
    W* wide;   // (columns, sampled): the sample's other side, then what is left
    W* small;  // (sampled, sampled)
    W* tau;    // (sampled)
    Lapack::Scratch<W> of_qr;
    LapackDecompositions::Scratch<W> of_svd;
  };

  Sample(const Routines& routines, const Decomposed<W>& matrix,
         const Room& room)
      : routines_(routines), m_(matrix), room_(room) {}

  /// m.values, m.left and m.right. Gives the squares of what is not found.
  absl::StatusOr<double> Decompose(int64_t power_iterations) const {
    const int power = ScaleDown();
    FillAtRandom();
    MultiplyBy(room_.wide);
    for (int64_t k = 0; k < power_iterations && !Stops(); ++k) {
      MultiplyByAdjoint();
      MultiplyBy(room_.wide);
    }
    Project();
    if (Stops()) return 0.0;  // of columns that are anything
    if (routines_.svd.Gesdd(Arguments(), room_.of_svd) != 0) {
      Project();
      if (routines_.svd.Gesvd(Arguments(), room_.of_svd) != 0) {
        return DidNotConverge(FactorizationMethod::kSvd, m_.name);
      }
    }
    const double beyond = SquaresBeyond();
    Product({.op_a = MatrixOp::kAsIs,
             .m = m_.rows,
             .n = m_.inner,
             .k = m_.inner,
             .a = m_.left,
             .lda = m_.rows,
             .b = room_.small,
             .ldb = m_.inner,
             .c = m_.matrix});
    std::copy_n(m_.matrix, m_.rows * m_.inner, m_.left);
    for (int64_t k = 0; k < m_.inner; ++k) {
      m_.values[k] = std::ldexp(m_.values[k], power);
    }
    return beyond;
  }

 private:
  using Real = RealOf<W>;
  static constexpr MatrixOp kAdjoint = std::is_floating_point_v<W>
                                           ? MatrixOp::kTransposed
                                           : MatrixOp::kConjugateTransposed;

  /// c (m, n) = op_a(a) (m, k) * b (k, n), c without gaps.
  struct ProductOf {
    MatrixOp op_a;
    int64_t m, n, k;
    const W* a;
    int64_t lda;
    const W* b;
    int64_t ldb;
    W* c;
  };

  static bool Stops() { return CurrentWork::ShouldStop(); }

  /// Divides what is huge or tiny by a power of two, which it gives, lest
  /// products overflow.
  int ScaleDown() const {
    Real largest = 0;
    const int64_t count = m_.rows * m_.columns;
    for (int64_t i = 0; i < count; ++i) {
      largest = std::max({largest, std::abs(std::real(m_.matrix[i])),
                          std::abs(std::imag(m_.matrix[i]))});
    }
    constexpr int kSafe = std::is_same_v<Real, float> ? 40 : 400;
    if (largest == 0 || std::abs(std::ilogb(largest)) < kSafe) return 0;
    const int power = std::ilogb(largest);
    for (int64_t i = 0; i < count; ++i) {
      if constexpr (std::is_floating_point_v<W>) {
        m_.matrix[i] = std::ldexp(m_.matrix[i], -power);
      } else {
        m_.matrix[i] = {std::ldexp(m_.matrix[i].real(), -power),
                        std::ldexp(m_.matrix[i].imag(), -power)};
      }
    }
    return power;
  }

  void FillAtRandom() const {
    const auto seed = static_cast<uint64_t>(m_.seed);
    const auto number = [&](int64_t index) {
      return static_cast<Real>(
          RandomNumber(seed, static_cast<uint64_t>(index)));
    };
    for (int64_t i = 0; i < m_.columns * m_.inner; ++i) {
      if constexpr (std::is_floating_point_v<W>) {
        room_.wide[i] = number(i);
      } else {
        room_.wide[i] = {number(2 * i), number(2 * i + 1)};
      }
    }
  }

  /// The left factor becomes an orthonormal basis of what the matrix makes of
  /// `columns`.
  void MultiplyBy(const W* columns) const {
    Product({.op_a = MatrixOp::kAsIs,
             .m = m_.rows,
             .n = m_.inner,
             .k = m_.columns,
             .a = m_.matrix,
             .lda = m_.rows,
             .b = columns,
             .ldb = m_.columns,
             .c = m_.left});
    Orthonormalize(m_.left, m_.rows);
  }
  /// The other side likewise, of what the adjoint makes of the left factor.
  void MultiplyByAdjoint() const {
    Product({.op_a = kAdjoint,
             .m = m_.columns,
             .n = m_.inner,
             .k = m_.rows,
             .a = m_.matrix,
             .lda = m_.rows,
             .b = m_.left,
             .ldb = m_.rows,
             .c = room_.wide});
    Orthonormalize(room_.wide, m_.columns);
  }
  void Orthonormalize(W* columns, int64_t rows) const {
    if (Stops()) return;
    const Lapack::Columns<W> all = {static_cast<int>(rows),
                                    static_cast<int>(m_.inner), columns,
                                    static_cast<int>(rows)};
    routines_.qr.FactorQr(all, room_.tau, room_.of_qr);
    routines_.qr.FormQ(all, room_.tau, room_.of_qr);
  }
  /// What is left of the matrix: the adjoint of the left factor, times it.
  void Project() const {
    Product({.op_a = kAdjoint,
             .m = m_.inner,
             .n = m_.columns,
             .k = m_.rows,
             .a = m_.left,
             .lda = m_.rows,
             .b = m_.matrix,
             .ldb = m_.rows,
             .c = room_.wide});
  }
  LapackDecompositions::SvdArguments<W> Arguments() const {
    return {.m = static_cast<int>(m_.inner),
            .n = static_cast<int>(m_.columns),
            .a = room_.wide,
            .s = m_.values,
            .u = room_.small,
            .v = m_.right};
  }

  /// All squares but those of the values, over that of the largest.
  double SquaresBeyond() const {
    const auto largest = static_cast<double>(m_.values[0]);
    if (largest == 0) return 0;
    double all = 0;
    for (int64_t column = 0; column < m_.columns; ++column) {
      double own = 0;
      for (int64_t row = 0; row < m_.rows; ++row) {
        const W& element = m_.matrix[row + column * m_.rows];
        const double real = static_cast<double>(std::real(element)) / largest;
        const double imaginary =
            static_cast<double>(std::imag(element)) / largest;
        own += real * real + imaginary * imaginary;
      }
      all += own;
    }
    double beyond = all;
    for (int64_t k = 0; k < m_.inner; ++k) {
      const double ratio = static_cast<double>(m_.values[k]) / largest;
      beyond -= ratio * ratio;
    }
    // What is less is what values round.
    constexpr double kRounding = 32 * std::numeric_limits<Real>::epsilon();
    return beyond > kRounding * all ? beyond : 0;
  }

  /// By tiles of some milliseconds, on the threads that there are.
  void Product(const ProductOf& x) const {
    constexpr int64_t kTile = 512;
    const int64_t down = CeilDivide(x.m, kTile),
                  across = CeilDivide(x.n, kTile);
    const auto multiply = [&](int64_t part) {
      if (Stops()) return;
      const int64_t row = part % down * kTile, column = part / down * kTile;
      const bool is_adjoint = x.op_a != MatrixOp::kAsIs;
      routines_.blas->Gemm<W>(
          {.op_a = x.op_a,
           .op_b = MatrixOp::kAsIs,
           .m = static_cast<int>(std::min(kTile, x.m - row)),
           .n = static_cast<int>(std::min(kTile, x.n - column)),
           .k = static_cast<int>(x.k),
           .alpha = W(1),
           .a = x.a + (is_adjoint ? row * x.lda : row),
           .lda = static_cast<int>(x.lda),
           .b = x.b + column * x.ldb,
           .ldb = static_cast<int>(x.ldb),
           .beta = W(0),
           .c = x.c + row + column * x.m,
           .ldc = static_cast<int>(x.m)});
    };
    if (m_.threads != nullptr) {
      m_.threads->ParallelFor(down * across, multiply);
    } else {
      for (int64_t part = 0; part < down * across; ++part) multiply(part);
    }
  }

  const Routines& routines_;
  const Decomposed<W>& m_;
  const Room& room_;
};

/// See DecompositionSolution.
class SampledRoutines {
 public:
  template <typename T>
  using Work = T;
  static constexpr bool kHearsStops = false;  // LAPACK does not

  SampledRoutines(const P& problem, const Routines& routines, int thread_count)
      : routines_(routines),
        sampled_(problem.sampled),
        columns_(ElementCount(problem.columns)),
        power_iterations_(problem.power_iterations),
        thread_count_(ElementCount(problem.batch) == 1 ? thread_count : 1) {
    VisitMatrixType(problem.type, [&]<typename T>(T) {
      counts_ = routines.svd.SvdScratch<T>(static_cast<int>(sampled_),
                                           static_cast<int>(columns_));
    });
  }

  static int64_t ValueCount(const P& problem) { return problem.sampled; }
  int64_t ScratchBytes(const P& problem) const {
    const int64_t element = SizeOf(problem.type);
    int64_t bytes = 0;
    for (const int64_t count :
         {columns_ * sampled_, sampled_ * sampled_, sampled_, QrScratch(),
          counts_.work, counts_.real}) {
      bytes += Workspace::BytesFor(count * element);
    }
    return bytes + Workspace::BytesFor(counts_.integers *
                                       static_cast<int64_t>(sizeof(int)));
  }
  double Nanoseconds(const P& problem) const {
    const auto batch = static_cast<double>(ElementCount(problem.batch));
    const double elements = static_cast<double>(ElementCount(problem.rows)) *
                            static_cast<double>(columns_);
    const double faster =
        RealPartOf(problem.type) == ElementType::kFloat32 ? 2 : 1;
    const double products = 4 * elements * static_cast<double>(sampled_) *
                            static_cast<double>(1 + power_iterations_) *
                            (IsComplex(problem.type) ? 4 : 1);
    const double rest = SampledFlopCount(problem) / batch - products;
    return kNanosecondsPerMatrix +
           products / faster / kFlopsOfProductsPerNanosecond / thread_count_ +
           rest / faster / kFlopsPerNanosecond /
               (IsComplex(problem.type) ? kFasterComplex : 1) +
           kNanosecondsPerElement * elements;
  }

  template <typename W>
  absl::StatusOr<double> Svd(const Decomposed<W>& m,
                             absl::FunctionRef<void()> /*reload*/) const {
    std::byte* next = m.scratch;
    const auto take = [&](int64_t count) {
      const auto element = static_cast<int64_t>(sizeof(W));
      return reinterpret_cast<W*>(
          std::exchange(next, next + Workspace::BytesFor(count * element)));
    };
    typename Sample<W>::Room room;
    room.wide = take(columns_ * sampled_);
    room.small = take(sampled_ * sampled_);
    room.tau = take(sampled_);
    room.of_qr = {take(QrScratch()), static_cast<int>(QrScratch())};
    room.of_svd.work = take(counts_.work);
    room.of_svd.real = reinterpret_cast<RealOf<W>*>(take(counts_.real));
    room.of_svd.integers = reinterpret_cast<int*>(next);
    room.of_svd.work_count = static_cast<int>(counts_.work);
    room.of_svd.real_count = static_cast<int>(counts_.real);
    room.of_svd.integer_count = static_cast<int>(counts_.integers);
    return Sample<W>(routines_, m, room).Decompose(power_iterations_);
  }
  // Of methods that take no sample: never called.
  template <typename W>
  absl::Status Eigh(const Decomposed<W>&) const {
    return absl::OkStatus();
  }
  template <typename W>
  absl::Status Cholesky(const Decomposed<W>&) const {
    return absl::OkStatus();
  }

 private:
  int64_t QrScratch() const { return Lapack::ScratchFor(sampled_, sampled_); }

  const Routines& routines_;
  const int64_t sampled_;
  const int64_t columns_;
  const int64_t power_iterations_;
  const int thread_count_;
  Counts counts_;
};

class SampledSvd final : public FactorizationKernel {
 public:
  SampledSvd(ThreadPool& threads,
             absl::StatusOr<std::shared_ptr<const Blas>> blas)
      : threads_(threads),
        blas_(std::move(blas)),
        routines_(blas_.ok() ? Routines::Find(**blas_) : blas_.status()) {}

  absl::string_view name() const override {
    return "cpu.factorize.sampled_svd";
  }

  Solved Solve(const P& problem) const override {
    if (problem.sampled == 0) {
      return Unimplemented("NO_SAMPLE", "no random sample is wanted");
    }
    if (!routines_.ok()) {
      return Unimplemented("NO_LAPACK", routines_.status().message());
    }
    const int64_t rows = ElementCount(problem.rows);
    const int64_t columns = ElementCount(problem.columns);
    // So that LAPACK's scratch, and what it works on, is counted by int.
    constexpr int64_t kMostSampled = 15000, kMostLong = 1 << 28;
    if (problem.sampled > kMostSampled || std::max(rows, columns) > kMostLong ||
        std::max(rows, columns) * problem.sampled >
            std::numeric_limits<int>::max()) {
      return Unimplemented("MATRIX_TOO_LARGE", "the matrix has ", rows, " x ",
                           columns, " elements and a sample of ",
                           problem.sampled,
                           " columns, LAPACK takes samples of up to ",
                           kMostSampled, " columns and 2^31 elements");
    }
    return std::make_unique<DecompositionSolution<SampledRoutines>>(
        problem, threads_,
        SampledRoutines(problem, *routines_, threads_.thread_count()));
  }

 private:
  ThreadPool& threads_;
  const absl::StatusOr<std::shared_ptr<const Blas>> blas_;
  const absl::StatusOr<Routines> routines_;
};

}  // namespace

std::unique_ptr<const FactorizationKernel> CreateSampledSvd(
    ThreadPool& threads, absl::StatusOr<std::shared_ptr<const Blas>> blas) {
  return std::make_unique<SampledSvd>(threads, std::move(blas));
}

}  // namespace tensord::core
