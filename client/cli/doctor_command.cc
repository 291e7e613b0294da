// doctor: what it takes to share memory with a server, and what is missing.
#include <memory>
#include <string>

#include "absl/strings/str_format.h"
#include "client/cli/commands.h"
#include "client/cli/json.h"
#include "client/cli/options.h"
#include "client/cli/text.h"
#include "tensord/session.h"
#include "tensord/status.h"

namespace tensord::cli {
namespace {

Json CheckJson(const SharedMemoryCheck& check) {
  Json json = {{"what", check.what}, {"ok", check.status.ok()}};
  if (check.status.ok()) {
    json["found"] = check.found;
  } else {
    json["message"] = std::string(check.status.message());
    json["reason"] = ReasonOf(check.status);
  }
  return json;
}

Json ReportJson(const SharedMemoryReport& report) {
  return {
      {"ok", report.status().ok()},
      {"checks", JsonList(report.checks, CheckJson)},
      {"shared_bytes_per_second", JsonNumber(report.shared_bytes_per_second)},
      {"grpc_bytes_per_second", JsonNumber(report.grpc_bytes_per_second)}};
}

void PrintReport(const SharedMemoryReport& report) {
  for (const SharedMemoryCheck& check : report.checks) {
    const bool is_skipped = absl::IsCancelled(check.status);
    const std::string reason = ReasonOf(check.status);
    absl::PrintF(
        "%-10s  %-6s  %s%s\n", check.what,
        check.status.ok() ? "ok"
        : is_skipped      ? "-"
                          : "failed",
        check.status.ok() ? check.found : std::string(check.status.message()),
        reason.empty() ? "" : " [" + reason + "]");
  }
}

int Examine(const CommandLine& line, bool as_json) {
  SessionOptions options = line.session_options();
  options.transport = Transport::kGrpc;
  const absl::StatusOr<Session> session =
      Session::Connect(line.address, options);
  if (!session.ok()) return Fail(session.status());
  const absl::StatusOr<SharedMemoryReport> report =
      session->CheckSharedMemory();
  const int printed = PrintAs(report, as_json, ReportJson, PrintReport);
  return printed == kOk && !report->status().ok() ? kFailed : printed;
}

}  // namespace

void AddDoctorCommand(CLI::App& app, CommandLine& line) {
  CLI::App* const command = app.add_subcommand(
      "doctor",
      "Say whether clients here can share memory with the server, and if not, "
      "which precondition fails; exit code 1 if they cannot");
  const auto as_json = std::make_shared<bool>(false);
  AddJsonFlag(*command, *as_json);
  command->callback(
      [&line, as_json] { line.exit_code = Examine(line, *as_json); });
}

}  // namespace tensord::cli
