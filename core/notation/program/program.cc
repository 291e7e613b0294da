#include "core/notation/program/program.h"

namespace tensord::core {

absl::InlinedVector<const StepOperand*, 3> ProgramStep::inputs() const {
  absl::InlinedVector<const StepOperand*, 3> all;
  for (const StepOperand* const input : {&a, &b, &c}) {
    if (input->tensor >= 0) all.push_back(input);
  }
  return all;
}

absl::InlinedVector<const StepOperand*, kMostResults> ProgramStep::outputs()
    const {
  absl::InlinedVector<const StepOperand*, kMostResults> all = {&d};
  for (const StepOperand& other : others) all.push_back(&other);
  return all;
}

int64_t ProgramBlock::slice_count() const {
  int64_t count = 1;
  for (const int64_t extent : slice_extents) count *= extent;
  return count;
}

}  // namespace tensord::core
