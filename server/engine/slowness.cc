#include "server/engine/slowness.h"

#include <algorithm>

namespace tensord::server {

double Slowness::Of(const std::string& owner) const {
  const auto known = owners_.find(owner);
  return known == owners_.end() ? 1 : known->second.slowness;
}

void Slowness::Learn(const std::string& owner, absl::Duration predicted,
                     absl::Duration took) {
  const double slowness =
      std::clamp(absl::FDivDuration(took, predicted), 1 / kMost, kMost);
  Known& known = owners_[owner];
  known.slowness += (slowness - known.slowness) / 16;
  known.learned = ++count_;
  if (owners_.size() <= kMostOwners) return;
  owners_.erase(std::ranges::min_element(
      owners_, {}, [](const auto& entry) { return entry.second.learned; }));
}

}  // namespace tensord::server
