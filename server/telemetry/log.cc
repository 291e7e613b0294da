#include "server/telemetry/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "core/base/status.h"

namespace tensord::server {
namespace {

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarning: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
  }
  __builtin_unreachable();
}

void AppendValue(std::string* line, absl::string_view value) {
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

}  // namespace

Log::Log(LogLevel least)
    : logger_(std::make_shared<spdlog::logger>(
          "tensord", std::make_shared<spdlog::sinks::stderr_sink_mt>())),
      audit_(
          std::make_shared<spdlog::logger>("audit", logger_->sinks().front())) {
  for (spdlog::logger* const logger : {logger_.get(), audit_.get()}) {
    logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
    logger->flush_on(spdlog::level::debug);
  }
  logger_->set_level(ToSpdlog(least));
}

Log::~Log() = default;

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
                      std::initializer_list<LogField> fields) {
  std::string line(event);
  for (const LogField& field : fields) {
    absl::StrAppend(&line, " ", field.key(), "=");
    AppendValue(&line, field.value());
  }
  return line;
}

absl::StatusOr<LogLevel> LogLevelFromName(absl::string_view name) {
  if (name == "debug") return LogLevel::kDebug;
  if (name == "info") return LogLevel::kInfo;
  if (name == "warning") return LogLevel::kWarning;
  if (name == "error") return LogLevel::kError;
  return core::InvalidArgument("LOG_LEVEL_UNKNOWN", "log level is '", name,
                               "', wanted debug, info, warning or error");
}

}  // namespace tensord::server
