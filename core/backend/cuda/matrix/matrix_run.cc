#include "core/backend/cuda/matrix/matrix_run.h"

#include <cstddef>
#include <memory>

#include "core/base/status.h"
#include "core/device/run_aside.h"

namespace tensord::core::cuda {
namespace {

/// Facts of all matrices, then info, then notes.
constexpr int64_t kBytesOfEach =
    sizeof(MatrixFacts) + sizeof(int) + sizeof(int32_t);

}  // namespace

absl::Status QueueLong(double nanoseconds, CudaDevice& device,
                       absl::FunctionRef<absl::Status()> queue) {
  constexpr double kLong = 5e6;
  if (nanoseconds <= kLong) return queue();
  absl::Status status;
  RunAside([&] {
    status = device.Select();
    if (status.ok()) status = queue();
  });
  return status;
}

int64_t MatrixRun::WorkspaceBytes(int64_t count) {
  return Workspace::BytesFor(count * kBytesOfEach);
}

absl::StatusOr<MatrixRun> MatrixRun::Begin(const SolverLibrary& library,
                                           int64_t count, Workspace& workspace,
                                           CudaStream& stream) {
  TENSORD_ASSIGN_OR_RETURN(SolverLibrary::Use use, library.Take());
  TENSORD_RETURN_IF_ERROR(use.SetStream(stream));
  MatrixRun run(std::move(use), count,
                workspace.Take<std::byte>(count * kBytesOfEach), stream);
  TENSORD_RETURN_IF_ERROR(run.Check(
      cudaMemsetAsync(run.facts_, 0, static_cast<size_t>(count * kBytesOfEach),
                      stream.get()),
      "clearing what is known of matrices"));
  return run;
}

MatrixRun::MatrixRun(SolverLibrary::Use use, int64_t count, std::byte* numbers,
                     CudaStream& stream)
    : use_(std::move(use)),
      count_(count),
      stream_(&stream),
      facts_(reinterpret_cast<MatrixFacts*>(numbers)),
      info_(reinterpret_cast<int*>(facts_ + count)),
      note_(reinterpret_cast<int32_t*>(info_ + count)) {}

MatrixRun::~MatrixRun() {
  if (is_calling_) stream_->Synchronize().IgnoreError();
}

absl::StatusOr<std::vector<MatrixOutcome>> MatrixRun::Await() {
  const auto count = static_cast<size_t>(count_);
  std::vector<std::byte> bytes(count * kBytesOfEach);
  TENSORD_RETURN_IF_ERROR(
      stream_->Await(bytes.data(), facts_, static_cast<int64_t>(bytes.size())));
  is_calling_ = false;
  const auto* const facts = reinterpret_cast<const MatrixFacts*>(bytes.data());
  const auto* const info = reinterpret_cast<const int*>(facts + count);
  const auto* const notes = reinterpret_cast<const int32_t*>(info + count);
  std::vector<MatrixOutcome> all;
  all.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    all.push_back({facts[i], info[i], notes[i]});
  }
  return all;
}

}  // namespace tensord::core::cuda
