// Operands for programs in tests, and programs at random.
#pragma once

#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/notation/program/lower.h"
#include "core/notation/program/program.h"
#include "gtest/gtest.h"
#include "tests/unit/core/notation/program/interpreter.h"

namespace tensord::core::test {

/// Largest rounding error of what a program of these tests computes, from
/// magnitudes below 2 and few products of them: very generous, and still far
/// below a wrong term.
inline constexpr double kBound = 1e-9;

/// Values from the unit square, in a layout that may have gaps.
Values RandomValues(const ModeVector& extents, std::mt19937& rng);

/// What a program is run on.
struct Inputs {
  std::vector<std::string> names;
  std::vector<Values> values;
  std::map<std::string, Scalar> scalars;
  std::set<std::string> constants;  // some of `names`

  void Add(std::string name, Values tensor);
  /// Tensors in their order, then scalars.
  std::vector<NamedOperand> Described() const;
  /// Tensors by name.
  ValuesByName ByName() const;
};

/// Expects every element of `got` within `bound` of that of `wanted`.
void ExpectNear(const Values& got, const Values& wanted, double bound,
                absl::string_view what);

absl::StatusOr<Program> Lower(absl::string_view text, const Inputs& inputs,
                              const LoweringOptions& options = {},
                              const std::vector<NamedOutput>& outputs = {});

/// Lowers and runs `text`, and compares all that it makes and writes with what
/// it means.
Program RunAndCompare(absl::string_view text, Inputs inputs,
                      const LoweringOptions& options = {});

/// How many steps of a program have a desc of this type.
template <typename Desc>
int CountSteps(const Program& program) {
  int count = 0;
  for (const ProgramBlock& block : program.blocks) {
    for (const ProgramStep& step : block.steps) {
      count += std::holds_alternative<Desc>(step.desc);
    }
  }
  return count;
}

/// Tests of programs on operands at random.
class ProgramTest : public ::testing::Test {
 protected:
  Inputs Make(const std::vector<std::pair<std::string, ModeVector>>& tensors);

  std::mt19937 rng_{1};
};

/// A few statements over operands that are added to `inputs`, with a scalar
/// `x`. Now and then the syntax refuses one: LABEL_REUSED.
std::string RandomProgram(std::mt19937& rng, Inputs& inputs);

}  // namespace tensord::core::test
