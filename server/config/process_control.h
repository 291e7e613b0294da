// What the services can have the process do.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/config/config_file.h"

namespace tensord::server {

/// What became of files that were read again.
struct ReloadedFiles {
  std::string what;  // e.g. "tokens"
  std::vector<std::string> paths;
  absl::Status status;  // not OK: what was there before is kept
};

/// What it does for operators: nothing where the process is not the server's
/// own.
///
/// Threads  both functions are called from any.
struct ProcessControl {
  std::vector<Setting> settings;  // that it was started with
  /// Ends it soon. Calls have `timeout`, or what its options say.
  std::function<void(std::optional<absl::Duration> timeout)> drain =
      [](std::optional<absl::Duration>) {};
  std::function<std::vector<ReloadedFiles>()> reload = [] {
    return std::vector<ReloadedFiles>();
  };
};

}  // namespace tensord::server
