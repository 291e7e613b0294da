#include "core/backend/cpu/thread_pool.h"

#include <atomic>
#include <chrono>
#include <ctime>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/testing/soon.h"

namespace tensord::core {
namespace {

TEST(ThreadPoolTest, EveryPartRunsOnce) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.thread_count(), threads);
    for (const int64_t count : {0, 1, 2, 3, 100, 10'000}) {
      std::vector<std::atomic<int>> runs(static_cast<size_t>(count));
      pool.ParallelFor(
          count, [&](int64_t part) { ++runs[static_cast<size_t>(part)]; });
      for (const std::atomic<int>& run : runs) EXPECT_EQ(run, 1);
    }
  }
}

TEST(ThreadPoolTest, AllThreadsTakePart) {
  ThreadPool pool(3);
  std::atomic<int> arrived = 0;
  // Each part waits for the others, so one thread alone could never finish.
  pool.ParallelFor(3, [&](int64_t) {
    ++arrived;
    EXPECT_TRUE(test::Soon([&] { return arrived == 3; }));
  });
  EXPECT_EQ(arrived, 3);
}

TEST(ThreadPoolTest, ConcurrentLoopsShareTheThreads) {
  ThreadPool pool(3);
  std::vector<std::thread> callers;
  std::atomic<int64_t> sum = 0;
  for (int caller = 0; caller < 6; ++caller) {
    callers.emplace_back([&] {
      for (int loop = 0; loop < 300; ++loop) {
        pool.ParallelFor(17, [&](int64_t part) { sum += part; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, int64_t{6} * 300 * (16 * 17 / 2));
}

TEST(ThreadPoolTest, ResultsAreVisibleToTheCaller) {
  ThreadPool pool(4);
  for (int round = 0; round < 500; ++round) {
    std::vector<int64_t> squares(64);  // plain memory: races show under TSan
    pool.ParallelFor(64, [&](int64_t part) {
      squares[static_cast<size_t>(part)] = part * part;
    });
    for (int64_t i = 0; i < 64; ++i) {
      ASSERT_EQ(squares[static_cast<size_t>(i)], i * i);
    }
  }
}

TEST(ThreadPoolTest, WaitingBlocksInsteadOfSpinning) {
  ThreadPool pool(4);
  const std::clock_t before = std::clock();  // processor time of all threads
  pool.ParallelFor(2, [&](int64_t part) {
    if (part == 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  });
  const double seconds =
      static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  // time: of the processor's, which others do not lengthen
  EXPECT_LT(seconds, 0.1);
}

}  // namespace
}  // namespace tensord::core
