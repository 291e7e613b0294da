// Linear equations of a problem, whoever solves each.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "core/backend/cpu/block/element_math.h"
#include "core/backend/cpu/block/tile_space.h"
#include "core/backend/cpu/factorization/matrix.h"
#include "core/backend/cpu/linear_solve/equations.h"
#include "core/backend/cpu/linear_solve/exponential.h"
#include "core/backend/cpu/thread_pool.h"
#include "core/backend/kernel.h"
#include "core/base/checked_math.h"
#include "core/base/status.h"
#include "core/device/interruption.h"
#include "core/problem/heap_bytes.h"
#include "core/problem/refused_matrix.h"

namespace tensord::core {

/// Copies matrices and right sides, several at a time or each on all threads,
/// looks for what is not finite, has them solved and copies solutions back.
///
/// Routines has, for all T that a problem can have,
///   Work<T>                the type that it computes in
///   Nanoseconds(problem, thread_count)
///                          of one matrix, on so many threads
///   Begin(equations, for_parts)
///                          what eliminates, looking for
///                          CurrentWork::ShouldStop(), with
///     FactorGeneral()      leaves U in the upper triangle, and of the right
///                          sides what U is to be solved for
///     FactorPositiveDefinite()
///                          leaves L in the lower triangle
///     SolveLower(has_unit_diagonal), SolveUpper(has_unit_diagonal),
///     SolveLowerAdjoint()  solve for the right sides by a triangle
///     Multiply(a, b, to)   makes `to` the product of two other matrices, all
///                          as large as that of the equations
/// Both Factor...() give 0, or the first pivot that is none, counted from 1.
template <typename Routines>
class EquationsSolution final : public LinearSolveSolution {
  using P = LinearSolveProblem;

 public:
  EquationsSolution(const P& problem, ThreadPool& threads, Routines routines)
      : Solution(Predict(problem, threads, routines),
                 Teams(problem, threads) * RoomBytes(problem)),
        problem_(problem),
        extent_(ElementCount(problem.columns)),
        sides_(ElementCount(problem.sides)),
        are_alone_(AreAlone(problem, threads)),
        teams_(Teams(problem, threads)),
        threads_(threads),
        routines_(std::move(routines)) {
    for (const auto& mode : problem.batch) matrices_.Add(mode);
  }

  /// OK when LAPACK can count rows, and memory can be counted.
  /// Errors  UNIMPLEMENTED, reason MATRIX_TOO_LARGE.
  static absl::Status CheckSize(const P& problem) {
    constexpr int64_t kMostElements = int64_t{1} << 40;
    const int64_t extent = ElementCount(problem.columns);
    const int64_t sides = ElementCount(problem.sides);
    const auto columns = problem.is_exponential()
                             ? CheckedMultiply(extent, kExponentialSquares)
                             : CheckedAdd(extent, sides);
    const auto elements =
        columns ? CheckedMultiply(extent, *columns) : std::nullopt;
    if (elements && *elements <= kMostElements) return absl::OkStatus();
    if (problem.is_exponential()) {
      return Unimplemented("MATRIX_TOO_LARGE", "the matrix has ", extent, " x ",
                           extent, " elements, and its exponential takes ",
                           kExponentialSquares,
                           " times as many, wanted up to 2^40 elements");
    }
    return Unimplemented("MATRIX_TOO_LARGE", "the matrix has ", extent, " x ",
                         extent, " elements and ", sides,
                         " right sides, wanted up to 2^40 elements of both");
  }

  std::string decision() const override {
    const int64_t count = matrices_.tile_count();
    std::string each = absl::StrCat(extent_, " x ", extent_);
    if (!problem_.is_exponential()) {
      absl::StrAppend(&each, " with ", sides_,
                      sides_ == 1 ? " right side" : " right sides");
    }
    const absl::string_view of =
        problem_.is_exponential() ? "exponential of " : "";
    if (count == 1) {
      return absl::StrCat(of, NameOf(problem_.structure), " matrix of ", each,
                          ", copied first");
    }
    return absl::StrCat(of, count, " ", NameOf(problem_.structure),
                        " matrices of ", each, ", copied first, ", teams_,
                        " at a time");
  }
  int64_t bytes() const override {
    return HeapBlockBytes(sizeof(*this)) + HeapBytes(problem_) +
           matrices_.heap_bytes();
  }
  absl::Status Launch(const LinearSolveOperands& operands, Workspace& workspace,
                      Stream&) const override {
    absl::Status status;
    VisitMatrixType(problem_.type, [&]<typename T>(T) {
      status = SolveAll<T>(operands, workspace);
    });
    return status;
  }

 private:
  template <typename T>
  using Work = typename Routines::template Work<T>;

  /// Whether matrices come one by one, each on all threads: a single one, and
  /// large ones, for which there is the memory of one then.
  static bool AreAlone(const P& problem, const ThreadPool& threads) {
    constexpr int64_t kLarge = 1024, kHuge = 4096;
    const int64_t count = ElementCount(problem.batch);
    const bool is_few = count < 2 * threads.thread_count();
    return count == 1 ||
           ElementCount(problem.columns) >= (is_few ? kLarge : kHuge);
  }
  /// Matrices that are under way at a time.
  static int64_t Teams(const P& problem, const ThreadPool& threads) {
    if (AreAlone(problem, threads)) return 1;
    return std::min<int64_t>(ElementCount(problem.batch),
                             threads.thread_count());
  }
  /// Of a matrix, its right sides and what else is worked in.
  static int64_t RoomElements(const P& problem) {
    const int64_t extent = ElementCount(problem.columns);
    return extent * (problem.is_exponential()
                         ? extent * kExponentialSquares
                         : extent + ElementCount(problem.sides));
  }
  static int64_t RoomBytes(const P& problem) {
    const int64_t extent = ElementCount(problem.columns);
    const int64_t elements = RoomElements(problem);
    int64_t bytes = 0;
    VisitMatrixType(problem.type, [&]<typename T>(T) {
      bytes = elements * static_cast<int64_t>(sizeof(Work<T>));
    });
    return Workspace::BytesFor(bytes) +
           Workspace::BytesFor(extent * static_cast<int64_t>(sizeof(int)));
  }
  static double Predict(const P& problem, const ThreadPool& threads,
                        const Routines& routines) {
    constexpr double kLaunchNanoseconds = 1000;
    const int64_t teams = Teams(problem, threads);
    const int threads_of_each =
        AreAlone(problem, threads) ? threads.thread_count() : 1;
    return kLaunchNanoseconds +
           routines.Nanoseconds(problem, threads_of_each) *
               static_cast<double>(ElementCount(problem.batch)) /
               static_cast<double>(teams);
  }

  template <typename T>
  absl::Status SolveAll(const LinearSolveOperands& operands,
                        Workspace& workspace) const {
    std::vector<Equations<Work<T>>> rooms;
    for (int64_t team = 0; team < teams_; ++team) {
      rooms.push_back(
          {.extent = extent_,
           .sides = sides_,
           .matrix = workspace.Take<Work<T>>(RoomElements(problem_)),
           .pivots = workspace.Take<int>(extent_)});
    }
    std::atomic<int64_t> failed = matrices_.tile_count();  // the first that has
    absl::Mutex mutex;
    absl::Status first_failure ABSL_GUARDED_BY(mutex);
    const auto solve = [&](int64_t first, int64_t end, int64_t team,
                           ForParts for_parts) {
      int64_t matrix = first;
      matrices_.ForEach(first, end, [&](const auto& at, const auto&) {
        const int64_t own = matrix++;
        if (own > failed || CurrentWork::ShouldStop()) return;
        const absl::Status status = Solve<T>(rooms[static_cast<size_t>(team)],
                                             own, operands, at, for_parts);
        if (status.ok()) return;
        absl::MutexLock lock(&mutex);
        if (own > failed) return;
        failed = own;
        first_failure = status;
      });
    };
    const int64_t count = matrices_.tile_count();
    if (are_alone_) {
      solve(0, count, 0,
            [&](int64_t parts, absl::FunctionRef<void(int64_t)> body) {
              if (parts == 1) return body(0);
              threads_.ParallelFor(parts, body);
            });
    } else {
      const int64_t together = Together(count);
      threads_.ParallelFor(
          CeilDivide(count, together), teams_, [&](int64_t part, int64_t team) {
            solve(part * together, std::min(count, (part + 1) * together), team,
                  [](int64_t parts, absl::FunctionRef<void(int64_t)> body) {
                    for (int64_t i = 0; i < parts; ++i) {
                      if (!CurrentWork::ShouldStop()) body(i);
                    }
                  });
          });
    }
    absl::MutexLock lock(&mutex);
    return first_failure;
  }
  /// Small matrices that a thread takes at a time, for some 50 microseconds.
  int64_t Together(int64_t count) const {
    constexpr double kNanoseconds = 50'000;
    const double most = kNanoseconds / routines_.Nanoseconds(problem_, 1);
    const int64_t share = CeilDivide(count, 4 * teams_);
    return std::clamp(static_cast<int64_t>(most), int64_t{1}, share);
  }

  template <typename T, typename Offsets>
  absl::Status Solve(const Equations<Work<T>>& equations, int64_t matrix,
                     const LinearSolveOperands& operands, const Offsets& at,
                     ForParts for_parts) const {
    Load(static_cast<const T*>(operands.a) + at[P::kBatchA], problem_.rows,
         problem_.columns, P::kFirst, P::kFirst, problem_.conj_a,
         equations.matrix);
    if (problem_.has_b) {
      Load(static_cast<const T*>(operands.b) + at[P::kBatchB], problem_.rows,
           problem_.sides, P::kSecond, P::kFirst, problem_.conj_b,
           equations.right());
    } else if (!problem_.is_exponential()) {
      std::fill_n(equations.right(), extent_ * sides_, Work<T>(0));
      for (int64_t k = 0; k < extent_; ++k) {
        equations.right()[k * (extent_ + 1)] = 1;
      }
    }
    if (CurrentWork::ShouldStop()) return absl::OkStatus();
    TENSORD_RETURN_IF_ERROR(CheckFinite(equations, matrix));
    if (problem_.structure == MatrixStructure::kHermitian) Complete(equations);
    const int64_t pivot = problem_.is_exponential()
                              ? Exponentiate(equations, for_parts)
                              : Eliminate(equations, for_parts);
    if (pivot > 0) {
      return NotSolvable(problem_.structure, Named(matrix), pivot);
    }
    T* const d = static_cast<T*>(operands.d) + at[P::kBatchD];
    ForEachTiled(problem_.rows_of_d(), P::kSecond, problem_.sides, P::kSecond,
                 [&](int64_t row, int64_t side, int64_t offset) {
                   d[offset] = ConvertElement<T>(
                       equations.right()[row + side * extent_]);
                 });
    return absl::OkStatus();
  }

  /// As Eliminate().
  template <typename W>
  int64_t Exponentiate(const Equations<W>& equations,
                       ForParts for_parts) const {
    if (IsTriangular(problem_.structure)) CompleteTriangle(equations);
    const auto steps = routines_.Begin(equations, for_parts);
    return Exponential(equations, problem_.structure, steps, for_parts)
        .Compute();
  }
  /// Gives 0, or the first pivot that is none, counted from 1.
  template <typename W>
  int64_t Eliminate(const Equations<W>& equations, ForParts for_parts) const {
    const auto steps = routines_.Begin(equations, for_parts);
    const bool has_unit_diagonal = problem_.has_unit_diagonal;
    int64_t pivot = 0;
    switch (problem_.structure) {
      case MatrixStructure::kGeneral:
      case MatrixStructure::kHermitian:
        pivot = steps.FactorGeneral();
        if (pivot == 0) steps.SolveUpper(false);
        return pivot;
      case MatrixStructure::kPositiveDefinite:
        pivot = steps.FactorPositiveDefinite();
        if (pivot > 0) return pivot;
        steps.SolveLower(false);
        steps.SolveLowerAdjoint();
        return 0;
      case MatrixStructure::kLowerTriangular:
      case MatrixStructure::kUpperTriangular: break;
    }
    for (int64_t k = 0; k < extent_ && !has_unit_diagonal; ++k) {
      if (equations.matrix[k * (extent_ + 1)] == W(0)) return k + 1;
    }
    if (problem_.structure == MatrixStructure::kLowerTriangular) {
      steps.SolveLower(has_unit_diagonal);
    } else {
      steps.SolveUpper(has_unit_diagonal);
    }
    return 0;
  }

  template <typename T, typename W>
  void Load(const T* from, const LoopModes<2>& rows,
            const LoopModes<2>& columns, size_t of_row, size_t of_column,
            bool is_conjugated, W* to) const {
    ForEachTiled(rows, of_row, columns, of_column,
                 [&](int64_t row, int64_t column, int64_t offset) {
                   const W element = ConvertElement<W>(from[offset]);
                   to[row + column * extent_] =
                       is_conjugated ? Conjugated(element) : element;
                 });
  }

  /// The rows of a column that are read.
  std::pair<int64_t, int64_t> ReadRows(int64_t column) const {
    const int64_t skips = problem_.has_unit_diagonal ? 1 : 0;
    switch (problem_.structure) {
      case MatrixStructure::kGeneral: return {0, extent_};
      case MatrixStructure::kUpperTriangular: return {0, column + 1 - skips};
      default: return {column + skips, extent_};
    }
  }

  template <typename W>
  absl::Status CheckFinite(const Equations<W>& equations,
                           int64_t matrix) const {
    for (int64_t column = 0; column < extent_; ++column) {
      const W* const first = equations.matrix + column * extent_;
      const auto [begin, end] = ReadRows(column);
      decltype(std::abs(W())) sum = 0;
      for (int64_t row = begin; row < end; ++row) {
        // NaN of what is not finite.
        sum += std::real(first[row]) * 0 + std::imag(first[row]) * 0;
      }
      if (sum == 0) continue;
      return NotFinite(Named(matrix), column);
    }
    return absl::OkStatus();
  }

  /// Makes the upper triangle of a Hermitian matrix from the lower.
  template <typename W>
  void Complete(const Equations<W>& equations) const {
    constexpr int64_t kTile = 32;
    const auto at = [&](int64_t row, int64_t column) -> W& {
      return equations.matrix[row + column * extent_];
    };
    for (int64_t c = 0; c < extent_; c += kTile) {
      for (int64_t r = c; r < extent_; r += kTile) {
        for (int64_t j = c; j < std::min(c + kTile, extent_); ++j) {
          for (int64_t i = std::max(r, j + 1); i < std::min(r + kTile, extent_);
               ++i) {
            at(j, i) = Conjugated(at(i, j));
          }
        }
      }
      for (int64_t j = c; j < std::min(c + kTile, extent_); ++j) {
        at(j, j) = std::real(at(j, j));
      }
    }
  }

  /// Writes what of a triangle is not read.
  template <typename W>
  void CompleteTriangle(const Equations<W>& equations) const {
    for (int64_t column = 0; column < extent_; ++column) {
      W* const first = equations.matrix + column * extent_;
      const auto [begin, end] = ReadRows(column);
      std::fill(first, first + begin, W(0));
      std::fill(first + end, first + extent_, W(0));
      if (problem_.has_unit_diagonal) first[column] = 1;
    }
  }

  NumberedMatrix Named(int64_t matrix) const {
    return {extent_, extent_, matrix, matrices_.tile_count()};
  }

  const P problem_;
  const int64_t extent_;
  const int64_t sides_;
  const bool are_alone_;
  const int64_t teams_;
  TileSpace<3> matrices_;  // of the batch
  ThreadPool& threads_;
  const Routines routines_;
};

}  // namespace tensord::core
