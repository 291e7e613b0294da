// Where a program's options have their values from.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/config/config_file.h"

namespace tensord::server {

/// The options of an app whose command line has been parsed. What that left
/// open is set from the environment and then from a file; the rest has its
/// default. `--max-sessions` is `TENSORD_MAX_SESSIONS` and `max-sessions`.
///
/// Lifetime  refers to the app.
/// Errors    exceptions of CLI11, which say where the mistake is.
class Configuration {
 public:
  explicit Configuration(CLI::App& app);

  /// Sets options from variables `TENSORD_...=VALUE`, a null behind the last;
  /// lists have commas between. Those that clients or Kubernetes know, and that
  /// resemble no option, are none of the server's.
  void ReadEnvironment(const char* const* environment);
  void ReadFile(const std::string& path);

  /// All options; those that are not set have no values.
  std::vector<Setting> Settings() const;
  /// The same in TOML, each with its origin.
  std::string ToToml() const;

 private:
  /// Sets the option of that key unless it is set.
  void Set(const Setting& setting);
  /// What was meant by something that is no option.
  std::string Suggest(absl::string_view key) const;

  std::vector<std::string> keys_;  // in order
  std::map<std::string, CLI::Option*> options_;
  std::map<const CLI::Option*, std::string> origins_;
};

}  // namespace tensord::server
