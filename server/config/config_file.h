// The server's TOML file.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tensord::server {

/// A key with its values, as they would stand on a command line.
struct Setting {
  std::string key;  // with '-' for '_': "max-sessions"
  std::vector<std::string> values;
  bool is_list = false;  // one value otherwise
  bool is_value = true;  // false: a table, or a list of other things
  std::string origin;    // "FILE:LINE"
};

/// What stands in a file, by key.
///
/// Errors  INVALID_ARGUMENT, reason CONFIG_UNREADABLE or CONFIG_MALFORMED.
absl::StatusOr<std::vector<Setting>> ReadConfigFile(const std::string& path);

/// What stands behind `key =`; "" of one that is not set.
std::string TomlValue(const Setting& setting);
/// The line `key = value`, in which numbers and booleans are not quoted.
std::string ToTomlLine(const Setting& setting);

}  // namespace tensord::server
