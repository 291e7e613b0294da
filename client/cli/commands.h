// The commands of tensorctl.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "absl/time/time.h"
#include "client/cli/text.h"
#include "tensord/credentials.h"
#include "tensord/session.h"

namespace tensord::cli {

/// What every command is told, and what came of the one that ran.
struct CommandLine {
  std::string address = "localhost:8470";
  double timeout_seconds = 60;
  std::string job = "tensorctl";
  std::string device;  // "" is the server's first
  Credentials credentials;
  int exit_code = kOk;

  absl::Duration timeout() const { return absl::Seconds(timeout_seconds); }
  SessionOptions session_options() const;
};

// Each adds commands that print to stdout and leave their exit code in `line`.
//
// Lifetime  `line` must outlive `app`.

/// info, stats, health, list, describe, delete, plans and kernels.
void AddServerCommands(CLI::App& app, CommandLine& line);
/// cache: what the server has learned about kernels.
void AddCacheCommands(CLI::App& app, CommandLine& line);
/// trace: what the server does, as a timeline.
void AddTraceCommand(CLI::App& app, CommandLine& line);
/// doctor: whether memory can be shared with the server.
void AddDoctorCommand(CLI::App& app, CommandLine& line);
/// sessions, operations, tensors, cancel, evict, trim, drain, config, log-level
/// and top: a server in an operator's hands.
void AddOperatorCommands(CLI::App& app, CommandLine& line);
/// token: the file of tokens that a server takes.
void AddTokenCommands(CLI::App& app, CommandLine& line);
/// einsum and run: programs on .npy files. If `explain`, they run nothing.
void AddProgramCommands(CLI::App& app, bool explain, CommandLine& line);
/// permute, reduce, contract, elementwise and solve, the same.
void AddOperationCommands(CLI::App& app, bool explain, CommandLine& line);
/// factorize, the same.
void AddFactorizeCommand(CLI::App& app, bool explain, CommandLine& line);

}  // namespace tensord::cli
