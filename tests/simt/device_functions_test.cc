// CUDA's functions of the device, one by one.
#include <cuda_pipeline_primitives.h>
#include <cuda_runtime.h>

#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simt/shared_memory.h"
#include "tests/simt/fake_runtime.h"
#include "tests/simt/simt.h"
#include "tests/simt/test_objects.h"

namespace tensord::test {
namespace {

using ::testing::ElementsAre;

class DeviceFunctionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    simt::ResetNode();
    simt::SetSchedule({.order = simt::Order::kRandom, .seed = 7});
  }
};

constexpr unsigned kFull = 0xffffffffu;

__global__ void ShuffleEveryWay(int* broadcast, int* up, int* down, int* pair) {
  const int lane = static_cast<int>(threadIdx.x);
  broadcast[lane] = __shfl_sync(kFull, lane, 3, 8);
  up[lane] = __shfl_up_sync(kFull, lane, 2, 8);
  down[lane] = __shfl_down_sync(kFull, lane, 2, 8);
  pair[lane] = __shfl_xor_sync(kFull, lane, 9, 16);
}

TEST_F(DeviceFunctionTest, ShufflesStayWithinTheirWidth) {
  const DeviceArray<int> broadcast(32), up(32), down(32), pair(32);
  ASSERT_EQ(Launch(&ShuffleEveryWay, {1, 32}, broadcast.data(), up.data(),
                   down.data(), pair.data()),
            cudaSuccess);
  for (int lane = 0; lane < 32; ++lane) {
    const int first = lane / 8 * 8;
    EXPECT_EQ(broadcast.Download()[lane], first + 3);
    EXPECT_EQ(up.Download()[lane], lane - first < 2 ? lane : lane - 2);
    EXPECT_EQ(down.Download()[lane], lane - first > 5 ? lane : lane + 2);
    EXPECT_EQ(pair.Download()[lane], lane ^ 9);
  }
}

__global__ void ShuffleTypes(double* doubles, long long* longs,
                             unsigned char* bytes) {
  const int lane = static_cast<int>(threadIdx.x);
  doubles[lane] = __shfl_xor_sync(kFull, lane + 0.5, 1);
  longs[lane] = __shfl_xor_sync(kFull, -(1LL << 40) - lane, 1);
  const unsigned char byte = static_cast<unsigned char>(200 + lane);
  bytes[lane] = static_cast<unsigned char>(__shfl_xor_sync(kFull, byte, 1));
}

TEST_F(DeviceFunctionTest, ShufflesKeepTheBitsOfEveryType) {
  const DeviceArray<double> doubles(32);
  const DeviceArray<long long> longs(32);
  const DeviceArray<unsigned char> bytes(32);
  ASSERT_EQ(Launch(&ShuffleTypes, {1, 32}, doubles.data(), longs.data(),
                   bytes.data()),
            cudaSuccess);
  EXPECT_EQ(doubles.Download()[6], 7.5);
  EXPECT_EQ(longs.Download()[6], -(1LL << 40) - 7);
  EXPECT_EQ(bytes.Download()[6], 207);
}

/// The halves of a warp, and lanes that have ended, go their own ways.
__global__ void ShuffleInParts(int* to) {
  const int lane = static_cast<int>(threadIdx.x);
  if (lane >= 30) return;
  if (lane < 16) {
    to[lane] = __shfl_sync(0x0000ffffu, lane, 5);
  } else {
    to[lane] = __shfl_sync(0xffff0000u, lane, 20);
  }
}

TEST_F(DeviceFunctionTest, PartsOfAWarpShuffleAmongThemselves) {
  const DeviceArray<int> to(30);
  ASSERT_EQ(Launch(&ShuffleInParts, {1, 32}, to.data()), cudaSuccess);
  const std::vector<int> values = to.Download();
  for (int lane = 0; lane < 30; ++lane) {
    EXPECT_EQ(values[lane], lane < 16 ? 5 : 20);
  }
}

__global__ void ShuffleFromTheEnded(unsigned* to) {
  if (threadIdx.x >= 20) return;
  to[threadIdx.x] = __shfl_down_sync(kFull, threadIdx.x, 4);
}

TEST_F(DeviceFunctionTest, AShuffleFromALaneThatHasEndedGivesJunk) {
  const DeviceArray<unsigned> to(20);
  ASSERT_EQ(Launch(&ShuffleFromTheEnded, {1, 32}, to.data()), cudaSuccess);
  EXPECT_EQ(to.Download()[3], 7u);
  EXPECT_EQ(to.Download()[17], 0xDBADBADBu);
}

__global__ void Vote(unsigned* to) {
  const unsigned thread = threadIdx.x;
  unsigned* const mine = to + thread * 6;
  mine[0] = __ballot_sync(kFull, thread % 3 == 0);
  mine[1] = __any_sync(kFull, thread == 40);
  mine[2] = __all_sync(kFull, thread >= 32);
  mine[3] = __syncthreads_count(thread < 50);
  mine[4] = __syncthreads_or(thread == 63);
  mine[5] = __syncthreads_and(thread != 63);
}

TEST_F(DeviceFunctionTest, VotesCountTheirWarpOrBlock) {
  const DeviceArray<unsigned> to(64 * 6);
  ASSERT_EQ(Launch(&Vote, {1, 64}, to.data()), cudaSuccess);
  const std::vector<unsigned> votes = to.Download();
  const auto of_thread = [&](size_t thread) {
    const auto first = votes.begin() + static_cast<ptrdiff_t>(thread * 6);
    return std::vector(first, first + 6);
  };
  EXPECT_THAT(of_thread(0), ElementsAre(0x49249249u, 0u, 0u, 50u, 1u, 0u));
  EXPECT_THAT(of_thread(63), ElementsAre(0x92492492u, 1u, 1u, 50u, 1u, 0u));
}

struct Accumulators {
  int sum;
  unsigned wrapped;
  unsigned long long wide;
  float real;
  double fine;
  int low;
  unsigned long long high;
  unsigned ring;
  unsigned exchanged;
  unsigned long long claimed;
};

__global__ void Accumulate(Accumulators* all) {
  const int thread = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  atomicAdd(&all->sum, -thread);
  atomicAdd(&all->wrapped, kFull);
  atomicAdd(&all->wide, 1ull << 33);
  atomicAdd(&all->real, 0.5f);
  atomicAdd(&all->fine, 0.25);
  atomicMin(&all->low, -thread);
  atomicMax(&all->high, static_cast<unsigned long long>(thread));
  atomicInc(&all->ring, 99);
  atomicExch(&all->exchanged, 5u);
  atomicCAS(&all->claimed, 0ull, 1ull + static_cast<unsigned>(thread));
}

TEST_F(DeviceFunctionTest, AtomicsLoseNothingBetweenWorkers) {
  simt::SetSchedule({.worker_count = 4});
  const DeviceArray all(std::vector<Accumulators>{{}});
  constexpr int kThreads = 40 * 64;
  ASSERT_EQ(Launch(&Accumulate, {40, 64}, all.data()), cudaSuccess);
  const Accumulators total = all.Download().front();
  EXPECT_EQ(total.sum, -kThreads * (kThreads - 1) / 2);
  EXPECT_EQ(total.wrapped, 0u - kThreads);
  EXPECT_EQ(total.wide, uint64_t{kThreads} << 33);
  EXPECT_EQ(total.real, kThreads / 2.0f);
  EXPECT_EQ(total.fine, kThreads / 4.0);
  EXPECT_EQ(total.low, 1 - kThreads);
  EXPECT_EQ(total.high, uint64_t{kThreads} - 1);
  EXPECT_EQ(total.ring, kThreads % 100u);
  EXPECT_EQ(total.exchanged, 5u);
  EXPECT_NE(total.claimed, 0u);
}

__global__ void ClearTheEnd(const unsigned char* from, unsigned char* to) {
  auto* const tile = static_cast<unsigned char*>(core::SharedMemory());
  __pipeline_memcpy_async(tile, from, 16, 5);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  for (int i = 0; i < 16; ++i) to[i] = tile[i];
}

TEST_F(DeviceFunctionTest, AsynchronousCopiesClearTheirEnd) {
  const DeviceArray from(std::vector<unsigned char>(11, 9));
  const DeviceArray<unsigned char> to(16);
  ASSERT_EQ(Launch(&ClearTheEnd, {1, 1, 16}, from.data(), to.data()),
            cudaSuccess);
  const std::vector<unsigned char> values = to.Download();
  for (int i = 0; i < 16; ++i) EXPECT_EQ(values[i], i < 11 ? 9 : 0) << i;
}

__global__ void NameThreads(unsigned* to) {
  const unsigned thread =
      threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned block =
      blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  __syncthreads();
  to[block * threads + thread] = block * threads + thread;
}

TEST_F(DeviceFunctionTest, EveryThreadOfEveryBlockRunsOnce) {
  for (const simt::Order order : simt::kAllOrders) {
    simt::SetSchedule({.order = order});
    const DeviceArray<unsigned> to(5 * 3 * 2 * 7 * 3 * 2);
    ASSERT_EQ(Launch(&NameThreads, {dim3(5, 3, 2), dim3(7, 3, 2)}, to.data()),
              cudaSuccess);
    const std::vector<unsigned> names = to.Download();
    for (unsigned i = 0; i < names.size(); ++i) EXPECT_EQ(names[i], i);
  }
}

TEST_F(DeviceFunctionTest, BitsAreCountedAndMoved) {
  EXPECT_EQ(__popc(0xf0f0u), 8);
  EXPECT_EQ(__popcll(~0ull), 64);
  EXPECT_EQ(__clz(0), 32);
  EXPECT_EQ(__clz(1), 31);
  EXPECT_EQ(__clzll(1), 63);
  EXPECT_EQ(__ffs(0), 0);
  EXPECT_EQ(__ffs(0x80), 8);
  EXPECT_EQ(__brev(0x00000001u), 0x80000000u);
  EXPECT_EQ(__brev(0x12345678u), 0x1e6a2c48u);
  EXPECT_EQ(__funnelshift_r(0x44332211u, 0x88776655u, 8), 0x55443322u);
  EXPECT_EQ(__funnelshift_r(0x44332211u, 0x88776655u, 32), 0x44332211u);
  EXPECT_EQ(__umulhi(0xffffffffu, 0xffffffffu), 0xfffffffeu);
  EXPECT_EQ(__umul64hi(~0ull, ~0ull), ~0ull - 1);
  EXPECT_EQ(__float_as_uint(1.0f), 0x3f800000u);
  EXPECT_EQ(__int_as_float(0x40000000), 2.0f);
  EXPECT_EQ(__longlong_as_double(__double_as_longlong(-1.5)), -1.5);
}

TEST_F(DeviceFunctionTest, MinimumAndMaximumPreferNumbersToNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(min(nan, 1.0f), 1.0f);
  EXPECT_EQ(max(1.0, static_cast<double>(nan)), 1.0);
  EXPECT_EQ(min(-1, 2), -1);
  EXPECT_EQ(max(-1, 2u), 0xffffffffu);  // as unsigned, like CUDA
  EXPECT_EQ(max(3L, 4L), 4L);
}

TEST_F(DeviceFunctionTest, VectorTypesAreAlignedLikeTheDevices) {
  EXPECT_EQ(alignof(float2), 8u);
  EXPECT_EQ(alignof(float4), 16u);
  EXPECT_EQ(alignof(double2), 16u);
  EXPECT_EQ(alignof(int4), 16u);
  EXPECT_EQ(alignof(uint2), 8u);
  EXPECT_EQ(alignof(uint3), 4u);
}

}  // namespace
}  // namespace tensord::test
