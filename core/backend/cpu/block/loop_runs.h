// Loop nests as runs along their first mode.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/backend/cpu/thread_pool.h"
#include "core/base/checked_math.h"
#include "core/problem/loop_modes.h"

namespace tensord::core {

/// Calls visit(offsets, strides, count) for each run of the elements with
/// linear indices in [begin, end). The first and the last run may be cut short.
/// `offsets` says where the first element of a run lies in each operand.
///
/// Requires  begin < end; modes is not empty.
template <size_t operand_count, typename Visitor>
void ForEachRunBetween(const LoopModes<operand_count>& modes, int64_t begin,
                       int64_t end, Visitor& visit) {
  using Offsets = std::array<int64_t, operand_count>;
  const LoopMode<operand_count>& run = modes[0];
  const auto advance = [](Offsets& offsets, const LoopMode<operand_count>& mode,
                          int64_t steps) {
    for (size_t i = 0; i < operand_count; ++i) {
      offsets[i] += steps * mode.strides[i];
    }
  };
  Offsets offsets = {};
  absl::InlinedVector<int64_t, 6> places(modes.size());  // (mode)
  int64_t rest = begin;
  for (size_t m = 0; m < modes.size(); ++m) {
    places[m] = rest % modes[m].extent;
    rest /= modes[m].extent;
    advance(offsets, modes[m], places[m]);
  }
  for (int64_t left = end - begin; left > 0;) {
    const int64_t count = std::min(run.extent - places[0], left);
    visit(std::as_const(offsets), run.strides, count);
    left -= count;
    advance(offsets, run, -places[0]);
    places[0] = 0;
    for (size_t m = 1; m < modes.size(); ++m) {
      advance(offsets, modes[m], 1);
      if (++places[m] < modes[m].extent) break;
      advance(offsets, modes[m], -places[m]);
      places[m] = 0;
    }
  }
}

/// Calls visit(offsets, strides, count), on all threads, for runs that cover
/// the loop nest. They go along its first mode or, where that is short, its
/// second.
template <size_t operand_count, typename Visitor>
void ForEachRun(ThreadPool& threads, LoopModes<operand_count> modes,
                Visitor&& visit) {
  constexpr int64_t kShortRun = 16;
  constexpr int64_t kElementsPerPart = int64_t{1} << 16;
  if (modes.empty()) modes.push_back({1, {}});
  if (modes.size() > 1 && modes[0].extent < kShortRun &&
      modes[0].extent < modes[1].extent) {
    std::swap(modes[0], modes[1]);
  }
  const int64_t count = ElementCount(modes);
  threads.ParallelFor(CeilDivide(count, kElementsPerPart), [&](int64_t part) {
    const int64_t begin = part * kElementsPerPart;
    ForEachRunBetween(modes, begin, std::min(count, begin + kElementsPerPart),
                      visit);
  });
}

}  // namespace tensord::core
