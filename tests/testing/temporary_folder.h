// Where a test keeps its files.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace tensord::testing {

/// A folder of this process, removed with all that is in it at the process's
/// end: tests that run beside each other never see each other's files.
inline const std::string& TemporaryFolder() {
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
