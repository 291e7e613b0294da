#include "core/backend/cuda/gemm/gemm_library.h"

#include <complex>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace tensord::core::cuda {
namespace {

// Questions whose answers are kept.
constexpr size_t kMostAnswers = 4096;

cudaDataType_t DataTypeOf(ElementType type) {
  switch (type) {
    case ElementType::kFloat16: return CUDA_R_16F;
    case ElementType::kBfloat16: return CUDA_R_16BF;
    case ElementType::kFloat64: return CUDA_R_64F;
    case ElementType::kComplex64: return CUDA_C_32F;
    case ElementType::kComplex128: return CUDA_C_64F;
    default: return CUDA_R_32F;
  }
}

/// 3xTF32 is close to float32, so float32 will do.
cublasComputeType_t ComputeOf(const GemmCall& call) {
  switch (call.compute_type) {
    case ComputeType::kFloat16: return CUBLAS_COMPUTE_32F_FAST_16F;
    case ComputeType::kBfloat16: return CUBLAS_COMPUTE_32F_FAST_16BF;
    case ComputeType::kTf32: return CUBLAS_COMPUTE_32F_FAST_TF32;
    case ComputeType::kFloat64: return CUBLAS_COMPUTE_64F;
    default: return CUBLAS_COMPUTE_32F;
  }
}

/// That of alpha and beta.
ElementType FactorType(const GemmCall& call) {
  return SizeOf(call.d.type) < 4 ? ElementType::kFloat32 : call.d.type;
}

cublasOperation_t OperationOf(GemmForm form) {
  switch (form) {
    case GemmForm::kPlain: return CUBLAS_OP_N;
    case GemmForm::kTransposed: return CUBLAS_OP_T;
    case GemmForm::kConjugateTransposed: return CUBLAS_OP_C;
  }
  return CUBLAS_OP_N;
}

/// A factor in memory as the library reads it.
class Factor {
 public:
  Factor(const Scalar& scalar, ElementType type) {
    const auto real = static_cast<float>(scalar.real);
    const auto imaginary = static_cast<float>(scalar.imaginary);
    switch (type) {
      case ElementType::kFloat64: wide_ = scalar.real; break;
      case ElementType::kComplex64: narrow_ = {real, imaginary}; break;
      case ElementType::kComplex128:
        wide_ = {scalar.real, scalar.imaginary};
        break;
      default: narrow_ = real;
    }
    is_wide_ = RealPartOf(type) == ElementType::kFloat64;
  }
  const void* get() const {
    return is_wide_ ? static_cast<const void*>(&wide_) : &narrow_;
  }

 private:
  std::complex<double> wide_;   // the real part comes first
  std::complex<float> narrow_;  // likewise
  bool is_wide_;
};

/// What the library makes and we give back: a description of something.
template <typename Handle>
class Described {
 public:
  using DestroyFunction = cublasStatus_t (*)(Handle);

  explicit Described(DestroyFunction destroy) : destroy_(destroy) {}
  ~Described() {
    if (handle_ != nullptr) destroy_(handle_);
  }
  Described(const Described&) = delete;
  Described& operator=(const Described&) = delete;

  Handle* out() { return &handle_; }
  Handle get() const { return handle_; }

 private:
  const DestroyFunction destroy_;
  Handle handle_ = nullptr;
};

/// A GemmCall in the library's words.
struct Description {
  explicit Description(const CublasLt& library)
      : operation(library.MatmulDescDestroy),
        a(library.MatrixLayoutDestroy),
        b(library.MatrixLayoutDestroy),
        c(library.MatrixLayoutDestroy),
        d(library.MatrixLayoutDestroy) {}

  Described<cublasLtMatmulDesc_t> operation;
  Described<cublasLtMatrixLayout_t> a, b, c, d;
};

absl::Status DescribeMatrix(const CublasLt& library, const GemmMatrix& matrix,
                            int64_t rows, int64_t columns, int64_t batch_count,
                            Described<cublasLtMatrixLayout_t>& layout) {
  TENSORD_RETURN_IF_ERROR(CheckCublasLt(
      library,
      library.MatrixLayoutCreate(
          layout.out(), DataTypeOf(matrix.type), static_cast<uint64_t>(rows),
          static_cast<uint64_t>(columns), matrix.leading_stride),
      "describing a matrix"));
  const auto count = static_cast<int32_t>(batch_count);
  TENSORD_RETURN_IF_ERROR(CheckCublasLt(
      library,
      library.MatrixLayoutSetAttribute(layout.get(),
                                       CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                       &count, sizeof(count)),
      "describing a batch"));
  return CheckCublasLt(
      library,
      library.MatrixLayoutSetAttribute(
          layout.get(), CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
          &matrix.batch_stride, sizeof(matrix.batch_stride)),
      "describing a batch's stride");
}

absl::Status Describe(const CublasLt& library, const GemmCall& call,
                      Description& description) {
  TENSORD_RETURN_IF_ERROR(CheckCublasLt(
      library,
      library.MatmulDescCreate(description.operation.out(), ComputeOf(call),
                               DataTypeOf(FactorType(call))),
      "describing a product"));
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute,
                       GemmForm form) {
    const auto value = static_cast<int32_t>(OperationOf(form));
    return CheckCublasLt(
        library,
        library.MatmulDescSetAttribute(description.operation.get(), attribute,
                                       &value, sizeof(value)),
        "describing a transposition");
  };
  TENSORD_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_DESC_TRANSA, call.form_a));
  TENSORD_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_DESC_TRANSB, call.form_b));
  TENSORD_RETURN_IF_ERROR(DescribeMatrix(library, call.a, call.rows_a(),
                                         call.columns_a(), call.batch_count,
                                         description.a));
  TENSORD_RETURN_IF_ERROR(DescribeMatrix(library, call.b, call.rows_b(),
                                         call.columns_b(), call.batch_count,
                                         description.b));
  TENSORD_RETURN_IF_ERROR(DescribeMatrix(library, call.c, call.m, call.n,
                                         call.batch_count, description.c));
  return DescribeMatrix(library, call.d, call.m, call.n, call.batch_count,
                        description.d);
}

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

absl::StatusOr<std::vector<GemmAlgorithm>> GemmLibrary::Propose(
    const GemmCall& call, const GemmLimits& limits) const {
  Question question{call, limits};
  question.first.swaps = false;  // is of no matter to the library
  {
    absl::MutexLock lock(&mutex_);
    const auto known = answers_.find(question);
    if (known != answers_.end()) return known->second;
  }
  TENSORD_ASSIGN_OR_RETURN(std::vector<GemmAlgorithm> answer,
                           Ask(call, limits));
  absl::MutexLock lock(&mutex_);
  if (answers_.size() >= kMostAnswers) answers_.clear();
  return answers_.try_emplace(std::move(question), std::move(answer))
      .first->second;
}

absl::StatusOr<std::vector<GemmAlgorithm>> GemmLibrary::Ask(
    const GemmCall& call, const GemmLimits& limits) const {
  TENSORD_RETURN_IF_ERROR(device_.Select());
  Description description(library_);
  TENSORD_RETURN_IF_ERROR(Describe(library_, call, description));
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
  std::vector<GemmAlgorithm> algorithms;
  for (int i = 0; i < count; ++i) {
    if (results[i].state != CUBLAS_STATUS_SUCCESS) continue;
    algorithms.push_back(
        {results[i].algo, static_cast<int64_t>(results[i].workspaceSize)});
  }
  if (algorithms.empty()) {
    return Unimplemented("NO_GEMM_ALGORITHM",
                         "cuBLASLt has no algorithm for it with ",
                         limits.workspace_bytes, " bytes of workspace");
  }
  return algorithms;
}

absl::Status GemmLibrary::Launch(const GemmCall& call,
                                 const GemmAlgorithm& algorithm,
                                 const GemmOperands& operands, void* workspace,
                                 CudaStream& stream) const {
  TENSORD_RETURN_IF_ERROR(device_.Select());
  Description description(library_);
  TENSORD_RETURN_IF_ERROR(Describe(library_, call, description));
  const Factor alpha(operands.alpha, FactorType(call));
  const Factor beta(operands.beta, FactorType(call));
  // With a beta of 0 nothing is read there; null would not do.
  const void* const c = operands.beta.IsZero() ? operands.d : operands.c;
  const auto& layout_c = operands.beta.IsZero() ? description.d : description.c;
  const cublasStatus_t status = library_.Matmul(
      handle_, description.operation.get(), alpha.get(), operands.a,
      description.a.get(), operands.b, description.b.get(), beta.get(), c,
      layout_c.get(), operands.d, description.d.get(), &algorithm.algorithm,
      workspace, static_cast<size_t>(algorithm.workspace_bytes), stream.get());
  if (status == CUBLAS_STATUS_EXECUTION_FAILED) {
    // Of a device that is lost, CUDA itself says why.
    TENSORD_RETURN_IF_ERROR(
        device_.Check(cudaGetLastError(), "launching a GEMM"));
  }
  return CheckCublasLt(library_, status, "launching a GEMM");
}

}  // namespace tensord::core::cuda
