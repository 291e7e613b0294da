#include "core/backend/cuda/gemm/gemm_library.h"

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace tensord::core::cuda {
namespace {

absl::Status DescribeLimits(const CublasLt& library, const GemmLimits& limits,
                            Described<cublasLtMatmulPreference_t>& preference) {
  TENSORD_RETURN_IF_ERROR(
      CheckCublasLt(library, library.MatmulPreferenceCreate(preference.out()),
                    "describing limits"));
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute,
                       auto value) {
    return CheckCublasLt(
        library,
        library.MatmulPreferenceSetAttribute(preference.get(), attribute,
                                             &value, sizeof(value)),
        "describing a limit");
  };
  TENSORD_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                              static_cast<uint64_t>(limits.workspace_bytes)));
  // Parts of sums, if any, are added in the compute type and a fixed order.
  TENSORD_RETURN_IF_ERROR(
      set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
          static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)));
  constexpr cublasLtMatmulPreferenceAttributes_t kAlignments[] = {
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
  for (size_t i = 0; i < limits.alignment_bytes.size(); ++i) {
    TENSORD_RETURN_IF_ERROR(
        set(kAlignments[i], static_cast<uint32_t>(limits.alignment_bytes[i])));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<GemmLibrary>> GemmLibrary::Create(
    CudaDevice& device, const CublasLt& library) {
  TENSORD_RETURN_IF_ERROR(device.Select());
  cublasLtHandle_t handle = nullptr;
  TENSORD_RETURN_IF_ERROR(CheckCublasLt(library, library.Create(&handle),
                                        "cuBLASLt cannot be used"));
  return absl::WrapUnique(new GemmLibrary(device, library, handle));
}

GemmLibrary::~GemmLibrary() { library_.Destroy(handle_); }

std::string GemmLibrary::version() const {
  const size_t version = library_.GetVersion();
  return absl::StrCat(version / 10000, ".", version / 100 % 100, ".",
                      version % 100);
}

absl::StatusOr<std::shared_ptr<const GemmProposal>> GemmLibrary::Propose(
    const GemmCall& call, const GemmLimits& limits) const {
  GemmCall asked = call;
  asked.swaps = false;  // is of no matter to the library
  {
    absl::MutexLock lock(&mutex_);
    for (const Asked& known : latest_) {
      const bool is_known = !known.answer.ok() || *known.answer != nullptr;
      if (is_known && known.call == asked && known.limits == limits) {
        return known.answer;
      }
    }
  }
  Answer answer = Ask(asked, limits);
  if (answer.ok() || absl::IsUnimplemented(answer.status())) {
    absl::MutexLock lock(&mutex_);
    latest_[oldest_] = {asked, limits, answer};
    oldest_ = (oldest_ + 1) % kKept;
  }
  return answer;
}

GemmLibrary::Answer GemmLibrary::Ask(const GemmCall& call,
                                     const GemmLimits& limits) const {
  TENSORD_RETURN_IF_ERROR(device_.Select());
  auto proposal = std::make_shared<GemmProposal>(library_, call);
  const GemmDescription& description = proposal->description;
  TENSORD_RETURN_IF_ERROR(Describe(library_, call, proposal->description));
  Described<cublasLtMatmulPreference_t> preference(
      library_.MatmulPreferenceDestroy);
  TENSORD_RETURN_IF_ERROR(DescribeLimits(library_, limits, preference));
  cublasLtMatmulHeuristicResult_t results[kMostAlgorithms] = {};
  int count = 0;
  const cublasStatus_t status = library_.MatmulAlgoGetHeuristic(
      handle_, description.operation.get(), description.a.get(),
      description.b.get(), description.c.get(), description.d.get(),
      preference.get(), kMostAlgorithms, results, &count);
  if (status != CUBLAS_STATUS_NOT_SUPPORTED) {
    TENSORD_RETURN_IF_ERROR(
        CheckCublasLt(library_, status, "asking cuBLASLt for algorithms"));
  }
  for (int i = 0; i < count; ++i) {
    if (results[i].state != CUBLAS_STATUS_SUCCESS) continue;
    proposal->algorithms.push_back(
        {results[i].algo, static_cast<int64_t>(results[i].workspaceSize)});
  }
  if (proposal->algorithms.empty()) {
    return Unimplemented("NO_GEMM_ALGORITHM",
                         "cuBLASLt has no algorithm for it with ",
                         limits.workspace_bytes, " bytes of workspace");
  }
  return proposal;
}

absl::Status GemmLibrary::Launch(const GemmProposal& proposal,
                                 const GemmAlgorithm& algorithm,
                                 const GemmOperands& operands, void* workspace,
                                 CudaStream& stream) const {
  TENSORD_RETURN_IF_ERROR(device_.Select());
  const GemmDescription& description = proposal.description;
  const GemmFactor alpha(operands.alpha, proposal.call);
  const GemmFactor beta(operands.beta, proposal.call);
  // With a beta of 0 nothing is read there; null would not do.
  const void* const c = operands.beta.IsZero() ? operands.d : operands.c;
  const cublasStatus_t status = library_.Matmul(
      handle_, description.operation.get(), alpha.get(), operands.a,
      description.a.get(), operands.b, description.b.get(), beta.get(), c,
      description.c.get(), operands.d, description.d.get(),
      &algorithm.algorithm, workspace,
      static_cast<size_t>(algorithm.workspace_bytes), stream.get());
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  // The library has a runtime of its own, which does not tell ours what went
  // wrong. Of a device that is lost, the stream says so.
  const cudaError_t state = cudaStreamQuery(stream.get());
  if (state == cudaErrorNotReady) {
    cudaGetLastError();
  } else {
    TENSORD_RETURN_IF_ERROR(device_.Check(state, "launching a GEMM"));
  }
  return CheckCublasLt(library_, status, "launching a GEMM");
}

}  // namespace tensord::core::cuda
