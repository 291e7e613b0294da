// One launch of what libraries do with matrices.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/backend/cuda/cuda_stream.h"
#include "core/backend/cuda/kernel/matrix/matrix_tasks.h"
#include "core/backend/cuda/matrix/solver_library.h"
#include "core/base/element_type.h"
#include "core/memory/workspace.h"

namespace tensord::core::cuda {

/// Calls visit with a value of the libraries' element type.
template <typename Visit>
decltype(auto) VisitSolverType(ElementType type, const Visit& visit) {
  switch (type) {
    case ElementType::kFloat32: return visit(float{});
    case ElementType::kFloat64: return visit(double{});
    case ElementType::kComplex64: return visit(cuComplex{});
    default: return visit(cuDoubleComplex{});
  }
}

/// What is known of a matrix in the end.
struct MatrixOutcome {
  MatrixFacts facts;
  int info = 0;
  int32_t note = 0;
};

/// A handle of the libraries, and the numbers that they and kernels write down
/// about matrices.
///
/// Threads   used by one thread at a time.
/// Lifetime  library, workspace and stream outlive it.
class MatrixRun {
 public:
  /// What Begin() takes.
  static int64_t WorkspaceBytes(int64_t count);
  /// Of `count` matrices, of which nothing is known.
  ///
  /// Errors  as SolverLibrary::Take().
  static absl::StatusOr<MatrixRun> Begin(const SolverLibrary& library,
                                         int64_t count, Workspace& workspace,
                                         CudaStream& stream);

  CudaStream& stream() const { return *stream_; }
  const SolverLibrary::Use& use() const { return use_; }
  // On the device, of each matrix:
  MatrixFacts* facts() const { return facts_; }
  int* info() const { return info_; }       // the libraries'
  int32_t* notes() const { return note_; }  // our kernels'

  /// OK when a kernel was queued.
  absl::Status Check(cudaError_t queued, absl::string_view what) const {
    return stream_->device().Check(queued, what);
  }

  /// Waits for all that is queued. Others launch their work meanwhile.
  ///
  /// Errors  as Stream::Synchronize().
  absl::StatusOr<std::vector<MatrixOutcome>> Await() const;

 private:
  MatrixRun(SolverLibrary::Use use, int64_t count, std::byte* numbers,
            CudaStream& stream);

  SolverLibrary::Use use_;
  int64_t count_;
  CudaStream* stream_;
  MatrixFacts* facts_;
  int* info_;
  int32_t* note_;
};

}  // namespace tensord::core::cuda
