#include "core/notation/program/fold_constants.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/checked_math.h"
#include "core/base/status.h"
#include "core/notation/program/arena.h"

namespace tensord::core {
namespace {

using Place = ProgramTensor::Place;
using StepFunction =
    absl::FunctionRef<void(const ProgramBlock&, const ProgramStep&, int64_t)>;

/// Calls `visit` for each step with its number, counted through all blocks.
void ForEachStep(const Program& program, StepFunction visit) {
  int64_t number = 0;
  for (const ProgramBlock& block : program.blocks) {
    for (const ProgramStep& step : block.steps) visit(block, step, number++);
  }
}

/// Finds the temporaries that depend on constant operands alone.
class Folding {
 public:
  explicit Folding(const Program& program)
      : program_(program),
        is_folded_(program.tensors.size()),
        last_write_(program.tensors.size(), -1) {
    for (size_t t = 0; t < is_folded_.size(); ++t) {
      is_folded_[t] = program.tensors[t].place == Place::kTemporary;
    }
    ForEachStep(program, [this](const auto&, const auto& step, int64_t number) {
      for (const StepOperand* const output : step.outputs()) {
        last_write_[output->tensor] = number;
      }
    });
    // All at first; then fewer, until none is in the way of another.
    while (std::exchange(has_changed_, false)) {
      ForEachStep(program, [this](const ProgramBlock& block,
                                  const ProgramStep& step, int64_t number) {
        if (Folds(block, step)) return;
        for (const StepOperand* const output : step.outputs()) {
          Drop(output->tensor);
        }
        for (const StepOperand* const input : step.inputs()) {
          if (number < last_write_[input->tensor]) Drop(input->tensor);
        }
      });
    }
  }

  bool Folds(const ProgramBlock& block, const ProgramStep& step) const {
    const auto writes_folded = [this](const StepOperand* output) {
      return is_folded_[output->tensor];
    };
    const auto reads_folded = [this](const StepOperand* input) {
      const ProgramTensor& tensor = program_.tensors[input->tensor];
      return tensor.place == Place::kConstant || is_folded_[input->tensor] ||
             (tensor.place == Place::kOperand &&
              program_.operand_constant[tensor.number]);
    };
    return block.slice_extents.empty() &&
           std::ranges::all_of(step.outputs(), writes_folded) &&
           std::ranges::all_of(step.inputs(), reads_folded);
  }

 private:
  void Drop(int32_t tensor) {
    has_changed_ |= is_folded_[tensor];
    is_folded_[tensor] = false;
  }

  const Program& program_;
  std::vector<bool> is_folded_;      // (tensor)
  std::vector<int64_t> last_write_;  // (tensor): step
  bool has_changed_ = true;
};

/// Gives `tensor`, unless it has one, a place where it is kept.
absl::Status Keep(ProgramTensor& tensor, int64_t& kept_bytes) {
  if (tensor.place == Place::kKept) return absl::OkStatus();
  TENSORD_ASSIGN_OR_RETURN(const int64_t bytes, ArenaBytesOf(tensor));
  const std::optional<int64_t> end = CheckedAdd(kept_bytes, bytes);
  if (!end) {
    return ResourceExhausted("ARENA_TOO_LARGE",
                             "what is kept of constant operands has more bytes "
                             "together than can be counted");
  }
  tensor.place = Place::kKept;
  tensor.kept_offset_bytes = kept_bytes;
  kept_bytes = *end;
  return absl::OkStatus();
}

bool AreAlike(const ProgramTensor& x, const ProgramTensor& y) {
  return x.place == y.place && x.number == y.number &&
         x.kept_offset_bytes == y.kept_offset_bytes && x.value == y.value;
}

bool AreAlike(const ProgramStep& x, const ProgramStep& y) {
  return x.desc == y.desc && x.a == y.a && x.b == y.b && x.c == y.c &&
         x.d == y.d && x.others == y.others && x.alpha == y.alpha &&
         x.beta == y.beta && x.gamma == y.gamma &&
         x.truncation == y.truncation && x.kept == y.kept;
}

}  // namespace

absl::Status FoldConstants(Program& program) {
  const size_t operand_count = program.operands.size();
  program.operand_folded.assign(operand_count, false);
  program.operand_only_folded.assign(operand_count, false);
  if (std::ranges::find(program.operand_constant, true) ==
      program.operand_constant.end()) {
    return absl::OkStatus();
  }
  const Folding folding(program);
  ProgramBlock folded;
  folded.is_folded = true;
  std::vector<int32_t> read_later;
  for (ProgramBlock& block : program.blocks) {
    std::vector<ProgramStep> others;
    for (ProgramStep& step : block.steps) {
      const bool folds = folding.Folds(block, step);
      for (const StepOperand* const input : step.inputs()) {
        if (!folds) read_later.push_back(input->tensor);
        const ProgramTensor& tensor = program.tensors[input->tensor];
        if (folds && tensor.place == Place::kOperand) {
          program.operand_folded[tensor.number] = true;
        }
      }
      (folds ? folded.steps : others).push_back(std::move(step));
    }
    block.steps = std::move(others);
  }
  std::erase_if(program.blocks,
                [](const ProgramBlock& block) { return block.steps.empty(); });
  if (folded.steps.empty()) return absl::OkStatus();

  program.operand_only_folded = program.operand_folded;
  std::vector<bool> is_made(program.tensors.size());
  for (const ProgramStep& step : folded.steps) {
    for (const StepOperand* const output : step.outputs()) {
      is_made[output->tensor] = true;
    }
  }
  for (const int32_t input : read_later) {
    ProgramTensor& tensor = program.tensors[input];
    if (tensor.place == Place::kOperand) {
      program.operand_only_folded[tensor.number] = false;
    }
    if (is_made[input]) {
      TENSORD_RETURN_IF_ERROR(Keep(tensor, program.kept_bytes));
    }
  }
  program.blocks.insert(program.blocks.begin(), std::move(folded));
  return absl::OkStatus();
}

bool FoldAlike(const Program& x, const Program& y) {
  if (x.has_folded_block() != y.has_folded_block()) return false;
  if (!x.has_folded_block()) return true;
  const std::vector<ProgramStep>& steps = x.blocks.front().steps;
  const std::vector<ProgramStep>& others = y.blocks.front().steps;
  if (x.kept_bytes != y.kept_bytes || steps.size() != others.size()) {
    return false;
  }
  for (size_t s = 0; s < steps.size(); ++s) {
    if (!AreAlike(steps[s], others[s])) return false;
    const auto are_alike = [&](const StepOperand* operand) {
      return AreAlike(x.tensors[operand->tensor], y.tensors[operand->tensor]);
    };
    if (!std::ranges::all_of(steps[s].inputs(), are_alike) ||
        !std::ranges::all_of(steps[s].outputs(), are_alike)) {
      return false;
    }
  }
  return true;
}

}  // namespace tensord::core
