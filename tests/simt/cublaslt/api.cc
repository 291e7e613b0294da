// cublasLt...: refuses what does not fit together, what the product does not
// use, and algorithms that were proposed for something else.
#include <algorithm>
#include <cstring>
#include <memory>

#include "cublasLt.h"
#include "tests/simt/cublaslt/matmul.h"
#include "tests/simt/fake_runtime.h"

using tensord::simt::BytesOf;
using tensord::simt::IsComplexType;
using tensord::simt::Matmul;
using tensord::simt::MatmulMatrix;

struct cublasLtContext {
  int device;
};

struct cublasLtMatmulDescription {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  cublasOperation_t op_a = CUBLAS_OP_N;
  cublasOperation_t op_b = CUBLAS_OP_N;
};

struct cublasLtMatrixDescription {
  MatmulMatrix matrix;
};

struct cublasLtPreferenceDescription {
  uint64_t workspace_bytes = 0;
  uint32_t reduction_schemes = 7;
  uint32_t alignment_bytes[4] = {256, 256, 256, 256};  // a, b, c, d
};

namespace {

constexpr int64_t kMostRows = (int64_t{1} << 31) - 1;
constexpr int32_t kMostBatches = 65535;
constexpr uint64_t kMagic = 0x6c74616c676f;  // marks an algorithm of ours
constexpr size_t kWorkspaceAlignment = 256;

/// One of the algorithms, all of which do the same.
struct Algorithm {
  uint32_t least_alignment_bytes;
  bool needs_workspace;
};
constexpr Algorithm kAlgorithms[] = {
    {16, true}, {4, false}, {1, true}, {1, false}};

/// Odd, so that too little shows.
size_t WorkspaceOf(const Algorithm& algorithm, const MatmulMatrix& d) {
  if (!algorithm.needs_workspace) return 0;
  return static_cast<size_t>(1 + d.rows % 61 * 16 + d.cols % 17);
}

bool IsTypeSupported(const cublasLtMatmulDescription& description,
                     cudaDataType_t in, cudaDataType_t out) {
  const bool is_wide = in == CUDA_R_64F || in == CUDA_C_64F;
  if (is_wide != (description.compute == CUBLAS_COMPUTE_64F)) return false;
  // What cublasLtMatmul()'s table of types has for complex64.
  if (in == CUDA_C_32F && description.compute != CUBLAS_COMPUTE_32F &&
      description.compute != CUBLAS_COMPUTE_32F_FAST_TF32) {
    return false;
  }
  if (in == CUDA_R_16F || in == CUDA_R_16BF) {
    return (out == in || out == CUDA_R_32F) &&
           description.scale == CUDA_R_32F &&
           description.compute == CUBLAS_COMPUTE_32F;
  }
  return out == in && description.scale == in;
}

/// What cublasLtMatmul() would refuse whatever the addresses.
cublasStatus_t Check(const cublasLtMatmulDescription& description,
                     const MatmulMatrix& a, const MatmulMatrix& b,
                     const MatmulMatrix& c, const MatmulMatrix& d) {
  const bool plain_a = description.op_a == CUBLAS_OP_N;
  const bool plain_b = description.op_b == CUBLAS_OP_N;
  const int64_t m = plain_a ? a.rows : a.cols;
  const int64_t k = plain_a ? a.cols : a.rows;
  const int64_t k_of_b = plain_b ? b.rows : b.cols;
  const int64_t n = plain_b ? b.cols : b.rows;
  if (d.rows != m || d.cols != n || k != k_of_b || c.rows != m || c.cols != n) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  for (const MatmulMatrix* matrix : {&a, &b, &c}) {
    if (matrix->batch_count != d.batch_count) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
  }
  if (d.batch_count > kMostBatches) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (d.batch_count > 1 && d.batch_stride == 0) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  return a.type == b.type && c.type == d.type &&
                 IsTypeSupported(description, a.type, d.type)
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_NOT_SUPPORTED;
}

/// Tells calls apart, so that an algorithm is used for what it was made.
uint64_t FingerprintOf(const cublasLtMatmulDescription& description,
                       const MatmulMatrix& a, const MatmulMatrix& b,
                       const MatmulMatrix& c, const MatmulMatrix& d) {
  uint64_t print = 14695981039346656037u;
  const auto add = [&](auto value) {
    print = (print ^ static_cast<uint64_t>(value)) * 1099511628211u;
  };
  add(description.compute);
  add(description.op_a);
  add(description.op_b);
  for (const MatmulMatrix* matrix : {&a, &b, &c, &d}) {
    add(matrix->type);
    add(matrix->rows);
    add(matrix->cols);
    add(matrix->ld);
    add(matrix->batch_count);
    add(matrix->batch_stride);
  }
  return print;
}

template <typename T>
bool Get(const void* buffer, size_t bytes, T& value) {
  if (buffer == nullptr || bytes != sizeof(T)) return false;
  std::memcpy(&value, buffer, sizeof(T));
  return true;
}

std::complex<double> FactorAt(const void* memory, cudaDataType_t type) {
  switch (type) {
    case CUDA_R_64F: return *static_cast<const double*>(memory);
    case CUDA_C_64F: return *static_cast<const std::complex<double>*>(memory);
    case CUDA_C_32F: return *static_cast<const std::complex<float>*>(memory);
    default: return *static_cast<const float*>(memory);
  }
}

bool IsMultiple(const void* address, size_t bytes) {
  return reinterpret_cast<uintptr_t>(address) % bytes == 0;
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* lightHandle) {
  if (lightHandle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) {
    return CUBLAS_STATUS_NOT_INITIALIZED;
  }
  *lightHandle = new cublasLtContext{device};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t lightHandle) {
  delete lightHandle;
  return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion(void) { return 130100; }

const char* cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "success";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "not initialized";
    case CUBLAS_STATUS_ALLOC_FAILED: return "allocation failed";
    case CUBLAS_STATUS_INVALID_VALUE: return "invalid value";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "execution failed";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "not supported";
    default: return "internal error";
  }
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* matmulDesc,
                                        cublasComputeType_t computeType,
                                        cudaDataType_t scaleType) {
  *matmulDesc = new cublasLtMatmulDescription{computeType, scaleType};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t matmulDesc) {
  delete matmulDesc;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(
    cublasLtMatmulDesc_t matmulDesc, cublasLtMatmulDescAttributes_t attr,
    const void* buf, size_t sizeInBytes) {
  int32_t value = 0;
  if (!Get(buf, sizeInBytes, value) || value < CUBLAS_OP_N ||
      value > CUBLAS_OP_C) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const auto op = static_cast<cublasOperation_t>(value);
  switch (attr) {
    case CUBLASLT_MATMUL_DESC_TRANSA: matmulDesc->op_a = op; break;
    case CUBLASLT_MATMUL_DESC_TRANSB: matmulDesc->op_b = op; break;
    default: return CUBLAS_STATUS_INVALID_VALUE;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* matLayout,
                                          cudaDataType type, uint64_t rows,
                                          uint64_t cols, int64_t ld) {
  if (rows == 0 || cols == 0 || rows > kMostRows || cols > kMostRows ||
      ld < static_cast<int64_t>(rows)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  *matLayout =
      new cublasLtMatrixDescription{{.type = type,
                                     .rows = static_cast<int64_t>(rows),
                                     .cols = static_cast<int64_t>(cols),
                                     .ld = ld}};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t matLayout) {
  delete matLayout;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(
    cublasLtMatrixLayout_t matLayout, cublasLtMatrixLayoutAttribute_t attr,
    const void* buf, size_t sizeInBytes) {
  MatmulMatrix& matrix = matLayout->matrix;
  bool is_set = false;
  if (attr == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) {
    is_set =
        Get(buf, sizeInBytes, matrix.batch_count) && matrix.batch_count > 0;
  } else if (attr == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) {
    is_set = Get(buf, sizeInBytes, matrix.batch_stride);
  }
  return is_set ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(
    cublasLtMatmulPreference_t* pref) {
  *pref = new cublasLtPreferenceDescription;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(
    cublasLtMatmulPreference_t pref) {
  delete pref;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t pref, cublasLtMatmulPreferenceAttributes_t attr,
    const void* buf, size_t sizeInBytes) {
  bool is_set = false;
  if (attr == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) {
    is_set = Get(buf, sizeInBytes, pref->workspace_bytes);
  } else if (attr == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) {
    is_set = Get(buf, sizeInBytes, pref->reduction_schemes);
  } else if (attr >= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES &&
             attr <= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES) {
    uint32_t& bytes =
        pref->alignment_bytes[attr -
                              CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES];
    is_set =
        Get(buf, sizeInBytes, bytes) && bytes > 0 && (bytes & (bytes - 1)) == 0;
  }
  return is_set ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t, cublasLtMatmulDesc_t operationDesc,
    cublasLtMatrixLayout_t Adesc, cublasLtMatrixLayout_t Bdesc,
    cublasLtMatrixLayout_t Cdesc, cublasLtMatrixLayout_t Ddesc,
    cublasLtMatmulPreference_t preference, int requestedAlgoCount,
    cublasLtMatmulHeuristicResult_t heuristicResultsArray[],
    int* returnAlgoCount) {
  *returnAlgoCount = 0;
  const cublasStatus_t status =
      Check(*operationDesc, Adesc->matrix, Bdesc->matrix, Cdesc->matrix,
            Ddesc->matrix);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  const uint32_t alignment =
      *std::min_element(std::begin(preference->alignment_bytes),
                        std::end(preference->alignment_bytes));
  for (const Algorithm& algorithm : kAlgorithms) {
    const size_t workspace_bytes = WorkspaceOf(algorithm, Ddesc->matrix);
    if (*returnAlgoCount == requestedAlgoCount ||
        algorithm.least_alignment_bytes > alignment ||
        workspace_bytes > preference->workspace_bytes) {
      continue;
    }
    cublasLtMatmulHeuristicResult_t& result =
        heuristicResultsArray[(*returnAlgoCount)++];
    result = {};
    result.algo = {{kMagic,
                    FingerprintOf(*operationDesc, Adesc->matrix, Bdesc->matrix,
                                  Cdesc->matrix, Ddesc->matrix),
                    algorithm.least_alignment_bytes, workspace_bytes}};
    result.workspaceSize = workspace_bytes;
    result.state = CUBLAS_STATUS_SUCCESS;
    result.wavesCount = 1;
  }
  return *returnAlgoCount > 0 ? CUBLAS_STATUS_SUCCESS
                              : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmul(
    cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t computeDesc,
    const void* alpha, const void* A, cublasLtMatrixLayout_t Adesc,
    const void* B, cublasLtMatrixLayout_t Bdesc, const void* beta,
    const void* C, cublasLtMatrixLayout_t Cdesc, void* D,
    cublasLtMatrixLayout_t Ddesc, const cublasLtMatmulAlgo_t* algo,
    void* workspace, size_t workspaceSizeInBytes, cudaStream_t stream) {
  int device = -1;
  if (cudaGetDevice(&device) != cudaSuccess || device != lightHandle->device) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const Matmul matmul{.compute = computeDesc->compute,
                      .op_a = computeDesc->op_a,
                      .op_b = computeDesc->op_b,
                      .layout_a = Adesc->matrix,
                      .layout_b = Bdesc->matrix,
                      .layout_c = Cdesc->matrix,
                      .layout_d = Ddesc->matrix,
                      .a = A,
                      .b = B,
                      .c = C,
                      .d = D,
                      .alpha = FactorAt(alpha, computeDesc->scale),
                      .beta = FactorAt(beta, computeDesc->scale)};
  const cublasStatus_t status =
      Check(*computeDesc, matmul.layout_a, matmul.layout_b, matmul.layout_c,
            matmul.layout_d);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  if (A == nullptr || B == nullptr || C == nullptr || D == nullptr ||
      (C == D && matmul.layout_c != matmul.layout_d) ||
      algo->data[0] != kMagic ||
      algo->data[1] != FingerprintOf(*computeDesc, matmul.layout_a,
                                     matmul.layout_b, matmul.layout_c,
                                     matmul.layout_d)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  for (const void* address : {A, B, C, const_cast<const void*>(D)}) {
    if (!IsMultiple(address, algo->data[2])) {
      return CUBLAS_STATUS_NOT_SUPPORTED;
    }
  }
  if (workspaceSizeInBytes < algo->data[3] ||
      !IsMultiple(workspace, kWorkspaceAlignment)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const cudaError_t queued = tensord::simt::QueueLibraryCall(
      stream, [matmul, workspace, bytes = algo->data[3]] {
        if (bytes > 0) std::memset(workspace, 0xa5, bytes);
        tensord::simt::Run(matmul);
      });
  return queued == cudaSuccess ? CUBLAS_STATUS_SUCCESS
                               : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // extern "C"
