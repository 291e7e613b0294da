#include "core/backend/cuda/nests.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "core/backend/cuda/permutation_words.h"

namespace tensord::core::cuda {
namespace {

constexpr uintptr_t kWidestWord = 16;

/// A part of a loop nest: where it begins in each operand, in words.
template <size_t operand_count>
struct Part {
  std::array<int64_t, operand_count> first = {};
  IndexSpace<operand_count> modes;
};

/// The largest power of two up to kWidestWord that all of `addresses` are
/// multiples of.
int64_t AlignmentOf(std::initializer_list<const void*> addresses) {
  uintptr_t bits = kWidestWord;
  for (const void* address : addresses) {
    bits |= reinterpret_cast<uintptr_t>(address);
  }
  return int64_t{1} << std::countr_zero(bits);
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
  const int word_bytes =
      WidenWords(modes, operands.element_bytes, AlignmentOf({operands.d}));
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
  const int word_bytes = WidenWords(modes, operands.element_bytes,
                                    AlignmentOf({operands.a, operands.d}));
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
