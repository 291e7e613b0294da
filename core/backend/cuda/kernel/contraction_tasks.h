// What the contraction kernels are given, and the functions that queue them.
// Plain C++: made by the .cc files, run by the .cu files.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/backend/cuda/kernel/index_space.h"
#include "core/base/element_type.h"
#include "core/ops/operand_rounding.h"

namespace tensord::core::cuda {

/// d = alpha * sum(a * b) + beta * c.
struct ContractionFormula {
  const void* a = nullptr;  // null, like b: the first term is zero
  const void* b = nullptr;
  const void* c = nullptr;  // null: there is no second term
  void* d = nullptr;
  ElementType type_a = ElementType::kFloat32;
  ElementType type_b = ElementType::kFloat32;
  ElementType type_d = ElementType::kFloat32;  // of c, too
  OperandRounding rounding_a = OperandRounding::kNone;
  OperandRounding rounding_b = OperandRounding::kNone;
  bool conj_a = false;
  bool conj_b = false;
  bool conj_c = false;
  double alpha[2] = {1, 0};  // real and imaginary parts
  double beta[2] = {0, 0};
};

/// Any contraction, a thread an element of d. Sums run in float64, complex128
/// or wrapping integers.
struct ContractionReferenceTask {
  ContractionFormula formula;
  ElementType compute = ElementType::kFloat64;  // kComplex128, or an integer
  Loops<4, 2 * kMaxModes> kept;  // a, b, c, d; 0 where an operand lacks it
  Loops<2> k;                    // a, b
  Loops<1> a_only;
  Loops<1> b_only;
};
cudaError_t QueueContractionReference(const ContractionReferenceTask& task,
                                      cudaStream_t stream);

/// The part of d, as a matrix (m, n), that a block of threads computes.
enum class DirectTile : uint8_t {
  kLarge,   // for matrix products; of 4-byte arithmetic, not of single bytes
  kSquare,  // for smaller d
  kTall,    // for small n
  kTall24,  // for less small n; not of integers
  kDeep     // for few elements of many terms: threads share the sums
};

struct DirectTileExtents {
  uint32_t m, n;
  uint32_t k;                 // terms in shared memory at a time
  uint32_t micro_m, micro_n;  // elements of d that a thread computes
};

constexpr DirectTileExtents ExtentsOf(DirectTile tile,
                                      uint32_t arithmetic_bytes) {
  switch (tile) {
    case DirectTile::kLarge: return {128, 128, 8, 8, 8};
    case DirectTile::kSquare:
      return {64, 64, arithmetic_bytes == 4 ? 16u : 8u, 4, 4};
    case DirectTile::kTall:
      return {256, 16, arithmetic_bytes == 16 ? 4u : 8u, 4, 4};
    case DirectTile::kTall24:
      switch (arithmetic_bytes) {
        case 4: return {512, 24, 8, 8, 8};
        case 8: return {256, 24, 8, 4, 8};
        default: return {128, 24, 4, 2, 8};
      }
    case DirectTile::kDeep: return {4, 4, 256, 4, 4};
  }
  return {};
}

/// Threads of a block.
constexpr uint32_t ThreadsOf(DirectTile tile, uint32_t arithmetic_bytes) {
  const DirectTileExtents extents = ExtentsOf(tile, arithmetic_bytes);
  return tile == DirectTile::kDeep
             ? 256
             : extents.m * extents.n / (extents.micro_m * extents.micro_n);
}

/// The elements of m (or n), of the input, c and d, in the order in which tiles
/// count them (contraction/side_order.h).
struct DirectSide {
  /// Operands 3 and 4 are the places in modes that are cut into blocks. There
  /// is no element where they reach beyond a mode's extent.
  IndexSpace<5, kMaxModes + 2> space;
  int64_t cut_extents[2] = {1, 1};
};

/// In what order neighbouring threads read an operand, and in which it lies in
/// shared memory.
struct DirectReading {
  bool along_k = false;  // rather than along m (n)
  /// For a, along m: of each 2^(log_d + log_input) neighbours first every
  /// 2^log_d-th. 0 for b.
  uint32_t log_d = 0;
  uint32_t log_input = 0;
  /// Along m (n), 16 bytes at a time: they are aligned, next to each other, and
  /// all there or none.
  bool by_vectors = false;
};

/// A contraction whose operands are of one type, tile by tile: mode groups are
/// folded into the coordinates of tiles, operands are gathered through their
/// strides into shared memory, and d is written in the order of m. A way of P.
/// Springer, P. Bientinesi, "Design of a high-performance GEMM-like
/// tensor-tensor multiplication" (2018).
struct ContractionDirectTask {
  /// Terms whose addresses are worked out at a time; a multiple of every tile's
  /// k.
  static constexpr uint32_t kChunk = 256;

  ContractionFormula formula;
  /// Unless null, sums go there as they are instead of to d, in arithmetic's
  /// type: `element_count` of each split, split by split.
  void* partial = nullptr;
  int64_t element_count = 0;
  DirectTile tile = DirectTile::kSquare;
  DirectReading reading_a, reading_b;
  FastDivisor tiles_m, tiles_n;
  /// The terms are dealt out to so many blocks, `part` each.
  FastDivisor split_count;
  uint32_t part = 1;
  uint32_t k_count = 0;  // terms; k has no modes when there are none
  DirectSide m;          // a, c, d
  DirectSide n;          // b, c, d
  IndexSpace<2> k;       // a, b
  IndexSpace<4> batch;   // a, b, c, d
};

/// Requires  Stored is all operands' type, and not bool.
template <typename Stored>
cudaError_t QueueContractionDirect(const ContractionDirectTask& task,
                                   cudaStream_t stream);

/// A contraction whose operands are of one type, without tiles: a thread, or a
/// few that share the terms, for some elements of d. Operands are read through
/// the caches. For little work of each of many batches.
struct ContractionThreadsTask {
  static constexpr uint32_t kThreads = 256;  // of a block

  ContractionFormula formula;
  /// Of d, a thread has up to `micro` x `micro` elements of a batch: 1 or 4.
  uint32_t micro = 1;
  /// 2^log_sharers neighbours, at most a warp, share the terms of an element:
  /// neighbours take neighbours along k.
  uint32_t log_sharers = 0;
  /// Other neighbours are neighbours along batches if true, else along m.
  bool batch_first = false;
  FastDivisor tiles_m, tiles_n, batch_count;
  uint32_t k_count = 0;  // terms; k has no modes when there are none
  IndexSpace<3> m;       // a, c, d
  IndexSpace<3> n;       // b, c, d
  IndexSpace<2> k;       // a, b
  IndexSpace<4> batch;   // a, b, c, d
};

/// Requires  Stored is all operands' type, and not bool.
template <typename Stored>
cudaError_t QueueContractionThreads(const ContractionThreadsTask& task,
                                    cudaStream_t stream);

}  // namespace tensord::core::cuda
