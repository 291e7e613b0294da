// What the element-wise kernels are given, and the functions that queue them.
// Plain C++: made by the .cc files, run by the .cu files.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/backend/cuda/kernel/index_space.h"
#include "core/base/element_type.h"
#include "core/ops/operators.h"

namespace tensord::core::cuda {

/// op_abc(op_ab(alpha unary(a), beta unary(b)), gamma unary(c)) of one element
/// each. Operands are 0 to 2 for a, b and c, and 3 for d.
struct Expression {
  const void* inputs[3] = {};  // null: the term is zero
  void* d = nullptr;
  ElementType types[4] = {};
  ElementType compute = ElementType::kFloat32;  // element type of arithmetic
  ComputeType compute_type = ComputeType::kFloat32;
  UnaryOperator unary[3] = {};
  bool is_scaled[3] = {};     // false: the factor is 1
  double factors[3][2] = {};  // real and imaginary parts
  bool has_b = false;
  BinaryOperator op_ab = BinaryOperator::kAdd;
  BinaryOperator op_abc = BinaryOperator::kAdd;
  /// All operands that are read are of d's type, arithmetic runs in it or, for
  /// 16-bit floating-point ones, in float32, and operators reduce or divide.
  bool is_uniform = false;
  /// Every operator on one operand is the identity.
  bool is_plain = false;
};

/// Any operation, a thread an element of d.
struct ElementwiseReferenceTask {
  Expression expression;
  Loops<4> loops;
};
cudaError_t QueueElementwiseReference(const ElementwiseReferenceTask& task,
                                      cudaStream_t stream);

/// The indices of a TAKE that a does not have; 0 when there are none.
struct RefusedIndices {
  long long lowest, highest;
  int is_any;
};

/// TAKE, a thread an element of d.
template <typename Space>
struct TakeTask {
  Expression expression;
  int64_t extent = 0;  // of the mode that is taken from
  int64_t stride = 0;
  Space space;
  RefusedIndices* refused = nullptr;  // null: c is taken instead
};
using TakeTermsTask = TakeTask<Loops<4>>;
cudaError_t QueueTakeTerms(const TakeTermsTask& task, cudaStream_t stream);

/// Elements of d are a's, of `bytes` bytes as they are, or refused.
using TakeWordsTask = TakeTask<IndexSpace<4>>;
static_assert(sizeof(TakeWordsTask) <= 4096, "parameters of a kernel");
cudaError_t QueueTakeWords(const TakeWordsTask& task, int bytes,
                           cudaStream_t stream);

/// Neighbouring threads compute neighbours in d: each two groups of 16 bytes of
/// d's fastest mode, or an element where the expression is not uniform.
///
/// Operands that are contiguous along that mode, and aligned where d is, move
/// 16 bytes at a time. A broadcast one is read once a group. All others move
/// element by element, and so do the ends of a run.
struct ElementwiseFusedTask {
  Expression expression;
  bool is_grouped = false;
  /// Groups begin where d's addresses are multiples of 16, so that the first
  /// one of a run may be a part of a group. Otherwise they begin with the run.
  bool is_shifted = false;
  uint32_t run = 1;             // extent of the fastest mode
  int64_t run_strides[4] = {};  // along it
  /// With is_grouped, the fastest mode counts groups.
  IndexSpace<4> modes;
};
/// Requires  !is_grouped.
cudaError_t QueueElementwiseMixed(const ElementwiseFusedTask& task,
                                  cudaStream_t stream);
/// Requires  is_grouped; the expression is uniform, in Stored, and plain when
///           that is an integer type.
template <typename Stored>
cudaError_t QueueElementwiseGroups(const ElementwiseFusedTask& task,
                                   cudaStream_t stream);

/// Tiles of modes, or of parts of them, that are walked in the order of each
/// operand: inputs whose order is not d's are turned in shared memory.
struct ElementwiseTiledTask {
  static constexpr int kMaxTileModes = 11;  // 2^11 elements
  // Of a block and of a thread, when elements are held in `bytes` bytes.
  static constexpr int MaxThreads(int64_t bytes) {
    return bytes > 4 ? 512 : 256;
  }
  static constexpr int ElementsPerThread(int64_t bytes) {
    return bytes > 8 ? 2 : 4;
  }
  static constexpr int64_t MaxTileElements(int64_t bytes) {
    return int64_t{MaxThreads(bytes)} * ElementsPerThread(bytes);
  }
  static constexpr int kMaxSplits = 4;
  static constexpr int kMaxOuterModes = 48;

  /// A mode of the tile: the part of a mode that one tile holds.
  struct TileMode {
    FastDivisor extent;
    int32_t strides[4] = {};
    uint32_t weight = 0;  // elements before the next one in d's order
    int split = -1;       // which of `splits` it is part of, if any
  };
  /// A mode of which the last part is shorter than the others.
  struct Split {
    FastDivisor before;   // elements before the part's mode in the outer index
    FastDivisor parts;    // how many parts it has
    uint32_t extent = 1;  // of the whole mode
    uint32_t part = 1;    // elements in a whole part
  };

  Expression expression;
  bool is_turned[3] = {};
  uint32_t tile_elements = 1;
  uint32_t slot_count = 0;  // elements of shared memory for an input
  int tile_mode_count = 0;
  TileMode modes[kMaxTileModes];  // in d's order
  /// (input, place): the tile's modes in the order of an input that is turned.
  uint8_t orders[3][kMaxTileModes] = {};
  int split_count = 0;
  Split splits[kMaxSplits];
  IndexSpace<4, kMaxOuterModes> outer;  // over tiles
  uint32_t block_count = 1;
};
static_assert(sizeof(ElementwiseTiledTask) <= 4096, "parameters of a kernel");
cudaError_t QueueElementwiseTiled(const ElementwiseTiledTask& task,
                                  cudaStream_t stream);

}  // namespace tensord::core::cuda
