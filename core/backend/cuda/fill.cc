#include "core/backend/cuda/fill.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace tensord::core::cuda {
namespace {

/// Whether pairs of neighbouring words are neighbours wherever they begin.
bool CanDouble(const LoopModes<1>& modes, const void* d, int word_bytes) {
  if (word_bytes == 16 || modes.empty() || modes[0].strides[0] != 1 ||
      modes[0].extent % 2 != 0 ||
      reinterpret_cast<uintptr_t>(d) % (2 * word_bytes) != 0) {
    return false;
  }
  return std::all_of(
      modes.begin() + 1, modes.end(),
      [](const LoopMode<1>& mode) { return mode.strides[0] % 2 == 0; });
}

void Double(LoopModes<1>& modes, FillTask& task) {
  std::memcpy(task.value + task.word_bytes, task.value, task.word_bytes);
  task.word_bytes *= 2;
  modes[0].extent /= 2;
  for (size_t m = 1; m < modes.size(); ++m) modes[m].strides[0] /= 2;
}

/// Adds tasks for the first `mode_count` modes, from `offset` words on; `task`
/// has what they share.
void AddTasks(const LoopModes<1>& modes, size_t mode_count, int64_t offset,
              int64_t limit, const FillTask& task,
              std::vector<FillTask>& tasks) {
  int64_t inner = 1;  // words below the slowest mode
  for (size_t m = 0; m + 1 < mode_count; ++m) inner *= modes[m].extent;
  const LoopMode<1> slowest =
      mode_count == 0 ? LoopMode<1>{1, {0}} : modes[mode_count - 1];
  if (inner > limit) {
    for (int64_t i = 0; i < slowest.extent; ++i) {
      AddTasks(modes, mode_count - 1, offset + i * slowest.strides[0], limit,
               task, tasks);
    }
    return;
  }
  const int64_t most = limit / inner;
  for (int64_t first = 0; first < slowest.extent; first += most) {
    FillTask& part = tasks.emplace_back(task);
    part.d = static_cast<std::byte*>(task.d) +
             (offset + first * slowest.strides[0]) * task.word_bytes;
    for (size_t m = 0; m + 1 < mode_count; ++m) {
      part.modes.Add(modes[m].extent, modes[m].strides);
    }
    part.modes.Add(std::min(most, slowest.extent - first), slowest.strides);
  }
}

}  // namespace

std::vector<FillTask> FillTasksOf(const FillOperands& operands, int64_t limit) {
  LoopModes<1> modes = operands.modes;
  FillTask task{.d = operands.d,
                .word_bytes = operands.element_bytes,
                .value = {},
                .modes = {}};
  std::memcpy(task.value, operands.value.data(), operands.element_bytes);
  while (CanDouble(modes, operands.d, task.word_bytes)) Double(modes, task);
  std::vector<FillTask> tasks;
  AddTasks(modes, modes.size(), 0, limit, task, tasks);
  return tasks;
}

}  // namespace tensord::core::cuda
