#include "core/base/nearest.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "absl/strings/match.h"

namespace tensord::core {
namespace {

/// Insertions, deletions and replacements that lead from one to the other.
size_t EditDistance(absl::string_view from, absl::string_view to) {
  std::vector<size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < from.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 0; j < to.size(); ++j) {
      const size_t replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string Nearest(absl::string_view name,
                    const std::vector<std::string>& known) {
  constexpr size_t kLeastBeginning = 4;
  std::string nearest;
  size_t least = std::max<size_t>(2, name.size() / 3) + 1;
  for (const std::string& each : known) {
    const bool begins =
        name.size() >= kLeastBeginning && absl::StartsWith(each, name);
    const size_t distance = begins ? 0 : EditDistance(name, each);
    // Some of it has to be the same.
    if (distance >= least || distance >= std::max(name.size(), each.size())) {
      continue;
    }
    least = distance;
    nearest = each;
  }
  return nearest;
}

}  // namespace tensord::core
