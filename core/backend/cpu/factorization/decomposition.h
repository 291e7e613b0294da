// SVD, EIGH and CHOLESKY of the matrices of a problem, whoever decomposes each.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "core/backend/cpu/block/element_math.h"
#include "core/backend/cpu/block/tile_space.h"
#include "core/backend/cpu/factorization/matrix.h"
#include "core/backend/cpu/thread_pool.h"
#include "core/backend/kernel.h"
#include "core/base/status.h"
#include "core/device/run_aside.h"
#include "core/ops/truncation.h"
#include "core/problem/heap_bytes.h"
#include "core/problem/refused_matrix.h"

namespace tensord::core {

/// The type of absolute values.
template <typename W>
using RealOf = decltype(std::abs(W()));

/// One matrix and what becomes of it; all by columns, without gaps.
template <typename W>
struct Decomposed {
  int64_t rows, columns, inner;  // inner: how many values are computed
  NumberedMatrix name;           // in messages
  int64_t seed;                  // of random numbers
  ThreadPool* threads;           // null where each has a matrix of its own
  W* matrix;  // (row, column); EIGH leaves vectors in it, CHOLESKY L, below
  W* left;    // (row, inner), of an SVD
  W* right;   // (inner, column), of an SVD
  RealOf<W>* values;   // (inner), of an SVD descending, of EIGH ascending
  std::byte* scratch;  // of Routines::ScratchBytes()
};

/// Decides nothing but how many matrices are under way at a time.
///
/// Routines has, for all T that a problem can have,
///   Work<T>                   the type that it computes in
///   ValueCount(problem)       how many values of an SVD it computes; else the
///                             shorter side
///   ScratchBytes(problem)     for one matrix
///   Nanoseconds(problem)      of one matrix, on the threads that it has
///   kHearsStops               whether a matrix is left when work is stopped
///   Svd(Decomposed, reload)   absl::StatusOr<double>: the squares of values
///                             that are not computed, over that of the
///                             largest; `reload` fills the matrix again
///   Eigh(Decomposed), Cholesky(Decomposed)
///                             absl::Status
template <typename Routines>
class DecompositionSolution final : public FactorizationSolution {
  using P = FactorizationProblem;

 public:
  DecompositionSolution(const P& problem, ThreadPool& threads,
                        Routines routines)
      : Solution(Predict(problem, threads, routines),
                 Teams(problem, threads) * RoomBytes(problem, routines)),
        problem_(problem),
        extents_(problem),
        teams_(Teams(problem, threads)),
        threads_(threads),
        routines_(std::move(routines)) {
    for (const auto& mode : problem.batch) matrices_.Add(mode);
  }

  std::string decision() const override {
    const std::string each =
        absl::StrCat(extents_.rows, " x ", extents_.columns);
    const int64_t count = matrices_.tile_count();
    if (count == 1) {
      return absl::StrCat(NameOf(problem_.method), " of a matrix of ", each,
                          ", copied first");
    }
    return absl::StrCat(NameOf(problem_.method), " of ", count, " matrices of ",
                        each, ", copied first, ", teams_, " at a time");
  }
  int64_t bytes() const override {
    return HeapBlockBytes(sizeof(*this)) + HeapBytes(problem_) +
           matrices_.heap_bytes();
  }
  absl::Status Launch(const FactorizationOperands& operands,
                      Workspace& workspace, Stream&) const override {
    absl::Status status;
    const auto decompose = [&] {
      VisitMatrixType(problem_.type, [&]<typename T>(T) {
        status = DecomposeAll<T>(operands, workspace);
      });
    };
    constexpr double kLong = 5e6;  // nanoseconds
    if (!Routines::kHearsStops && routines_.Nanoseconds(problem_) > kLong) {
      RunAside(decompose);
    } else {
      decompose();
    }
    return status;
  }

 private:
  static int64_t Teams(const P& problem, const ThreadPool& threads) {
    return std::min<int64_t>(ElementCount(problem.batch),
                             threads.thread_count());
  }
  static int64_t RoomBytes(const P& problem, const Routines& routines) {
    int64_t element = 0;
    VisitMatrixType(problem.type, [&]<typename T>(T) {
      element = sizeof(typename Routines::template Work<T>);
    });
    const int64_t rows = ElementCount(problem.rows);
    const int64_t columns = ElementCount(problem.columns);
    const int64_t inner = Routines::ValueCount(problem);
    const bool has_factors = problem.method == FactorizationMethod::kSvd;
    return Workspace::BytesFor(rows * columns * element) +
           Workspace::BytesFor(has_factors ? rows * inner * element : 0) +
           Workspace::BytesFor(has_factors ? inner * columns * element : 0) +
           Workspace::BytesFor(inner * element) +
           Workspace::BytesFor(routines.ScratchBytes(problem));
  }
  static double Predict(const P& problem, const ThreadPool& threads,
                        const Routines& routines) {
    constexpr double kLaunchNanoseconds = 1000;
    return kLaunchNanoseconds +
           routines.Nanoseconds(problem) *
               static_cast<double>(ElementCount(problem.batch)) /
               static_cast<double>(Teams(problem, threads));
  }

  template <typename W>
  Decomposed<W> TakeRoom(Workspace& workspace) const {
    const int64_t inner = Routines::ValueCount(problem_);
    const bool has_factors = problem_.method == FactorizationMethod::kSvd;
    Decomposed<W> room{
        .rows = extents_.rows, .columns = extents_.columns, .inner = inner};
    if (matrices_.tile_count() == 1) room.threads = &threads_;
    room.matrix = workspace.Take<W>(extents_.rows * extents_.columns);
    room.left = workspace.Take<W>(has_factors ? extents_.rows * inner : 0);
    room.right = workspace.Take<W>(has_factors ? inner * extents_.columns : 0);
    room.values = reinterpret_cast<RealOf<W>*>(workspace.Take<W>(inner));
    room.scratch = workspace.Take<std::byte>(routines_.ScratchBytes(problem_));
    return room;
  }

  template <typename T>
  absl::Status DecomposeAll(const FactorizationOperands& operands,
                            Workspace& workspace) const {
    using W = typename Routines::template Work<T>;
    std::vector<Decomposed<W>> rooms;
    for (int64_t team = 0; team < teams_; ++team) {
      rooms.push_back(TakeRoom<W>(workspace));
    }
    const int64_t count = matrices_.tile_count();
    absl::Mutex mutex;
    int64_t failed ABSL_GUARDED_BY(mutex) = count;  // the first that has
    absl::Status first_failure ABSL_GUARDED_BY(mutex);
    int64_t kept ABSL_GUARDED_BY(mutex) = 0;
    const auto decompose = [&](int64_t matrix, int64_t team, const auto& at) {
      Decomposed<W>& room = rooms[static_cast<size_t>(team)];
      room.name = {extents_.rows, extents_.columns, matrix, count};
      room.seed = operands.truncation.seed;
      const absl::StatusOr<int64_t> own = Decompose<T>(room, operands, at);
      absl::MutexLock lock(&mutex);
      if (own.ok()) {
        kept = std::max(kept, *own);
      } else if (matrix < failed) {
        failed = matrix;
        first_failure = own.status();
      }
    };
    const auto decompose_number = [&](int64_t matrix, int64_t team) {
      matrices_.ForEach(matrix, matrix + 1, [&](const auto& at, const auto&) {
        decompose(matrix, team, at);
      });
    };
    if (count == 1) {
      decompose_number(0, 0);
    } else {
      threads_.ParallelFor(count, teams_, decompose_number);
    }
    absl::MutexLock lock(&mutex);
    const bool is_svd = problem_.method == FactorizationMethod::kSvd;
    if (is_svd && operands.kept != nullptr) *operands.kept = kept;
    return first_failure;
  }

  /// Gives how many values are kept.
  template <typename T, typename W, typename Offsets>
  absl::StatusOr<int64_t> Decompose(const Decomposed<W>& room,
                                    const FactorizationOperands& operands,
                                    const Offsets& at) const {
    const T* const a = static_cast<const T*>(operands.a) + at[P::kBatchA];
    T* const left = static_cast<T*>(operands.left) + at[P::kBatchLeft];
    LoadMatrix(problem_, a, room.matrix);
    if (CurrentWork::ShouldStop()) return 0;
    TENSORD_RETURN_IF_ERROR(CheckFinite(room));
    switch (problem_.method) {
      case FactorizationMethod::kSvd: {
        TENSORD_ASSIGN_OR_RETURN(const double beyond, routines_.Svd(room, [&] {
          LoadMatrix(problem_, a, room.matrix);
        }));
        if (CurrentWork::ShouldStop()) return 0;
        return StoreSvd<T>(room, beyond, operands, at);
      }
      case FactorizationMethod::kEigh:
        TENSORD_RETURN_IF_ERROR(routines_.Eigh(room));
        StoreLeft(room.matrix, nullptr, room.inner, left);
        StoreValues<T>(room, 1, room.inner, operands, at);
        return room.inner;
      default:
        TENSORD_RETURN_IF_ERROR(routines_.Cholesky(room));
        for (int64_t k = 0; k < room.inner; ++k) {
          std::fill_n(room.matrix + k * room.rows, k, W(0));
        }
        StoreLeft(room.matrix, nullptr, room.inner, left);
        return room.inner;
    }
  }

  /// Algorithms that iterate need not end on a matrix that is not finite.
  template <typename W>
  absl::Status CheckFinite(const Decomposed<W>& room) const {
    // What is read: the lower triangle, where there is one.
    const bool is_lower = PairsRows(problem_.method);
    for (int64_t column = 0; column < room.columns; ++column) {
      const W* const first = room.matrix + column * room.rows;
      RealOf<W> sum = 0;
      for (int64_t row = is_lower ? column : 0; row < room.rows; ++row) {
        // NaN of what is not finite.
        sum += std::real(first[row]) * 0 + std::imag(first[row]) * 0;
      }
      if (sum == 0) continue;
      return NotFinite(problem_.method, room.name, column);
    }
    return absl::OkStatus();
  }

  template <typename T, typename W, typename Offsets>
  int64_t StoreSvd(const Decomposed<W>& room, double beyond,
                   const FactorizationOperands& operands,
                   const Offsets& at) const {
    using Real = RealOf<W>;
    using Absorb = Truncation::Absorb;
    const Truncation& truncation = operands.truncation;
    const int64_t kept = KeptOf(room.values, room.inner, problem_.inner_extent,
                                truncation, beyond);
    const Real scale =
        truncation.renormalizes
            ? std::sqrt(SquaresOverKept(room.values, room.inner, kept, beyond))
            : Real(1);
    StoreValues<T>(room, scale, kept, operands, at);
    // From here on they are what the absorbing factors are multiplied by.
    for (int64_t k = 0; k < kept; ++k) {
      room.values[k] *= scale;
      if (truncation.absorb == Absorb::kBoth) {
        room.values[k] = std::sqrt(room.values[k]);
      }
    }
    const bool is_both = truncation.absorb == Absorb::kBoth;
    StoreLeft(
        room.left,
        is_both || truncation.absorb == Absorb::kLeft ? room.values : nullptr,
        kept, static_cast<T*>(operands.left) + at[P::kBatchLeft]);
    StoreRight(
        room,
        is_both || truncation.absorb == Absorb::kRight ? room.values : nullptr,
        kept, static_cast<T*>(operands.right) + at[P::kBatchRight]);
    return kept;
  }
  template <typename T, typename W, typename Offsets>
  void StoreValues(const Decomposed<W>& room, RealOf<W> scale, int64_t kept,
                   const FactorizationOperands& operands,
                   const Offsets& at) const {
    if (operands.values == nullptr) return;
    using Real = RealOf<T>;
    Real* const to = static_cast<Real*>(operands.values) + at[P::kBatchValues];
    for (int64_t k = 0; k < problem_.inner_extent; ++k) {
      to[k * problem_.inner_stride_values] =
          k < kept ? static_cast<Real>(scale * room.values[k]) : Real(0);
    }
  }
  /// Columns of `from`, those kept, times `factors` if there are any.
  template <typename T, typename W>
  void StoreLeft(const W* from, const RealOf<W>* factors, int64_t kept,
                 T* left) const {
    ForEachTiled(problem_.rows, P::kFactor,
                 InnerLoop(problem_, problem_.inner_stride_left), P::kFactor,
                 [&](int64_t row, int64_t k, int64_t offset) {
                   left[offset] =
                       ConvertElement<T>(from[row + k * extents_.rows] *
                                         FactorOf(factors, k, kept));
                 });
  }
  template <typename T, typename W>
  void StoreRight(const Decomposed<W>& room, const RealOf<W>* factors,
                  int64_t kept, T* right) const {
    ForEachTiled(InnerLoop(problem_, problem_.inner_stride_right), P::kFactor,
                 problem_.columns, P::kFactor,
                 [&](int64_t k, int64_t column, int64_t offset) {
                   right[offset] =
                       ConvertElement<T>(room.right[k + column * room.inner] *
                                         FactorOf(factors, k, kept));
                 });
  }
  /// What column or row `k` of a factor is multiplied by.
  template <typename Real>
  static Real FactorOf(const Real* factors, int64_t k, int64_t kept) {
    if (k >= kept) return 0;
    return factors == nullptr ? 1 : factors[k];
  }

  const P problem_;
  const MatrixExtents extents_;
  const int64_t teams_;
  TileSpace<4> matrices_;  // of the batch
  ThreadPool& threads_;
  const Routines routines_;
};

}  // namespace tensord::core
