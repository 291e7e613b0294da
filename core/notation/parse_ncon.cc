#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/notation/parse_einsum.h"

namespace tensord::core {
namespace {

template <typename... Parts>
absl::Status Malformed(const Parts&... parts) {
  return InvalidArgument("NCON_MALFORMED", parts...);
}

absl::Status CheckCounts(absl::Span<const std::vector<int64_t>> labels,
                         absl::Span<const int> mode_counts) {
  if (labels.size() != mode_counts.size() || labels.empty()) {
    return InvalidArgument(
        "OPERAND_COUNT_MISMATCH", "got labels for ", labels.size(),
        " operands, wanted them for ",
        labels.empty() ? "one or more" : absl::StrCat(mode_counts.size()));
  }
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i].size() == mode_counts[i]) continue;
    return InvalidArgument("MODE_COUNT_MISMATCH", "operand ", i, " has ",
                           labels[i].size(), " labels, but ", mode_counts[i],
                           " modes");
  }
  return absl::OkStatus();
}

struct Numbers {
  std::vector<int64_t> summed;  // ascending
  std::vector<int64_t> open;    // -1 first
};

absl::StatusOr<Numbers> Sort(absl::Span<const std::vector<int64_t>> labels) {
  std::map<int64_t, int> counts;
  for (const auto& of_operand : labels) {
    for (const int64_t number : of_operand) ++counts[number];
  }
  Numbers numbers;
  for (const auto& [number, count] : counts) {
    if (number == 0) {
      return Malformed("label 0 occurs, wanted positive and negative numbers");
    }
    const int wanted = number > 0 ? 2 : 1;
    if (count != wanted) {
      return Malformed(
          "label ", number, " occurs ", count, " times, wanted ",
          number > 0 ? "positive labels twice" : "negative labels once");
    }
    (number > 0 ? numbers.summed : numbers.open).push_back(number);
  }
  std::ranges::reverse(numbers.open);
  return numbers;
}

/// `given` unless it is empty, and then `numbers`.
///
/// Errors  NCON_MALFORMED: they are not the same numbers.
absl::StatusOr<std::vector<int64_t>> InOrder(
    const std::vector<int64_t>& numbers, absl::Span<const int64_t> given,
    absl::string_view what, absl::string_view sign) {
  if (given.empty()) return numbers;
  absl::flat_hash_set<int64_t> left(numbers.begin(), numbers.end());
  for (const int64_t number : given) {
    if (left.erase(number) == 1) continue;
    return Malformed(
        "label ", number, " of the ", what,
        " is there twice or is none of the operands', wanted each ", sign,
        " label once");
  }
  for (const int64_t number : numbers) {
    if (!left.contains(number)) continue;
    return Malformed("label ", number, " is missing in the ", what,
                     ", wanted each ", sign, " label once");
  }
  return std::vector<int64_t>(given.begin(), given.end());
}

Labels LabelsOf(absl::Span<const int64_t> numbers) {
  Labels labels;
  for (const int64_t number : numbers) {
    labels.push_back({absl::StrCat(number), {}});
  }
  return labels;
}

}  // namespace

absl::StatusOr<EinsumSyntax> ParseNcon(
    absl::Span<const std::vector<int64_t>> labels,
    absl::Span<const int64_t> order, absl::Span<const int64_t> output,
    absl::Span<const int> mode_counts, const NotationLimits& limits) {
  if (std::ssize(labels) > limits.max_factors) {
    return InvalidArgument("PROGRAM_TOO_LONG", "there are labels for ",
                           labels.size(), " operands, the limit is ",
                           limits.max_factors);
  }
  TENSORD_RETURN_IF_ERROR(CheckCounts(labels, mode_counts));
  TENSORD_ASSIGN_OR_RETURN(const Numbers numbers, Sort(labels));
  TENSORD_ASSIGN_OR_RETURN(const auto summed,
                           InOrder(numbers.summed, order, "order", "positive"));
  TENSORD_ASSIGN_OR_RETURN(const auto open,
                           InOrder(numbers.open, output, "output", "negative"));
  EinsumSyntax einsum;
  for (const auto& of_operand : labels) {
    einsum.inputs.push_back(LabelsOf(of_operand));
  }
  einsum.output = LabelsOf(open);
  for (const int64_t number : summed) {
    einsum.order.push_back(absl::StrCat(number));
  }
  return einsum;
}

}  // namespace tensord::core
