#include "core/view/disjoint.h"

#include <algorithm>
#include <random>
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

}  // namespace
}  // namespace tensord::core
