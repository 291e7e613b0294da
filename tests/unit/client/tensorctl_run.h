// Runs tensorctl as the shell does, on .npy files of its own.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "client/cli/npy.h"
#include "tests/testing/places.h"

namespace tensord::cli {

struct Ended {
  int code;
  std::string output;  // stdout and stderr
};

/// `input` is the shell's words before the command, e.g. `echo x |`.
inline Ended Tensorctl(const std::string& arguments,
                       const std::string& input = "") {
  const std::string command =
      input + " " + testing::Built("tensorctl") + " " + arguments;
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  Ended ended{-1, ""};
  if (pipe == nullptr) return ended;
  for (int c; (c = std::fgetc(pipe)) != EOF;) ended.output.push_back(c);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) ended.code = WEXITSTATUS(status);
  return ended;
}

/// A file of the test that runs.
inline std::string PathOf(const std::string& name) {
  return testing::TemporaryFolder() + "/" + name + ".npy";
}

template <typename T>
std::string Save(const std::string& name, const NpyHeader& header,
                 const std::vector<T>& values) {
  auto file = NpyWriter::Create(PathOf(name), header);
  EXPECT_TRUE(file.ok()) << file.status();
  std::memcpy(file->data().data(), values.data(), values.size() * sizeof(T));
  EXPECT_TRUE(file->Commit().ok());
  return PathOf(name);
}

template <typename T>
std::vector<T> Load(const std::string& path, size_t count) {
  const auto file = NpyFile::Open(path);
  EXPECT_TRUE(file.ok()) << file.status();
  std::vector<T> values(count);
  if (!file.ok()) return values;
  const int64_t elements = ElementCount(file->view().layout.extents);
  EXPECT_EQ(elements, static_cast<int64_t>(count));
  values.resize(elements);
  std::memcpy(values.data(), file->view().data, elements * sizeof(T));
  return values;
}

}  // namespace tensord::cli
