#include "server/engine/control_groups.h"

#include <algorithm>
#include <fstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tensord::server {

std::optional<double> LeastLimit(
    const std::string& root, absl::string_view controller,
    const std::function<std::optional<double>(const std::string&, int)>& read) {
  std::optional<double> least;
  std::ifstream groups(absl::StrCat(root, "/proc/self/cgroup"));
  for (std::string line; std::getline(groups, line);) {
    // "0::/group" of version 2, "4:memory:/group" of version 1.
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const std::vector<absl::string_view> controllers =
        absl::StrSplit(parts[1], ',');
    const int version = parts[1].empty() ? 2 : 1;
    if (version == 1 &&
        std::ranges::find(controllers, controller) == controllers.end()) {
      continue;
    }
    const std::string folder =
        version == 2 ? absl::StrCat(root, "/sys/fs/cgroup")
                     : absl::StrCat(root, "/sys/fs/cgroup/", controller);
    for (std::string group = parts[2];; group.erase(group.rfind('/'))) {
      const auto limit = read(absl::StrCat(folder, group), version);
      if (limit) least = std::min(*limit, least.value_or(*limit));
      if (group.rfind('/') == std::string::npos) break;
    }
  }
  return least;
}

std::optional<double> CoreQuota(const std::string& root) {
  return LeastLimit(
      root, "cpu",
      [](const std::string& folder, int version) -> std::optional<double> {
        double quota = 0, period = 0;  // microseconds
        bool is_there = false;         // "max", or -1, is no limit
        if (version == 2) {
          std::ifstream file(folder + "/cpu.max");
          is_there = static_cast<bool>(file >> quota >> period);
        } else {
          std::ifstream quota_file(folder + "/cpu.cfs_quota_us");
          std::ifstream period_file(folder + "/cpu.cfs_period_us");
          is_there = (quota_file >> quota) && (period_file >> period);
        }
        if (!is_there || quota <= 0 || period <= 0) return std::nullopt;
        return quota / period;
      });
}

}  // namespace tensord::server
