#include "core/plan/plan_cache.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/synchronization/barrier.h"
#include "absl/synchronization/notification.h"
#include "core/base/status.h"
#include "gtest/gtest.h"
#include "tests/unit/core/plan/cached_plans.h"
#include "tests/unit/core/plan/fake_backend.h"

namespace tensord::core {
namespace {

using tensord::test::Get;
using tensord::test::MatrixKey;
using tensord::test::PlanWith;
using tensord::test::Transpose;

TEST(PlanCacheTest, EqualKeysPlanOnce) {
  PlanCache cache(100);
  const auto made = Get(cache, 7);
  EXPECT_EQ(made->workspace_bytes(), 7);
  const auto again =
      cache.GetOrMake(MatrixKey(7), []() -> absl::StatusOr<Plan> {
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
  std::vector<PlanKey> keys(7, MatrixKey(7));
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
    EXPECT_EQ(lookup->plan->workspace_bytes(), static_cast<int64_t>(i));
    for (size_t j = 0; j < i; ++j) EXPECT_FALSE(keys[i] == keys[j]);
  }
}

TEST(PlanCacheTest, FindsOnlyWhatHasBeenMade) {
  PlanCache cache(100);
  EXPECT_EQ(cache.Find(MatrixKey(7)), nullptr);
  const auto made = Get(cache, 7);
  EXPECT_EQ(cache.Find(MatrixKey(7)), made);
  const auto failed = cache.GetOrMake(
      MatrixKey(8),
      []() -> absl::StatusOr<Plan> { return absl::InternalError("no plan"); });
  EXPECT_FALSE(failed.ok());
  EXPECT_EQ(cache.Find(MatrixKey(8)), nullptr);
  EXPECT_EQ(cache.statistics().hit_count, 1);
}

TEST(PlanCacheTest, EqualKeysHashEqual) {
  EXPECT_EQ(absl::HashOf(MatrixKey(7)), absl::HashOf(MatrixKey(7)));
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
                .GetOrMake(MatrixKey(round),
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
                    .GetOrMake(MatrixKey(1'000'000),
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
  const auto failed =
      cache.GetOrMake(MatrixKey(7), []() -> absl::StatusOr<Plan> {
        return Unimplemented("NO_KERNEL", "none");
      });
  EXPECT_EQ(ReasonOf(failed.status()), "NO_KERNEL");
  EXPECT_EQ(cache.statistics().entry_count, 0);
  EXPECT_EQ(Get(cache, 7)->workspace_bytes(), 7);
}

TEST(PlanCacheTest, FailuresReachEveryCallerThatWaits) {
  PlanCache cache(100);
  absl::Notification planning;
  std::thread planner([&] {
    const auto lookup =
        cache.GetOrMake(MatrixKey(7), [&]() -> absl::StatusOr<Plan> {
          planning.Notify();
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
          return Unimplemented("NO_KERNEL", "none");
        });
    EXPECT_EQ(ReasonOf(lookup.status()), "NO_KERNEL");
  });
  planning.WaitForNotification();
  const auto waited =
      cache.GetOrMake(MatrixKey(7), []() -> absl::StatusOr<Plan> {
        return Unimplemented("NO_KERNEL", "none");
      });
  EXPECT_EQ(ReasonOf(waited.status()), "NO_KERNEL");
  planner.join();
  EXPECT_EQ(cache.statistics().entry_count, 0);
}

TEST(PlanCacheTest, KeysOfOneIdAreToldApart) {
  PlanCache cache({.id_of = [](absl::string_view) -> uint64_t { return 7; }});
  std::vector<std::shared_ptr<const Plan>> plans;
  for (int64_t rows = 1; rows <= 20; ++rows) plans.push_back(Get(cache, rows));
  for (int64_t rows = 1; rows <= 20; ++rows) {
    EXPECT_EQ(Get(cache, rows), plans[static_cast<size_t>(rows - 1)]);
  }
  EXPECT_EQ(cache.FindById(7).size(), 20u);
  EXPECT_EQ(cache.List({})->entries.size(), 20u);
  EXPECT_TRUE(cache.Pin(7).ok());
  EXPECT_EQ(cache.statistics().pinned_count, 20);
  EXPECT_TRUE(cache.Remove(7).ok());
  EXPECT_EQ(cache.statistics().entry_count, 0);
}

TEST(PlanCacheTest, JobsAreCountedByThemselves) {
  PlanCache cache(100);
  Get(cache, 1, {.job = "training"});
  Get(cache, 1, {.job = "training"});
  Get(cache, 1, {.job = "serving"});
  EXPECT_NE(cache.Find(MatrixKey(1), {.job = "serving"}), nullptr);
  EXPECT_EQ(cache.Find(MatrixKey(2), {.job = "serving"}), nullptr);
  const std::vector<PlanJobStatistics> jobs = cache.job_statistics();
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].job, "serving");
  EXPECT_EQ(jobs[0].hit_count, 2);
  EXPECT_EQ(jobs[0].miss_count, 0);
  EXPECT_EQ(jobs[0].planning_nanoseconds, 0);
  EXPECT_EQ(jobs[1].job, "training");
  EXPECT_EQ(jobs[1].hit_count, 1);
  EXPECT_EQ(jobs[1].miss_count, 1);
  EXPECT_EQ(jobs[0].saved_nanoseconds, 2 * jobs[1].planning_nanoseconds);
  EXPECT_EQ(cache.statistics().hit_count, 3);
  EXPECT_EQ(cache.statistics().saved_nanoseconds,
            3 * cache.statistics().planning_nanoseconds);
}

TEST(PlanCacheTest, JobsBeyondTheLimitAreCountedTogether) {
  PlanCache cache({.job_limit = 2});
  for (const absl::string_view job : {"a", "b", "c", "d", "a"}) {
    Get(cache, 1, {.job = job});
  }
  Get(cache, 1, {.job = std::string(129, 'a')});
  std::vector<std::pair<std::string, int64_t>> calls;
  for (const PlanJobStatistics& job : cache.job_statistics()) {
    calls.emplace_back(job.job, job.hit_count + job.miss_count);
  }
  EXPECT_EQ(calls, (std::vector<std::pair<std::string, int64_t>>{
                       {"(other)", 3}, {"a", 2}, {"b", 1}}));
}

TEST(PlanCacheTest, ThreadsThatHitAreAllCounted) {
  constexpr int kThreads = 4;
  constexpr int64_t kRounds = 5000;
  PlanCache cache(100);
  const auto plan = Get(cache, 7);
  std::atomic<int> differing = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const std::string job = i % 2 == 0 ? "even" : "odd";
      for (int64_t round = 0; round < kRounds; ++round) {
        if (Get(cache, 7, {.job = job}) != plan) ++differing;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(differing, 0);
  EXPECT_EQ(cache.statistics().hit_count, kThreads * kRounds);
  EXPECT_EQ(cache.List({})->entries[0].hit_count, kThreads * kRounds);
  EXPECT_EQ(cache.job_statistics()[1].hit_count, kThreads / 2 * kRounds);
}

// Whatever is done to the cache meanwhile, an answer is that of its key.
TEST(PlanCacheTest, EveryAnswerIsThatOfItsKey) {
  constexpr int kThreads = 4;
  PlanCache cache({.entry_limit = 40, .byte_limit = 60'000});
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      std::mt19937 rng(static_cast<uint32_t>(i));
      for (int round = 0; round < 3000; ++round) {
        const int64_t rows = 1 + rng() % 80;
        const uint64_t id = tensord::test::IdOf(MatrixKey(rows));
        switch (rng() % 16) {
          case 0: cache.Remove(id).IgnoreError(); break;
          case 1: cache.Pin(id).IgnoreError(); break;
          case 2:
          case 3: cache.Unpin(id).IgnoreError(); break;
          case 4: cache.List({.page_size = 5}).IgnoreError(); break;
          case 5:
            if (rng() % 50 == 0) cache.Clear(rng() % 2 == 0);
            break;
          default:
            if (Get(cache, rows)->workspace_bytes() != rows) ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(cache.statistics().entry_count, 40);
  EXPECT_LE(cache.statistics().bytes, 60'000);
  cache.Clear(true);
  EXPECT_EQ(cache.statistics().bytes, 0);
  EXPECT_EQ(cache.statistics().pinned_count, 0);
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
  EXPECT_EQ(held->workspace_bytes(), 1);
}

}  // namespace
}  // namespace tensord::core
