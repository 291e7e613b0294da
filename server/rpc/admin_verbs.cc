// What operators have a server do.
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/nearest.h"
#include "core/base/status.h"
#include "server/rpc/admin_service.h"
#include "server/rpc/convert.h"
#include "server/rpc/coroutine/in_background.h"
#include "server/rpc/coroutine/until_called.h"

namespace tensord::rpc {
namespace {

using SessionRef = std::shared_ptr<server::Session>;

constexpr absl::Duration kLongestDrain = absl::Hours(1);
constexpr size_t kSubjectBytes = 128;  // of what an audit line quotes

// In their queue of work.
const server::ClientId kVerbs{.number = 1};

absl::Status SubjectMissing(absl::string_view one, absl::string_view other,
                            bool has_both) {
  return core::InvalidArgument(
      "SUBJECT_MISSING", "the request has ", has_both ? "both " : "neither ",
      one, has_both ? " and " : " nor ", other, ", wanted one of them");
}

/// What the process has in memory.
int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t whole = 0, resident = 0;
  file >> whole >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

/// Gives the heap's free pages back. Returns their bytes.
int64_t TrimHeap() {
  const int64_t before = ResidentBytes();
  malloc_trim(0);
  return std::max<int64_t>(0, before - ResidentBytes());
}

std::string NumberText(int64_t session) {
  return absl::StrCat("session ", session);
}

/// Errors  as the rpc has them.
absl::StatusOr<server::LogLevel> LevelFrom(const std::string& name) {
  absl::StatusOr<server::LogLevel> level = server::LogLevelFromName(name);
  if (level.ok()) return level;
  const std::string nearest =
      core::Nearest(name, {"debug", "info", "warning", "error"});
  if (nearest.empty()) return level;
  return core::InvalidArgument(core::ReasonOf(level.status()),
                               level.status().message(), ", did you mean '",
                               nearest, "'?");
}

}  // namespace

void AdminService::ServeVerbsOn(LoopGroup& loops) {
  loops.Serve(raw(), "CancelOperations", *this, &AdminService::Cancel);
  loops.Serve(raw(), "EvictSessions", *this, &AdminService::Evict);
  loops.Serve(raw(), "TrimMemory", *this, &AdminService::Trim);
  loops.Serve(raw(), "DrainServer", *this, &AdminService::Drain);
  loops.Serve(raw(), "GetServerConfig", *this, &AdminService::GetConfig);
  loops.Serve(raw(), "ReloadServerConfig", *this, &AdminService::Reload);
  loops.Serve(raw(), "GetLogLevel", *this, &AdminService::GetLevel);
  loops.Serve(raw(), "SetLogLevel", *this, &AdminService::SetLevel);
}

Task<absl::StatusOr<v1::CancelOperationsResponse>> AdminService::Cancel(
    Call& call, const v1::CancelOperationsRequest& request) {
  const bool has_id = !request.request_id().empty();
  const bool has_session = request.session_number() != 0;
  if (has_id == has_session) {
    co_return SubjectMissing("request_id", "session_number", has_id);
  }
  const absl::Status why =
      core::Error(absl::StatusCode::kCancelled, "CANCELLED_BY_OPERATOR",
                  "an operator has cancelled the call");
  RunningCalls& running = context_.door.running();
  v1::CancelOperationsResponse response;
  if (has_id) {
    call.record().subject =
        absl::StrCat("request ", request.request_id().substr(0, kSubjectBytes));
    const std::set<uint64_t> sessions =
        running.SessionsOf(request.request_id());
    if (sessions.size() > 1) {
      co_return core::FailedPrecondition(
          "REQUEST_ID_AMBIGUOUS", "sessions ", absl::StrJoin(sessions, ", "),
          " have calls of that request id, which clients choose; cancel all of "
          "a session by its number");
    }
    const int64_t count = running.StopRequest(request.request_id(), why);
    if (count == 0) {
      co_return core::NotFound("REQUEST_NOT_FOUND",
                               "no call of a session with the request id '",
                               request.request_id().substr(0, kSubjectBytes),
                               "' runs; it may have ended");
    }
    response.set_cancelled_count(count);
    co_return response;
  }
  call.record().subject = NumberText(request.session_number());
  const auto session = context_.sessions.FindNumber(
      static_cast<uint64_t>(request.session_number()));
  if (!session.ok()) co_return session.status();
  response.set_cancelled_count(running.StopSession((*session)->number(), why));
  co_return response;
}

Task<absl::StatusOr<v1::EvictSessionsResponse>> AdminService::Evict(
    Call& call, const v1::EvictSessionsRequest& request) {
  const bool has_session = request.session_number() != 0;
  if (has_session == !request.tenant().empty()) {
    co_return SubjectMissing("session_number", "tenant", has_session);
  }
  const auto idle = FromProto(request.idle(), "idle");
  if (!idle.ok() || *idle < absl::ZeroDuration()) {
    co_return core::InvalidArgument("IDLE_OUT_OF_RANGE",
                                    "idle is malformed or negative, wanted a "
                                    "time of 0 s or more");
  }
  std::vector<SessionRef> sessions;
  if (has_session) {
    call.record().subject = NumberText(request.session_number());
    auto found = context_.sessions.FindNumber(
        static_cast<uint64_t>(request.session_number()));
    if (!found.ok()) co_return found.status();
    sessions.push_back(*std::move(found));
  } else {
    call.record().subject =
        absl::StrCat("tenant ", request.tenant().substr(0, kSubjectBytes),
                     " idle ", absl::FormatDuration(*idle));
    for (auto& session : context_.sessions.List()) {
      if (session->options().tenant != request.tenant()) continue;
      const absl::Duration since = session->ages().idle;
      if (since > absl::ZeroDuration() && since >= *idle) {
        sessions.push_back(std::move(session));
      }
    }
  }
  const absl::Status why =
      core::Error(absl::StatusCode::kCancelled, "SESSION_EVICTED",
                  "an operator has ended the session");
  v1::EvictSessionsResponse response;
  std::atomic<int> left = 1;
  auto close = [&](const std::function<void()>& done) {
    const auto closed = [&left, done] {
      if (--left == 0) done();
    };
    for (const SessionRef& session : sessions) {
      const int64_t bytes = session->memory()->used_bytes();
      // First, so that its calls hear why they end.
      context_.door.running().StopSession(session->number(), why);
      ++left;
      // Somebody else may have closed it.
      if (!context_.sessions.Close(session->name(), closed).ok()) {
        --left;
        continue;
      }
      context_.log.Info("session_evicted",
                        {{"session", session->number()},
                         {"tenant", session->options().tenant},
                         {"job", session->options().job},
                         {"bytes", bytes}});
      response.add_session_numbers(static_cast<int64_t>(session->number()));
      response.set_memory_bytes(response.memory_bytes() + bytes);
    }
    return --left != 0;
  };
  co_await UntilCalled(call, close);
  if (!has_session) {
    absl::StrAppend(&call.record().subject, ": ",
                    response.session_numbers_size(), " sessions");
  }
  co_return response;
}

Task<absl::StatusOr<v1::TrimMemoryResponse>> AdminService::Trim(
    Call& call, const v1::TrimMemoryRequest&) {
  v1::TrimMemoryResponse response;
  auto trim = [&] {
    for (const auto& device : context_.engine.devices()) {
      const server::Device::Trimmed trimmed = device->Trim();
      v1::TrimmedDevice& entry = *response.add_devices();
      entry.set_device(device->info().name);
      entry.set_memory_bytes(trimmed.memory_bytes);
      entry.set_staging_bytes(trimmed.staging_bytes);
    }
    response.set_heap_bytes(TrimHeap());
  };
  const absl::Status trimmed =
      co_await InBackground(call, context_.operators, kVerbs, trim);
  if (!trimmed.ok()) co_return trimmed;
  co_return response;
}

Task<absl::StatusOr<v1::DrainServerResponse>> AdminService::Drain(
    Call& call, const v1::DrainServerRequest& request) {
  std::optional<absl::Duration> timeout;
  if (request.has_timeout()) {
    const auto given = FromProto(request.timeout(), "timeout");
    if (!given.ok() || *given < absl::ZeroDuration() ||
        *given > kLongestDrain) {
      co_return core::InvalidArgument(
          "DRAIN_TIMEOUT_OUT_OF_RANGE",
          "timeout is malformed or out of range, wanted 0 s to ",
          absl::FormatDuration(kLongestDrain));
    }
    timeout = *given;
    call.record().subject =
        absl::StrCat("within ", absl::FormatDuration(*given));
  }
  context_.process.drain(timeout);
  co_return v1::DrainServerResponse();
}

Task<absl::StatusOr<v1::GetServerConfigResponse>> AdminService::GetConfig(
    Call&, const v1::GetServerConfigRequest&) {
  v1::GetServerConfigResponse response;
  for (const server::Setting& setting : context_.process.settings) {
    v1::ServerSetting& entry = *response.add_settings();
    entry.set_key(setting.key);
    entry.set_value(server::TomlValue(setting));
    entry.set_origin(setting.origin);
    entry.mutable_values()->Add(setting.values.begin(), setting.values.end());
  }
  co_return response;
}

Task<absl::StatusOr<v1::ReloadServerConfigResponse>> AdminService::Reload(
    Call& call, const v1::ReloadServerConfigRequest&) {
  std::vector<server::ReloadedFiles> reloaded;
  auto reload = [&] { reloaded = context_.process.reload(); };
  const absl::Status done =
      co_await InBackground(call, context_.operators, kVerbs, reload);
  if (!done.ok()) co_return done;
  v1::ReloadServerConfigResponse response;
  for (const server::ReloadedFiles& files : reloaded) {
    v1::ReloadedFiles& entry = *response.add_files();
    entry.set_what(files.what);
    entry.mutable_paths()->Add(files.paths.begin(), files.paths.end());
    entry.set_error(std::string(files.status.message()));
    absl::StrAppend(&call.record().subject,
                    call.record().subject.empty() ? "" : ", ", files.what,
                    files.status.ok() ? "" : " (kept)");
  }
  co_return response;
}

Task<absl::StatusOr<v1::GetLogLevelResponse>> AdminService::GetLevel(
    Call&, const v1::GetLogLevelRequest&) {
  v1::GetLogLevelResponse response;
  response.set_level(std::string(server::NameOf(context_.log.level())));
  co_return response;
}

Task<absl::StatusOr<v1::SetLogLevelResponse>> AdminService::SetLevel(
    Call& call, const v1::SetLogLevelRequest& request) {
  const auto level = LevelFrom(request.level());
  call.record().subject = request.level().substr(0, kSubjectBytes);
  if (!level.ok()) co_return level.status();
  v1::SetLogLevelResponse response;
  response.set_previous_level(
      std::string(server::NameOf(context_.log.level())));
  context_.log.SetLevel(*level);
  co_return response;
}

}  // namespace tensord::rpc
