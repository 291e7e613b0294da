// Options of commands, by what their values are.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/time/time.h"
#include "client/cli/names.h"
#include "client/cli/scalar.h"
#include "tensord/operations.h"

namespace tensord::cli {

// Lifetime  what an option writes to must outlive `command`.

template <typename Target>
CLI::Option* AddScalar(CLI::App& command, const std::string& name,
                       Target& value, const std::string& help) {
  return command
      .add_option_function<std::string>(
          name,
          [&value](const std::string& text) { value = *ParseScalar(text); },
          help)
      ->check([](const std::string& text) -> std::string {
        return ParseScalar(text).has_value()
                   ? ""
                   : "'" + text +
                         "' is not a number, wanted one as 1.5 or, for "
                         "complex elements, 1.5-2j";
      })
      ->type_name("NUMBER");
}

/// -o, one file or several: none of them "".
template <typename Target>
CLI::Option* AddOutput(CLI::App& command, Target& value,
                       const std::string& help) {
  return command.add_option("-o,--output", value, help)
      ->check([](const std::string& text) -> std::string {
        return text.empty() ? "it is empty, wanted a file" : "";
      });
}

/// One of `names`, in letters of either case; they are listed behind `help`.
template <typename Enum>
CLI::Option* AddChoice(CLI::App& command, const std::string& name, Enum& value,
                       const std::map<std::string, Enum>& names,
                       const std::string& help) {
  std::string choices;
  for (const auto& [choice, unused] : names) {
    choices += (choices.empty() ? "" : ", ") + choice;
  }
  return command
      .add_option_function<std::string>(
          name,
          [&value, &names](const std::string& choice) {
            value = names.at(absl::AsciiStrToLower(choice));
          },
          help + ": " + choices)
      ->check([&names, choices](const std::string& choice) -> std::string {
        return names.contains(absl::AsciiStrToLower(choice))
                   ? ""
                   : "'" + choice + "' is none of " + choices;
      })
      ->type_name("NAME");
}

/// A whole number of 64 bits.
CLI::Option* AddInteger(CLI::App& command, const std::string& name,
                        int64_t& value, const std::string& help);

/// E.g. "512MiB".
void AddBytes(CLI::App& command, const std::string& name,
              std::optional<int64_t>& value, const std::string& help);

/// E.g. "500ms".
void AddDuration(CLI::App& command, const std::string& name,
                 std::optional<absl::Duration>& value, const std::string& help);

void AddJsonFlag(CLI::App& command, bool& value);

/// What all that runs kernels is told.
template <typename Options>
void AddCommonOptions(CLI::App& command, Options& options) {
  if constexpr (requires { options.compute_type; }) {
    AddChoice(command, "--compute-type", options.compute_type,
              ComputeTypeNames(), "How precise arithmetic is");
  }
  if constexpr (requires { options.kernel; }) {
    command.add_option("--kernel", options.kernel,
                       "Kernel to use, as `explain` lists them");
  }
  AddChoice(
      command, "--selection", options.selection, SelectionNames(),
      "How kernels are chosen: by cost models, or by running those that could");
  AddBytes(command, "--workspace-limit", options.workspace_limit_bytes,
           "Most scratch memory of an operation");
  command.add_flag("--deterministic", options.deterministic,
                   "The same request gives the same bits");
}

}  // namespace tensord::cli
