// Solves equations in workspace, by cuSOLVER and cuBLAS.
#pragma once

#include <cstdint>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/backend/cuda/matrix/matrix_run.h"
#include "core/backend/cuda/matrix/solve_copies.h"
#include "core/base/status.h"
#include "core/device/interruption.h"
#include "core/memory/workspace.h"
#include "core/ops/linear_solve.h"

namespace tensord::core::cuda {

/// The number 1.
template <typename T>
T One() {
  T one{};
  if constexpr (std::is_floating_point_v<T>) {
    one = 1;
  } else {
    one.x = 1;
  }
  return one;
}

/// How equations of a structure are solved: general and Hermitian matrices by
/// pivots, positive definite ones by Cholesky's method, triangles as they are.
class Elimination {
 public:
  /// One matrix after the other, or all together.
  ///
  /// Errors  as SolverLibrary::Take() and Use::CheckedCount().
  static absl::StatusOr<Elimination> Make(MatrixStructure structure,
                                          bool has_unit_diagonal,
                                          const SolveShape& shape,
                                          ElementType type, bool is_batched,
                                          const SolverLibrary& library) {
    Elimination made(structure, has_unit_diagonal, shape, is_batched);
    if (is_batched || !made.is_factored()) return made;
    TENSORD_ASSIGN_OR_RETURN(made.work_count_,
                             VisitSolverType(type, [&]<typename T>(T) {
                               return made.WorkCount<T>(library);
                             }));
    return made;
  }

  bool is_factored() const { return !IsTriangular(structure_); }
  bool has_pivots() const {
    return is_factored() && structure_ != MatrixStructure::kPositiveDefinite;
  }

  /// What the libraries work in, beside matrices and right sides.
  template <typename T>
  struct Room {
    int* pivots;
    int* unused;  // that a routine says
    T** a_addresses;
    T** b_addresses;
    T* scratch;
  };
  int64_t RoomBytes(ElementType type) const {
    constexpr auto kInt = static_cast<int64_t>(sizeof(int));
    constexpr auto kAddress = static_cast<int64_t>(sizeof(void*));
    return Workspace::BytesFor(shape_.n * shape_.count * kInt) +
           Workspace::BytesFor(kInt) +
           2 * Workspace::BytesFor(shape_.count * kAddress) +
           Workspace::BytesFor(work_count_ * SizeOf(type));
  }
  template <typename T>
  Room<T> TakeRoom(Workspace& workspace) const {
    Room<T> room;
    room.pivots = workspace.Take<int>(shape_.n * shape_.count);
    room.unused = workspace.Take<int>(1);
    room.a_addresses = workspace.Take<T*>(shape_.count);
    room.b_addresses = workspace.Take<T*>(shape_.count);
    room.scratch = workspace.Take<T>(work_count_);
    return room;
  }

  /// Queues what replaces the right sides `b` by solutions; `a` is overwritten.
  /// What is no pivot is in run.info().
  template <typename T>
  absl::Status Queue(T* a, T* b, const Room<T>& room, MatrixRun& run) const {
    return is_batched_ ? SolveBatch(a, b, room, run)
                       : SolveEach(a, b, room, run);
  }

 private:
  static constexpr cublasFillMode_t kLower = CUBLAS_FILL_MODE_LOWER;

  Elimination(MatrixStructure structure, bool has_unit_diagonal,
              const SolveShape& shape, bool is_batched)
      : structure_(structure),
        has_unit_diagonal_(has_unit_diagonal),
        shape_(shape),
        is_batched_(is_batched) {}

  int n() const { return static_cast<int>(shape_.n); }
  int sides() const { return static_cast<int>(shape_.sides); }

  /// Elements of workspace that cuSOLVER takes for a factorization.
  template <typename T>
  absl::StatusOr<int> WorkCount(const SolverLibrary& library) const {
    TENSORD_ASSIGN_OR_RETURN(const SolverLibrary::Use use, library.Take());
    const auto& routines = use.routines<T>();
    int count = 0;
    const cusolverStatus_t status =
        has_pivots()
            ? routines.GetrfSize(use.solver(), n(), n(), nullptr, n(), &count)
            : routines.PotrfSize(use.solver(), kLower, n(), nullptr, n(),
                                 &count);
    return use.CheckedCount(status, count, "a factorization's bufferSize");
  }

  template <typename T>
  absl::Status SolveEach(T* all_a, T* all_b, const Room<T>& room,
                         MatrixRun& run) const {
    const SolverLibrary::Use& use = run.use();
    const auto& routines = use.routines<T>();
    for (int64_t i = 0; i < shape_.count; ++i) {
      if (CurrentWork::ShouldStop()) return absl::OkStatus();
      T* const a = all_a + i * shape_.n * shape_.n;
      T* const b = all_b + i * shape_.n * shape_.sides;
      int* const pivots = room.pivots + i * shape_.n;
      const auto solve = [&](cublasFillMode_t fill, cublasOperation_t form) {
        const T one = One<T>();
        return use.Check(use.blas_routines<T>().Trsm(
                             use.blas(), CUBLAS_SIDE_LEFT, fill, form,
                             Diagonal(), n(), sides(), &one, a, n(), b, n()),
                         "trsm");
      };
      if (has_pivots()) {
        TENSORD_RETURN_IF_ERROR(
            use.Check(routines.Getrf(use.solver(), n(), n(), a, n(),
                                     room.scratch, pivots, run.info() + i),
                      "getrf"));
        TENSORD_RETURN_IF_ERROR(
            use.Check(routines.Getrs(use.solver(), CUBLAS_OP_N, n(), sides(), a,
                                     n(), pivots, b, n(), room.unused),
                      "getrs"));
        continue;
      }
      if (is_factored()) {
        TENSORD_RETURN_IF_ERROR(
            use.Check(routines.Potrf(use.solver(), kLower, n(), a, n(),
                                     room.scratch, work_count_, run.info() + i),
                      "potrf"));
      }
      TENSORD_RETURN_IF_ERROR(SolveTriangles(solve));
    }
    return absl::OkStatus();
  }

  template <typename T>
  absl::Status SolveBatch(T* a, T* b, const Room<T>& room,
                          MatrixRun& run) const {
    const auto write_addresses = [&](T** addresses, T* first,
                                     int64_t elements) {
      return run.Check(
          QueueAddresses({.addresses = reinterpret_cast<void**>(addresses),
                          .first = first,
                          .bytes = elements * static_cast<int64_t>(sizeof(T)),
                          .count = shape_.count},
                         run.stream().get()),
          "writing addresses");
    };
    TENSORD_RETURN_IF_ERROR(
        write_addresses(room.a_addresses, a, shape_.n * shape_.n));
    TENSORD_RETURN_IF_ERROR(
        write_addresses(room.b_addresses, b, shape_.n * shape_.sides));
    return ForEachPart(shape_.count, [&](int64_t first, int64_t part) {
      return SolvePart(room, run, first, static_cast<int>(part));
    });
  }
  template <typename T>
  absl::Status SolvePart(const Room<T>& room, MatrixRun& run, int64_t first,
                         int count) const {
    const SolverLibrary::Use& use = run.use();
    const auto& routines = use.blas_routines<T>();
    T** const a = room.a_addresses + first;
    T** const b = room.b_addresses + first;
    int* const pivots = room.pivots + first * shape_.n;
    int* const info = run.info() + first;
    if (has_pivots()) {
      TENSORD_RETURN_IF_ERROR(use.Check(
          routines.GetrfBatched(use.blas(), n(), a, n(), pivots, info, count),
          "getrfBatched"));
      int arguments = 0;
      return use.Check(
          routines.GetrsBatched(use.blas(), CUBLAS_OP_N, n(), sides(), a, n(),
                                pivots, b, n(), &arguments, count),
          "getrsBatched");
    }
    if (is_factored()) {
      TENSORD_RETURN_IF_ERROR(
          use.Check(use.routines<T>().PotrfBatched(use.solver(), kLower, n(), a,
                                                   n(), info, count),
                    "potrfBatched"));
    }
    return SolveTriangles([&](cublasFillMode_t fill, cublasOperation_t form) {
      const T one = One<T>();
      return use.Check(routines.TrsmBatched(use.blas(), CUBLAS_SIDE_LEFT, fill,
                                            form, Diagonal(), n(), sides(),
                                            &one, a, n(), b, n(), count),
                       "trsmBatched");
    });
  }

  /// By the triangle that there is, or by L and then its adjoint.
  template <typename Solve>
  absl::Status SolveTriangles(const Solve& solve) const {
    if (structure_ == MatrixStructure::kUpperTriangular) {
      return solve(CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N);
    }
    TENSORD_RETURN_IF_ERROR(solve(kLower, CUBLAS_OP_N));
    return is_factored() ? solve(kLower, CUBLAS_OP_C) : absl::OkStatus();
  }

  cublasDiagType_t Diagonal() const {
    return has_unit_diagonal_ ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
  }

  MatrixStructure structure_;
  bool has_unit_diagonal_;
  SolveShape shape_;
  bool is_batched_;
  int work_count_ = 0;
};

}  // namespace tensord::core::cuda
