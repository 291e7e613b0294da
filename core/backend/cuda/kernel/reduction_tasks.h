// What the reduction kernels are given, and the functions that queue them.
// Plain C++: made by the .cc files, run by the .cu files.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/backend/cuda/kernel/index_space.h"
#include "core/base/element_type.h"
#include "core/ops/operators.h"

namespace tensord::core::cuda {

/// d = alpha op(unary_a(a)) + beta unary_c(c).
struct ReductionFormula {
  const void* a = nullptr;  // null: nothing is reduced, the first term is zero
  const void* c = nullptr;  // null: there is no second term
  void* d = nullptr;
  ElementType type_a = ElementType::kFloat32;
  ElementType type_d = ElementType::kFloat32;   // of c, too
  ElementType compute = ElementType::kFloat32;  // element type of arithmetic
  ComputeType compute_type = ComputeType::kFloat32;
  BinaryOperator op = BinaryOperator::kAdd;
  UnaryOperator unary_a = UnaryOperator::kIdentity;
  UnaryOperator unary_c = UnaryOperator::kIdentity;
  double alpha[2] = {1, 0};  // real and imaginary parts
  double beta[2] = {0, 0};
};

/// Any reduction, a thread an element of d.
struct ReductionReferenceTask {
  struct Mode {
    int64_t extent;
    int64_t strides[3];  // a, c, d; of reduced modes a alone
  };
  ReductionFormula formula;
  int64_t kept_count = 1;
  int64_t reduced_count = 1;
  int kept_mode_count = 0;
  int reduced_mode_count = 0;
  Mode modes[kMaxModes];  // the kept ones, then the reduced ones
};
cudaError_t QueueReductionReference(const ReductionReferenceTask& task,
                                    cudaStream_t stream);

/// Blocks of `kept_threads` elements of d by `reduced_threads` threads each,
/// which share the elements that are reduced to one.
struct ReductionTreeTask {
  static constexpr uint32_t kThreads = 256;
  /// A thread takes runs of kLeaf elements in order, and joins the runs in a
  /// tree of kLevels. More than kMostPerThread elements are added to its top.
  static constexpr uint32_t kLeaf = 16;
  static constexpr uint32_t kLevels = 7;
  static constexpr uint32_t kMostPerThread = kLeaf << (kLevels - 1);

  ReductionFormula formula;
  uint32_t kept_threads = 1;  // powers of two, kThreads together
  uint32_t reduced_threads = kThreads;
  /// Neighbouring threads take neighbours in the reduced modes.
  bool reduced_is_fastest = true;
  /// The reduced elements are dealt out to this many blocks, a part each. With
  /// several, `partial` gets their results (split, kept), to be reduced next.
  uint32_t split_count = 1;
  uint32_t part = 1;
  void* partial = nullptr;
  uint32_t reduced_count = 1;
  IndexSpace<3> kept;  // a, c, d
  IndexSpace<1> reduced;
};
cudaError_t QueueReductionTree(const ReductionTreeTask& task,
                               cudaStream_t stream);

}  // namespace tensord::core::cuda
