#include "core/backend/cpu/cpu_backend.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/backend/cpu/block/gather.h"
#include "core/backend/cpu/block/strided.h"
#include "core/backend/cpu/contraction_reference.h"
#include "core/backend/cpu/cpu_features.h"
#include "core/backend/cpu/direct/contraction_direct.h"
#include "core/backend/cpu/elementwise_fused.h"
#include "core/backend/cpu/elementwise_reference.h"
#include "core/backend/cpu/elementwise_take.h"
#include "core/backend/cpu/factorization/decomposition_lapack.h"
#include "core/backend/cpu/factorization/qr_lapack.h"
#include "core/backend/cpu/factorization/reference.h"
#include "core/backend/cpu/factorization/sampled_svd.h"
#include "core/backend/cpu/gemm/blas.h"
#include "core/backend/cpu/gemm/contraction_gemm.h"
#include "core/backend/cpu/linear_solve/linear_solve_lapack.h"
#include "core/backend/cpu/linear_solve/linear_solve_reference.h"
#include "core/backend/cpu/permutation_blocked.h"
#include "core/backend/cpu/permutation_reference.h"
#include "core/backend/cpu/reduction/reduction_pairwise.h"
#include "core/backend/cpu/reduction/reduction_reference.h"
#include "core/backend/cpu/reduction/reduction_scan.h"
#include "core/backend/cpu/reduction/reduction_sort.h"
#include "core/backend/cpu/thread_pool.h"
#include "core/device/host_stream.h"
#include "core/memory/host_resource.h"

namespace tensord::core {
namespace {

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const CpuOptions& options)
      : threads_(options.thread_count > 0 ? options.thread_count
                                          : AllowedCoreCount()) {
    absl::StatusOr<std::shared_ptr<const Blas>> blas =
        Blas::Load(DetectCpuFeatures());
    const GemmRates rates = GemmRatesOf(blas.ok() ? (*blas)->core_type() : "",
                                        threads_.thread_count());
    info_ = {.name = "cpu:0",
             .kind = "cpu",
             .model = CpuModelName(),
             .architecture = SimdTargetName(),
             .thread_count = threads_.thread_count(),
             .memory_bytes = options.memory_bytes > 0 ? options.memory_bytes
                                                      : HostMemoryBytes(),
             .properties = {
                 {"blas",
                  blas.ok() ? (*blas)->description()
                            : absl::StrCat("none: ", blas.status().message())},
                 {"simd", SimdTargetName()}}};
    kernels_.permutation.push_back(CreateBlockedPermutation(threads_));
    kernels_.permutation.push_back(CreateReferencePermutation());
    kernels_.elementwise.push_back(CreateFusedElementwise(threads_));
    kernels_.elementwise.push_back(CreateTakeElementwise(threads_));
    kernels_.elementwise.push_back(CreateReferenceElementwise());
    kernels_.reduction.push_back(CreatePairwiseReduction(threads_));
    kernels_.reduction.push_back(CreateScanReduction(threads_));
    kernels_.reduction.push_back(CreateSortReduction(threads_));
    kernels_.reduction.push_back(CreateReferenceReduction());
    kernels_.factorization.push_back(CreateLapackQr(threads_, blas));
    kernels_.factorization.push_back(CreateLapackDecomposition(threads_, blas));
    kernels_.factorization.push_back(CreateSampledSvd(threads_, blas));
    kernels_.factorization.push_back(CreateReferenceFactorization(threads_));
    kernels_.linear_solve.push_back(CreateLapackLinearSolve(threads_, blas));
    kernels_.linear_solve.push_back(CreateReferenceLinearSolve(threads_));
    kernels_.contraction.push_back(
        CreateGemmContraction(threads_, std::move(blas), rates));
    kernels_.contraction.push_back(CreateDirectContraction(threads_, rates));
    kernels_.contraction.push_back(CreateReferenceContraction());
  }

  const DeviceInfo& info() const override { return info_; }
  const KernelLists& kernels() const override { return kernels_; }
  MemoryResource& memory() override { return memory_; }
  MemoryResource& staging_memory() override { return memory_; }
  absl::Status health() const override { return absl::OkStatus(); }

  absl::StatusOr<std::unique_ptr<Stream>> CreateStream() override {
    return std::make_unique<HostStream>();
  }

  absl::Status Gather(const GatherSteps& steps, const GatherOperands& operands,
                      Stream& stream) override {
    const CurrentWork work(stream.interruption());
    core::Gather(threads_, steps, operands);
    return absl::OkStatus();
  }

  absl::Status Scatter(const GatherSteps& steps,
                       const ScatterOperands& operands,
                       Stream& stream) override {
    const CurrentWork work(stream.interruption());
    core::Scatter(threads_, steps, operands);
    return absl::OkStatus();
  }

  absl::Status Fill(const FillOperands& operands, Stream& stream) override {
    const CurrentWork work(stream.interruption());
    core::Fill(threads_, operands);
    return absl::OkStatus();
  }

  absl::Status Copy(const CopyOperands& operands, Stream& stream) override {
    const CurrentWork work(stream.interruption());
    core::Copy(threads_, operands);
    return absl::OkStatus();
  }

 private:
  ThreadPool threads_;
  HostResource memory_;
  DeviceInfo info_;
  KernelLists kernels_;
};

}  // namespace

std::unique_ptr<Backend> CreateCpuBackend(const CpuOptions& options) {
  return std::make_unique<CpuBackend>(options);
}

}  // namespace tensord::core
