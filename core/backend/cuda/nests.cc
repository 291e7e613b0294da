#include "core/backend/cuda/nests.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

namespace tensord::core::cuda {
namespace {

constexpr int kWidestWord = 16;

/// A part of a loop nest: where it begins in each operand, in words.
template <size_t operand_count>
struct Part {
  std::array<int64_t, operand_count> first = {};
  IndexSpace<operand_count> modes;
};

/// Whether pairs of neighbouring words are neighbours wherever they begin.
template <size_t operand_count>
bool CanDouble(const LoopModes<operand_count>& modes,
               const std::array<const void*, operand_count>& addresses,
               int word_bytes) {
  if (word_bytes == kWidestWord || modes.empty() || modes[0].extent % 2 != 0) {
    return false;
  }
  for (size_t i = 0; i < operand_count; ++i) {
    if (modes[0].strides[i] != 1 ||
        reinterpret_cast<uintptr_t>(addresses[i]) % (2 * word_bytes) != 0) {
      return false;
    }
  }
  return std::all_of(modes.begin() + 1, modes.end(), [](const auto& mode) {
    return std::all_of(mode.strides.begin(), mode.strides.end(),
                       [](int64_t stride) { return stride % 2 == 0; });
  });
}

/// Makes words as wide as they can be; returns their bytes.
template <size_t operand_count>
int Widen(LoopModes<operand_count>& modes,
          const std::array<const void*, operand_count>& addresses,
          int word_bytes) {
  while (CanDouble(modes, addresses, word_bytes)) {
    word_bytes *= 2;
    modes[0].extent /= 2;
    for (size_t m = 1; m < modes.size(); ++m) {
      for (int64_t& stride : modes[m].strides) stride /= 2;
    }
  }
  return word_bytes;
}

/// Adds parts of the first `mode_count` modes, from `first` on.
template <size_t operand_count>
void AddParts(const LoopModes<operand_count>& modes, size_t mode_count,
              std::array<int64_t, operand_count> first, int64_t limit,
              std::vector<Part<operand_count>>& parts) {
  int64_t inner = 1;  // words below the slowest mode
  for (size_t m = 0; m + 1 < mode_count; ++m) inner *= modes[m].extent;
  const LoopMode<operand_count> slowest =
      mode_count == 0 ? LoopMode<operand_count>{1, {}} : modes[mode_count - 1];
  const auto advance = [&](int64_t steps) {
    for (size_t i = 0; i < operand_count; ++i) {
      first[i] += steps * slowest.strides[i];
    }
  };
  if (inner > limit) {
    for (int64_t i = 0; i < slowest.extent; ++i, advance(1)) {
      AddParts(modes, mode_count - 1, first, limit, parts);
    }
    return;
  }
  const int64_t most = limit / inner;
  for (int64_t left = slowest.extent; left > 0; left -= most, advance(most)) {
    Part<operand_count>& part = parts.emplace_back();
    part.first = first;
    for (size_t m = 0; m + 1 < mode_count; ++m) {
      part.modes.Add(modes[m].extent, modes[m].strides);
    }
    part.modes.Add(std::min(most, left), slowest.strides);
  }
}

template <size_t operand_count>
std::vector<Part<operand_count>> PartsOf(const LoopModes<operand_count>& modes,
                                         int64_t limit) {
  std::vector<Part<operand_count>> parts;
  AddParts(modes, modes.size(), {}, limit, parts);
  return parts;
}

}  // namespace

std::vector<FillTask> TasksOf(const FillOperands& operands, int64_t limit) {
  LoopModes<1> modes = operands.modes;
  const int word_bytes = Widen<1>(modes, {operands.d}, operands.element_bytes);
  std::vector<FillTask> tasks;
  for (const Part<1>& part : PartsOf(modes, limit)) {
    FillTask& task = tasks.emplace_back();
    task.d = static_cast<std::byte*>(operands.d) + part.first[0] * word_bytes;
    task.word_bytes = word_bytes;
    for (int at = 0; at < word_bytes; at += operands.element_bytes) {
      std::memcpy(task.value + at, operands.value.data(),
                  operands.element_bytes);
    }
    task.modes = part.modes;
  }
  return tasks;
}

std::vector<CopyTask> TasksOf(const CopyOperands& operands, int64_t limit) {
  LoopModes<2> modes = operands.modes;
  const int word_bytes =
      Widen<2>(modes, {operands.a, operands.d}, operands.element_bytes);
  std::vector<CopyTask> tasks;
  for (const Part<2>& part : PartsOf(modes, limit)) {
    tasks.push_back({.a = static_cast<const std::byte*>(operands.a) +
                          part.first[CopyOperands::kA] * word_bytes,
                     .d = static_cast<std::byte*>(operands.d) +
                          part.first[CopyOperands::kD] * word_bytes,
                     .word_bytes = word_bytes,
                     .modes = part.modes});
  }
  return tasks;
}

}  // namespace tensord::core::cuda
