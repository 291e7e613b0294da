// Whole programs on .npy files: upload, run, download.
#pragma once

#include <string>
#include <vector>

#include "tensord/program.h"
#include "tensord/session.h"

namespace tensord::cli {

/// How an explanation is printed, if one is wanted instead of results.
enum class ExplainAs { kNothing, kText, kJson };

/// What `einsum` and `run` are both told.
struct ProgramArguments {
  ExplainAs explain = ExplainAs::kNothing;
  std::string tree;  // file to draw products into, too; empty: none
  ProgramOptions options;
};

struct EinsumArguments {
  std::string subscripts;
  std::vector<std::string> inputs;  // files, perhaps with an index
  std::string output;               // file; empty: the result is dropped
  ElementType output_type = ElementType::kUnspecified;
  ProgramArguments program;
};

struct RunArguments {
  std::string source;  // a file, `-` or the statements themselves
  std::vector<std::string> operands;  // `A=a.npy`, `alpha=2.5`
  std::vector<std::string> outputs;   // `D=d.npy`
  ProgramArguments program;
};

/// Prints to stdout what came of it and returns an exit code.
int RunEinsum(const std::string& address, const SessionOptions& session,
              const EinsumArguments& arguments);
/// The same.
int RunProgram(const std::string& address, const SessionOptions& session,
               const RunArguments& arguments);

}  // namespace tensord::cli
