#include "tests/unit/source_tree.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tensord::test {

bool IsHeader(absl::string_view path) {
  return absl::EndsWith(path, ".h") || absl::EndsWith(path, ".cuh");
}

bool IsSource(absl::string_view path) {
  return IsHeader(path) || absl::EndsWith(path, ".cc") ||
         absl::EndsWith(path, ".cu");
}

std::vector<std::string> IncludesOf(absl::string_view text) {
  std::vector<std::string> includes;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::ConsumePrefix(&line, "#include ")) continue;
    const size_t end = line.find_first_of(">\"", 1);
    if (end != absl::string_view::npos) {
      includes.emplace_back(line.substr(1, end - 1));
    }
  }
  return includes;
}

SourceTree ReadRepository() {
  namespace fs = std::filesystem;
  const fs::path root = TENSORD_SOURCE_DIR;
  SourceTree tree;
  for (const char* top :
       {"core", "server", "client", "proto", "tests", "deploy"}) {
    if (!fs::exists(root / top)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      if (!entry.is_regular_file()) continue;
      const std::string path = fs::relative(entry.path(), root).string();
      std::ostringstream text;
      if (IsSource(path)) text << std::ifstream(entry.path()).rdbuf();
      tree.emplace(path, text.str());
    }
  }
  return tree;
}

}  // namespace tensord::test
