// Keys as bytes: what tells plans apart, on every machine and for good.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/container/fixed_array.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/plan/plan.h"

namespace tensord::core {

/// Most bytes of PlanKey::device and PlanKey::kernel in a key that is read.
inline constexpr size_t kMaxKeyNameBytes = 1024;

/// A key as bytes, most often without memory of its own. Keys are equal when
/// their bytes are.
class EncodedPlanKey {
 public:
  explicit EncodedPlanKey(const PlanKey& key);

  absl::string_view bytes() const { return {memory_.data(), size_}; }

 private:
  absl::FixedArray<char, 512> memory_;
  size_t size_;
};

std::string EncodePlanKey(const PlanKey& key);

/// The key that EncodePlanKey() made `bytes` of. What it gives encodes to the
/// same bytes again, and its problem passes CheckProblem().
///
/// Errors  INVALID_ARGUMENT, reason PLAN_KEY_MALFORMED: anything else.
absl::StatusOr<PlanKey> DecodePlanKey(absl::string_view bytes);

/// A number for an encoded key: the same everywhere and always, and different
/// for different keys, accidents aside.
uint64_t PlanIdOf(absl::string_view encoded_key);

/// The number as 16 hexadecimal digits, in the order of the numbers.
std::string PlanIdText(uint64_t id);
/// Nothing when `text` is not what PlanIdText() gives.
std::optional<uint64_t> PlanIdFromText(absl::string_view text);

}  // namespace tensord::core
