#include "tests/unit/source_tree.h"

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tests/testing/places.h"

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

namespace {

constexpr const char* kFolders = "core server client proto tests deploy";

/// What git knows in these folders, and what is new there; not what git
/// ignores. Nothing where there is no git.
std::vector<std::string> FilesOfGit() {
  const std::string command =
      absl::StrCat("git -C '", testing::InRepository("."),
                   "' ls-files -z --cached --others --exclude-standard -- ",
                   kFolders, " 2>/dev/null");
  std::FILE* const said = popen(command.c_str(), "r");
  if (said == nullptr) return {};
  std::string text;
  std::array<char, 4096> part;
  size_t count;
  while ((count = std::fread(part.data(), 1, part.size(), said)) > 0) {
    text.append(part.data(), count);
  }
  pclose(said);
  return absl::StrSplit(text, '\0', absl::SkipEmpty());
}

std::vector<std::string> AllFiles() {
  namespace fs = std::filesystem;
  const fs::path root = testing::InRepository(".");
  std::vector<std::string> files;
  for (const absl::string_view top : absl::StrSplit(kFolders, ' ')) {
    const fs::path folder = root / std::string(top);
    if (!fs::exists(folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      files.push_back(fs::relative(entry.path(), root).string());
    }
  }
  return files;
}

}  // namespace

SourceTree ReadRepository() {
  namespace fs = std::filesystem;
  std::vector<std::string> files = FilesOfGit();
  if (files.empty()) files = AllFiles();
  SourceTree tree;
  for (const std::string& path : files) {
    const fs::path file = testing::InRepository(path);
    if (!fs::is_regular_file(file)) continue;
    std::ostringstream text;
    if (IsSource(path)) text << std::ifstream(file).rdbuf();
    tree.emplace(path, text.str());
  }
  return tree;
}

}  // namespace tensord::test
