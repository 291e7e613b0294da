#include "core/notation/program/drop_unread.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace tensord::core {
namespace {

using Place = ProgramTensor::Place;

/// Which steps are needed, from the last to the first.
class NeedFinder {
 public:
  explicit NeedFinder(const Program& program)
      : program_(program), is_read_(program.tensors.size()) {}

  /// (step) of `block`, of which all behind it have been looked at.
  std::vector<bool> Find(const ProgramBlock& block) {
    std::vector<bool> is_needed(block.steps.size());
    // What a slice writes, a later slice may read.
    const bool repeats = !block.slice_extents.empty();
    bool has_changed = true;
    while (has_changed) {
      has_changed = false;
      for (size_t s = block.steps.size(); s-- > 0;) {
        const ProgramStep& step = block.steps[s];
        if (is_needed[s] || !IsAnyRead(step)) continue;
        is_needed[s] = true;
        has_changed = repeats;
        for (const StepOperand* const input : step.inputs()) {
          is_read_[input->tensor] = true;
        }
      }
    }
    return is_needed;
  }

 private:
  bool IsAnyRead(const ProgramStep& step) const {
    return std::ranges::any_of(step.outputs(), [this](const StepOperand* d) {
      return program_.tensors[d->tensor].place != Place::kTemporary ||
             is_read_[d->tensor];
    });
  }

  const Program& program_;
  std::vector<bool> is_read_;  // (tensor)
};

}  // namespace

void DropUnread(Program& program) {
  NeedFinder finder(program);
  bool drops = false;
  for (size_t b = program.blocks.size(); b-- > 0;) {
    ProgramBlock& block = program.blocks[b];
    const std::vector<bool> is_needed = finder.Find(block);
    if (std::ranges::find(is_needed, false) == is_needed.end()) continue;
    drops = true;
    std::vector<ProgramStep> needed;
    for (size_t s = 0; s < block.steps.size(); ++s) {
      if (is_needed[s]) needed.push_back(std::move(block.steps[s]));
    }
    block.steps = std::move(needed);
  }
  if (!drops) return;
  std::erase_if(program.blocks,
                [](const ProgramBlock& block) { return block.steps.empty(); });

  std::set<std::pair<int32_t, int32_t>> written;  // statement, tensor
  program.flops = 0;
  for (const ProgramBlock& block : program.blocks) {
    for (const ProgramStep& step : block.steps) {
      written.emplace(step.statement, step.d.tensor);
      program.flops += step.flops * static_cast<double>(block.slice_count());
    }
  }
  for (ProgramProduct& product : program.products) {
    product.is_computed = written.contains({product.statement, product.result});
  }
}

}  // namespace tensord::core
