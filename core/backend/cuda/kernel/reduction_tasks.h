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

/// How the threads of a kernel go about a reduction.
enum class ReductionWay : uint8_t {
  kTree,       // element by element, see ReductionTreeTask
  kShortRows,  // by groups, see ReductionGroupsTask: a thread a group
  kLongRows,   // a warp or more a row
  kColumns
};

/// The mode along which a reduction goes; without elements: none.
struct AlongMode {
  int64_t extent = 0;
  int64_t strides[3] = {};  // a, c, d
};

/// Any reduction, a thread a kept element.
struct ReductionReferenceTask {
  ReductionFormula formula;
  AlongMode along;
  Sorting sorting = Sorting::kNone;
  Loops<3> kept;  // a, c, d
  Loops<1> reduced;
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

/// Reductions of elements as they are, where a has a mode of stride 1: that
/// mode is taken in groups of 16 bytes. It is reduced ("rows") or kept
/// ("columns").
///
/// A row of few groups has a thread for each; otherwise, and in columns, a
/// thread reads several groups at once, which makes a batch. It reduces a batch
/// in pairs, joins kLeaf batches in order to a leaf, and kLeaf leaves in order;
/// then threads are joined in pairs. So a term passes log2(terms of a batch) +
/// 2 kLeaf + log2(threads) operations at most, fewer than in ReductionTreeTask.
/// The order depends on extents alone: groups count from the first element of a
/// run, and a run that is not aligned is read element by element into the same
/// places.
struct ReductionGroupsTask {
  static constexpr uint32_t kThreads = 256;
  static constexpr uint32_t kLeaf = 8;
  static constexpr uint32_t kMostBatches = kLeaf * kLeaf;  // of a thread
  /// Groups that a thread reads at once: a batch of it. 64 bytes hide the
  /// latency of memory; half of that for single bytes, which takes fewer
  /// registers.
  static constexpr uint32_t AtOnce(int64_t element_bytes) {
    return element_bytes == 1 ? 2 : 4;
  }

  ReductionFormula formula;
  ReductionWay way = ReductionWay::kLongRows;  // not kTree
  /// Every group that is whole lies at a multiple of 16 bytes.
  bool is_aligned = false;
  /// d is what the terms are reduced to: alpha is 1, and there is no c.
  bool is_plain = false;
  uint32_t run = 1;                    // elements of the mode of stride 1
  int64_t run_strides[3] = {1, 1, 1};  // in columns, along that mode: a, c, d
  /// log2 of the neighbouring threads that share a row or, in columns, that
  /// take neighbouring groups.
  uint32_t thread_bits = 0;
  /// As in ReductionTreeTask; `part` counts groups in rows.
  FastDivisor split_count;
  uint32_t part = 1;
  void* partial = nullptr;
  uint32_t kept_count = 1;  // elements of d
  IndexSpace<3> kept;       // a, c, d; in columns its first mode counts groups
  IndexSpace<1> reduced;    // in rows its first mode counts groups
};

/// Requires  Stored is what a and d are stored as; both unary operators are the
///           identity; a is there; every element of d has terms.
template <typename Stored>
cudaError_t QueueReductionGroups(const ReductionGroupsTask& task,
                                 cudaStream_t stream);

}  // namespace tensord::core::cuda
