// Plans that come from elsewhere: records, resolved when they are asked for.
#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/plan/plan_cache.h"
#include "core/plan/plan_record.h"
#include "core/plan/plan_snapshot.h"
#include "core/plan/planner.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/core/plan/cached_plans.h"
#include "tests/unit/core/plan/fake_backend.h"

namespace tensord::core {
namespace {

using tensord::test::FakeBackend;
using tensord::test::MatrixKey;
using ::testing::ElementsAre;
using ::testing::Pair;

class PlanCacheRecordsTest : public ::testing::Test {
 protected:
  static std::string Record(const PlanKey& key, std::string kernel = "fast") {
    return EncodePlanRecord({.key = EncodePlanKey(key),
                             .kernel = std::move(kernel),
                             .kernel_version = 1,
                             .predicted_nanoseconds = 10,
                             .planning_nanoseconds = 5000});
  }
  /// Plans as the engine does, and counts.
  absl::StatusOr<PlanCache::Lookup> Ask(PlanCache& cache, const PlanKey& key) {
    return cache.GetOrMake(key,
                           [&] {
                             ++planned_;
                             return MakePlan(backend_, key);
                           },
                           {.job = "job", .backend = &backend_});
  }

  const FakeBackend backend_{
      {{.name = "fast", .nanoseconds = 10, .workspace_bytes = 64},
       {.name = "slow", .nanoseconds = 20}}};
  std::atomic<int> planned_ = 0;
};

TEST_F(PlanCacheRecordsTest, AreResolvedWhenTheyAreAskedFor) {
  PlanCache cache(100);
  EXPECT_TRUE(cache.AddRecord(Record(MatrixKey(7), "slow")));
  EXPECT_EQ(cache.statistics().record_count, 1);
  EXPECT_EQ(cache.statistics().entry_count, 0);
  const auto lookup = Ask(cache, MatrixKey(7));
  ASSERT_TRUE(lookup.ok()) << lookup.status();
  EXPECT_EQ(planned_, 0);
  EXPECT_TRUE(lookup->hit);
  EXPECT_EQ(lookup->plan->kernel_name(), "slow");
  const PlanCacheStatistics statistics = cache.statistics();
  EXPECT_EQ(statistics.record_count, 0);
  EXPECT_EQ(statistics.entry_count, 1);
  EXPECT_EQ(statistics.load_count, 1);
  EXPECT_EQ(statistics.hit_count, 1);
  EXPECT_EQ(statistics.saved_nanoseconds, 5000);
  const PlanEntry entry = cache.List({})->entries[0];
  EXPECT_EQ(entry.source, PlanSource::kLoaded);
  EXPECT_EQ(entry.planning_nanoseconds, 5000);
}

TEST_F(PlanCacheRecordsTest, AreSolvedAtTheirFirstUseAlone) {
  int fast = 0, slow = 0;
  const FakeBackend backend({{.name = "fast", .on_solve = [&] { ++fast; }},
                             {.name = "slow", .on_solve = [&] { ++slow; }}});
  PlanCache cache(100);
  cache.AddRecord(Record(MatrixKey(7), "slow"));
  EXPECT_EQ(slow, 0);
  for (int i = 0; i < 3; ++i) {
    const auto plan = cache.Find(MatrixKey(7), {.backend = &backend});
    ASSERT_NE(plan, nullptr);
    EXPECT_EQ(plan->solution->decision(), "as slow was told");
    EXPECT_EQ(slow, 1);
  }
  EXPECT_EQ(fast, 0) << "the record names the other";
}

TEST_F(PlanCacheRecordsTest, AreExportedWhileTheyAreResolved) {
  PlanCache cache(100);
  std::vector<std::string> exported;
  const auto export_all = [&] {
    cache.Export(
        [&](absl::string_view record) { exported.emplace_back(record); });
  };
  const FakeBackend backend({{.name = "fast", .on_solve = export_all}});
  cache.AddRecord(Record(MatrixKey(7)));
  ASSERT_NE(cache.Find(MatrixKey(7), {.backend = &backend}), nullptr);
  EXPECT_THAT(exported, ElementsAre(Record(MatrixKey(7))));
}

TEST_F(PlanCacheRecordsTest, AreFoundWithoutPlanning) {
  PlanCache cache(100);
  cache.AddRecord(Record(MatrixKey(7)));
  EXPECT_EQ(cache.Find(MatrixKey(7)), nullptr) << "no backend to resolve it";
  const auto plan = cache.Find(MatrixKey(7), {.backend = &backend_});
  ASSERT_NE(plan, nullptr);
  EXPECT_EQ(cache.Find(MatrixKey(7)), plan);
}

TEST_F(PlanCacheRecordsTest, ThatDoNotHoldAreDroppedAndCounted) {
  PlanCache cache(100);
  cache.AddRecord(Record(MatrixKey(7), "quantum"));
  EXPECT_EQ(Ask(cache, MatrixKey(7))->plan->kernel_name(), "fast");
  EXPECT_EQ(planned_, 1);
  std::string damaged = Record(MatrixKey(8));
  damaged.pop_back();
  cache.AddRecord(damaged);
  EXPECT_EQ(cache.Find(MatrixKey(8), {.backend = &backend_}), nullptr);
  EXPECT_EQ(Ask(cache, MatrixKey(8))->plan->kernel_name(), "fast");
  EXPECT_EQ(planned_, 2);
  const PlanCacheStatistics statistics = cache.statistics();
  EXPECT_THAT(statistics.load_errors,
              ElementsAre(Pair("PLAN_KERNEL_MISSING", 1),
                          Pair("PLAN_RECORD_MALFORMED", 1)));
  EXPECT_EQ(statistics.load_count, 0);
  EXPECT_EQ(statistics.record_count, 0);
}

TEST_F(PlanCacheRecordsTest, OfAnotherKeyWithTheSameIdAreLeftAlone) {
  PlanCache cache({.id_of = [](absl::string_view) -> uint64_t { return 7; }});
  EXPECT_TRUE(cache.AddRecord(Record(MatrixKey(7), "slow")));
  EXPECT_EQ(Ask(cache, MatrixKey(8))->plan->kernel_name(), "fast");
  EXPECT_EQ(Ask(cache, MatrixKey(7))->plan->kernel_name(), "slow");
}

TEST_F(PlanCacheRecordsTest, DoNotReplaceWhatIsThere) {
  PlanCache cache(100);
  ASSERT_TRUE(Ask(cache, MatrixKey(7)).ok());
  EXPECT_FALSE(cache.AddRecord(Record(MatrixKey(7))));
  EXPECT_TRUE(cache.AddRecord(Record(MatrixKey(8))));
  EXPECT_FALSE(cache.AddRecord(Record(MatrixKey(8))));
  EXPECT_FALSE(cache.AddRecord(""));
  EXPECT_FALSE(cache.AddRecord("noise"));
}

TEST_F(PlanCacheRecordsTest, StayWithinTheLimitAndMakeRoomForPlans) {
  constexpr int64_t kLimit = 30'000;
  PlanCache cache({.byte_limit = kLimit});
  for (int64_t rows = 1; rows <= 1000; ++rows) {
    cache.AddRecord(Record(MatrixKey(rows)));
    ASSERT_LE(cache.statistics().bytes, kLimit);
  }
  const int64_t kept = cache.statistics().record_count;
  EXPECT_GT(kept, 50);
  EXPECT_LT(kept, 1000);
  for (int64_t rows = 2001; rows <= 2010; ++rows) {
    ASSERT_TRUE(Ask(cache, MatrixKey(rows)).ok());
    ASSERT_LE(cache.statistics().bytes, kLimit);
  }
  EXPECT_EQ(cache.statistics().entry_count, 10);
  EXPECT_EQ(cache.statistics().eviction_count, 0);
  EXPECT_LT(cache.statistics().record_count, kept);
  // The oldest went, the latest are there.
  EXPECT_EQ(cache.Find(MatrixKey(1), {.backend = &backend_}), nullptr);
  EXPECT_NE(cache.Find(MatrixKey(1000), {.backend = &backend_}), nullptr);
  cache.Clear(true);
  EXPECT_EQ(cache.statistics().bytes, 0);
}

TEST_F(PlanCacheRecordsTest, ThreadsThatMissTogetherResolveOnce) {
  for (int round = 0; round < 50; ++round) {
    PlanCache cache(100);
    cache.AddRecord(Record(MatrixKey(7)));
    std::atomic<int> missed = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        // Some only look; they must not make the others fail.
        if (i == 0) {
          cache.Find(MatrixKey(7), {.backend = &backend_});
        } else if (!Ask(cache, MatrixKey(7)).ok()) {
          ++missed;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(missed, 0);
    ASSERT_EQ(cache.statistics().load_count, 1);
  }
  EXPECT_EQ(planned_, 0);
}

TEST_F(PlanCacheRecordsTest, ALookThatFailsLetsTheOthersPlan) {
  for (int round = 0; round < 50; ++round) {
    PlanCache cache(100);
    cache.AddRecord(Record(MatrixKey(7), "quantum"));
    std::atomic<int> failed = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        if (i == 0) {
          cache.Find(MatrixKey(7), {.backend = &backend_});
        } else if (!Ask(cache, MatrixKey(7)).ok()) {
          ++failed;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(failed, 0);
    ASSERT_EQ(Ask(cache, MatrixKey(7))->plan->kernel_name(), "fast");
  }
}

TEST_F(PlanCacheRecordsTest, CarryACacheToAnotherOne) {
  PlanCache first(100);
  for (int64_t rows = 1; rows <= 20; ++rows) {
    ASSERT_TRUE(Ask(first, MatrixKey(rows)).ok());
  }
  first.AddRecord(Record(MatrixKey(21)));
  SnapshotWriter writer("test");
  first.Export([&](absl::string_view record) { writer.Add(record); });
  const std::string snapshot = std::move(writer).Finish();

  PlanCache second(100);
  const auto info = ReadSnapshot(snapshot, [&](absl::string_view record) {
    EXPECT_TRUE(second.AddRecord(std::string(record)));
  });
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->record_count, 21);
  planned_ = 0;
  for (int64_t rows = 1; rows <= 21; ++rows) {
    EXPECT_TRUE(Ask(second, MatrixKey(rows))->hit) << rows;
  }
  EXPECT_EQ(planned_, 0);
  EXPECT_TRUE(second.statistics().load_errors.empty());
}

}  // namespace
}  // namespace tensord::core
