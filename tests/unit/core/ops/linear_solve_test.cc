#include "core/ops/linear_solve.h"

#include <string>
#include <utility>

#include "core/problem/linear_solve_problem.h"
#include "gtest/gtest.h"
#include "tests/unit/core/ops/refusal.h"

namespace tensord::core {
namespace {

using tensord::test::IsInvalid;
using tensord::test::IsUnsupported;

OperandDesc Matrices(Modes modes, ModeVector extents) {
  return {.element_type = ElementType::kFloat64,
          .layout = PackedLayout(extents, Order::kLastModeFastest),
          .modes = std::move(modes)};
}

/// "nij,nik->njk" of extents 2, 6, 6, 5.
LinearSolveDesc Equations() {
  return {.a = Matrices({'n', 'i', 'j'}, {2, 6, 6}),
          .b = Matrices({'n', 'i', 'k'}, {2, 6, 5}),
          .d = Matrices({'n', 'j', 'k'}, {2, 6, 5})};
}

/// "nij->njk".
LinearSolveDesc Inverse() {
  return {.a = Matrices({'n', 'i', 'j'}, {2, 6, 6}),
          .d = Matrices({'n', 'j', 'k'}, {2, 6, 6})};
}

/// "nij->nik".
LinearSolveDesc Exponential() {
  return {.function = MatrixFunction::kExponential,
          .a = Matrices({'n', 'i', 'j'}, {2, 6, 6}),
          .d = Matrices({'n', 'i', 'k'}, {2, 6, 6})};
}

TEST(LinearSolveTest, ModesAreWhatTheirOperandsSay) {
  const LinearSolveDesc desc = Equations();
  ASSERT_EQ(Validate(desc), absl::OkStatus());
  const LinearSolveModes modes =
      GroupModes(desc.function, desc.a, &*desc.b, desc.d.modes).value();
  EXPECT_EQ(modes.batch, Modes({'n'}));
  EXPECT_EQ(modes.rows, Modes({'i'}));
  EXPECT_EQ(modes.columns, Modes({'j'}));
  EXPECT_EQ(modes.sides, Modes({'k'}));
}

TEST(LinearSolveTest, AnInverseHasModesOfItsOwnForRows) {
  EXPECT_EQ(Validate(Inverse()), absl::OkStatus());
  // Columns are the last two of d that a has.
  const OperandDesc a = Matrices({'p', 'r', 's', 'n', 'q'}, {2, 3, 4, 5, 6});
  const LinearSolveModes modes = GroupModes(MatrixFunction::kInverse, a,
                                            nullptr, {'n', 'p', 'q', 'x', 'y'})
                                     .value();
  EXPECT_EQ(modes.batch, Modes({'n'}));
  EXPECT_EQ(modes.rows, Modes({'r', 's'}));
  EXPECT_EQ(modes.columns, Modes({'p', 'q'}));
  EXPECT_EQ(modes.sides, Modes({'x', 'y'}));
  EXPECT_EQ(modes.sides_in_a, Modes({'r', 's'}));
}

TEST(LinearSolveTest, AnExponentialHasModesOfItsOwnForColumns) {
  EXPECT_EQ(Validate(Exponential()), absl::OkStatus());
  // Rows are the last two of a that d has, whatever their order there.
  const OperandDesc a = Matrices({'n', 'p', 'q', 'r', 's'}, {5, 2, 3, 2, 3});
  const LinearSolveModes modes = GroupModes(MatrixFunction::kExponential, a,
                                            nullptr, {'x', 'q', 'y', 'p', 'n'})
                                     .value();
  EXPECT_EQ(modes.batch, Modes({'n'}));
  EXPECT_EQ(modes.rows, Modes({'p', 'q'}));
  EXPECT_EQ(modes.columns, Modes({'r', 's'}));
  EXPECT_EQ(modes.sides, Modes({'x', 'y'}));
  EXPECT_EQ(modes.sides_in_a, Modes({'r', 's'}));
  // Of two modes d may have both.
  const LinearSolveModes both =
      GroupModes(MatrixFunction::kExponential, Matrices({'i', 'j'}, {3, 3}),
                 nullptr, {'j', 'i'})
          .value();
  EXPECT_EQ(both.rows, Modes({'i'}));
  EXPECT_EQ(both.columns, Modes({'j'}));
  EXPECT_EQ(both.sides, Modes({'j'}));
}

TEST(LinearSolveTest, RefusesWhatAreNoEquations) {
  LinearSolveDesc desc = Equations();
  desc.b->modes[1] = 'z';
  EXPECT_THAT(Validate(desc), IsInvalid("MODE_NOT_IN_OUTPUT", "mode 'i' of a"));
  desc = Equations();
  desc.d.modes[2] = 'z';
  EXPECT_THAT(Validate(desc), IsInvalid("MODE_NOT_IN_OUTPUT", "mode 'k' of b"));
  desc = Equations();
  desc.d = Matrices({'n', 'j', 'k', 'z'}, {2, 6, 5, 1});
  EXPECT_THAT(Validate(desc), IsInvalid("MODE_NOT_IN_INPUT", "mode 'z' of d"));
  desc = Equations();
  desc.a = Matrices({'n', 'i', 'j'}, {2, 6, 7});
  desc.d = Matrices({'n', 'j', 'k'}, {2, 7, 5});
  EXPECT_THAT(Validate(desc),
              IsInvalid("MATRIX_NOT_SQUARE",
                        "a has 6 rows, along ('i'), and 7 columns"));
  desc = Equations();
  desc.d = Matrices({'n', 'j', 'k'}, {2, 6, 4});
  EXPECT_THAT(Validate(desc), IsInvalid("MODE_EXTENT_MISMATCH", "mode 'k'"));
  desc = Equations();
  desc.b = Matrices({'n', 'i', 'k'}, {3, 6, 5});
  EXPECT_THAT(Validate(desc), IsInvalid("MODE_EXTENT_MISMATCH", "mode 'n'"));
  desc = Equations();
  desc.a.unary = UnaryOperator::kSqrt;
  EXPECT_THAT(Validate(desc),
              IsInvalid("OPERATOR_NOT_LINEAR", "where equations are solved"));
  desc = Equations();
  desc.has_unit_diagonal = true;
  EXPECT_THAT(Validate(desc), IsInvalid("UNIT_DIAGONAL_WITHOUT_TRIANGLE",
                                        "of a general matrix"));
  desc.structure = MatrixStructure::kLowerTriangular;
  EXPECT_EQ(Validate(desc), absl::OkStatus());
  desc = Equations();
  desc.b->element_type = ElementType::kFloat32;
  EXPECT_THAT(Validate(desc), IsUnsupported("b is float32 but a is float64"));
  desc = Equations();
  desc.a.element_type = ElementType::kFloat16;
  EXPECT_THAT(Validate(desc), IsUnsupported("a is float16, wanted float32"));
  desc = Equations();
  desc.d.layout.strides[0] = 0;
  EXPECT_FALSE(Validate(desc).ok());
}

TEST(LinearSolveTest, RefusesWhatAreNoInverses) {
  LinearSolveDesc desc = Inverse();
  desc.d = Matrices({'n', 'j'}, {2, 6});
  EXPECT_THAT(Validate(desc),
              IsInvalid("MODES_OF_INVERSE", "lacks 1 mode of a"));
  desc.d = Matrices({'n', 'j', 'i'}, {2, 6, 6});
  EXPECT_THAT(Validate(desc), IsInvalid("MODES_OF_INVERSE", "as in ij->jk"));
  desc.d = Matrices({'j', 'k', 'n'}, {6, 6, 2});
  EXPECT_THAT(Validate(desc), IsInvalid("MODES_OF_INVERSE", "its own last"));
  desc.d = Matrices({'k'}, {6});
  EXPECT_THAT(Validate(desc), IsInvalid("MODES_OF_INVERSE", "lacks 3 modes"));
  desc.d = Matrices({'n', 'j', 'k'}, {2, 6, 5});
  EXPECT_THAT(Validate(desc),
              IsInvalid("MODE_EXTENT_MISMATCH", "mode 'k' of d has extent 5"));
}

TEST(LinearSolveTest, RefusesWhatAreNoExponentials) {
  LinearSolveDesc desc = Exponential();
  desc.d = Matrices({'n', 'i'}, {2, 6});
  EXPECT_THAT(Validate(desc),
              IsInvalid("MODES_OF_EXPONENTIAL", "lacks 1 mode of a"));
  desc.d = Matrices({'n', 'i', 'j'}, {2, 6, 6});
  EXPECT_THAT(Validate(desc),
              IsInvalid("MODES_OF_EXPONENTIAL", "as in nij->nik"));
  EXPECT_THAT(
      GroupModes(MatrixFunction::kExponential, desc.a, nullptr, {'n', 'i', 'i'})
          .status(),
      IsInvalid("MODE_REPEATED", "mode 'i' occurs twice in d"));
  EXPECT_THAT(GroupModes(MatrixFunction::kExponential, Matrices({'i'}, {6}),
                         nullptr, {'i'})
                  .status(),
              IsInvalid("MODES_OF_EXPONENTIAL", "a ('i') has 1 mode, wanted"));
  desc.d = Matrices({'k', 'l'}, {6, 6});
  EXPECT_THAT(Validate(desc), IsInvalid("MODES_OF_EXPONENTIAL", "has 0 of"));
  desc.d = Matrices({'n', 'i', 'k'}, {2, 6, 5});
  EXPECT_THAT(Validate(desc),
              IsInvalid("MODE_EXTENT_MISMATCH", "mode 'k' of d has extent 5"));
  desc = Exponential();
  desc.b = desc.a;
  EXPECT_THAT(Validate(desc), IsInvalid("RIGHT_SIDE_UNWANTED", "a alone"));
  // As many rows as columns, but not one for one.
  desc.b.reset();
  desc.a = Matrices({'p', 'q', 'r', 's'}, {2, 3, 3, 2});
  desc.d = Matrices({'p', 'q', 'x', 'y'}, {2, 3, 3, 2});
  EXPECT_THAT(Validate(desc),
              IsInvalid("MATRIX_NOT_SQUARE", "mode 'p' of rows has extent 2"));
}

TEST(LinearSolveTest, AnExponentialIsCountedByRowsOfD) {
  LinearSolveDesc desc = Exponential();
  desc.structure = MatrixStructure::kPositiveDefinite;
  const LinearSolveProblem problem = Canonicalize(desc);
  EXPECT_EQ(problem.structure, MatrixStructure::kHermitian);
  EXPECT_EQ(problem.rows[0], (LoopMode<2>{6, {6, 6}}));
  EXPECT_EQ(problem.columns[0], (LoopMode<2>{6, {1, 0}}));
  EXPECT_EQ(problem.sides[0], (LoopMode<2>{6, {0, 1}}));
  EXPECT_DOUBLE_EQ(FlopCount(problem), 2 * 56 * 216 / 3.0);
}

TEST(LinearSolveTest, ProblemsKeepTheOrderThatNumbersRows) {
  LinearSolveDesc desc = Equations();
  desc.a = Matrices({'n', 'x', 'y', 'j'}, {2, 2, 3, 6});
  desc.b = Matrices({'n', 'k', 'x', 'y'}, {2, 5, 2, 3});
  LinearSolveProblem problem = Canonicalize(desc);
  ASSERT_EQ(problem.rows.size(), 1u);
  EXPECT_EQ(problem.rows[0], (LoopMode<2>{6, {6, 1}}));
  EXPECT_EQ(problem.columns[0], (LoopMode<2>{6, {1, 5}}));
  EXPECT_EQ(problem.sides[0], (LoopMode<2>{5, {6, 1}}));
  EXPECT_EQ(problem.batch[0], (LoopMode<3>{2, {36, 30, 30}}));
  EXPECT_FALSE(problem.conj_a);
  desc.b = Matrices({'n', 'k', 'y', 'x'}, {2, 5, 3, 2});
  EXPECT_EQ(Canonicalize(desc).rows.size(), 2u);
  // 2/3 n^3 + 2 m n^2, for each of two.
  EXPECT_DOUBLE_EQ(FlopCount(problem), 2 * (2 * 216 / 3.0 + 2 * 5 * 36));
  problem = Canonicalize(Inverse());
  EXPECT_FALSE(problem.has_b);
  EXPECT_EQ(problem.sides[0], (LoopMode<2>{6, {0, 1}}));
}

}  // namespace
}  // namespace tensord::core
