// What operators see of the plan cache, and do to it.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/plan/plan_cache.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/core/plan/cached_plans.h"

namespace tensord::core {
namespace {

using tensord::test::Get;
using tensord::test::IdOf;
using tensord::test::MatrixKey;

int64_t BytesOfOne() {
  PlanCache cache(1);
  Get(cache, 100);
  return cache.statistics().bytes;
}

TEST(PlanCacheEntriesTest, BytesStayWithinTheirLimit) {
  const int64_t limit = 20 * BytesOfOne() + 10;
  PlanCache cache({.byte_limit = limit});
  for (int64_t rows = 1; rows <= 100; ++rows) {
    Get(cache, rows);
    ASSERT_LE(cache.statistics().bytes, limit);
  }
  EXPECT_EQ(cache.statistics().entry_count, 20);
  EXPECT_EQ(cache.statistics().eviction_count, 80);
}

TEST(PlanCacheEntriesTest, WhatIsLargerThanTheCacheIsGivenAndNotKept) {
  PlanCache cache({.byte_limit = 100});
  EXPECT_EQ(Get(cache, 7)->workspace_bytes(), 7);
  EXPECT_EQ(cache.statistics().entry_count, 0);
  EXPECT_EQ(cache.statistics().bytes, 0);
}

TEST(PlanCacheEntriesTest, SayWhatTheySaved) {
  PlanCache cache(100);
  for (int i = 0; i < 4; ++i) Get(cache, 7);
  const std::vector<PlanEntry> entries = cache.FindById(IdOf(MatrixKey(7)));
  ASSERT_EQ(entries.size(), 1u);
  const PlanEntry& entry = entries[0];
  EXPECT_EQ(entry.id, IdOf(MatrixKey(7)));
  EXPECT_EQ(*DecodePlanKey(entry.key), MatrixKey(7));
  EXPECT_EQ(entry.plan->workspace_bytes(), 7);
  EXPECT_EQ(entry.source, PlanSource::kPlanned);
  EXPECT_FALSE(entry.is_pinned);
  EXPECT_EQ(entry.hit_count, 3);
  EXPECT_EQ(entry.saved_nanoseconds, 3 * entry.planning_nanoseconds);
  EXPECT_EQ(entry.bytes, cache.statistics().bytes);
}

TEST(PlanCacheEntriesTest, MeasuredPlansSaySo) {
  PlanCache cache(100);
  PlanKey key = MatrixKey(7);
  key.selection = Selection::kMeasure;
  ASSERT_TRUE(cache
                  .GetOrMake(key,
                             []() -> absl::StatusOr<Plan> {
                               Plan plan = tensord::test::PlanWith(1);
                               plan.selection = Selection::kMeasure;
                               return plan;
                             })
                  .ok());
  EXPECT_EQ(cache.List({})->entries[0].source, PlanSource::kMeasured);
}

TEST(PlanCacheEntriesTest, PagesGoThroughAllInTheOrderOfIds) {
  PlanCache cache(65536);
  std::set<uint64_t> ids;
  for (int64_t rows = 1; rows <= 100; ++rows) {
    Get(cache, rows);
    ids.insert(IdOf(MatrixKey(rows)));
  }
  std::vector<uint64_t> listed;
  PlanListQuery query{.page_size = 7};
  do {
    const auto page = cache.List(query);
    ASSERT_TRUE(page.ok()) << page.status();
    EXPECT_LE(page->entries.size(), 7u);
    for (const PlanEntry& entry : page->entries) listed.push_back(entry.id);
    query.page_token = page->next_page_token;
  } while (!query.page_token.empty());
  EXPECT_EQ(listed, std::vector<uint64_t>(ids.begin(), ids.end()));
}

TEST(PlanCacheEntriesTest, PagesGoThroughAllInTheOrderOfHits) {
  PlanCache cache(65536);
  for (int64_t rows = 1; rows <= 30; ++rows) {
    for (int64_t i = 0; i <= rows / 3; ++i) Get(cache, rows);
  }
  std::vector<int64_t> hits;
  std::set<uint64_t> ids;
  PlanListQuery query{.order = PlanOrder::kHits, .page_size = 4};
  do {
    const auto page = cache.List(query);
    for (const PlanEntry& entry : page->entries) {
      hits.push_back(entry.hit_count);
      ids.insert(entry.id);
    }
    query.page_token = page->next_page_token;
  } while (!query.page_token.empty());
  EXPECT_EQ(hits.size(), 30u);
  EXPECT_EQ(ids.size(), 30u);
  EXPECT_TRUE(std::is_sorted(hits.rbegin(), hits.rend()));
}

TEST(PlanCacheEntriesTest, PageTokensOfOthersAreRefused) {
  PlanCache cache(100);
  for (const char* token : {"x", "0000000000000000", "0000000000000001-",
                            "0000000000000001+0000000000000002"}) {
    const absl::Status status = cache.List({.page_token = token}).status();
    EXPECT_EQ(ReasonOf(status), "PAGE_TOKEN_MALFORMED") << token;
  }
}

TEST(PlanCacheEntriesTest, ThePinnedStay) {
  PlanCache cache(8);
  const auto pinned = Get(cache, 1);
  ASSERT_TRUE(cache.Pin(IdOf(MatrixKey(1))).ok());
  ASSERT_TRUE(cache.Pin(IdOf(MatrixKey(1))).ok());
  for (int64_t rows = 2; rows <= 100; ++rows) Get(cache, rows);
  EXPECT_EQ(cache.Find(MatrixKey(1)), pinned);
  EXPECT_EQ(cache.statistics().pinned_count, 1);
  EXPECT_EQ(cache.statistics().entry_count, 8);
  ASSERT_TRUE(cache.Unpin(IdOf(MatrixKey(1))).ok());
  for (int64_t rows = 2; rows <= 200; ++rows) Get(cache, rows);
  EXPECT_EQ(cache.Find(MatrixKey(1)), nullptr);
  EXPECT_EQ(cache.statistics().pinned_count, 0);
}

TEST(PlanCacheEntriesTest, PinsTakeAtMostHalf) {
  PlanCache cache(8);
  for (int64_t rows = 1; rows <= 4; ++rows) {
    Get(cache, rows);
    EXPECT_TRUE(cache.Pin(IdOf(MatrixKey(rows))).ok());
  }
  Get(cache, 5);
  const absl::Status status = cache.Pin(IdOf(MatrixKey(5)));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(status), "PINS_FULL");
  ASSERT_TRUE(cache.Unpin(IdOf(MatrixKey(1))).ok());
  EXPECT_TRUE(cache.Pin(IdOf(MatrixKey(5))).ok());
}

TEST(PlanCacheEntriesTest, PinsTakeAtMostHalfOfTheBytes) {
  PlanCache cache({.byte_limit = 5 * BytesOfOne()});
  for (int64_t rows = 1; rows <= 3; ++rows) Get(cache, rows);
  EXPECT_TRUE(cache.Pin(IdOf(MatrixKey(1))).ok());
  EXPECT_TRUE(cache.Pin(IdOf(MatrixKey(2))).ok());
  EXPECT_EQ(ReasonOf(cache.Pin(IdOf(MatrixKey(3)))), "PINS_FULL");
}

TEST(PlanCacheEntriesTest, WhatIsNotThereCannotBePinnedOrRemoved) {
  PlanCache cache(8);
  for (const absl::Status& status :
       {cache.Pin(7), cache.Unpin(7), cache.Remove(7)}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(ReasonOf(status), "PLAN_NOT_FOUND");
  }
  EXPECT_TRUE(cache.FindById(7).empty());
}

TEST(PlanCacheEntriesTest, TheRemovedArePlannedAnew) {
  PlanCache cache(8);
  const auto first = Get(cache, 1);
  ASSERT_TRUE(cache.Pin(IdOf(MatrixKey(1))).ok());
  ASSERT_TRUE(cache.Remove(IdOf(MatrixKey(1))).ok());
  EXPECT_EQ(cache.statistics().bytes, 0);
  EXPECT_EQ(cache.statistics().eviction_count, 0);
  EXPECT_NE(Get(cache, 1), first);
}

TEST(PlanCacheEntriesTest, ClearingLeavesThePinnedUnlessTold) {
  PlanCache cache(100);
  for (int64_t rows = 1; rows <= 10; ++rows) Get(cache, rows);
  ASSERT_TRUE(cache.Pin(IdOf(MatrixKey(3))).ok());
  EXPECT_EQ(cache.Clear(), 9);
  EXPECT_EQ(cache.statistics().entry_count, 1);
  EXPECT_NE(cache.Find(MatrixKey(3)), nullptr);
  EXPECT_EQ(cache.Clear(/*pinned_too=*/true), 1);
  EXPECT_EQ(cache.statistics().bytes, 0);
  EXPECT_EQ(cache.statistics().miss_count, 10) << "statistics stay";
}

}  // namespace
}  // namespace tensord::core
