// Sees that files have changed.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tensord::server {

/// What is in a file.
/// Errors  NOT_FOUND, reason FILE_UNREADABLE: path and why, as the system says.
///         INVALID_ARGUMENT, reason FILE_TOO_LARGE: more than 16 MiB.
absl::StatusOr<std::string> ReadFile(const std::string& path);

/// Looks at files a few times a second, and also at what symbolic links on
/// their way point to.
///
/// Threads  one of its own, which looks and calls back; Add() before Start(),
///          ReadAll() from any.
class FileWatch {
 public:
  /// What changes from now on is seen, if it is added later.
  explicit FileWatch(const std::vector<std::string>& paths = {});
  FileWatch(const FileWatch&) = delete;
  /// Calls back no more.
  ~FileWatch();

  /// Has `changed` called after any of `paths` has changed.
  void Add(std::vector<std::string> paths, std::function<void()> changed);
  void Start();
  /// Has all callbacks called soon, as if all files had changed.
  void ReadAll() { reads_all_.store(true); }

 private:
  struct Watched {
    std::vector<std::string> paths;
    std::vector<std::string> seen;  // what stat() said of each
    std::function<void()> changed;
  };

  void Look();

  std::map<std::string, std::string> first_seen_;  // by path
  std::vector<Watched> watched_;
  std::atomic<bool> reads_all_ = false;
  std::mutex mutex_;
  std::condition_variable ends_;
  bool is_ending_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace tensord::server
