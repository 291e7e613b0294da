#include "core/backend/cuda/matrix/solve_copies.h"

#include <utility>

#include "core/backend/cuda/matrix/copy_modes.h"
#include "core/base/status.h"
#include "core/problem/heap_bytes.h"

namespace tensord::core::cuda {
namespace {

using P = LinearSolveProblem;

MatrixPart PartRead(MatrixStructure structure) {
  switch (structure) {
    case MatrixStructure::kGeneral: return MatrixPart::kAll;
    case MatrixStructure::kUpperTriangular: return MatrixPart::kUpper;
    default: return MatrixPart::kLower;
  }
}

cudaError_t QueueCompletion(const P& problem, const Matrices& a,
                            cudaStream_t stream) {
  if (problem.structure == MatrixStructure::kGeneral) return cudaSuccess;
  if (!IsTriangular(problem.structure)) return QueueHermitian(a, stream);
  return QueueTriangle({.matrices = a,
                        .part = PartRead(problem.structure),
                        .has_unit_diagonal = problem.has_unit_diagonal},
                       stream);
}

}  // namespace

SolveCopies::SolveCopies(const P& problem, const KernelLists& lists) {
  const SolveShape shape(problem);
  CopyModes of_a(CopyModes::kFrom), of_b(CopyModes::kFrom),
      of_d(CopyModes::kTo);
  of_a.Add(problem.rows, P::kFirst, 1);
  of_a.Add(problem.columns, P::kFirst, shape.n);
  of_a.Add(problem.batch, P::kBatchA, shape.n * shape.n);
  a = std::move(of_a).Solve(lists, problem.type, problem.conj_a);
  if (problem.has_b) {
    of_b.Add(problem.rows, P::kSecond, 1);
    of_b.Add(problem.sides, P::kFirst, shape.n);
    of_b.Add(problem.batch, P::kBatchB, shape.n * shape.sides);
    b = std::move(of_b).Solve(lists, problem.type, problem.conj_b);
  }
  of_d.Add(problem.rows_of_d(), P::kSecond, 1);
  of_d.Add(problem.sides, P::kSecond, shape.n);
  of_d.Add(problem.batch, P::kBatchD, shape.n * shape.sides);
  d = std::move(of_d).Solve(lists, problem.type);
}

int64_t SolveCopies::heap_bytes() const {
  return HeapBytes(a) + HeapBytes(b) + HeapBytes(d);
}

absl::Status LoadMatrices(const P& problem, const SolveCopies& copies,
                          const void* a, const Matrices& to,
                          Workspace workspace, MatrixRun& run) {
  const cudaStream_t stream = run.stream().get();
  TENSORD_RETURN_IF_ERROR(
      LaunchCopy(*copies.a, a, to.data, workspace, run.stream()));
  TENSORD_RETURN_IF_ERROR(
      run.Check(QueueLook({.matrices = to,
                           .part = PartRead(problem.structure),
                           .skips_diagonal = problem.has_unit_diagonal,
                           .facts = run.facts()},
                          stream),
                "looking at matrices"));
  return run.Check(QueueCompletion(problem, to, stream), "completing matrices");
}

}  // namespace tensord::core::cuda
