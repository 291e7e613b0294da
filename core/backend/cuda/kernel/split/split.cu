// Numbers of float32 in parts of TF32, an element a thread at a time.
#include <bit>
#include <complex>
#include <cstdint>
#include <limits>

#include "core/backend/cuda/kernel/element.cuh"
#include "core/backend/cuda/kernel/index_space.cuh"
#include "core/backend/cuda/kernel/launch.cuh"
#include "core/backend/cuda/kernel/operand_rounding.cuh"
#include "core/backend/cuda/kernel/split/split_task.h"

namespace tensord::core::cuda {
namespace {

constexpr uint32_t kThreads = 256;

template <typename T>
struct Parts {
  T high, finite, low;
};

__device__ __forceinline__ Parts<float> Split(float x) {
  constexpr uint32_t kMagnitude = 0x7fffffffu, kInfinity = 0x7f800000u;
  constexpr uint32_t kCutOff = 0x1fffu;  // what TF32 does not have
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if ((bits & kMagnitude) >= kInfinity) {
    // Hardware that cuts a NaN off must not make an infinity of it.
    const bool is_nan = (bits & kMagnitude) > kInfinity;
    return {is_nan ? std::numeric_limits<float>::quiet_NaN() : x, 0, 0};
  }
  float high = RoundToTf32(x);
  if ((std::bit_cast<uint32_t>(high) & kMagnitude) == kInfinity) {
    high = std::bit_cast<float>(bits & ~kCutOff);
  }
  return {high, high, RoundToTf32(x - high)};
}

__device__ __forceinline__ Parts<std::complex<float>> Split(
    std::complex<float> x) {
  const Parts<float> real = Split(x.real()), imag = Split(x.imag());
  return {
      {real.high, imag.high}, {real.finite, imag.finite}, {real.low, imag.low}};
}

/// Memory is accessed by words, since accesses to complex numbers would be to
/// their parts.
template <typename Word, typename T>
__global__ void __launch_bounds__(kThreads)
    SplitInParts(const SplitTask __grid_constant__ task) {
  static_assert(sizeof(Word) == sizeof(T));
  const Word* const a = static_cast<const Word*>(task.a);
  Word* const d = static_cast<Word*>(task.d);
  ForEachIndex(task.elements.count, [&](uint32_t index) {
    const Offsets<2> offsets = OffsetsOf(task.elements, index);
    const T x = std::bit_cast<T>(a[offsets.at[0]]);
    const Parts<T> parts = Split(ConjugatedIf(task.conjugates, x));
    const Word finite = std::bit_cast<Word>(parts.finite);
    const Word low = std::bit_cast<Word>(parts.low);
    Word* const first = d + offsets.at[1];
    first[0] = task.is_second ? finite : low;
    first[task.part_stride] = task.is_second ? low : finite;
    first[2 * task.part_stride] = std::bit_cast<Word>(parts.high);
  });
}

}  // namespace

cudaError_t QueueSplit(const SplitTask& task, cudaStream_t stream) {
  const Grid grid = GridOf(task.elements.count, kThreads);
  return task.is_complex
             ? Launch(grid, stream,
                      &SplitInParts<uint64_t, std::complex<float>>, task)
             : Launch(grid, stream, &SplitInParts<uint32_t, float>, task);
}

}  // namespace tensord::core::cuda
