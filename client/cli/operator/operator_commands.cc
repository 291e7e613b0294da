// sessions, operations, tensors, cancel, evict, trim, drain, config, log-level
// and top.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/commands.h"
#include "client/cli/json.h"
#include "client/cli/operator/server_json.h"
#include "client/cli/operator/top.h"
#include "client/cli/options.h"
#include "client/cli/text.h"
#include "tensord/operator.h"

namespace tensord::cli {
namespace {

/// What a command is told.
struct Wish {
  std::optional<int64_t> session;
  std::string request_id;
  std::string tenant;
  std::optional<double> seconds;
  std::string level;
  int64_t count = 20;
  TopOptions top;
  bool json = false;
};

std::string SecondsText(absl::Duration duration) {
  return absl::StrFormat("%.1f s", absl::ToDoubleSeconds(duration));
}

Json CallJson(const RunningCall& call) {
  return {{"request_id", call.request_id},
          {"rpc", call.rpc},
          {"session_number", call.session_number},
          {"tenant", call.tenant},
          {"elapsed_seconds", JsonSeconds(call.elapsed)}};
}

Json LargeTensorJson(const LargeTensor& tensor) {
  return {{"session_number", tensor.session_number},
          {"tenant", tensor.tenant},
          {"id", tensor.id},
          {"bytes", tensor.bytes},
          {"element_type", ToString(tensor.element_type)},
          {"extents", tensor.extents},
          {"device", tensor.device},
          {"state", ToString(tensor.state)},
          {"is_view", tensor.is_view}};
}

Json SettingJson(const ServerSetting& setting) {
  return {{"key", setting.key},
          {"values", setting.values},
          {"origin", setting.origin}};
}

Json ReloadedJson(const ReloadedFiles& files) {
  return {{"what", files.what},
          {"paths", files.paths},
          {"is_taken", files.error.empty()},
          {"error", files.error}};
}

template <typename Value>
auto ListJson(Json (*to_json)(const Value&)) {
  return [to_json](const std::vector<Value>& values) {
    return JsonList(values, to_json);
  };
}

int PrintSessions(const Operator& server, const Wish& wish) {
  const auto print = [](const std::vector<SessionState>& sessions) {
    absl::PrintF("%7s  %-12s %-16s %-20s %9s %9s %8s %10s %7s %8s\n", "session",
                 "tenant", "job", "peer", "age", "lease", "tensors", "memory",
                 "queued", "running");
    for (const SessionState& session : sessions) {
      absl::PrintF("%7d  %-12s %-16s %-20s %9s %9s %8d %10s %7d %8d\n",
                   session.number, session.tenant,
                   session.job.empty() ? "-" : session.job, session.peer,
                   SecondsText(session.age), SecondsText(session.lease_left),
                   session.tensor_count, BytesText(session.memory_used_bytes),
                   session.queued_operations, session.running_operations);
    }
  };
  return PrintAs(server.Sessions(wish.tenant), wish.json, ListJson(SessionJson),
                 print);
}

int PrintOperations(const Operator& server, const Wish& wish) {
  const auto print = [](const std::vector<RunningCall>& calls) {
    absl::PrintF("%7s  %-12s %-18s %9s  %s\n", "session", "tenant", "rpc",
                 "since", "request id");
    for (const RunningCall& call : calls) {
      absl::PrintF("%7d  %-12s %-18s %9s  %s\n", call.session_number,
                   call.tenant, call.rpc, SecondsText(call.elapsed),
                   call.request_id);
    }
  };
  return PrintAs(server.Operations(wish.session), wish.json, ListJson(CallJson),
                 print);
}

int PrintLargeTensors(const Operator& server, const Wish& wish) {
  const auto print = [](const std::vector<LargeTensor>& tensors) {
    absl::PrintF("%7s  %-12s %-16s %10s  %-10s %-8s %s\n", "session", "tenant",
                 "tensor", "memory", "type", "state", "extents");
    for (const LargeTensor& tensor : tensors) {
      absl::PrintF("%7d  %-12s %-16s %10s  %-10s %-8s %s\n",
                   tensor.session_number, tensor.tenant, tensor.id,
                   tensor.is_view ? "view" : BytesText(tensor.bytes),
                   ToString(tensor.element_type), ToString(tensor.state),
                   ShapeText(tensor.extents));
    }
  };
  return PrintAs(server.Tensors(wish.count, wish.session), wish.json,
                 ListJson(LargeTensorJson), print);
}

int Cancel(const Operator& server, const Wish& wish) {
  if (wish.session.has_value() == !wish.request_id.empty()) {
    return FailUsage("cancel wants either a request id or --session");
  }
  const auto to_json = [](int64_t count) {
    return Json{{"cancelled_count", count}};
  };
  const auto print = [](int64_t count) {
    absl::PrintF("%d cancelled\n", count);
  };
  return PrintAs(wish.session ? server.CancelSession(*wish.session)
                              : server.CancelRequest(wish.request_id),
                 wish.json, to_json, print);
}

int Evict(const Operator& server, const Wish& wish) {
  if (wish.session.has_value() == !wish.tenant.empty()) {
    return FailUsage("evict wants either --session or --tenant");
  }
  if (wish.seconds && wish.tenant.empty()) {
    return FailUsage("--idle is of use with --tenant only");
  }
  const auto to_json = [](const Evicted& evicted) {
    return Json{{"session_numbers", evicted.session_numbers},
                {"memory_bytes", evicted.memory_bytes}};
  };
  const auto print = [](const Evicted& evicted) {
    absl::PrintF("%d evicted, %s%s%s\n", evicted.session_numbers.size(),
                 BytesText(evicted.memory_bytes),
                 evicted.session_numbers.empty() ? "" : ": ",
                 absl::StrJoin(evicted.session_numbers, ", "));
  };
  return PrintAs(
      wish.session ? server.EvictSession(*wish.session)
                   : server.EvictIdle(wish.tenant,
                                      absl::Seconds(wish.seconds.value_or(60))),
      wish.json, to_json, print);
}

int Trim(const Operator& server, const Wish& wish) {
  const auto to_json = [](const Trimmed& trimmed) {
    return Json{
        {"devices", JsonList(trimmed.devices,
                             [](const TrimmedDevice& device) {
                               return Json{
                                   {"device", device.device},
                                   {"memory_bytes", device.memory_bytes},
                                   {"staging_bytes", device.staging_bytes}};
                             })},
        {"heap_bytes", trimmed.heap_bytes}};
  };
  const auto print = [](const Trimmed& trimmed) {
    for (const TrimmedDevice& device : trimmed.devices) {
      absl::PrintF("%-10s %s given back", device.device,
                   BytesText(device.memory_bytes));
      if (device.staging_bytes > 0) {
        absl::PrintF(", %s of pinned memory", BytesText(device.staging_bytes));
      }
      absl::PrintF("\n");
    }
    absl::PrintF("%-10s %s given back\n", "heap",
                 BytesText(trimmed.heap_bytes));
  };
  return PrintAs(server.Trim(), wish.json, to_json, print);
}

/// Prints what a change has led to that has no other answer.
int PrintDone(const absl::Status& status, bool as_json, const Json& json,
              const std::string& text) {
  if (!status.ok()) return Fail(status);
  absl::PrintF("%s\n", as_json ? JsonText(json) : text);
  return kOk;
}

int Drain(const Operator& server, const Wish& wish) {
  std::optional<absl::Duration> timeout;
  if (wish.seconds) timeout = absl::Seconds(*wish.seconds);
  return PrintDone(server.Drain(timeout), wish.json, {{"state", "draining"}},
                   "the server drains, and ends when its calls have ended");
}

int PrintConfig(const Operator& server, const Wish& wish) {
  const auto print = [](const std::vector<ServerSetting>& settings) {
    for (const ServerSetting& setting : settings) {
      if (setting.value.empty()) {
        absl::PrintF("# %s is not set\n", setting.key);
      } else {
        absl::PrintF("%s = %s  # %s\n", setting.key, setting.value,
                     setting.origin);
      }
    }
  };
  return PrintAs(server.Config(), wish.json, ListJson(SettingJson), print);
}

int Reload(const Operator& server, const Wish& wish) {
  const absl::StatusOr<std::vector<ReloadedFiles>> reloaded = server.Reload();
  const auto print = [](const std::vector<ReloadedFiles>& all) {
    if (all.empty()) absl::PrintF("there are no files to read again\n");
    for (const ReloadedFiles& files : all) {
      absl::PrintF("%-12s %-6s %s%s\n", files.what,
                   files.error.empty() ? "taken" : "kept",
                   absl::StrJoin(files.paths, ", "),
                   files.error.empty() ? "" : absl::StrCat(": ", files.error));
    }
  };
  const int code = PrintAs(reloaded, wish.json, ListJson(ReloadedJson), print);
  const bool is_kept =
      reloaded.ok() && std::ranges::any_of(*reloaded, [](const auto& files) {
        return !files.error.empty();
      });
  return is_kept ? kFailed : code;
}

int LogLevel(const Operator& server, const Wish& wish) {
  if (wish.level.empty()) {
    const absl::StatusOr<std::string> level = server.LogLevel();
    return PrintDone(level.status(), wish.json, {{"level", level.value_or("")}},
                     level.value_or(""));
  }
  const absl::StatusOr<std::string> before = server.SetLogLevel(wish.level);
  return PrintDone(
      before.status(), wish.json,
      {{"level", wish.level}, {"previous_level", before.value_or("")}},
      absl::StrCat(before.value_or(""), " -> ", wish.level));
}

/// Of a session, as `sessions` shows it.
void AddSession(CLI::App& command, Wish& wish, const std::string& help) {
  command
      .add_option_function<int64_t>(
          "--session", [&wish](int64_t number) { wish.session = number; }, help)
      ->check([](const std::string& text) -> std::string {
        int64_t number = 0;
        return absl::SimpleAtoi(text, &number) && number > 0
                   ? ""
                   : "'" + text +
                         "' is no number of a session, wanted one that "
                         "`tensorctl sessions` shows";
      })
      ->type_name("NUMBER");
}

CLI::Option* AddSeconds(CLI::App& command, const std::string& name, Wish& wish,
                        const std::string& help) {
  return command
      .add_option_function<double>(
          name, [&wish](double seconds) { wish.seconds = seconds; }, help)
      ->check([](const std::string& text) -> std::string {
        double seconds = 0;
        return absl::SimpleAtod(text, &seconds) && seconds >= 0 &&
                       seconds <= 1e9
                   ? ""
                   : "'" + text + "' is not a time, wanted 0 seconds or more";
      })
      ->type_name("SECONDS");
}

using Verb = int (*)(const Operator&, const Wish&);

/// Adds commands that share what they are told.
class Adder {
 public:
  explicit Adder(CommandLine& line) : line_(line) {}

  CLI::App& Add(CLI::App& app, const char* name, const char* help, Verb run) {
    CLI::App* const command = app.add_subcommand(name, help);
    command->callback([&line = line_, wish = wish_, command, run] {
      if (!command->get_subcommands().empty()) return;  // whose turn it was
      line.exit_code =
          run(Operator(line.address, line.timeout(), line.credentials), *wish);
    });
    AddJsonFlag(*command, wish_->json);
    return *command;
  }
  Wish& wish() { return *wish_; }

 private:
  CommandLine& line_;
  const std::shared_ptr<Wish> wish_ = std::make_shared<Wish>();
};

void AddLists(CLI::App& app, Adder& adder) {
  Wish& wish = adder.wish();
  adder
      .Add(app, "sessions",
           "List all sessions: by number, as their names are secrets",
           PrintSessions)
      .add_option("--tenant", wish.tenant, "Those of one tenant");
  AddSession(
      adder.Add(app, "operations", "List the calls that run, the oldest first",
                PrintOperations),
      wish, "Those of one session");
  CLI::App& tensors =
      adder.Add(app, "tensors", "List the largest tensors", PrintLargeTensors);
  AddSession(tensors, wish, "Those of one session");
  tensors.add_option("--count", wish.count, "Most tensors to show")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

void AddVerbs(CLI::App& app, Adder& adder) {
  Wish& wish = adder.wish();
  CLI::App& cancel = adder.Add(
      app, "cancel",
      "End calls that run or wait; their clients hear that an operator did",
      Cancel);
  cancel.add_option("request-id", wish.request_id,
                    "Of a call, as `operations` and the server's log have it");
  AddSession(cancel, wish, "All calls of a session");
  CLI::App& evict =
      adder.Add(app, "evict", "End sessions, with all that they have", Evict);
  AddSession(evict, wish, "This one");
  evict.add_option("--tenant", wish.tenant, "Those of a tenant that are idle");
  AddSeconds(evict, "--idle", wish,
             "For how long at least, with --tenant; 60 unless given");
  adder.Add(app, "trim", "Give memory back that is kept for reuse", Trim);
  AddSeconds(adder.Add(app, "drain",
                       "End the server as SIGTERM does: no new calls, some "
                       "time for those that run",
                       Drain),
             "--seconds", wish,
             "How long; its own --drain-timeout-seconds unless given");
}

void AddSettings(CLI::App& app, Adder& adder) {
  Wish& wish = adder.wish();
  CLI::App& config =
      adder.Add(app, "config",
                "Show the server's options, each with its origin; names of "
                "files, not what is in them",
                PrintConfig);
  adder.Add(config, "reload",
            "Have it read certificates, tokens, keys of JWTs and tenants "
            "again; exit 1 when one is not good and what was there stays",
            Reload);
  adder
      .Add(app, "log-level", "Show or set the least level of the server's log",
           LogLevel)
      .add_option("level", wish.level, "debug, info, warning or error");
}

void AddTop(CLI::App& app, Adder& adder) {
  TopOptions& top = adder.wish().top;
  CLI::App& command = adder.Add(
      app, "top",
      "Show what the server is doing, as it goes on; q ends it. Into a file "
      "or pipe one picture after the other",
      [](const Operator& server, const Wish& wish) {
        TopOptions options = wish.top;
        options.is_json = wish.json;
        return Top(server, options);
      });
  command
      .add_option_function<double>(
          "--interval",
          [&top](double seconds) { top.interval = absl::Seconds(seconds); },
          "Seconds between two pictures, 2 unless given")
      ->check(CLI::Range(0.1, 3600.0))
      ->type_name("SECONDS");
  command.add_flag("--once", top.is_once,
                   "One picture, when an interval has passed");
}

}  // namespace

void AddOperatorCommands(CLI::App& app, CommandLine& line) {
  Adder adder(line);
  AddLists(app, adder);
  AddVerbs(app, adder);
  AddSettings(app, adder);
  AddTop(app, adder);
}

}  // namespace tensord::cli
