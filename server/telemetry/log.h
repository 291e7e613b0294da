// One structured line per event.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace spdlog {
class logger;
}

namespace tensord::server {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

enum class LogFormat {
  /// `time level event key=value ...`. Values with spaces, quotes or control
  /// characters are quoted and escaped.
  kText,
  /// An object with `time`, `level`, `event` and the keys; numbers are numbers.
  kJson,
};

/// A key and its value, e.g. {"bytes", 1024}.
class LogField {
 public:
  LogField(absl::string_view key, absl::string_view value)
      : key_(key), value_(value) {}
  LogField(absl::string_view key, const char* value)
      : key_(key), value_(value) {}
  template <typename Number>
  LogField(absl::string_view key, Number value)
      : key_(key), value_(absl::StrCat(value)), is_number_(true) {}

  absl::string_view key() const { return key_; }
  absl::string_view value() const { return value_; }
  bool is_number() const { return is_number_; }

 private:
  absl::string_view key_;
  std::string value_;
  bool is_number_ = false;
};

/// Writes a line an event to standard error, unless nobody reads that: then
/// lines are dropped, and `log_dropped` says later how many. Whoever has an
/// audit line written hears whether it is.
///
/// Threads  safe for concurrent use; a line is never mixed with another.
class Log {
 public:
  explicit Log(LogLevel least, LogFormat format = LogFormat::kText);
  ~Log();

  /// Events below `least` are not written from now on.
  void SetLevel(LogLevel least);
  LogLevel level() const;

  /// Whether events of `level` are written at all.
  bool Shows(LogLevel level) const;

  void Event(LogLevel level, absl::string_view event,
             std::initializer_list<LogField> fields);

  /// Has audit lines added to a file, which is made if it is not there, instead
  /// of standard error. Before anybody else uses the log.
  /// Errors  UNAVAILABLE, reason AUDIT_FAILED.
  absl::Status OpenAudit(const std::string& path);
  /// Goes on with the file that has the name now; without a file nothing is
  /// done. Errors  as OpenAudit(): it goes on with the file that it has.
  absl::Status ReopenAudit();
  /// Whatever the least level is: who asks for what, or has done it.
  /// Errors  UNAVAILABLE, reason AUDIT_FAILED: no such line is there.
  absl::Status Audit(absl::string_view event,
                     std::initializer_list<LogField> fields);

  void Info(absl::string_view event, std::initializer_list<LogField> fields) {
    Event(LogLevel::kInfo, event, fields);
  }

 private:
  class Sink;
  class StandardError;
  class File;

  std::string Line(absl::string_view event,
                   std::initializer_list<LogField> fields) const;

  const LogFormat format_;
  const std::shared_ptr<Sink> standard_error_;
  std::shared_ptr<Sink> audit_;
  const std::shared_ptr<spdlog::logger> logger_;
};

/// "debug", "info", "warning" or "error".
/// Errors  INVALID_ARGUMENT.
absl::StatusOr<LogLevel> LogLevelFromName(absl::string_view name);
/// The reverse.
absl::string_view NameOf(LogLevel level);

}  // namespace tensord::server
