#include "tests/benchmarks/bandwidth.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "benchmark/benchmark.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace tensord::test {
namespace {

constexpr int64_t kLineBytes = 64;

/// Calls body(offset, bytes) for one part a thread and returns the seconds.
template <typename Body>
double SecondsOfParts(int64_t bytes, core::ThreadPool& threads, Body body) {
  const int64_t lines = (bytes + kLineBytes - 1) / kLineBytes;
  const int64_t parts = threads.thread_count();
  const auto start = std::chrono::steady_clock::now();
  threads.ParallelFor(parts, [&](int64_t part) {
    const int64_t begin = lines * part / parts * kLineBytes;
    const int64_t end =
        std::min(lines * (part + 1) / parts * kLineBytes, bytes);
    body(begin, end - begin);
  });
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

#ifdef __SSE2__

void CopyPart(const char* a, char* d, int64_t bytes) {
  int64_t at = 0;
  for (; at + kLineBytes <= bytes; at += kLineBytes) {
    for (int64_t k = 0; k < kLineBytes; k += 16) {
      const __m128i x =
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(a + at + k));
      _mm_stream_si128(reinterpret_cast<__m128i*>(d + at + k), x);
    }
  }
  std::memcpy(d + at, a + at, bytes - at);
  _mm_sfence();
}

#else

void CopyPart(const char* a, char* d, int64_t bytes) {
  std::memcpy(d, a, bytes);
}

#endif

/// Touches every line; as fast as reading everything.
void ReadPart(const char* a, int64_t bytes) {
  uint64_t sum = 0;
  for (int64_t at = 0; at + kLineBytes <= bytes; at += kLineBytes) {
    uint64_t x;
    std::memcpy(&x, a + at, sizeof(x));
    sum += x;
  }
  benchmark::DoNotOptimize(sum);
}

}  // namespace

double SecondsToCopy(const void* a, void* d, int64_t bytes,
                     core::ThreadPool& threads) {
  return SecondsOfParts(bytes, threads, [&](int64_t offset, int64_t count) {
    CopyPart(static_cast<const char*>(a) + offset,
             static_cast<char*>(d) + offset, count);
  });
}

double SecondsToRead(const void* a, int64_t bytes, core::ThreadPool& threads) {
  return SecondsOfParts(bytes, threads, [&](int64_t offset, int64_t count) {
    ReadPart(static_cast<const char*>(a) + offset, count);
  });
}

}  // namespace tensord::test
