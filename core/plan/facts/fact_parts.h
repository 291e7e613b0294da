// What the facts of all operations are made of.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/checked_math.h"
#include "core/base/layout.h"
#include "core/base/status.h"
#include "core/ops/operators.h"
#include "core/problem/loop_modes.h"

namespace tensord::core {

template <size_t n>
double Count(const LoopModes<n>& modes) {
  return static_cast<double>(ElementCount(modes));
}

/// Elements of `operand` that the loops visit: broadcast modes count once.
template <size_t n>
int64_t Visited(const LoopModes<n>& modes, size_t operand) {
  int64_t count = 1;
  for (const auto& mode : modes) {
    if (mode.strides[operand] != 0 || mode.extent == 0) count *= mode.extent;
  }
  return count;
}

template <size_t n>
void AppendLoops(std::string* out, absl::string_view group,
                 const LoopModes<n>& modes) {
  if (modes.empty()) return;
  absl::StrAppend(out, " ", group);
  for (const auto& mode : modes) {
    absl::StrAppend(out, " ", mode.extent, ":(");
    for (size_t i = 0; i < n; ++i) {
      absl::StrAppend(out, i == 0 ? "" : ",", mode.strides[i]);
    }
    absl::StrAppend(out, ")");
  }
}

inline constexpr absl::string_view kNotCanonical = "PROBLEM_NOT_CANONICAL";

inline absl::Status CheckThat(bool condition, absl::string_view fact) {
  return condition
             ? absl::OkStatus()
             : InvalidArgument(kNotCanonical, "not a canonical problem: ", fact,
                               " is wanted");
}

/// Where `operand` lies along `modes`. A mode that it is broadcast along is
/// left out where `may_broadcast`.
template <size_t n>
void AppendLayout(const LoopModes<n>& modes, size_t operand, bool may_broadcast,
                  Layout& layout) {
  for (const auto& mode : modes) {
    const int64_t stride = mode.strides[operand];
    if (stride == 0 && (may_broadcast || mode.extent == 0)) continue;
    layout.extents.push_back(mode.extent);
    layout.strides.push_back(stride);
  }
}

/// The number of elements that the loops visit. What Canonical() computes on
/// its way must not overflow either.
template <size_t n>
absl::StatusOr<int64_t> CheckNumbers(const LoopModes<n>& modes,
                                     absl::string_view name) {
  TENSORD_RETURN_IF_ERROR(CheckThat(
      modes.size() <= kMaxModes, absl::StrCat("at most 64 modes in ", name)));
  int64_t count = 1;
  for (const auto& mode : modes) {
    bool fits = mode.extent >= 0;
    for (const int64_t stride : mode.strides) {
      fits = fits && stride >= 0 && CheckedMultiply(mode.extent, stride);
    }
    const auto more = CheckedMultiply(count, mode.extent);
    TENSORD_RETURN_IF_ERROR(CheckThat(
        fits && more,
        absl::StrCat("extents and strides that can be computed with in ",
                     name)));
    count = *more;
  }
  return count;
}

template <size_t n>
absl::Status CheckLoops(const LoopModes<n>& modes, size_t leading,
                        absl::string_view name) {
  TENSORD_RETURN_IF_ERROR(CheckNumbers(modes, name).status());
  // Modes of equal strides may come in any order: merging lets them grow.
  const LoopModes<n> canonical = Canonical(modes, leading);
  const bool is_canonical = std::ranges::equal(
      canonical, modes, {}, &LoopMode<n>::strides, &LoopMode<n>::strides);
  return CheckThat(is_canonical,
                   absl::StrCat("the canonical order of modes in ", name));
}

inline absl::Status CheckInput(const Layout& layout, ElementType type,
                               absl::string_view name) {
  return ValidateLayout(layout, SizeOf(type), name);
}

inline absl::Status CheckOutput(const Layout& layout, ElementType type) {
  TENSORD_RETURN_IF_ERROR(ValidateLayout(layout, SizeOf(type), "d"));
  return CheckThat(IsInjective(layout), "d that does not overlap itself");
}

inline absl::Status CheckUnary(UnaryOperator op, ElementType type,
                               absl::string_view name) {
  TENSORD_RETURN_IF_ERROR(ValidateUnary(op, type, name));
  const bool keeps_reals =
      op == UnaryOperator::kConj || op == UnaryOperator::kReal;
  return CheckThat(!keeps_reals || IsComplex(type),
                   "IDENTITY for CONJ and REAL of real numbers");
}

inline absl::Status CheckAlignment(int64_t bytes, int64_t widest) {
  return CheckThat(bytes >= 1 && bytes <= widest &&
                       std::has_single_bit(static_cast<uint64_t>(bytes)),
                   "an alignment of 1, 2, 4, 8 or 16 bytes");
}

}  // namespace tensord::core
