// One launch of what libraries do with matrices.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/backend/cuda/cuda_stream.h"
#include "core/backend/cuda/kernel/matrix/matrix_tasks.h"
#include "core/backend/cuda/matrix/solver_library.h"
#include "core/base/element_type.h"
#include "core/device/interruption.h"
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

/// Most matrices that one call takes: workspace grows with their number, and
/// work is stopped between calls.
inline constexpr int64_t kMostTogether = 16384;

/// Calls body(first, count) for parts of `count` matrices, until work is to
/// stop.
template <typename Body>
absl::Status ForEachPart(int64_t count, const Body& body) {
  for (int64_t first = 0; first < count; first += kMostTogether) {
    if (CurrentWork::ShouldStop()) break;
    absl::Status status = body(first, std::min(kMostTogether, count - first));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

/// Calls queue(), which should take so long on the device. Libraries may hold
/// the thread up until work is done: others launch theirs meanwhile.
absl::Status QueueLong(double nanoseconds, CudaDevice& device,
                       absl::FunctionRef<absl::Status()> queue);

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

  MatrixRun(MatrixRun&&) = default;
  MatrixRun& operator=(MatrixRun&&) = delete;
  /// Waits for calls of the libraries that Await() has not waited for: nobody
  /// else is to have the handle before.
  ~MatrixRun();

  CudaStream& stream() const { return *stream_; }
  /// For calls of the libraries.
  const SolverLibrary::Use& use() {
    is_calling_ = true;
    return use_;
  }
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
  absl::StatusOr<std::vector<MatrixOutcome>> Await();

 private:
  MatrixRun(SolverLibrary::Use use, int64_t count, std::byte* numbers,
            CudaStream& stream);

  SolverLibrary::Use use_;
  bool is_calling_ = false;
  int64_t count_;
  CudaStream* stream_;
  MatrixFacts* facts_;
  int* info_;
  int32_t* note_;
};

}  // namespace tensord::core::cuda
