#include "core/ops/factorization.h"

#include "core/problem/factorization_problem.h"
#include "gtest/gtest.h"
#include "tests/unit/core/ops/refusal.h"

namespace tensord::core {
namespace {

using test::IsInvalid;
using test::IsUnsupported;

OperandDesc RowMajor(Modes modes, ModeVector extents) {
  return {.element_type = ElementType::kFloat64,
          .layout = PackedLayout(extents, Order::kLastModeFastest),
          .modes = std::move(modes)};
}

/// "abcd->abk,kcd" of extents 2, 3, 4, 5.
FactorizationDesc Qr() {
  return {.a = RowMajor({'a', 'b', 'c', 'd'}, {2, 3, 4, 5}),
          .q = RowMajor({'a', 'b', 'k'}, {2, 3, 6}),
          .r = RowMajor({'k', 'c', 'd'}, {6, 4, 5})};
}

TEST(FactorizationTest, TheInnerModeIsAsLongAsTheShorterSide) {
  const FactorizationDesc desc = Qr();
  EXPECT_EQ(Validate(desc), absl::OkStatus());
  EXPECT_EQ(InnerExtent(desc.a, desc.q.modes, desc.r.modes).value(), 6);
  EXPECT_EQ(InnerExtent(desc.a, {'a', 'b', 'c', 'k'}, {'k', 'd'}).value(), 5);
  // b is a batch mode.
  EXPECT_EQ(InnerExtent(desc.a, {'a', 'b', 'k'}, {'b', 'k', 'c', 'd'}).value(),
            2);
}

TEST(FactorizationTest, RefusesWhatIsNoFactorization) {
  FactorizationDesc desc = Qr();
  desc.q.modes[0] = 'z';
  EXPECT_THAT(Validate(desc), IsInvalid("MODE_NOT_IN_OUTPUT", "mode 'a'"));
  desc = Qr();
  desc.r.modes[0] = 'l';
  EXPECT_THAT(Validate(desc), IsInvalid("MODE_NOT_IN_INPUT", "mode 'k'"));
  desc = Qr();
  desc.q = RowMajor({'a', 'b', 'k', 'l'}, {2, 3, 6, 1});
  desc.r = RowMajor({'k', 'l', 'c', 'd'}, {6, 1, 4, 5});
  EXPECT_THAT(Validate(desc), IsInvalid("INNER_MODE_COUNT", "share 2"));
  desc = Qr();
  desc.q = RowMajor({'a', 'b', 'k'}, {2, 3, 5});
  desc.r = RowMajor({'k', 'c', 'd'}, {5, 4, 5});
  EXPECT_THAT(Validate(desc),
              IsInvalid("MODE_EXTENT_MISMATCH", "shorter side, 6"));
  desc = Qr();
  desc.r.element_type = ElementType::kFloat32;
  EXPECT_THAT(Validate(desc), IsUnsupported("r is float32 but a is float64, "
                                            "wanted the same element type"));
  desc = Qr();
  desc.a.element_type = ElementType::kInt64;
  EXPECT_THAT(Validate(desc), IsUnsupported("a is int64, wanted float32"));
  desc = Qr();
  desc.q.layout.strides[0] = 0;
  EXPECT_FALSE(Validate(desc).ok());
}

TEST(FactorizationTest, RowsComeInAnyOrderAndColumnsInThatOfR) {
  FactorizationDesc desc = Qr();
  const FactorizationProblem problem = Canonicalize(desc);
  ASSERT_EQ(problem.rows.size(), 1u);
  EXPECT_EQ(problem.rows[0], (LoopMode<2>{6, {20, 6}}));
  ASSERT_EQ(problem.columns.size(), 1u);
  EXPECT_EQ(problem.columns[0], (LoopMode<2>{20, {1, 1}}));
  FactorizationDesc swapped = desc;
  swapped.q = RowMajor({'b', 'a', 'k'}, {3, 2, 6});
  swapped.q.layout.strides = {6, 18, 1};  // the same memory
  EXPECT_EQ(Canonicalize(swapped), problem);
  swapped = desc;
  swapped.r = RowMajor({'k', 'd', 'c'}, {6, 5, 4});
  const FactorizationProblem other = Canonicalize(swapped);
  ASSERT_EQ(other.columns.size(), 2u);
  EXPECT_EQ(other.columns[0], (LoopMode<2>{4, {5, 1}}));
  EXPECT_EQ(other.columns[1], (LoopMode<2>{5, {1, 4}}));
}

}  // namespace
}  // namespace tensord::core
