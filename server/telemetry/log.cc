#include "server/telemetry/log.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace tensord::server {
namespace {

constexpr std::pair<LogLevel, spdlog::level::level_enum> kLevels[] = {
    {LogLevel::kDebug, spdlog::level::debug},
    {LogLevel::kInfo, spdlog::level::info},
    {LogLevel::kWarning, spdlog::level::warn},
    {LogLevel::kError, spdlog::level::err},
};

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  return kLevels[static_cast<int>(level)].second;
}

constexpr char kTextPattern[] = "%Y-%m-%dT%H:%M:%S.%e%z %l %v";
// What is logged ends the object.
constexpr char kJsonPattern[] =
    R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l",%v)";

const char* Pattern(LogFormat format) {
  return format == LogFormat::kText ? kTextPattern : kJsonPattern;
}

constexpr char kDropped[] = "log_dropped";

void AppendText(std::string* line, absl::string_view value) {
  const bool plain =
      !value.empty() && std::all_of(value.begin(), value.end(), [](char c) {
        return c > ' ' && c <= '~' && c != '"' && c != '\\' && c != '=';
      });
  if (plain) {
    absl::StrAppend(line, value);
  } else {
    absl::StrAppend(line, "\"", absl::CEscape(value), "\"");
  }
}

nlohmann::ordered_json JsonOf(const LogField& field) {
  if (field.is_number()) {
    auto number = nlohmann::ordered_json::parse(field.value(), nullptr,
                                                /*allow_exceptions=*/false);
    if (number.is_number()) return number;  // not "inf"
  }
  return std::string(field.value());
}

}  // namespace

/// Where lines go, each as a whole.
class Log::Sink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  /// Errors  UNAVAILABLE, reason AUDIT_FAILED: the line is not there, or not
  ///         all of it.
  absl::Status Put(const spdlog::details::log_msg& message) {
    const std::lock_guard lock(mutex_);
    return Take(message);
  }
  /// Goes on with another file of the same name.
  /// Errors  UNAVAILABLE, reason AUDIT_FAILED: it goes on as before.
  virtual absl::Status Reopen() { return absl::OkStatus(); }

 protected:
  virtual absl::Status Take(const spdlog::details::log_msg& message) = 0;
  static absl::Status Failed(absl::string_view what, absl::string_view why) {
    return core::Error(absl::StatusCode::kUnavailable, "AUDIT_FAILED",
                       absl::StrCat("cannot ", what, ": ", why));
  }

 private:
  void sink_it_(const spdlog::details::log_msg& message) final {
    Take(message).IgnoreError();
  }
  void flush_() override {}
};

/// Standard error, for as long as somebody reads it: a pipe that is full holds
/// nobody up. Lines that it does not take are counted, and that is told later.
class Log::StandardError final : public Sink {
 public:
  explicit StandardError(LogFormat format) : format_(format) {}

 private:
  absl::Status Take(const spdlog::details::log_msg& message) override {
    if (dropped_ > 0 && CanWrite()) {
      const std::string note =
          format_ == LogFormat::kJson
              ? absl::StrCat(R"("event":")", kDropped, R"(","lines":)",
                             dropped_, "}")
              : absl::StrCat(kDropped, " lines=", dropped_);
      dropped_ = 0;
      Write({"tensord", spdlog::level::warn, note}).IgnoreError();
    }
    return Write(message);
  }

  absl::Status Write(const spdlog::details::log_msg& message) {
    // What a pipe takes at once when it takes anything.
    constexpr size_t kPiece = PIPE_BUF;
    constexpr absl::string_view kWhat = "write to standard error";
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    for (size_t at = 0; at < line.size();) {
      if (!CanWrite()) {
        ++dropped_;
        return Failed(kWhat, "nobody reads what is there");
      }
      const ssize_t written = write(STDERR_FILENO, line.data() + at,
                                    std::min(kPiece, line.size() - at));
      if (written < 0 && errno != EINTR) {
        return Failed(kWhat, std::strerror(errno));
      }
      at += static_cast<size_t>(std::max<ssize_t>(0, written));
    }
    return absl::OkStatus();
  }
  static bool CanWrite() {
    pollfd file = {.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
    return poll(&file, 1, /*timeout=*/0) > 0;
  }

  const LogFormat format_;
  int64_t dropped_ = 0;
};

/// A file that lines are added to.
class Log::File final : public Sink {
 public:
  explicit File(std::string path) : path_(std::move(path)) {}
  ~File() override {
    if (file_ >= 0) close(file_);
  }

  absl::Status Reopen() override {
    // Without waiting: it may be a pipe, which nobody reads.
    const int file =
        open(path_.c_str(),
             O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
             0600);
    const std::string what = absl::StrCat("open ", path_);
    if (file < 0) return Failed(what, std::strerror(errno));
    struct stat info = {};
    if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) {
      close(file);
      return Failed(what, "it is no file that keeps what is written");
    }
    const std::lock_guard lock(mutex_);
    if (file_ >= 0) close(file_);
    file_ = file;
    is_torn_ = false;
    return absl::OkStatus();
  }

 private:
  absl::Status Take(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    if (is_torn_) line.push_back('\n');
    formatter_->format(message, line);
    for (size_t at = 0; at < line.size();) {
      const ssize_t written = write(file_, line.data() + at, line.size() - at);
      if (written < 0 && errno != EINTR) {
        return Failed(absl::StrCat("write to ", path_), std::strerror(errno));
      }
      at += static_cast<size_t>(std::max<ssize_t>(0, written));
      is_torn_ = at < line.size() && (is_torn_ || at > 0);
    }
    return absl::OkStatus();
  }

  const std::string path_;
  int file_ = -1;
  bool is_torn_ = false;  // its end is a part of a line
};

Log::Log(LogLevel least, LogFormat format)
    : format_(format),
      standard_error_(std::make_shared<StandardError>(format)),
      audit_(standard_error_),
      logger_(std::make_shared<spdlog::logger>("tensord", standard_error_)) {
  logger_->set_pattern(Pattern(format));
  logger_->flush_on(spdlog::level::debug);
  SetLevel(least);
}

Log::~Log() = default;

void Log::SetLevel(LogLevel least) { logger_->set_level(ToSpdlog(least)); }

LogLevel Log::level() const {
  return std::ranges::find(kLevels, logger_->level(),
                           [](const auto& entry) { return entry.second; })
      ->first;
}

bool Log::Shows(LogLevel level) const {
  return logger_->should_log(ToSpdlog(level));
}

void Log::Event(LogLevel level, absl::string_view event,
                std::initializer_list<LogField> fields) {
  if (!Shows(level)) return;
  logger_->log(ToSpdlog(level), "{}", Line(event, fields));
}

absl::Status Log::OpenAudit(const std::string& path) {
  const auto file = std::make_shared<File>(path);
  TENSORD_RETURN_IF_ERROR(file->Reopen());
  file->set_pattern(Pattern(format_));
  audit_ = file;
  return absl::OkStatus();
}

absl::Status Log::ReopenAudit() { return audit_->Reopen(); }

absl::Status Log::Audit(absl::string_view event,
                        std::initializer_list<LogField> fields) {
  const std::string line = Line(event, fields);
  const absl::Status written =
      audit_->Put({"audit", spdlog::level::info, line});
  if (!written.ok() && audit_ != standard_error_) {
    Event(LogLevel::kError, "audit_failed", {{"message", written.message()}});
  }
  return written;
}

std::string Log::Line(absl::string_view event,
                      std::initializer_list<LogField> fields) const {
  if (format_ == LogFormat::kJson) {
    nlohmann::ordered_json object = {{"event", event}};
    for (const LogField& field : fields) {
      object[std::string(field.key())] = JsonOf(field);
    }
    using Json = nlohmann::ordered_json;
    return object.dump(-1, ' ', false, Json::error_handler_t::replace)
        .substr(1);
  }
  std::string line(event);
  for (const LogField& field : fields) {
    absl::StrAppend(&line, " ", field.key(), "=");
    AppendText(&line, field.value());
  }
  return line;
}

absl::StatusOr<LogLevel> LogLevelFromName(absl::string_view name) {
  for (const auto& [level, unused] : kLevels) {
    if (name == NameOf(level)) return level;
  }
  return core::InvalidArgument("LOG_LEVEL_UNKNOWN", "log level is '", name,
                               "', wanted debug, info, warning or error");
}

absl::string_view NameOf(LogLevel level) {
  constexpr absl::string_view kNames[] = {"debug", "info", "warning", "error"};
  return kNames[static_cast<int>(level)];
}

}  // namespace tensord::server
