#include "core/backend/cuda/factorization/matrix_solution.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/device/interruption.h"
#include "core/problem/refused_matrix.h"

namespace tensord::core::cuda {
namespace {

using P = FactorizationProblem;

/// Facts, info and what is kept: of all matrices, one after the other.
constexpr int64_t kOutcomeBytes =
    sizeof(MatrixFacts) + sizeof(int) + sizeof(int32_t);

int64_t MatrixBytes(const P& problem) {
  const MatrixShape shape(problem);
  return shape.rows * shape.columns * shape.count * SizeOf(problem.type);
}

absl::Status AwaitAll(CudaStream& stream) {
  TENSORD_ASSIGN_OR_RETURN(const std::shared_ptr<Event> event, stream.Record());
  if (event == nullptr) return absl::OkStatus();
  if (Interruption* const own = CurrentWork::interruption(); own != nullptr) {
    own->Outlast(event);
  }
  return event->Wait();
}

}  // namespace

MatrixShape::MatrixShape(const P& problem)
    : rows(ElementCount(problem.rows)),
      columns(ElementCount(problem.columns)),
      inner(std::min(rows, columns)),
      count(ElementCount(problem.batch)) {}

absl::StatusOr<const SolverLibrary*> LibraryFor(
    const P& problem, FactorizationMethod method,
    const MaybeSolverLibrary& library) {
  if (problem.method != method) {
    return Unimplemented("OTHER_METHOD", NameOf(problem.method),
                         " is wanted, this is ", NameOf(method));
  }
  TENSORD_RETURN_IF_ERROR(library.status());
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  const MatrixShape shape(problem);
  if (shape.rows <= kMost / shape.columns && shape.count <= kMost) {
    return library->get();
  }
  return Unimplemented("MATRIX_TOO_LARGE", shape.count, " matrices of ",
                       shape.rows, " x ", shape.columns,
                       " elements, cuSOLVER counts to ", kMost);
}

double NanosecondsOf(const P& problem, const RoutineCost& cost) {
  const MatrixShape shape(problem);
  const auto count = static_cast<double>(shape.count);
  const bool is_single = RealPartOf(problem.type) == ElementType::kFloat32;
  return count * (cost.ns_per_matrix +
                  cost.ns_per_column * static_cast<double>(shape.inner)) +
         FlopCount(problem) / cost.flops_per_ns / (is_single ? 2 : 1);
}

MatrixSolution::MatrixSolution(const P& problem, const SolverLibrary& library,
                               MatrixCopies copies, bool transposes,
                               double nanoseconds, int64_t own_bytes)
    : Solution(nanoseconds + copies.nanoseconds(),
               Workspace::BytesFor(MatrixShape(problem).count * kOutcomeBytes) +
                   Workspace::BytesFor(MatrixBytes(problem)) + own_bytes +
                   copies.workspace_bytes()),
      problem_(problem),
      shape_(problem),
      library_(library),
      copies_(std::move(copies)),
      transposes_(transposes) {}

std::string MatrixSolution::decision() const {
  const std::string each = absl::StrCat(shape_.rows, " x ", shape_.columns);
  if (shape_.count == 1) {
    return absl::StrCat(NameOf(problem_.method), " of a matrix of ", each,
                        ", copied first");
  }
  return absl::StrCat(NameOf(problem_.method), " of ", shape_.count,
                      " matrices of ", each, ", copied first");
}

absl::Status MatrixSolution::Launch(const FactorizationOperands& operands,
                                    Workspace& workspace,
                                    Stream& stream) const {
  CudaStream& own_stream = AsCuda(stream);
  TENSORD_ASSIGN_OR_RETURN(SolverLibrary::Use solver, library_.Take());
  TENSORD_RETURN_IF_ERROR(solver.SetStream(own_stream));
  auto* const outcomes =
      workspace.Take<std::byte>(shape_.count * kOutcomeBytes);
  auto* const facts = reinterpret_cast<MatrixFacts*>(outcomes);
  auto* const info = reinterpret_cast<int*>(facts + shape_.count);
  Work work{
      .operands = operands,
      .workspace = workspace,
      .stream = own_stream,
      .solver = solver,
      .matrices = {.type = problem_.type,
                   .data = workspace.Take<std::byte>(MatrixBytes(problem_)),
                   .rows = transposes_ ? shape_.columns : shape_.rows,
                   .columns = transposes_ ? shape_.rows : shape_.columns,
                   .stride = shape_.rows * shape_.columns,
                   .count = shape_.count},
      .facts = facts,
      .info = info,
      .kept = reinterpret_cast<int32_t*>(info + shape_.count)};
  TENSORD_RETURN_IF_ERROR(work.Check(
      cudaMemsetAsync(outcomes, 0,
                      static_cast<size_t>(shape_.count * kOutcomeBytes),
                      own_stream.get()),
      "clearing what is known of matrices"));
  TENSORD_RETURN_IF_ERROR(
      copies_.Load(operands.a, work.matrices.data, workspace, stream));
  TENSORD_RETURN_IF_ERROR(LookAtMatrices(work));
  if (CurrentWork::ShouldStop()) return absl::OkStatus();
  TENSORD_RETURN_IF_ERROR(Decompose(work));
  TENSORD_ASSIGN_OR_RETURN(const std::vector<Outcome> all, Await(work));
  int64_t kept = 0;
  for (const Outcome& outcome : all) {
    TENSORD_RETURN_IF_ERROR(Judge(outcome));
    kept = std::max<int64_t>(kept, outcome.kept);
  }
  const bool is_svd = problem_.method == FactorizationMethod::kSvd;
  if (is_svd && operands.kept != nullptr) *operands.kept = kept;
  return absl::OkStatus();
}

absl::Status MatrixSolution::LookAtMatrices(Work& work) const {
  TENSORD_RETURN_IF_ERROR(
      work.Check(QueueLook({.matrices = work.matrices,
                            .is_lower = PairsRows(problem_.method),
                            .counts_rows = transposes_,
                            .facts = work.facts},
                           work.stream.get()),
                 "looking at matrices"));
  const ElementType real = RealPartOf(problem_.type);
  switch (problem_.method) {
    case FactorizationMethod::kCholesky: return absl::OkStatus();
    case FactorizationMethod::kSvd:
    case FactorizationMethod::kEigh: {
      // Algorithms that iterate need not end on a matrix that is not finite.
      TENSORD_ASSIGN_OR_RETURN(const std::vector<Outcome> all, Await(work));
      work.may_be_scaled = std::ranges::any_of(all, [&](const Outcome& each) {
        return PowerFor(each.facts, real) != 0;
      });
      break;
    }
    default: work.may_be_scaled = true;  // which nobody waits to know
  }
  if (!work.may_be_scaled) return absl::OkStatus();
  return work.Check(
      QueuePower(
          {.matrices = work.matrices, .real_type = real, .facts = work.facts},
          work.stream.get()),
      "scaling matrices");
}

absl::StatusOr<std::vector<MatrixSolution::Outcome>> MatrixSolution::Await(
    const Work& work) const {
  TENSORD_RETURN_IF_ERROR(AwaitAll(work.stream));
  const auto count = static_cast<size_t>(shape_.count);
  std::vector<std::byte> bytes(count * kOutcomeBytes);
  TENSORD_RETURN_IF_ERROR(work.stream.CopyToHost(
      bytes.data(), work.facts, static_cast<int64_t>(bytes.size())));
  TENSORD_RETURN_IF_ERROR(work.stream.Synchronize());
  const auto* const facts = reinterpret_cast<const MatrixFacts*>(bytes.data());
  const auto* const info = reinterpret_cast<const int*>(facts + count);
  const auto* const kept = reinterpret_cast<const int32_t*>(info + count);
  std::vector<Outcome> all;
  for (size_t i = 0; i < count; ++i) {
    all.push_back({facts[i], info[i], kept[i]});
    const int left = facts[i].from_not_finite;
    if (left > 0 && problem_.method != FactorizationMethod::kQr) {
      return NotFinite(problem_.method, shape_.rows, shape_.columns,
                       shape_.columns - left);
    }
  }
  return all;
}

}  // namespace tensord::core::cuda
