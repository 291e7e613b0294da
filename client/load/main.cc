// tensord-load: how much a tensord server bears, and how fast it answers then.
#include <grpc/grpc.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/credential_options.h"
#include "client/load/faults.h"
#include "client/load/load.h"
#include "client/load/mix.h"
#include "client/load/objective.h"
#include "client/load/report.h"
#include "core/base/version.h"
#include "tensord/status.h"

namespace tensord::load {
namespace {

enum ExitCode { kOk = 0, kMissed = 1, kCouldNotRun = 2, kKilled = 130 };

/// What the command line says.
struct CommandLine {
  LoadOptions load;
  std::string mix;
  double seconds = 10;
  double warm_up_seconds = 1;
  double timeout_seconds = 60;
  int sessions = 0;  // 0: by the loop
  std::string faults;
  std::vector<std::string> objectives;
  std::string json;
  std::string csv;
  bool is_quiet = false;
  bool dies_in_upload = false;  // it is a client of Faults
};

std::atomic<bool> interrupted = false;  // by a signal

void Interrupt(int) {
  if (interrupted.exchange(true)) std::_Exit(kKilled);
}

int Refuse(const absl::Status& status) {
  const std::string reason = ReasonOf(status);
  const std::string code =
      reason.empty() ? ""
                     : absl::StrCat(absl::StatusCodeToString(status.code()),
                                    " [", reason, "]: ");
  absl::FPrintF(stderr, "tensord-load: %s%s\n", code, status.message());
  return kCouldNotRun;
}

CLI::Validator Above(double least) {
  return {[least](const std::string& text) -> std::string {
            double number = 0;
            return absl::SimpleAtod(text, &number) && number > least &&
                           number <= 1e9
                       ? ""
                       : absl::StrCat("'", text, "' is not a number above ",
                                      least);
          },
          "NUMBER"};
}

void AddOptions(CLI::App& app, CommandLine& line) {
  app.add_option("--address", line.load.address,
                 "The server: HOST:PORT or unix:/PATH")
      ->envname("TENSORD_ADDRESS")
      ->capture_default_str();
  app.add_option("--mix", line.mix,
                 "TOML file of the operations that are called");
  CLI::Option* const rate =
      app.add_option("--rate", line.load.rate_per_s,
                     "Open loop: calls a second, at the times of a Poisson "
                     "process, however the server does")
          ->check(Above(0));
  app.add_option("--closed", line.load.closed,
                 "Closed loop: callers, each of which waits for its last call")
      ->check(CLI::Range(1, 100000))
      ->excludes(rate);
  app.add_option("--seconds", line.seconds, "How long to measure")
      ->check(Above(0))
      ->capture_default_str();
  app.add_option("--warm-up", line.warm_up_seconds,
                 "Seconds of load before that")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app.add_option("--sessions", line.sessions,
                 "Sessions that calls are spread over, each with a connection "
                 "of its own and tensors of its own; 1 for an open loop and "
                 "one for each caller of a closed one unless given")
      ->check(CLI::Range(1, 100000));
  app.add_option("--in-flight", line.load.most_under_way,
                 "Open loop: most calls at a time; what exceeds it is not "
                 "sent, and counts as an error")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--timeout", line.timeout_seconds,
                 "Most seconds that one call takes")
      ->check(Above(0))
      ->capture_default_str();
  app.add_option("--objective", line.objectives,
                 "What must be reached: p99<10ms, p99.9<50ms, errors<1%, "
                 "errors<=0, goodput>100, or of one operation small:p50<2ms; "
                 "several with commas. Calls that fail or are not sent count "
                 "as slower than all others")
      ->delimiter(',');
  app.add_option("--faults", line.faults,
                 "Clients that misbehave meanwhile: kill-upload, slow-reader; "
                 "4 at a time of each unless given as slow-reader=16");
  app.add_option("--job", line.load.job,
                 "Label for the server's statistics, instead of the mix's");
  app.add_option("--device", line.load.device,
                 "Device to compute on, e.g. cpu:0; the server's first unless "
                 "given");
  cli::AddCredentialOptions(app, line.load.credentials);
  app.add_option("--seed", line.load.seed,
                 "The same one gives the same calls at the same times")
      ->capture_default_str();
  app.add_option("--json", line.json, "File for all numbers; - is stdout");
  app.add_option("--csv", line.csv, "File for a line each second");
  app.add_flag("--quiet", line.is_quiet, "Show no progress");
  app.add_flag("--die-in-upload", line.dies_in_upload)->group("");
}

/// A file that is written at the end, or while the load runs.
absl::Status OpenOutput(const std::string& path, std::ofstream& file) {
  if (path.empty() || path == "-") return absl::OkStatus();
  file.open(path);
  if (file) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("cannot write '", path, "'"));
}

absl::StatusOr<std::vector<Objective>> ParseObjectives(
    const std::vector<std::string>& texts, const Mix& mix) {
  std::vector<Objective> objectives;
  for (const std::string& text : texts) {
    absl::StatusOr<Objective> objective = ParseObjective(text);
    if (!objective.ok()) return objective.status();
    const std::string& operation = objective->operation;
    if (!operation.empty() &&
        std::ranges::find(mix.operations, operation, &OperationSpec::name) ==
            mix.operations.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the objective '", text, "' is about '", operation,
          "', wanted an operation of the mix: ",
          absl::StrJoin(mix.operations, ", ",
                        [](std::string* out, const OperationSpec& each) {
                          out->append(each.name);
                        })));
    }
    objectives.push_back(*std::move(objective));
  }
  return objectives;
}

/// Progress on stderr: a line that is drawn again on a terminal.
void ShowProgress(const IntervalRow& row, const LoadOptions& options) {
  const bool is_terminal = isatty(STDERR_FILENO) != 0;
  absl::FPrintF(stderr, "%s%s%s", is_terminal ? "\r\033[K" : "",
                ProgressLine(row, options), is_terminal ? "" : "\n");
}

int Run(CommandLine& line) {
  if (line.mix.empty() ||
      (line.load.rate_per_s == 0 && line.load.closed == 0)) {
    return Refuse(absl::InvalidArgumentError(
        absl::StrCat(line.mix.empty() ? "--mix FILE" : "--rate R or --closed N",
                     " is missing; run with --help for more")));
  }
  const absl::StatusOr<Mix> mix = ReadMix(line.mix);
  if (!mix.ok()) return Refuse(mix.status());
  const absl::StatusOr<std::vector<Objective>> objectives =
      ParseObjectives(line.objectives, *mix);
  if (!objectives.ok()) return Refuse(objectives.status());
  std::vector<FaultSpec> fault_specs;
  if (!line.faults.empty()) {
    absl::StatusOr<std::vector<FaultSpec>> parsed = ParseFaults(line.faults);
    if (!parsed.ok()) return Refuse(parsed.status());
    fault_specs = *std::move(parsed);
  }
  std::ofstream json, csv;
  for (const absl::Status& opened :
       {OpenOutput(line.json, json), OpenOutput(line.csv, csv)}) {
    if (!opened.ok()) return Refuse(opened);
  }

  LoadOptions& options = line.load;
  if (options.job.empty()) options.job = mix->job;
  options.sessions =
      line.sessions > 0 ? line.sessions : std::max(options.closed, 1);
  options.warm_up = absl::Seconds(line.warm_up_seconds);
  options.measured = absl::Seconds(line.seconds);
  options.timeout = absl::Seconds(line.timeout_seconds);
  std::vector<absl::Duration> good_within;
  for (const OperationSpec& each : mix->operations) {
    good_within.push_back(GoodWithin(*objectives, each.name));
  }
  absl::StatusOr<std::unique_ptr<Load>> load =
      Load::Prepare(options, *mix, std::move(good_within));
  if (!load.ok()) return Refuse(load.status());

  std::signal(SIGINT, Interrupt);
  std::signal(SIGTERM, Interrupt);
  auto faults = std::make_unique<Faults>(
      fault_specs,
      FaultTarget{options.address, options.device, options.credentials});
  csv << CsvHeader();
  Report report{.options = options,
                .mix = *mix,
                .server_version = (*load)->server_version(),
                .device = (*load)->device(),
                .result = (*load)->Run([] { return interrupted.load(); },
                                       [&](const IntervalRow& row) {
                                         csv << CsvLine(row) << std::flush;
                                         if (!line.is_quiet) {
                                           ShowProgress(row, options);
                                         }
                                       }),
                .objectives = *objectives,
                .faults = {}};
  if (!line.is_quiet && isatty(STDERR_FILENO) != 0) {
    std::fputs("\r\033[K", stderr);
  }
  const bool faults_ended = faults->Stop();
  report.faults = faults->counts();
  const std::string json_text = cli::JsonText(ToJson(report)) + "\n";
  if (line.json == "-") {
    std::fputs(json_text.c_str(), stdout);
  } else {
    std::fputs(ToText(report).c_str(), stdout);
    json << json_text << std::flush;
  }
  std::fflush(stdout);
  const std::vector<Judgement> judgements = report.judgements();
  const ExitCode code =
      std::ranges::all_of(judgements, &Judgement::met) ? kOk : kMissed;
  const bool load_ended = (*load)->Close();
  // Threads wait for a server that does not answer.
  if (!faults_ended || !load_ended) std::_Exit(code);
  return code;
}

int Main(int argc, char** argv) {
  CommandLine line;
  line.load.address = "localhost:8470";
  CLI::App app(
      "Sends the calls of a mix to a tensord server, and tells how long they "
      "took from the time they were meant to be sent. Ctrl-C ends it early, "
      "with results.\n\nExit codes: 0 done, 1 an objective was missed, 2 it "
      "could not run (stderr says why).",
      "tensord-load");
  app.set_version_flag("--version", core::kVersion);
  AddOptions(app, line);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kCouldNotRun;
  }
  if (line.dies_in_upload) {
    return UploadAndDie(
        {line.load.address, line.load.device, line.load.credentials});
  }
  return Run(line);
}

}  // namespace
}  // namespace tensord::load

int main(int argc, char** argv) {
  // It stays until the process ends: its last user would wait for its poller,
  // up to 10 s.
  grpc_init();
  return tensord::load::Main(argc, argv);
}
