// Views of random stages beside the list of their elements.
#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "core/view/make_gather_steps.h"
#include "core/view/view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/core/view/view_oracle.h"

namespace tensord::core::test {
namespace {

/// The largest view whose strided form is certain to be found.
constexpr int64_t kElementLimit = 700;

void ExpectSameElements(const View& view, const ViewOracle& oracle) {
  ASSERT_EQ(view.extents(), oracle.extents());
  ASSERT_EQ(view.element_count(), oracle.elements().size());
  const std::vector<Coordinates> all = AllCoordinates(view.extents());
  for (size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(view.Locate(all[i]).value_or(ViewOracle::kPadding),
              oracle.elements()[i])
        << "element " << i;
  }
}

void ExpectSameProperties(const View& view, const ViewOracle& oracle) {
  ASSERT_EQ(view.may_pad(), oracle.HasPadding());
  const auto wanted = oracle.Strided();
  ASSERT_EQ(view.strided().has_value(), wanted.has_value());
  if (wanted) {
    ASSERT_EQ(*view.strided(), *wanted);
  }
  if (view.IsInjective()) {
    ASSERT_TRUE(oracle.IsInjective());
  }
  int64_t lowest = INT64_MAX;
  int64_t highest = -1;
  for (const int64_t element : oracle.elements()) {
    if (element == ViewOracle::kPadding) continue;
    lowest = std::min(lowest, element);
    highest = std::max(highest, element);
  }
  if (highest < 0) {
    if (view.strided()) {
      ASSERT_EQ(view.span_elements(), 0);
    }
    return;
  }
  ASSERT_GE(view.span_elements(), highest - lowest + 1);
  ASSERT_GE(view.allocation_elements(), view.span_elements());
  if (view.strided()) {
    ASSERT_EQ(view.span_elements(), highest - lowest + 1);
  }
}

void ExpectSameSteps(const View& view, const ViewOracle& oracle) {
  const auto steps = MakeGatherSteps(view, Order::kLastModeFastest);
  ASSERT_TRUE(steps.ok()) << steps.status();
  ASSERT_EQ(steps->element_count, view.element_count());
  for (int64_t i = 0; i < view.element_count(); ++i) {
    ASSERT_EQ(Locate(*steps, i), oracle.elements()[static_cast<size_t>(i)])
        << "element " << i;
  }
}

TEST(ViewRandomTest, EveryViewOfAViewHasItsElements) {
  int strided_count = 0;
  constexpr int kCount = 4000;
  for (uint32_t seed = 0; seed < kCount; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    const Layout storage = RandomStorage(rng, 1);
    const auto offset = static_cast<int64_t>(rng() % 3 * 5);
    auto view = View::Create(storage, offset);
    ASSERT_TRUE(view.ok()) << view.status();
    ViewOracle oracle(storage, offset);
    for (size_t stages_left = 1 + rng() % 6; stages_left > 0; --stages_left) {
      const Stage stage = RandomStage(rng, view->extents(), kElementLimit);
      view = view->Then(stage);
      ASSERT_TRUE(view.ok()) << view.status();
      oracle = oracle.Then(stage);
      ASSERT_NO_FATAL_FAILURE(ExpectSameElements(*view, oracle));
      ASSERT_NO_FATAL_FAILURE(ExpectSameProperties(*view, oracle));
    }
    ASSERT_NO_FATAL_FAILURE(ExpectSameSteps(*view, oracle));
    strided_count += view->strided() ? 1 : 0;
  }
  // Neither kind is rare.
  EXPECT_GT(strided_count, kCount / 4);
  EXPECT_LT(strided_count, kCount * 3 / 4);
}

/// Coordinates of a view that has elements, often at an end of a mode.
Coordinates AnyCoordinates(std::mt19937& rng, const ModeVector& extents) {
  Coordinates coordinates;
  for (const int64_t extent : extents) {
    const auto any = static_cast<int64_t>(uint64_t{rng()} << 20 ^ rng());
    const int64_t choices[] = {0, extent - 1, any % extent, any % extent};
    coordinates.push_back(choices[rng() % 4]);
  }
  return coordinates;
}

TEST(ViewRandomTest, LargeViewsLeadWhereTheirStagesLead) {
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    const bool is_huge = seed % 2 == 0;
    const Layout storage =
        RandomStorage(rng, 1 + rng() % (is_huge ? 4000 : 500));
    const int64_t element_limit = int64_t{1} << (is_huge ? 58 : 48);
    std::vector<Stage> stages;
    auto view = View::Create(storage, 7);
    for (size_t stages_left = 1 + rng() % 5; stages_left > 0; --stages_left) {
      stages.push_back(RandomStage(rng, view->extents(), element_limit));
      view = view->Then(stages.back());
      ASSERT_TRUE(view.ok()) << view.status();
    }
    if (view->element_count() == 0) continue;
    const auto steps = MakeGatherSteps(*view, Order::kFirstModeFastest);
    ASSERT_TRUE(steps.ok()) << steps.status();
    const Layout packed =
        PackedLayout(view->extents(), Order::kFirstModeFastest);
    int64_t lowest = INT64_MAX, highest = 0;
    for (int i = 0; i < 50; ++i) {
      const Coordinates at = AnyCoordinates(rng, view->extents());
      const int64_t wanted = WalkDown(storage, 7, stages, at);
      ASSERT_EQ(view->Locate(at).value_or(ViewOracle::kPadding), wanted);
      int64_t linear_index = 0;
      int64_t by_strides = view->strided() ? view->strided()->offset : wanted;
      for (size_t mode = 0; mode < at.size(); ++mode) {
        linear_index += at[mode] * packed.strides[mode];
        if (view->strided()) {
          by_strides += at[mode] * view->strided()->strides[mode];
        }
      }
      ASSERT_EQ(Locate(*steps, linear_index), wanted);
      ASSERT_EQ(by_strides, wanted);
      if (wanted == ViewOracle::kPadding) continue;
      lowest = std::min(lowest, wanted);
      highest = std::max(highest, wanted);
      ASSERT_LE(highest - lowest, view->span_elements() - 1);
    }
  }
}

}  // namespace
}  // namespace tensord::core::test
