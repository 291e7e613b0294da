// One structured line per event.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace spdlog {
class logger;
}

namespace tensord::server {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

/// A key and its value, e.g. {"bytes", 1024}.
class LogField {
 public:
  LogField(absl::string_view key, absl::string_view value)
      : key_(key), value_(value) {}
  LogField(absl::string_view key, const char* value)
      : key_(key), value_(value) {}
  template <typename Number>
  LogField(absl::string_view key, Number value)
      : key_(key), value_(absl::StrCat(value)) {}

  absl::string_view key() const { return key_; }
  absl::string_view value() const { return value_; }

 private:
  absl::string_view key_;
  std::string value_;
};

/// Writes lines of `time level event key=value ...` to standard error. Values
/// with spaces, quotes or control characters are quoted and escaped.
///
/// Threads  safe for concurrent use; a line is never mixed with another.
class Log {
 public:
  explicit Log(LogLevel least);
  ~Log();

  /// Whether events of `level` are written at all.
  bool Shows(LogLevel level) const;

  void Event(LogLevel level, absl::string_view event,
             std::initializer_list<LogField> fields);
  /// Whatever the least level is: who has done what.
  void Audit(std::initializer_list<LogField> fields);
  void Info(absl::string_view event, std::initializer_list<LogField> fields) {
    Event(LogLevel::kInfo, event, fields);
  }

 private:
  static std::string Line(absl::string_view event,
                          std::initializer_list<LogField> fields);

  const std::shared_ptr<spdlog::logger> logger_;
  const std::shared_ptr<spdlog::logger> audit_;
};

/// "debug", "info", "warning" or "error".
/// Errors  INVALID_ARGUMENT.
absl::StatusOr<LogLevel> LogLevelFromName(absl::string_view name);

}  // namespace tensord::server
