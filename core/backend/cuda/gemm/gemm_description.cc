#include "core/backend/cuda/gemm/gemm_description.h"

#include "core/base/status.h"

namespace tensord::core::cuda {
namespace {

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

/// Whole numbers in 3xTF32 are multiplied in float32, which is no less exact.
cublasComputeType_t ComputeOf(const GemmCall& call) {
  switch (call.compute_type) {
    case ComputeType::kFloat16: return CUBLAS_COMPUTE_32F_FAST_16F;
    case ComputeType::kBfloat16: return CUBLAS_COMPUTE_32F_FAST_16BF;
    case ComputeType::kTf32: return CUBLAS_COMPUTE_32F_FAST_TF32;
    case ComputeType::kFloat64: return CUBLAS_COMPUTE_64F;
    default: return CUBLAS_COMPUTE_32F;
  }
}

/// The type of alpha and beta.
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

}  // namespace

absl::Status Describe(const CublasLt& library, const GemmCall& call,
                      GemmDescription& description) {
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

GemmFactor::GemmFactor(const Scalar& scalar, const GemmCall& call) {
  const ElementType type = FactorType(call);
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

}  // namespace tensord::core::cuda
