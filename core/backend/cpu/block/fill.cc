#include "core/backend/cpu/block/fill.h"

#include <algorithm>
#include <cstring>

#include "core/base/checked_math.h"

namespace tensord::core {
namespace {

// 64 KiB to 1 MiB.
constexpr int64_t kElementsPerPart = int64_t{1} << 16;

struct TwoWords {
  uint64_t words[2];
};

/// Fills the elements with linear indices from `begin` to `end`.
/// Requires  begin < end.
template <typename Word>
void FillPart(const LoopModes<1>& modes, Word* d, Word value, int64_t begin,
              int64_t end) {
  if (modes.empty()) {
    *d = value;
    return;
  }
  const auto [run, strides] = modes[0];
  int64_t place = begin % run;
  absl::InlinedVector<int64_t, 6> outer(modes.size() - 1);
  int64_t rest = begin / run;
  for (size_t m = 0; m < outer.size(); ++m) {
    outer[m] = rest % modes[m + 1].extent;
    rest /= modes[m + 1].extent;
    d += outer[m] * modes[m + 1].strides[0];
  }
  for (int64_t left = end - begin; left > 0;) {
    const int64_t count = std::min(run - place, left);
    Word* const first = d + place * strides[0];
    if (strides[0] == 1) {
      std::fill_n(first, count, value);
    } else {
      for (int64_t i = 0; i < count; ++i) first[i * strides[0]] = value;
    }
    left -= count;
    place = 0;
    for (size_t m = 0; m < outer.size() && left > 0; ++m) {
      const LoopMode<1>& mode = modes[m + 1];
      d += mode.strides[0];
      if (++outer[m] < mode.extent) break;
      d -= mode.extent * mode.strides[0];
      outer[m] = 0;
    }
  }
}

template <typename Word>
void FillAll(ThreadPool& threads, const FillOperands& operands) {
  Word value;
  std::memcpy(&value, operands.value.data(), sizeof value);
  auto* const d = static_cast<Word*>(operands.d);
  const int64_t count = ElementCount(operands.modes);
  threads.ParallelFor(CeilDivide(count, kElementsPerPart), [&](int64_t part) {
    const int64_t begin = part * kElementsPerPart;
    FillPart(operands.modes, d, value, begin,
             std::min(count, begin + kElementsPerPart));
  });
}

}  // namespace

void Fill(ThreadPool& threads, const FillOperands& operands) {
  switch (operands.element_bytes) {
    case 1: return FillAll<uint8_t>(threads, operands);
    case 2: return FillAll<uint16_t>(threads, operands);
    case 4: return FillAll<uint32_t>(threads, operands);
    case 8: return FillAll<uint64_t>(threads, operands);
    default: return FillAll<TwoWords>(threads, operands);
  }
}

}  // namespace tensord::core
