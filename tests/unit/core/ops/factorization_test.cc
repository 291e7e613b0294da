#include "core/ops/factorization.h"

#include <cmath>
#include <string>
#include <vector>

#include "core/problem/factorization_problem.h"
#include "gtest/gtest.h"
#include "tests/unit/core/ops/refusal.h"

namespace tensord::core {
namespace {

using tensord::test::IsInvalid;
using tensord::test::IsUnsupported;

OperandDesc RowMajor(Modes modes, ModeVector extents) {
  return {.element_type = ElementType::kFloat64,
          .layout = PackedLayout(extents, Order::kLastModeFastest),
          .modes = std::move(modes)};
}

/// "abcd->abk,kcd" of extents 2, 3, 4, 5.
FactorizationDesc Qr() {
  return {.a = RowMajor({'a', 'b', 'c', 'd'}, {2, 3, 4, 5}),
          .left = RowMajor({'a', 'b', 'k'}, {2, 3, 6}),
          .right = RowMajor({'k', 'c', 'd'}, {6, 4, 5})};
}

int64_t InnerExtent(const OperandDesc& a, const Modes& left,
                    const Modes& right) {
  return GroupModes(FactorizationMethod::kQr, a, left, &right, nullptr)
      ->inner_extent;
}

TEST(FactorizationTest, TheInnerModeIsAsLongAsTheShorterSide) {
  const FactorizationDesc desc = Qr();
  EXPECT_EQ(Validate(desc), absl::OkStatus());
  EXPECT_EQ(InnerExtent(desc.a, desc.left.modes, desc.right->modes), 6);
  EXPECT_EQ(InnerExtent(desc.a, {'a', 'b', 'c', 'k'}, {'k', 'd'}), 5);
  // b is a batch mode.
  EXPECT_EQ(InnerExtent(desc.a, {'a', 'b', 'k'}, {'b', 'k', 'c', 'd'}), 2);
}

TEST(FactorizationTest, RefusesWhatIsNoFactorization) {
  FactorizationDesc desc = Qr();
  desc.left.modes[0] = 'z';
  EXPECT_THAT(Validate(desc), IsInvalid("MODE_NOT_IN_OUTPUT", "mode 'a'"));
  desc = Qr();
  desc.right->modes[0] = 'l';
  EXPECT_THAT(Validate(desc), IsInvalid("MODE_NOT_IN_INPUT", "mode 'k'"));
  desc = Qr();
  desc.left = RowMajor({'a', 'b', 'k', 'l'}, {2, 3, 6, 1});
  desc.right = RowMajor({'k', 'l', 'c', 'd'}, {6, 1, 4, 5});
  EXPECT_THAT(Validate(desc), IsInvalid("INNER_MODE_COUNT", "share 2"));
  desc = Qr();
  desc.left = RowMajor({'a', 'b', 'k'}, {2, 3, 5});
  desc.right = RowMajor({'k', 'c', 'd'}, {5, 4, 5});
  EXPECT_THAT(Validate(desc),
              IsInvalid("MODE_EXTENT_MISMATCH", "shorter side, 6"));
  desc = Qr();
  desc.right->element_type = ElementType::kFloat32;
  EXPECT_THAT(Validate(desc), IsUnsupported("r is float32 but a is float64, "
                                            "wanted the same element type"));
  desc = Qr();
  desc.a.element_type = ElementType::kInt64;
  EXPECT_THAT(Validate(desc), IsUnsupported("a is int64, wanted float32"));
  desc = Qr();
  desc.left.layout.strides[0] = 0;
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
  swapped.left = RowMajor({'b', 'a', 'k'}, {3, 2, 6});
  swapped.left.layout.strides = {6, 18, 1};  // the same memory
  EXPECT_EQ(Canonicalize(swapped), problem);
  swapped = desc;
  swapped.right = RowMajor({'k', 'd', 'c'}, {6, 5, 4});
  const FactorizationProblem other = Canonicalize(swapped);
  ASSERT_EQ(other.columns.size(), 2u);
  EXPECT_EQ(other.columns[0], (LoopMode<2>{4, {5, 1}}));
  EXPECT_EQ(other.columns[1], (LoopMode<2>{5, {1, 4}}));
}

/// "xab->xak,xk" of extents 3, 4, 4.
FactorizationDesc Eigh() {
  return {.method = FactorizationMethod::kEigh,
          .a = RowMajor({'x', 'a', 'b'}, {3, 4, 4}),
          .left = RowMajor({'x', 'a', 'k'}, {3, 4, 4}),
          .values = RowMajor({'x', 'k'}, {3, 4})};
}

TEST(FactorizationTest, ResultsComeInTheOrderOfTheirNames) {
  const auto names = [](FactorizationMethod method, bool has_values) {
    const auto span = ResultNamesOf(method, has_values);
    return std::vector<std::string>(span.begin(), span.end());
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(FactorizationMethod::kLq, false), (Names{"l", "q"}));
  EXPECT_EQ(names(FactorizationMethod::kSvd, true), (Names{"u", "s", "v"}));
  EXPECT_EQ(names(FactorizationMethod::kSvd, false), (Names{"u", "v"}));
  EXPECT_EQ(names(FactorizationMethod::kCholesky, false), (Names{"l"}));
  EXPECT_EQ(names(FactorizationMethod::kEigh, true), (Names{"w", "v"}));
  const FactorizationDesc eigh = Eigh();
  EXPECT_EQ(eigh.results(), (std::vector{&*eigh.values, &eigh.left}));
  FactorizationDesc svd = Qr();
  svd.method = FactorizationMethod::kSvd;
  svd.values = RowMajor({'k'}, {6});
  EXPECT_EQ(Validate(svd), absl::OkStatus());
  EXPECT_EQ(svd.results(), (std::vector<const OperandDesc*>{
                               &svd.left, &*svd.values, &*svd.right}));
}

TEST(FactorizationTest, SquareMatricesPairTheirLastRowsWithColumns) {
  FactorizationDesc desc = Eigh();
  EXPECT_EQ(Validate(desc), absl::OkStatus());
  const FactorizationModes modes = *GroupModes(
      desc.method, desc.a, desc.left.modes, nullptr, &desc.values->modes);
  EXPECT_EQ(modes.batch, (Modes{'x'}));
  EXPECT_EQ(modes.rows, (Modes{'a'}));
  EXPECT_EQ(modes.columns, (Modes{'b'}));
  desc.a = RowMajor({'x', 'a', 'b'}, {3, 4, 5});
  EXPECT_THAT(Validate(desc), IsInvalid("MATRIX_NOT_SQUARE", "columns 5"));
  desc = Eigh();
  desc.left.modes = {'k', 'y', 'z'};
  EXPECT_THAT(Validate(desc), IsInvalid("MATRIX_NOT_SQUARE", "lacks 3"));
  desc = Eigh();
  desc.values = RowMajor({'k'}, {4});
  EXPECT_THAT(Validate(desc), IsInvalid("MODES_OF_VALUES", "w "));
  desc = Eigh();
  desc.values.reset();
  EXPECT_THAT(Validate(desc),
              IsInvalid("RESULT_COUNT_MISMATCH", "eigh has w and v"));
  desc.method = FactorizationMethod::kCholesky;
  EXPECT_EQ(Validate(desc), absl::OkStatus());
}

TEST(FactorizationTest, ValuesAreReal) {
  FactorizationDesc desc = Eigh();
  desc.a.element_type = desc.left.element_type = ElementType::kComplex128;
  EXPECT_EQ(Validate(desc), absl::OkStatus());
  desc.values->element_type = ElementType::kComplex128;
  EXPECT_THAT(Validate(desc), IsUnsupported("w is complex128, wanted float64"));
}

TEST(FactorizationTest, AnSvdMayHaveFewerValuesThanTheShorterSide) {
  FactorizationDesc desc = Qr();
  desc.method = FactorizationMethod::kSvd;
  desc.left = RowMajor({'a', 'b', 'k'}, {2, 3, 4});
  desc.right = RowMajor({'k', 'c', 'd'}, {4, 4, 5});
  EXPECT_EQ(Validate(desc), absl::OkStatus());
  desc.left = RowMajor({'a', 'b', 'k'}, {2, 3, 7});
  desc.right = RowMajor({'k', 'c', 'd'}, {7, 4, 5});
  EXPECT_THAT(Validate(desc), IsInvalid("MODE_EXTENT_MISMATCH", "or less"));
  desc.left = RowMajor({'a', 'b', 'k'}, {2, 3, 0});
  desc.right = RowMajor({'k', 'c', 'd'}, {0, 4, 5});
  EXPECT_THAT(Validate(desc), IsInvalid("MODE_EXTENT_MISMATCH", "at least 1"));
}

/// Whether an SVD of three results may be cut off like that.
absl::Status ValidateCut(const Truncation& truncation,
                         FactorizationMethod method = FactorizationMethod::kSvd,
                         std::optional<int64_t> rank = std::nullopt) {
  return Validate(truncation, method, /*has_values=*/true, rank);
}

TEST(FactorizationTest, TruncationsAreNumbersOfAnSvd) {
  EXPECT_EQ(ValidateCut({}, FactorizationMethod::kQr), absl::OkStatus());
  EXPECT_THAT(ValidateCut({.cutoff = 1e-3}, FactorizationMethod::kQr),
              IsInvalid("TRUNCATION_WITHOUT_SVD", "qr"));
  EXPECT_THAT(ValidateCut({}, FactorizationMethod::kQr, 3),
              IsInvalid("TRUNCATION_WITHOUT_SVD", "a rank is given"));
  EXPECT_EQ(ValidateCut({.cutoff = 1e-3}), absl::OkStatus());
  EXPECT_THAT(ValidateCut({.relative_cutoff = -1e-3}),
              IsInvalid("TRUNCATION_OUT_OF_RANGE", "relative_cutoff"));
  EXPECT_THAT(ValidateCut({.discarded_squares = std::nan("")}),
              IsInvalid("TRUNCATION_OUT_OF_RANGE", "discarded_squares"));
  EXPECT_THAT(ValidateCut({}, FactorizationMethod::kSvd, 0),
              IsInvalid("TRUNCATION_OUT_OF_RANGE", "rank is 0"));
}

TEST(FactorizationTest, ValuesOfAnSvdAreAResultOrAbsorbed) {
  const auto validate = [](Truncation::Absorb absorb) {
    return Validate({.absorb = absorb}, FactorizationMethod::kSvd,
                    /*has_values=*/false, std::nullopt);
  };
  EXPECT_THAT(validate(Truncation::Absorb::kNone),
              IsInvalid("VALUES_LOST", "absorbs"));
  EXPECT_EQ(validate(Truncation::Absorb::kBoth), absl::OkStatus());
}

TEST(FactorizationTest, ResultsAreNoLongerThanTheRank) {
  FactorizationDesc desc = Qr();
  desc.method = FactorizationMethod::kSvd;
  desc.left = RowMajor({'a', 'b', 'k'}, {2, 3, 4});
  desc.right = RowMajor({'k', 'c', 'd'}, {4, 4, 5});
  EXPECT_EQ(ValidateRank(desc, std::nullopt), absl::OkStatus());
  EXPECT_EQ(ValidateRank(desc, 4), absl::OkStatus());
  EXPECT_THAT(ValidateRank(desc, 3),
              IsInvalid("MODE_EXTENT_MISMATCH", "the rank is 3"));
}

TEST(FactorizationTest, LqIsQrOfTheTransposedMatrix) {
  FactorizationDesc lq = Qr();
  lq.method = FactorizationMethod::kLq;
  FactorizationDesc qr{.a = lq.a, .left = *lq.right, .right = lq.left};
  EXPECT_EQ(Canonicalize(lq), Canonicalize(qr));
  EXPECT_EQ(FactorsOf(lq)[0], &*lq.right);
}

}  // namespace
}  // namespace tensord::core
