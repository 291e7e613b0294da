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
/// |small| <= 2^-21 |x y|, where finite is high, but 0 of an infinity or NaN:
/// those have a low part of 0, too, so that they are multiplied once.
///
/// That holds while nothing leaves TF32's range, which is that of float32 with
/// 13 bits less below: what x has below 2^-137 is lost. Of |x| < 2^-114 that is
/// more than said; |x| < 2^-137 is 0, also to an infinity. high_x high_y may be
/// 2^-10 larger than x y, and overflow before it.
///
/// Every element of a becomes three of d, `part_stride` elements apart, so that
/// the products of two inputs' parts, in their order, are the three above:
/// high, finite, low or, of the second, high, low, finite. Complex numbers are
/// split part by part. An element that lies in a where its first part goes in d
/// is read before that is written: so a may be d.
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
