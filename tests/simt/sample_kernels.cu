#include "tests/simt/sample_kernels.cuh"

namespace tensord::test {
namespace {

template <typename... Parameters, typename... Arguments>
cudaError_t Launch(void (*kernel)(Parameters...), dim3 grid, dim3 block,
                   size_t shared_bytes, cudaStream_t stream,
                   Arguments... arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

unsigned Quotient(int a, int b) {
  return static_cast<unsigned>((a + b - 1) / b);
}

}  // namespace

cudaError_t LaunchTranspose(const TransposeShape& shape, const float* from,
                            float* to, cudaStream_t stream) {
  const dim3 grid(Quotient(shape.column_count, kTile),
                  Quotient(shape.row_count, kTile),
                  Quotient(shape.batch_count, 2));
  return Launch(&Transpose<float>, grid, dim3(kTile, kTileRows),
                sizeof(float) * kTile * kTilePitch, stream, shape, from, to);
}

cudaError_t LaunchWarpSums(const float* values, int sum_count, float* sums,
                           cudaStream_t stream) {
  constexpr int kThreads = 128;
  return Launch(&WarpSums, Quotient(sum_count * 32, kThreads), kThreads, 0,
                stream, values, sum_count, sums);
}

cudaError_t LaunchSum(const float* values, int count, float* partial,
                      float* sum, cudaStream_t stream) {
  constexpr size_t kScratchBytes = sizeof(float) * kSumThreads / 32;
  const cudaError_t error =
      Launch(&SumShares, kPartialSums, kSumThreads, kScratchBytes, stream,
             values, count, partial);
  if (error != cudaSuccess) return error;
  return Launch(&SumPartial, 1, kSumThreads, kScratchBytes, stream, partial,
                kPartialSums, sum);
}

cudaError_t LaunchSumOfLastBlock(const float* values, int count, float* partial,
                                 unsigned* ticket, float* sum,
                                 cudaStream_t stream) {
  return Launch(&SumOfLastBlock, kPartialSums, kSumThreads,
                sizeof(float) * kSumThreads / 32, stream, values, count,
                partial, ticket, sum);
}

cudaError_t LaunchReverseTiles(const float* from, int tile_count, float* to,
                               cudaStream_t stream) {
  return Launch(&ReverseTiles, 1, kReverseTile / 4,
                sizeof(float) * 2 * kReverseTile, stream, from, tile_count, to);
}

}  // namespace tensord::test
