// What the kernel that splits numbers in parts of TF32 is given, and the
// function that queues it. Plain C++: made by a .cc file, run by the .cu file.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/backend/cuda/kernel/index_space.h"

namespace tensord::core::cuda {

/// x = high + low, both numbers of TF32, up to 2^-23 |x|: high is x rounded,
/// and low the rest, rounded. Then
///   x y = high_x high_y + finite_x low_y + low_x finite_y + small,
/// |small| <= 2^-21 |x y|, where finite is high, or 0 for an infinity or NaN:
/// their low part is 0, too, so that they are multiplied just once.
///
/// That holds within TF32's range, which ends 13 bits above the lower end of
/// float32's: bits of x below 2^-137 are lost. For |x| < 2^-114 that is a
/// larger part than said; |x| < 2^-137 becomes 0, also beside an infinity.
/// high_x high_y may be larger than x y by 2^-10 of it, and overflow before it.
///
/// Every element of a becomes three of d, `part_stride` elements apart, so that
/// the products of two inputs' parts, in their order, are the three above, from
/// the last to the first: low, finite, high or, of the second, finite, low,
/// high. Tensor cores cut off what a sum does not hold, at every step: so the
/// large products come last, as long as sums are small. Complex numbers are
/// split part by part. An element is read before its parts are written: so a
/// may be d if each lies where its first part goes.
/// Source  M. Fasi, N. Higham, F. Lopez, T. Mary, M. Mikaitis, "Matrix
///         multiplication in multiword arithmetic" (2023), section 2.
struct SplitTask {
  const void* a = nullptr;  // float32 or complex64
  void* d = nullptr;        // likewise
  bool is_complex = false;
  bool conjugates = false;
  bool is_second = false;
  int64_t part_stride = 0;
  IndexSpace<2> elements;  // of a, of the first parts in d

  static constexpr int64_t kParts = 3;
};
static_assert(sizeof(SplitTask) <= 4096, "parameters of a kernel");

cudaError_t QueueSplit(const SplitTask& task, cudaStream_t stream);

}  // namespace tensord::core::cuda
