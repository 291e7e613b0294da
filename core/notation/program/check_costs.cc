#include "core/notation/program/check_costs.h"

#include <set>

#include "absl/strings/str_join.h"
#include "core/base/status.h"
#include "core/notation/characters.h"
#include "core/notation/path/symbolic.h"

namespace tensord::core {
namespace {

/// The first of `labels`, for messages.
std::string SomeOf(const std::set<std::string>& labels) {
  constexpr size_t kMost = 20;
  if (labels.empty()) return "none";
  if (labels.size() <= kMost) return absl::StrJoin(labels, ", ");
  return absl::StrCat(
      absl::StrJoin(labels.begin(), std::next(labels.begin(), kMost), ", "),
      " and so on");
}

}  // namespace

absl::Status CheckCosts(const LoweringOptions& options) {
  if (!options.costs) return absl::OkStatus();
  const PathMethod method = options.path.method;
  if (method != PathMethod::kAuto && method != PathMethod::kOptimal) {
    return InvalidArgument(
        "COST_CONFLICT", "costs are given together with the method ",
        NameOf(method), ", which looks at extents, wanted auto or optimal");
  }
  return ParseCosts(*options.costs, {}).status();
}

absl::Status CheckCostLabels(const LoweringOptions& options,
                             absl::Span<const std::string> labels) {
  if (!options.costs) return absl::OkStatus();
  TENSORD_ASSIGN_OR_RETURN(const SymbolicExtents costs,
                           ParseCosts(*options.costs, {}));
  const std::set<std::string> known(labels.begin(), labels.end());
  for (const auto& [label, column] : costs.named) {
    if (known.contains(label)) continue;
    return InvalidArgument("COST_LABEL_UNKNOWN", "costs, column ", column,
                           ": the program has no label ", Quoted(label),
                           ", wanted one of ", SomeOf(known));
  }
  return absl::OkStatus();
}

}  // namespace tensord::core
