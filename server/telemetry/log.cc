#include "server/telemetry/log.h"

#include <limits.h>
#include <poll.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
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

constexpr char kDropped[] = "log_dropped";

/// Standard error, for as long as somebody reads it: a pipe that is full holds
/// nobody up. Lines that it does not take are counted, and that is told later.
class StandardError final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit StandardError(LogFormat format) : format_(format) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (dropped_ > 0 && CanWrite()) {
      const std::string note =
          format_ == LogFormat::kJson
              ? absl::StrCat(R"("event":")", kDropped, R"(","lines":)",
                             dropped_, "}")
              : absl::StrCat(kDropped, " lines=", dropped_);
      dropped_ = 0;
      Write({"tensord", spdlog::level::warn, note});
    }
    Write(message);
  }
  void flush_() override {}

  void Write(const spdlog::details::log_msg& message) {
    // What a pipe takes at once when it takes anything.
    constexpr size_t kPiece = PIPE_BUF;
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    for (size_t at = 0; at < line.size();) {
      if (!CanWrite()) {
        ++dropped_;
        return;
      }
      const ssize_t written = write(STDERR_FILENO, line.data() + at,
                                    std::min(kPiece, line.size() - at));
      if (written < 0 && errno != EINTR) return;
      at += static_cast<size_t>(std::max<ssize_t>(0, written));
    }
  }
  static bool CanWrite() {
    pollfd file = {.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
    return poll(&file, 1, /*timeout=*/0) > 0;
  }

  const LogFormat format_;
  int64_t dropped_ = 0;
};

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

Log::Log(LogLevel least, LogFormat format)
    : format_(format),
      logger_(std::make_shared<spdlog::logger>(
          "tensord", std::make_shared<StandardError>(format))),
      audit_(
          std::make_shared<spdlog::logger>("audit", logger_->sinks().front())) {
  for (spdlog::logger* const logger : {logger_.get(), audit_.get()}) {
    logger->set_pattern(format == LogFormat::kText ? kTextPattern
                                                   : kJsonPattern);
    logger->flush_on(spdlog::level::debug);
  }
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

void Log::Audit(std::initializer_list<LogField> fields) {
  audit_->info("{}", Line("audit", fields));
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
