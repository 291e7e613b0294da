#include "core/view/disjoint.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "core/view/indexing.h"
#include "gtest/gtest.h"
#include "tests/unit/core/view/view_oracle.h"

namespace tensord::core {
namespace {

constexpr int64_t kOffset = 3;

View Sliced(const Layout& storage, const std::vector<IndexItem>& items) {
  const View all = View::Create(storage, kOffset).value();
  return all.Then(IndexStage(items, all.extents()).value()).value();
}

bool AreDisjoint(const Layout& storage, const std::vector<IndexItem>& x,
                 const std::vector<IndexItem>& y) {
  return AreDisjoint(storage, kOffset, *Sliced(storage, x).strided(),
                     *Sliced(storage, y).strided());
}

SliceItem From(int64_t start, int64_t stop, int64_t step = 1) {
  return {start, stop, step};
}

TEST(DisjointTest, BlocksOfAMatrixAreTold) {
  const Layout matrix = PackedLayout({6, 8}, Order::kLastModeFastest);
  EXPECT_TRUE(AreDisjoint(matrix, {From(0, 3)}, {From(3, 6)}));
  EXPECT_TRUE(
      AreDisjoint(matrix, {AllItem{}, From(0, 4)}, {AllItem{}, From(4, 8)}));
  EXPECT_TRUE(
      AreDisjoint(matrix, {From(0, 3), From(4, 8)}, {From(3, 6), From(0, 4)}));
  EXPECT_TRUE(AreDisjoint(matrix, {From(0, 6, 2)}, {From(1, 6, 2)}));
  EXPECT_TRUE(AreDisjoint(matrix, {AllItem{}, From(0, 8, 4)},
                          {AllItem{}, From(2, 8, 4)}));
  EXPECT_TRUE(AreDisjoint(matrix, {2}, {3}));
  EXPECT_TRUE(AreDisjoint(matrix, {AllItem{}, 0}, {AllItem{}, 7}));
  EXPECT_TRUE(AreDisjoint(matrix, {AllItem{}, 0}, {From(4, 4)}));
}

TEST(DisjointTest, SharedElementsAreTold) {
  const Layout matrix = PackedLayout({6, 8}, Order::kLastModeFastest);
  EXPECT_FALSE(AreDisjoint(matrix, {}, {}));
  EXPECT_FALSE(AreDisjoint(matrix, {From(0, 4)}, {From(3, 6)}));
  EXPECT_FALSE(AreDisjoint(matrix, {2}, {AllItem{}, 3}));
  EXPECT_FALSE(AreDisjoint(matrix, {From(0, 6, 2)}, {From(0, 6, 3)}));
}

TEST(DisjointTest, WholeRowsAsOneModeAreTold) {
  const Layout matrix = PackedLayout({6, 8}, Order::kLastModeFastest);
  const StridedView rows_0_and_1{{16}, {1}, kOffset};
  const StridedView row_2{{8}, {1}, kOffset + 16};
  const StridedView row_1{{8}, {1}, kOffset + 8};
  EXPECT_TRUE(AreDisjoint(matrix, kOffset, rows_0_and_1, row_2));
  EXPECT_FALSE(AreDisjoint(matrix, kOffset, rows_0_and_1, row_1));
}

TEST(DisjointTest, OfAStorageThatOverlapsItselfNothingIsKnown) {
  const Layout windows{{4, 4}, {1, 1}};
  EXPECT_FALSE(AreDisjoint(windows, kOffset, {{1}, {1}, kOffset},
                           {{1}, {1}, kOffset + 3}));
}

TEST(DisjointTest, NeverSaidOfViewsThatShareAnElement) {
  std::mt19937 rng(20);
  int disjoint_count = 0, shared_count = 0;
  for (int i = 0; i < 8000; ++i) {
    const Layout storage = test::RandomStorage(rng, 5);
    const View all = View::Create(storage, kOffset).value();
    std::vector<View> views;
    while (views.size() < 2) {
      auto view = all.Then(test::RandomStage(rng, all.extents(), 200));
      if (view.ok() && rng() % 2 == 0) {
        view = view->Then(test::RandomStage(rng, view->extents(), 200));
      }
      if (!view.ok() || !view->strided()) continue;
      const ModeVector& strides = view->strided()->strides;
      if (std::any_of(strides.begin(), strides.end(),
                      [](int64_t stride) { return stride < 0; })) {
        continue;
      }
      views.push_back(*std::move(view));
    }
    std::vector<int64_t> x = test::ElementsOf(views[0]);
    std::vector<int64_t> y = test::ElementsOf(views[1]);
    std::sort(x.begin(), x.end());
    std::sort(y.begin(), y.end());
    std::vector<int64_t> both;
    std::set_intersection(x.begin(), x.end(), y.begin(), y.end(),
                          std::back_inserter(both));
    if (AreDisjoint(storage, kOffset, *views[0].strided(),
                    *views[1].strided())) {
      ASSERT_TRUE(both.empty());
      disjoint_count += x.empty() || y.empty() ? 0 : 1;
    } else if (!both.empty()) {
      ++shared_count;
    }
  }
  EXPECT_GT(disjoint_count, 200);
  EXPECT_GT(shared_count, 200);
}

/// Strided views of a storage, with elements or none.
std::vector<UsedView> RandomViews(std::mt19937& rng, const Layout& storage,
                                  size_t count) {
  const View all = View::Create(storage, kOffset).value();
  std::vector<UsedView> views;
  while (views.size() < count) {
    const auto view = all.Then(test::RandomStage(rng, all.extents(), 200));
    if (!view.ok() || !view->strided()) continue;
    const ModeVector& strides = view->strided()->strides;
    if (std::ranges::any_of(strides, [](int64_t s) { return s < 0; })) continue;
    views.push_back({*view->strided(), rng() % 4 == 0});
  }
  return views;
}

TEST(FindOverlapTest, FindsWhatComparingAllPairsFinds) {
  int found_count = 0, disjoint_count = 0;
  for (uint32_t seed = 0; seed < 4000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    const Layout storage = test::RandomStorage(rng, 5);
    const auto views = RandomViews(rng, storage, 2 + rng() % 5);
    const auto overlap = [&](size_t i, size_t j) {
      return i != j && views[i].is_written &&
             !AreDisjoint(storage, kOffset, views[i].view, views[j].view);
    };
    bool is_there = false;
    for (size_t i = 0; i < views.size(); ++i) {
      for (size_t j = 0; j < views.size(); ++j) is_there |= overlap(i, j);
    }
    const auto found = FindOverlap(storage, kOffset, views);
    ASSERT_EQ(found.has_value(), is_there);
    if (found) {
      ASSERT_TRUE(overlap(found->first, found->second));
      ++found_count;
    } else {
      ++disjoint_count;
    }
  }
  EXPECT_GT(found_count, 200);
  EXPECT_GT(disjoint_count, 200);
}

// Comparing all pairs would take minutes.
TEST(FindOverlapTest, ManyViewsTakeNoLongerThanSortingThem) {
  constexpr int64_t kSide = 400;
  const Layout matrix =
      PackedLayout({3 * kSide, 2 * kSide}, Order::kLastModeFastest);
  std::vector<UsedView> blocks, columns;
  for (int64_t i = 0; i < kSide; ++i) {
    for (int64_t j = 0; j < kSide; ++j) {
      blocks.push_back(
          {{{3, 2}, {2 * kSide, 1}, (3 * i * kSide + j) * 2}, true});
    }
  }
  for (int64_t j = 0; j < 2 * kSide; ++j) {
    columns.push_back({{{3 * kSide}, {2 * kSide}, j}, true});
  }
  EXPECT_FALSE(FindOverlap(matrix, 0, blocks));
  EXPECT_FALSE(FindOverlap(matrix, 0, columns));
  blocks.push_back({{{1}, {1}, 5}, false});
  const auto found = FindOverlap(matrix, 0, blocks);
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, std::pair(size_t{2}, blocks.size() - 1));
}

TEST(FindOverlapTest, OneInManyStepsIsToldFromOthers) {
  constexpr int64_t kSteps = 50'000;
  const Layout vector = PackedLayout({10 * kSteps}, Order::kLastModeFastest);
  std::vector<UsedView> views;
  for (int64_t i = 0; i < kSteps; ++i) {
    views.push_back({{{10}, {kSteps}, i}, true});
  }
  EXPECT_FALSE(FindOverlap(vector, 0, views));
  views.back().view.offset = 7;
  EXPECT_TRUE(FindOverlap(vector, 0, views));
}

}  // namespace
}  // namespace tensord::core
