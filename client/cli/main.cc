// tensorctl: a tensord server from the shell.
#include <grpc/grpc.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "client/cli/commands.h"
#include "client/cli/credential_options.h"
#include "client/cli/text.h"
#include "core/base/version.h"

namespace tensord::cli {

SessionOptions CommandLine::session_options() const {
  SessionOptions options;
  options.job = job;
  options.device = device;
  options.deadline = timeout();
  options.credentials = credentials;
  return options;
}

namespace {

void AddGlobalOptions(CLI::App& app, CommandLine& line) {
  app.add_option("--address", line.address,
                 "The server: HOST:PORT or unix:/PATH")
      ->envname("TENSORD_ADDRESS")
      ->capture_default_str();
  app.add_option("--timeout", line.timeout_seconds,
                 "Most seconds that one call takes; transfers of much data "
                 "have more")
      ->check([](const std::string& text) -> std::string {
        double seconds = 0;
        return absl::SimpleAtod(text, &seconds) && seconds > 0
                   ? ""
                   : "'" + text + "' is not a time, wanted more than 0 seconds";
      })
      ->capture_default_str();
  app.add_option("--job", line.job,
                 "Label of the job, for the server's statistics")
      ->capture_default_str();
  app.add_option("--device", line.device,
                 "Device to compute on, e.g. cpu:0; the server's first unless "
                 "given");
  AddCredentialOptions(app, line.credentials);
}

void AddCommands(CLI::App& app, CommandLine& line) {
  AddServerCommands(app, line);
  AddCacheCommands(app, line);
  AddTraceCommand(app, line);
  AddDoctorCommand(app, line);
  AddOperatorCommands(app, line);
  AddTokenCommands(app, line);
  AddProgramCommands(app, /*explain=*/false, line);
  AddOperationCommands(app, /*explain=*/false, line);
  AddFactorizeCommand(app, /*explain=*/false, line);
  CLI::App* explain = app.add_subcommand(
      "explain", "Say how something would be computed, and run nothing");
  explain->require_subcommand(1);
  AddProgramCommands(*explain, /*explain=*/true, line);
  AddOperationCommands(*explain, /*explain=*/true, line);
  AddFactorizeCommand(*explain, /*explain=*/true, line);
}

/// What is wrong with a command line whose command is unknown or missing; ""
/// for others.
std::string CommandMistake(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
  }
  if (command->get_require_subcommand_min() == 0) return "";
  std::string wanted;
  for (const CLI::App* each :
       command->get_subcommands([](const CLI::App*) { return true; })) {
    wanted += (wanted.empty() ? "" : ", ") + each->get_name();
  }
  for (const std::string& word : app.remaining()) {
    if (!word.starts_with('-')) {
      return "there is no command '" + word + "', wanted one of " + wanted;
    }
  }
  return "there is no command after " + command->get_name() +
         ", wanted one of " + wanted;
}

/// The words of the command line as CLI11 wants them: the last one first.
std::vector<std::string> Words(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  for (std::string& word : words) {
    // Subscripts of scalars, which it would take for an option `->`.
    if (word.starts_with("->")) word.insert(0, " ");
  }
  std::reverse(words.begin(), words.end());
  return words;
}

int Main(int argc, char** argv) {
  CommandLine line;
  CLI::App app(
      "Talks to a tensord server: asks how it is, and computes with it on "
      "NumPy's .npy files.\n\nExit codes: 0 done, 1 it failed (stderr says "
      "why), 2 the command line is wrong.",
      "tensorctl");
  app.require_subcommand(1);
  app.fallthrough();
  app.set_version_flag("--version", core::kVersion);
  AddGlobalOptions(app, line);
  AddCommands(app, line);
  try {
    app.parse(Words(argc, argv));
  } catch (const CLI::RequiredError& error) {
    const std::string mistake = CommandMistake(app);
    if (!mistake.empty()) return FailUsage(mistake);
    app.exit(error);
    return kUsage;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kUsage;
  }
  return line.exit_code;
}

}  // namespace
}  // namespace tensord::cli

int main(int argc, char** argv) {
  // It stays until the process ends: its last user would wait for its poller,
  // up to 10 s.
  grpc_init();
  return tensord::cli::Main(argc, argv);
}
