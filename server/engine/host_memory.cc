#include "server/engine/host_memory.h"

#include <algorithm>
#include <fstream>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "core/memory/host_resource.h"

namespace tensord::server {
namespace {

/// The least limit of the files called `name` in `folder`/`group` and all
/// groups around it, or `bytes`. "max", or no file, is no limit.
int64_t LeastLimit(const std::string& folder, absl::string_view group,
                   absl::string_view name, int64_t bytes) {
  for (std::string path(group);; path.erase(path.rfind('/'))) {
    std::ifstream file(absl::StrCat(folder, path, "/", name));
    std::string text;
    int64_t limit = 0;
    if (file >> text && absl::SimpleAtoi(text, &limit) && limit > 0) {
      bytes = std::min(bytes, limit);
    }
    if (path.rfind('/') == std::string::npos) return bytes;
  }
}

}  // namespace

int64_t HostMemoryBytes(const std::string& root) {
  int64_t bytes = core::HostMemoryBytes();
  std::ifstream groups(absl::StrCat(root, "/proc/self/cgroup"));
  for (std::string line; std::getline(groups, line);) {
    // "0::/group" of version 2, "4:memory:/group" of version 1.
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    if (parts[1].empty()) {
      bytes = LeastLimit(absl::StrCat(root, "/sys/fs/cgroup"), parts[2],
                         "memory.max", bytes);
    } else if (parts[1] == "memory") {
      bytes = LeastLimit(absl::StrCat(root, "/sys/fs/cgroup/memory"), parts[2],
                         "memory.limit_in_bytes", bytes);
    }
  }
  return bytes;
}

int64_t DefaultMemoryLimit(int64_t memory_bytes, bool is_host_memory) {
  constexpr int64_t kRoom = int64_t{1} << 30;
  const int64_t room = is_host_memory ? std::min(kRoom, memory_bytes / 2) : 0;
  return memory_bytes - std::max(memory_bytes / 4, room);
}

}  // namespace tensord::server
