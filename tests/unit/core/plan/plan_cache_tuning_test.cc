// INCREMENTAL selection, shared by all who meet a problem.
#include <atomic>
#include <cmath>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/plan/plan_cache.h"
#include "core/plan/plan_key_codec.h"
#include "core/plan/plan_record.h"
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

class PlanCacheTuningTest : public ::testing::Test {
 protected:
  static PlanKey Key() {
    PlanKey key = MatrixKey(7);
    key.selection = Selection::kIncremental;
    return key;
  }
  std::shared_ptr<const Plan> Ask(PlanCache& cache,
                                  const PlanKey& key = Key()) {
    return cache
        .GetOrMake(key, [&] { return MakePlan(backend_, key); },
                   {.backend = &backend_})
        ->plan;
  }
  /// The kernel to try now, or "".
  std::string Next(PlanCache& cache, const PlanKey& key = Key()) {
    const auto plan = cache.NextToTry(key, [&] {
      ++listed_;
      return ListPlans(backend_, key);
    });
    if (plan == nullptr) return "";
    EXPECT_EQ(plan->selection, Selection::kIncremental);
    return std::string(plan->kernel_name());
  }
  static double TimeOf(absl::string_view kernel) {
    return kernel == "b" ? 50 : 100;
  }
  /// Tries until nobody is left.
  std::vector<std::string> TryAll(PlanCache& cache) {
    std::vector<std::string> tried;
    for (std::string kernel; !(kernel = Next(cache)).empty();) {
      cache.AddSample(Key(), kernel, TimeOf(kernel));
      tried.push_back(kernel);
    }
    return tried;
  }

  const FakeBackend backend_{
      {{.name = "a", .nanoseconds = 10},
       {.name = "b", .nanoseconds = 20, .workspace_bytes = 64},
       {.name = "no", .supports = core::Unimplemented("NO", "no")},
       {.name = "hopeless", .nanoseconds = 1000}}};
  std::atomic<int> listed_ = 0;
};

TEST_F(PlanCacheTuningTest, TriesEachAndKeepsTheFastest) {
  PlanCache cache(100);
  const auto predicted = Ask(cache);
  EXPECT_EQ(predicted->kernel_name(), "a");
  EXPECT_EQ(predicted->selection, Selection::kHeuristic);
  EXPECT_THAT(TryAll(cache), ElementsAre("a", "b", "a", "b", "a", "b"));
  EXPECT_EQ(listed_, 1);
  const auto chosen = Ask(cache);
  EXPECT_EQ(chosen->kernel_name(), "b");
  EXPECT_EQ(chosen->selection, Selection::kIncremental);
  EXPECT_EQ(chosen->workspace_bytes(), 64);
  EXPECT_EQ(chosen->measured_nanoseconds, 50);
  EXPECT_EQ(cache.List({})->entries[0].source, PlanSource::kMeasured);
  EXPECT_EQ(Next(cache), "");
}

TEST_F(PlanCacheTuningTest, ExecutionsAtTheSameTimeTryDifferentKernels) {
  PlanCache cache(100);
  Ask(cache);
  EXPECT_EQ(Next(cache), "a");
  EXPECT_EQ(Next(cache), "b");
}

TEST_F(PlanCacheTuningTest, ShowsHowFarItIs) {
  PlanCache cache(100);
  Ask(cache);
  EXPECT_EQ(cache.List({})->entries[0].wanted_sample_count, 0);
  cache.AddSample(Key(), Next(cache), 1);
  const PlanEntry entry = cache.List({})->entries[0];
  EXPECT_EQ(entry.sample_count, 1);
  EXPECT_EQ(entry.wanted_sample_count, 6);
  EXPECT_EQ(entry.bytes, cache.statistics().bytes);
}

TEST_F(PlanCacheTuningTest, WhatFailsIsLeftOut) {
  PlanCache cache(100);
  Ask(cache);
  EXPECT_EQ(Next(cache), "a");
  EXPECT_EQ(Next(cache), "b");
  cache.AddFailure(Key(), "b");
  cache.AddSample(Key(), "a", 100);
  EXPECT_THAT(TryAll(cache), ElementsAre("a", "a"));
  EXPECT_EQ(Ask(cache)->kernel_name(), "a");
  EXPECT_EQ(Ask(cache)->selection, Selection::kIncremental);
}

TEST_F(PlanCacheTuningTest, WhenAllFailThePredictedOneStays) {
  PlanCache cache(100);
  Ask(cache);
  for (std::string kernel; !(kernel = Next(cache)).empty();) {
    cache.AddFailure(Key(), kernel);
  }
  EXPECT_EQ(Ask(cache)->kernel_name(), "a");
  EXPECT_EQ(Next(cache), "");
}

TEST_F(PlanCacheTuningTest, SamplesOfStrangersAreIgnored) {
  PlanCache cache(100);
  cache.AddSample(Key(), "a", 1);
  Ask(cache);
  cache.AddSample(Key(), "a", 1);
  EXPECT_EQ(Next(cache), "a");
  cache.AddSample(Key(), "quantum", 1);
  cache.AddSample(Key(), "a", std::nan(""));
  cache.AddSample(Key(), "a", -1);
  EXPECT_EQ(cache.List({})->entries[0].sample_count, 0);
}

TEST_F(PlanCacheTuningTest, OnlyWhereItIsAskedFor) {
  PlanCache cache(100);
  EXPECT_EQ(Next(cache), "") << "no plan yet";
  PlanKey key = Key();
  key.selection = Selection::kHeuristic;
  Ask(cache, key);
  EXPECT_EQ(Next(cache, key), "");
  key = Key();
  key.deterministic = true;
  Ask(cache, key);
  EXPECT_EQ(Next(cache, key), "");
  key = Key();
  key.problem = tensord::test::Transpose(0, 5);
  Ask(cache, key);
  EXPECT_EQ(Next(cache, key), "");
  EXPECT_EQ(listed_, 0);
}

TEST_F(PlanCacheTuningTest, GoesOnInAnotherProcess) {
  PlanCache first(100);
  Ask(first);
  for (int i = 0; i < 3; ++i) {
    const std::string kernel = Next(first);
    first.AddSample(Key(), kernel, TimeOf(kernel));
  }
  PlanCache second(100);
  first.Export([&](absl::string_view record) {
    EXPECT_TRUE(second.AddRecord(std::string(record)));
  });
  EXPECT_EQ(Ask(second)->selection, Selection::kHeuristic);
  EXPECT_THAT(TryAll(second), ElementsAre("b", "a", "b"));
  EXPECT_EQ(Ask(second)->kernel_name(), "b");

  PlanCache third(100);
  second.Export([&](absl::string_view record) {
    EXPECT_EQ(DecodePlanRecord(record)->times.size(), 2u);
    EXPECT_TRUE(third.AddRecord(std::string(record)));
  });
  EXPECT_EQ(Ask(third)->kernel_name(), "b");
  EXPECT_EQ(Ask(third)->measured_nanoseconds, 50);
  EXPECT_EQ(Next(third), "");
}

TEST_F(PlanCacheTuningTest, EndsWhenAnotherProcessHasEndedIts) {
  PlanCache first(100);
  Ask(first);
  const auto record_of = [](const PlanCache& cache) {
    std::string only;
    cache.Export([&](absl::string_view record) { only = std::string(record); });
    return only;
  };
  const std::string begun_record = record_of(first);
  first.AddSample(Key(), Next(first), 100);
  const std::string partial_record = record_of(first);
  TryAll(first);
  const std::string ended_record = record_of(first);

  PlanCache begun(100);
  Ask(begun);
  EXPECT_EQ(Next(begun), "a");  // and does not come back
  EXPECT_FALSE(begun.AddRecord(begun_record));
  EXPECT_FALSE(begun.AddRecord(partial_record));
  EXPECT_TRUE(begun.AddRecord(ended_record));
  EXPECT_EQ(Ask(begun)->kernel_name(), "b");
  EXPECT_EQ(Ask(begun)->measured_nanoseconds, 50);
  EXPECT_EQ(Next(begun), "");
  EXPECT_EQ(begun.List({})->entries[0].source, PlanSource::kLoaded);
  begun.AddSample(Key(), "a", 1);  // comes too late
  EXPECT_EQ(Ask(begun)->kernel_name(), "b");
  EXPECT_FALSE(begun.AddRecord(ended_record));

  PlanCache untried(100);
  Ask(untried);
  EXPECT_FALSE(untried.AddRecord(partial_record));
  EXPECT_TRUE(untried.AddRecord(ended_record));
  EXPECT_EQ(record_of(untried), ended_record);  // as it came
  EXPECT_EQ(Ask(untried)->kernel_name(), "b");
  EXPECT_EQ(Next(untried), "");

  // What it has measured itself is not given up for what may not hold.
  PlanCache resumed(100);
  EXPECT_TRUE(resumed.AddRecord(partial_record));
  Ask(resumed);
  EXPECT_FALSE(resumed.AddRecord(ended_record));
  EXPECT_EQ(Next(resumed), "b");
  EXPECT_TRUE(resumed.AddRecord(ended_record));
  EXPECT_EQ(Ask(resumed)->kernel_name(), "b");

  PlanCache waiting(100);
  for (const std::string& record :
       {begun_record, partial_record, ended_record}) {
    EXPECT_TRUE(waiting.AddRecord(record));
    EXPECT_FALSE(waiting.AddRecord(record));
    EXPECT_FALSE(waiting.AddRecord(begun_record));
  }
  EXPECT_EQ(waiting.statistics().record_count, 1);
  EXPECT_EQ(Ask(waiting)->kernel_name(), "b");
}

TEST_F(PlanCacheTuningTest, IsNotEndedByWhatDoesNotFit) {
  PlanRecord record = {.key = EncodePlanKey(Key()),
                       .kernel = "b",
                       .kernel_version = 1,
                       .selection = Selection::kIncremental,
                       .times = {{"a", 1, {9, 9, 9}}, {"b", 2, {1, 1, 1}}}};
  PlanCache cache(100);
  Ask(cache);
  EXPECT_EQ(Next(cache), "a");
  EXPECT_FALSE(cache.AddRecord(EncodePlanRecord(record)));  // another version
  record.times[1] = {"c", 1, {1, 1, 1}};
  EXPECT_FALSE(cache.AddRecord(EncodePlanRecord(record)));
  // A plan that nobody tunes has nothing to take over.
  PlanKey heuristic = Key();
  heuristic.selection = Selection::kHeuristic;
  Ask(cache, heuristic);
  record.key = EncodePlanKey(heuristic);
  record.times[1] = {"b", 1, {1, 1, 1}};
  EXPECT_FALSE(cache.AddRecord(EncodePlanRecord(record)));
  EXPECT_EQ(Ask(cache, heuristic)->kernel_name(), "a");
  EXPECT_EQ(Next(cache), "b");
}

TEST_F(PlanCacheTuningTest, ThreadsShareTheWork) {
  for (int round = 0; round < 30; ++round) {
    PlanCache cache(100);
    std::atomic<int> samples = 0;
    std::atomic<int> wrong = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int run = 0; run < 20; ++run) {
          Ask(cache);
          const std::string kernel = Next(cache);
          if (kernel.empty()) continue;
          cache.AddSample(Key(), kernel, TimeOf(kernel));
          ++samples;
        }
        if (Ask(cache)->solution == nullptr) ++wrong;
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(wrong, 0);
    ASSERT_EQ(samples, 2 * kTuningSamples);
    ASSERT_EQ(Ask(cache)->kernel_name(), "b");
  }
}

}  // namespace
}  // namespace tensord::core
