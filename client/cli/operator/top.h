// top: what a server is doing, as it goes on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tensord/operator.h"

namespace tensord::cli {

/// What a server said at one time.
struct Glance {
  absl::Time at;
  ServerStats stats;
  std::vector<SessionState> sessions;  // those with most memory
};

/// Lines for people; rates are of the time since `before`.
std::vector<std::string> TopLines(const Glance& now, const Glance& before);

struct TopOptions {
  absl::Duration interval = absl::Seconds(2);
  bool is_once = false;  // when an interval has passed, for the rates
  bool is_json = false;
};

/// Shows a server until somebody wants to end it: drawn in place on a terminal,
/// else one picture after the other. Returns an exit code.
int Top(const Operator& server, const TopOptions& options);

}  // namespace tensord::cli
