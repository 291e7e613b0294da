// A view as a list of steps that a kernel of any device can follow. Includes
// nothing of the library, so that device code can include it.
#pragma once

#include <cstdint>

namespace tensord::core {

/// How to find the element that a linear index of a view leads to.
///
/// The values are the linear index, then one a step. Every step adds up
/// factor * value over its terms, which name earlier values, on top of its
/// constant, and makes of the sum what its kind says. The last step is a kSum:
/// the element. 4 KiB at most, to be passed to a kernel by value.
///
/// Invariant  term_ends[i - 1] <= term_ends[i]: step i has the terms between.
struct GatherSteps {
  enum Kind : uint8_t {
    kSum,       // the sum
    kQuotient,  // the sum / numbers[i], rounded down
    kXor,       // the sum, exclusive or the value of the step before
    kRequire,   // nothing: all is padding unless 0 <= the sum <= numbers[i]
  };
  static constexpr int kMaxSteps = 96;
  static constexpr int kMaxTerms = 224;

  /// Returned for padding.
  static constexpr int64_t kPadding = -1;

  int64_t element_count;         // linear indices, padding included
  int64_t constants[kMaxSteps];  // (step)
  int64_t numbers[kMaxSteps];    // (step)
  int64_t factors[kMaxTerms];    // (term)
  int32_t step_count;
  Kind kinds[kMaxSteps];         // (step)
  uint8_t term_ends[kMaxSteps];  // (step)
  uint8_t values[kMaxTerms];     // (term): 0 the linear index, 1 + i step i
};

/// The element, from the first of the storage, that `linear_index` of the view
/// leads to, or kPadding.
/// Requires  0 <= linear_index < steps.element_count.
constexpr int64_t Locate(const GatherSteps& steps, int64_t linear_index) {
  int64_t values[GatherSteps::kMaxSteps + 1];
  values[0] = linear_index;
  int term = 0;
  for (int step = 0; step < steps.step_count; ++step) {
    const GatherSteps::Kind kind = steps.kinds[step];
    // Modulo 2^64: what the sum itself does not need cancels.
    uint64_t bits = static_cast<uint64_t>(steps.constants[step]);
    for (; term < steps.term_ends[step]; ++term) {
      bits += static_cast<uint64_t>(steps.factors[term]) *
              static_cast<uint64_t>(values[steps.values[term]]);
    }
    int64_t value = static_cast<int64_t>(bits);
    if (kind == GatherSteps::kQuotient) {
      const int64_t quotient = value / steps.numbers[step];
      value = quotient - (value % steps.numbers[step] < 0 ? 1 : 0);
    } else if (kind == GatherSteps::kXor) {
      value ^= values[step];
    } else if (kind == GatherSteps::kRequire &&
               (value < 0 || value > steps.numbers[step])) {
      return GatherSteps::kPadding;
    }
    values[step + 1] = value;
  }
  return values[steps.step_count];
}

}  // namespace tensord::core
