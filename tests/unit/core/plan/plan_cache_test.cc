#include "core/plan/plan_cache.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/synchronization/barrier.h"
#include "absl/synchronization/notification.h"
#include "core/base/status.h"
#include "gtest/gtest.h"
#include "tests/unit/core/plan/fake_backend.h"

namespace tensord::core {
namespace {

using test::Transpose;

PlanKey KeyOf(int64_t rows) {
  return {.problem = Transpose(rows, 5), .device = "fake:0"};
}

/// A plan that can be told from others by its workspace.
Plan PlanWith(int64_t workspace_bytes) {
  return {
      .problem = Transpose(), .kernel = {}, .workspace_bytes = workspace_bytes};
}

std::shared_ptr<const Plan> Get(PlanCache& cache, int64_t rows) {
  return cache
      .GetOrMake(KeyOf(rows),
                 [&]() -> absl::StatusOr<Plan> { return PlanWith(rows); })
      ->plan;
}

TEST(PlanCacheTest, EqualKeysPlanOnce) {
  PlanCache cache(100);
  const auto made = Get(cache, 7);
  EXPECT_EQ(made->workspace_bytes, 7);
  const auto again = cache.GetOrMake(KeyOf(7), []() -> absl::StatusOr<Plan> {
    ADD_FAILURE() << "planned again";
    return PlanWith(0);
  });
  EXPECT_EQ(again->plan, made);
  EXPECT_TRUE(again->hit);
  const PlanCacheStatistics statistics = cache.statistics();
  EXPECT_EQ(statistics.entry_count, 1);
  EXPECT_EQ(statistics.hit_count, 1);
  EXPECT_EQ(statistics.miss_count, 1);
}

TEST(PlanCacheTest, EverythingInTheKeyTellsPlansApart) {
  std::vector<PlanKey> keys(7, KeyOf(7));
  keys[1].problem = Transpose(8, 5);
  keys[2].device = "fake:1";
  keys[3].workspace_limit_bytes = 0;
  keys[4].kernel = "reference";
  keys[5].deterministic = true;
  keys[6].selection = Selection::kMeasure;
  PlanCache cache(1000);
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto lookup = cache.GetOrMake(keys[i], [&]() -> absl::StatusOr<Plan> {
      return PlanWith(static_cast<int64_t>(i));
    });
    EXPECT_FALSE(lookup->hit) << i;
    EXPECT_EQ(lookup->plan->workspace_bytes, static_cast<int64_t>(i));
    for (size_t j = 0; j < i; ++j) EXPECT_FALSE(keys[i] == keys[j]);
  }
}

TEST(PlanCacheTest, FindsOnlyWhatHasBeenMade) {
  PlanCache cache(100);
  EXPECT_EQ(cache.Find(KeyOf(7)), nullptr);
  const auto made = Get(cache, 7);
  EXPECT_EQ(cache.Find(KeyOf(7)), made);
  const auto failed = cache.GetOrMake(KeyOf(8), []() -> absl::StatusOr<Plan> {
    return absl::InternalError("no plan");
  });
  EXPECT_FALSE(failed.ok());
  EXPECT_EQ(cache.Find(KeyOf(8)), nullptr);
  EXPECT_EQ(cache.statistics().hit_count, 1);
}

TEST(PlanCacheTest, EqualKeysHashEqual) {
  EXPECT_EQ(absl::HashOf(KeyOf(7)), absl::HashOf(KeyOf(7)));
}

// One plans, the others wait for it: a miss storm is one planning.
TEST(PlanCacheTest, ThreadsThatMissTogetherPlanOnce) {
  constexpr int kThreads = 8;
  for (int round = 0; round < 50; ++round) {
    PlanCache cache(100);
    std::atomic<int> planned = 0;
    std::vector<std::shared_ptr<const Plan>> plans(kThreads);
    absl::Barrier* const barrier = new absl::Barrier(kThreads);
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        if (barrier->Block()) delete barrier;
        plans[static_cast<size_t>(i)] =
            cache
                .GetOrMake(KeyOf(round),
                           [&]() -> absl::StatusOr<Plan> {
                             ++planned;
                             std::this_thread::yield();
                             return PlanWith(round);
                           })
                ->plan;
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(planned, 1);
    for (const auto& plan : plans) ASSERT_EQ(plan, plans[0]);
    const PlanCacheStatistics statistics = cache.statistics();
    ASSERT_EQ(statistics.hit_count + statistics.miss_count, kThreads);
    ASSERT_GE(statistics.miss_count, 1);
  }
}

// While one key is being planned every other key can be, too: no lock is held.
TEST(PlanCacheTest, PlanningDoesNotBlockOtherKeys) {
  PlanCache cache(10'000);
  absl::Notification others_done;
  std::thread slow([&] {
    EXPECT_TRUE(cache
                    .GetOrMake(KeyOf(1'000'000),
                               [&]() -> absl::StatusOr<Plan> {
                                 others_done.WaitForNotification();
                                 return PlanWith(0);
                               })
                    .ok());
  });
  for (int64_t rows = 1; rows <= 200; ++rows) Get(cache, rows);
  others_done.Notify();
  slow.join();
}

TEST(PlanCacheTest, FailuresReachTheCallerAndAreNotKept) {
  PlanCache cache(100);
  const auto failed = cache.GetOrMake(KeyOf(7), []() -> absl::StatusOr<Plan> {
    return Unimplemented("NO_KERNEL", "none");
  });
  EXPECT_EQ(ReasonOf(failed.status()), "NO_KERNEL");
  EXPECT_EQ(cache.statistics().entry_count, 0);
  EXPECT_EQ(Get(cache, 7)->workspace_bytes, 7);
}

TEST(PlanCacheTest, FailuresReachEveryCallerThatWaits) {
  PlanCache cache(100);
  absl::Notification planning;
  std::thread planner([&] {
    const auto lookup =
        cache.GetOrMake(KeyOf(7), [&]() -> absl::StatusOr<Plan> {
          planning.Notify();
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
          return Unimplemented("NO_KERNEL", "none");
        });
    EXPECT_EQ(ReasonOf(lookup.status()), "NO_KERNEL");
  });
  planning.WaitForNotification();
  const auto waited = cache.GetOrMake(KeyOf(7), []() -> absl::StatusOr<Plan> {
    return Unimplemented("NO_KERNEL", "none");
  });
  EXPECT_EQ(ReasonOf(waited.status()), "NO_KERNEL");
  planner.join();
  EXPECT_EQ(cache.statistics().entry_count, 0);
}

TEST(PlanCacheTest, StaysWithinItsLimit) {
  PlanCache cache(64);
  for (int64_t rows = 1; rows <= 1000; ++rows) Get(cache, rows);
  const PlanCacheStatistics statistics = cache.statistics();
  EXPECT_LE(statistics.entry_count, 64);
  EXPECT_EQ(statistics.entry_count + statistics.eviction_count, 1000);
}

TEST(PlanCacheTest, TheRecentlyUsedStays) {
  PlanCache cache(64);
  const auto favourite = Get(cache, 1);
  for (int64_t rows = 2; rows <= 1000; ++rows) {
    Get(cache, rows);
    ASSERT_EQ(Get(cache, 1), favourite) << "went after " << rows;
  }
}

TEST(PlanCacheTest, EvictedPlansLiveAsLongAsTheyAreHeld) {
  PlanCache cache(1);
  const auto held = Get(cache, 1);
  for (int64_t rows = 2; rows <= 100; ++rows) Get(cache, rows);
  EXPECT_EQ(held->workspace_bytes, 1);
}

}  // namespace
}  // namespace tensord::core
