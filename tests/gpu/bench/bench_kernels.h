// Kernels that the benchmarks need beside the product's: they make data,
// compare results, and measure what the memory and the multiprocessors can do.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>

namespace tensord::test {

/// Sixteen elements of 2, 4 or 8 bytes that FillElements() draws from.
struct ElementPalette {
  int32_t element_bytes = 4;
  std::array<uint64_t, 16> bits = {};
};

/// Random bits.
cudaError_t FillBits(void* to, int64_t bytes, cudaStream_t stream);

/// Elements of `palette` at random.
/// Requires  `bytes` is a multiple of the element's.
cudaError_t FillElements(void* to, int64_t bytes, const ElementPalette& palette,
                         cudaStream_t stream);

/// Numbers drawn evenly from [-1, 1], to the last bit of their type.
cudaError_t FillNumbers(float* to, int64_t count, uint64_t seed,
                        cudaStream_t stream);
cudaError_t FillNumbers(double* to, int64_t count, uint64_t seed,
                        cudaStream_t stream);

/// Adds to `*count`, in device memory, the bytes in which a and b differ.
cudaError_t CountDifferences(const void* a, const void* b, int64_t bytes,
                             uint32_t* count, cudaStream_t stream);

/// Reads everything in words of 16 bytes. Writes to `sink`, 16 bytes, almost
/// never.
/// Requires  `bytes` is a multiple of 16.
cudaError_t ReadAll(const void* from, int64_t bytes, void* sink,
                    cudaStream_t stream);

/// Copies in words of 16 bytes.
/// Requires  `bytes` is a multiple of 16.
cudaError_t CopyWords(const void* from, void* to, int64_t bytes,
                      cudaStream_t stream);

/// Does nothing.
cudaError_t Nothing(cudaStream_t stream);

/// One warp that loads `iterations` times, each time where the last load says:
/// its lanes fall into `groups` of neighbours, `group_stride` words apart.
///
/// Requires  every word holds how many words the next load lies further on;
///           groups divides 32.
/// Post      *cycles, in device memory: of all loads together.
struct ChaseTask {
  const uint32_t* words = nullptr;
  int64_t group_stride = 0;  // words
  int32_t groups = 1;
  int32_t iterations = 1;
  int64_t* cycles = nullptr;
};
cudaError_t Chase(const ChaseTask& task, cudaStream_t stream);

/// One block of `threads` that stores to and loads from shared memory, a word a
/// thread without bank conflicts, `iterations` times.
/// Post  *cycles, in device memory: of all together.
cudaError_t UseSharedMemory(int threads, int iterations, int64_t* cycles,
                            cudaStream_t stream);

/// One thread that counts for `cycles`, as many as it writes to *counted.
cudaError_t Spin(int64_t cycles, int64_t* counted, cudaStream_t stream);

}  // namespace tensord::test
