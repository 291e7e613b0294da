#include "tests/testing/places.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tensord::testing {

std::string InRepository(absl::string_view path) {
  return absl::StrCat(TENSORD_SOURCE_DIR, "/", path);
}

std::string Built(absl::string_view name) {
  return std::filesystem::read_symlink("/proc/self/exe")
      .replace_filename(std::string(name));
}

const std::string& TemporaryFolder() {
  struct Folder {
    Folder() {
      if (mkdtemp(path.data()) == nullptr) std::abort();
    }
    ~Folder() { std::filesystem::remove_all(path); }
    std::string path = ::testing::TempDir() + "tensord_test_XXXXXX";
  };
  static const Folder folder;
  return folder.path;
}

}  // namespace tensord::testing
