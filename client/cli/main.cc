// tensorctl: a tensord server from the shell.
#include <grpc/grpc.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/time/time.h"
#include "client/cli/cache_commands.h"
#include "client/cli/names.h"
#include "client/cli/operation_commands.h"
#include "client/cli/program_commands.h"
#include "client/cli/scalar.h"
#include "client/cli/server_commands.h"
#include "client/cli/text.h"

namespace tensord::cli {
namespace {

struct Arguments {
  std::string address = "localhost:8470";
  double timeout_seconds = 60;
  std::string job = "tensorctl";
  std::string device;
  bool json = false;
  std::string explain_as;  // `text` or `json`; empty: not wanted
  std::string name;        // of a session or a tensor
  std::string entry;       // of the plan cache
  std::string file;
  int entry_count = 20;
  bool pinned_too = false;
  bool problems_only = false;
  OperationArguments operation;
  EinsumArguments einsum;
  RunArguments run;
  int exit_code = kOk;
};

SessionOptions MakeSessionOptions(const Arguments& arguments) {
  SessionOptions options;
  options.job = arguments.job;
  options.device = arguments.device;
  options.deadline = absl::Seconds(arguments.timeout_seconds);
  return options;
}

Server MakeServer(const Arguments& arguments) {
  return Server(arguments.address, absl::Seconds(arguments.timeout_seconds));
}

void AddServerCommands(CLI::App& app, Arguments& arguments) {
  const auto add_json = [&](CLI::App* command) {
    command->add_flag("--json", arguments.json, "Print JSON");
  };
  CLI::App* info = app.add_subcommand(
      "info", "Show the server's version, devices, kernels and limits");
  add_json(info);
  info->callback([&] {
    arguments.exit_code = PrintInfo(MakeServer(arguments), arguments.json);
  });
  CLI::App* stats = app.add_subcommand(
      "stats", "Show what the server has done so far, and its memory");
  add_json(stats);
  stats->callback([&] {
    arguments.exit_code = PrintStats(MakeServer(arguments), arguments.json);
  });
  app.add_subcommand("health",
                     "Say whether the server serves; exit 1 when it does not")
      ->callback(
          [&] { arguments.exit_code = PrintHealth(MakeServer(arguments)); });
  CLI::App* list = app.add_subcommand("list", "List the tensors of a session");
  add_json(list);
  list->add_option("session", arguments.name,
                   "Name of the session, sessions/...; sessions are private, "
                   "so only who opened one knows it")
      ->required();
  list->callback([&] {
    arguments.exit_code =
        PrintTensors(MakeServer(arguments), arguments.name, arguments.json);
  });
  CLI::App* describe = app.add_subcommand("describe", "Show one tensor");
  add_json(describe);
  describe
      ->add_option("tensor", arguments.name,
                   "Name of the tensor, sessions/.../tensors/...")
      ->required();
  describe->callback([&] {
    arguments.exit_code =
        PrintTensor(MakeServer(arguments), arguments.name, arguments.json);
  });
}

PlanCache MakeCache(const Arguments& arguments) {
  return PlanCache(arguments.address, absl::Seconds(arguments.timeout_seconds));
}

void AddPlanCommands(CLI::App& app, Arguments& arguments) {
  CLI::App* plans = app.add_subcommand("plans", "List the plans of a session");
  plans->add_flag("--json", arguments.json, "Print JSON");
  plans->add_option("session", arguments.name, "sessions/...")->required();
  plans->callback([&] {
    arguments.exit_code =
        PrintPlans(MakeServer(arguments), arguments.name, arguments.json);
  });
  CLI::App* kernels = app.add_subcommand(
      "kernels", "List the kernels of a device (--device), first asked first");
  kernels->add_flag("--json", arguments.json, "Print JSON");
  kernels->callback([&] {
    arguments.exit_code =
        PrintKernels(MakeServer(arguments), arguments.device, arguments.json);
  });

  CLI::App* cache = app.add_subcommand(
      "cache", "Show and keep what the server has learned about kernels");
  cache->require_subcommand(1);
  CLI::App* stats = cache->add_subcommand("stats", "Hits, misses, jobs");
  stats->add_flag("--json", arguments.json, "Print JSON");
  stats->callback([&] {
    arguments.exit_code = PrintCacheState(MakeCache(arguments), arguments.json);
  });
  CLI::App* list = cache->add_subcommand(
      "list", "The entries, most hits first; * is pinned");
  list->add_flag("--json", arguments.json, "Print JSON");
  list->add_option("--count", arguments.entry_count, "Most entries to show")
      ->check(CLI::NonNegativeNumber);
  list->callback([&] {
    arguments.exit_code = PrintCacheEntries(
        MakeCache(arguments), arguments.entry_count, arguments.json);
  });
  for (const auto& [verb, help] :
       {std::pair{"pin", "Keep an entry whatever comes"},
        std::pair{"unpin", "Let an entry go when its turn comes"},
        std::pair{"remove", "Forget an entry"}}) {
    CLI::App* command = cache->add_subcommand(verb, help);
    command->add_option("id", arguments.entry, "As `list` shows it")
        ->required();
    command->callback([&arguments, verb = std::string(verb)] {
      arguments.exit_code =
          ChangeCacheEntry(MakeCache(arguments), verb, arguments.entry);
    });
  }
  CLI::App* clear = cache->add_subcommand("clear", "Forget all entries");
  clear->add_flag("--pinned-too", arguments.pinned_too,
                  "Also those that are pinned");
  clear->callback([&] {
    arguments.exit_code =
        ClearCache(MakeCache(arguments), arguments.pinned_too);
  });
  CLI::App* dump = cache->add_subcommand("dump", "Write all entries to a file");
  dump->add_option("file", arguments.file)->required();
  dump->callback([&] {
    arguments.exit_code = DumpCache(MakeCache(arguments), arguments.file);
  });
  CLI::App* load = cache->add_subcommand(
      "load", "Take the entries of such a file in, from any server");
  load->add_option("file", arguments.file)->required();
  load->add_flag("--problems-only", arguments.problems_only,
                 "Plan its problems anew, for other hardware");
  load->callback([&] {
    arguments.exit_code = LoadCache(MakeCache(arguments), arguments.file,
                                    arguments.problems_only);
  });
}

struct OperationHelp {
  OperationKind kind;
  const char* name;
  const char* description;
  const char* subscripts;
  int most_files;
};

constexpr OperationHelp kOperations[] = {
    {OperationKind::kPermute, "permute",
     "d = alpha * f(a), with a's modes in another order: tensorctl permute "
     "\"ijk->kij\" a.npy -o d.npy",
     "Modes of a and of the result, e.g. \"ijk->kij\"", 1},
    {OperationKind::kReduce, "reduce",
     "d = alpha * op(f(a)) + beta * f(c), over the modes that d lacks: "
     "tensorctl reduce \"ijk->j\" a.npy --op max",
     "Modes of a, perhaps c, and the result, e.g. \"ijk->j\"", 2},
    {OperationKind::kContract, "contract",
     "d = alpha * a * b + beta * c: tensorctl contract \"ik,kj->ij\" a.npy "
     "b.npy --alpha 2",
     "Modes of a, b, perhaps c, and the result, e.g. \"ik,kj->ij\"", 3},
    {OperationKind::kElementwise, "elementwise",
     "d = op(alpha * f(a), gamma * f(c)), or with three files d = op(op_ab("
     "alpha * f(a), beta * f(b)), gamma * f(c)): tensorctl elementwise "
     "\"ij,j->ij\" a.npy c.npy --op mul",
     "Modes of a, perhaps b, c, and the result, e.g. \"ij,j->ij\"", 3},
};

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

template <typename Enum>
void AddChoice(CLI::App& command, const std::string& name, Enum& value,
               const std::map<std::string, Enum>& names,
               const std::string& help) {
  std::string choices;
  for (const auto& [choice, unused] : names) {
    choices += (choices.empty() ? "" : ", ") + choice;
  }
  command
      .add_option_function<std::string>(
          name,
          [&value, &names](const std::string& choice) {
            value = names.at(choice);
          },
          help + ": " + choices)
      ->check([&names, choices](const std::string& choice) -> std::string {
        return names.contains(choice)
                   ? ""
                   : "'" + choice + "' is none of " + choices;
      })
      ->type_name("NAME");
}

/// Turns "512MiB" into "536870912".
CLI::Validator ByteSize() {
  return {[](std::string& text) -> std::string {
            const std::string got = text;
            int64_t bytes = 0;
            try {
              CLI::AsSizeValue(/*kb_is_1000=*/true)(text);
              if (absl::SimpleAtoi(text, &bytes) && bytes >= 0) return "";
            } catch (const CLI::ValidationError&) {
              // Its message lists every unit there is.
            }
            return "'" + got + "' is not a size, wanted bytes, or e.g. 512MiB";
          },
          "BYTES"};
}

void AddBytes(CLI::App& command, const std::string& name,
              std::optional<int64_t>& value, const std::string& help) {
  command
      .add_option_function<int64_t>(
          name, [&value](int64_t bytes) { value = bytes; }, help)
      ->transform(ByteSize());
}

/// Options that operations and programs both have.
template <typename Options>
void AddCommonOptions(CLI::App& command, Options& options) {
  AddChoice(command, "--compute-type", options.compute_type, ComputeTypeNames(),
            "How precise arithmetic is");
  AddBytes(command, "--workspace-limit", options.workspace_limit_bytes,
           "Most scratch memory of an operation");
  command.add_flag("--deterministic", options.deterministic,
                   "The same request gives the same bits");
}

void AddExecutionOptions(CLI::App& command, ExecutionOptions& execution) {
  AddCommonOptions(command, execution);
  AddChoice(command, "--output-type", execution.output_element_type,
            ElementTypeNames(), "Element type of the result");
  command.add_option("--kernel", execution.kernel,
                     "Kernel to use, as `explain` lists them");
  AddChoice(
      command, "--selection", execution.selection, SelectionNames(),
      "How the kernel is chosen: by cost models, or by running those that "
      "could");
}

void AddFactorsAndOperators(CLI::App& command, OperationKind kind,
                            OperationArguments& operation) {
  AddScalar(command, "--alpha", operation.alpha, "Factor of a");
  AddChoice(command, "--unary-a", operation.unary_a, UnaryOperatorNames(),
            "Applied to each element of a first");
  if (kind == OperationKind::kPermute) return;
  AddScalar(command, "--beta", operation.beta,
            kind == OperationKind::kElementwise
                ? "Factor of b"
                : "Factor of c, 1 unless given when there is a c");
  AddChoice(command, "--unary-c", operation.unary_c, UnaryOperatorNames(),
            "Applied to each element of c first");
  if (kind != OperationKind::kContract) {
    AddChoice(command, "--op", operation.op, BinaryOperatorNames(),
              kind == OperationKind::kReduce
                  ? "How elements are brought together, add unless given"
                  : "Last operator, add unless given");
  }
  if (kind != OperationKind::kReduce) {
    AddChoice(command, "--unary-b", operation.unary_b, UnaryOperatorNames(),
              "Applied to each element of b first");
  }
  if (kind == OperationKind::kElementwise) {
    AddScalar(command, "--gamma", operation.gamma, "Factor of c");
    AddChoice(command, "--op-ab", operation.op_ab, BinaryOperatorNames(),
              "Operator between a and b, mul unless given");
  }
}

void AddOperations(CLI::App& app, bool explain, Arguments& arguments) {
  for (const OperationHelp& help : kOperations) {
    OperationArguments& operation = arguments.operation;
    CLI::App* command = app.add_subcommand(help.name, help.description);
    command->add_option("subscripts", operation.subscripts, help.subscripts)
        ->required();
    command
        ->add_option("files", operation.inputs,
                     ".npy files, one for each term of the subscripts; an "
                     "index takes a part: 'a.npy[1:5, ::-1]'")
        ->required()
        ->expected(1, help.most_files);
    if (!explain) {
      command->add_option(
          "-o,--output", operation.output,
          ".npy file to write; without it the result is only described");
    }
    AddFactorsAndOperators(*command, help.kind, operation);
    if (help.kind == OperationKind::kPermute) {
      CLI::Option* const pad = command->add_option(
          "--pad", operation.padding,
          "Padding around the result, BEFORE:AFTER for each "
          "of its modes, e.g. 1:1,0:2");
      AddScalar(*command, "--pad-value", operation.padding_value,
                "Value of padding, 0 unless given")
          ->needs(pad);
    }
    AddExecutionOptions(*command, operation.execution);
    command->callback([&arguments, &help, explain] {
      arguments.operation.kind = help.kind;
      arguments.operation.explain = explain;
      arguments.exit_code =
          RunOperation(arguments.address, MakeSessionOptions(arguments),
                       arguments.operation);
    });
  }
}

/// What a command is to print instead of computing; if `explain`, it never
/// computes.
ExplainAs WantedExplanation(const Arguments& arguments, bool explain,
                            bool draws) {
  if (explain) return arguments.json ? ExplainAs::kJson : ExplainAs::kText;
  if (arguments.explain_as.empty() && !draws) return ExplainAs::kNothing;
  return arguments.explain_as == "json" ? ExplainAs::kJson : ExplainAs::kText;
}

void AddProgramOptions(CLI::App& command, bool explain, Arguments& arguments,
                       ProgramArguments& program) {
  AddCommonOptions(command, program.options);
  PathOptions& path = program.options.path;
  AddChoice(command, "--path", path.method, PathMethodNames(),
            "How the order of contractions is found");
  command
      .add_option_function<std::string>(
          "--time-budget",
          [&path](const std::string& text) {
            absl::Duration budget;
            absl::ParseDuration(text, &budget);
            path.time_budget = budget;
          },
          "How long to search for that order, e.g. 2s or 500ms")
      ->check([](const std::string& text) -> std::string {
        absl::Duration budget;
        return absl::ParseDuration(text, &budget) &&
                       budget >= absl::ZeroDuration() &&
                       budget < absl::InfiniteDuration()
                   ? ""
                   : "'" + text +
                         "' is not a duration, wanted e.g. 2s or 500ms";
      })
      ->type_name("DURATION");
  command
      .add_option_function<std::string>(
          "--costs", [&path](const std::string& text) { path.costs = text; },
          "What labels cost, of which that order is to take least where the "
          "variable is large: 'a=>χ, b=>2*χ^2', '(a,b)', '!(a,b)', or ''")
      ->type_name("COSTS");
  AddBytes(command, "--memory-limit", path.memory_limit_bytes,
           "Most memory of intermediate results; to keep to it, products are "
           "computed in parts");
  if (explain) {
    command.add_flag("--json", arguments.json, "Print JSON");
  } else {
    command
        .add_flag("--explain{text}", arguments.explain_as,
                  "Say how it would be computed, and run nothing; "
                  "--explain=json prints JSON")
        ->check(CLI::IsMember({"text", "json"}));
  }
  command
      .add_option("--tree", program.tree,
                  "Explain, and draw the order of contractions into this file, "
                  "which ends with .svg, .txt or, by rsvg-convert, .png")
      ->type_name("FILE");
}

void AddPrograms(CLI::App& app, bool explain, Arguments& arguments) {
  EinsumArguments& product = arguments.einsum;
  CLI::App* einsum = app.add_subcommand(
      "einsum",
      "NumPy's einsum of any number of arrays: tensorctl einsum "
      "\"ij,jk,kl->il\" a.npy b.npy c.npy -o d.npy");
  einsum
      ->add_option("subscripts", product.subscripts,
                   "What to compute, as for numpy.einsum, e.g. \"ij,jk->ik\"")
      ->required();
  einsum
      ->add_option("files", product.inputs,
                   ".npy files, one for each term of the subscripts; an index "
                   "takes a part: 'a.npy[1:5, ::-1]'")
      ->required();
  if (!explain) {
    einsum->add_option(
        "-o,--output", product.output,
        ".npy file to write; without it the result is only described");
  }
  AddChoice(*einsum, "--output-type", product.output_type, ElementTypeNames(),
            "Element type of the result");
  AddProgramOptions(*einsum, explain, arguments, product.program);
  einsum->callback([&arguments, &product, explain] {
    product.program.explain =
        WantedExplanation(arguments, explain, !product.program.tree.empty());
    arguments.exit_code =
        RunEinsum(arguments.address, MakeSessionOptions(arguments), product);
  });

  RunArguments& statements = arguments.run;
  CLI::App* run = app.add_subcommand(
      "run",
      "A program in index notation: tensorctl run 'D[i,k] := x*A[i,j]*B[j,k]' "
      "A=a.npy B=b.npy x=2.5 -o D=d.npy");
  run->add_option("program", statements.source,
                  "Statements, or a file of them, or - for stdin")
      ->required();
  run->add_option("operands", statements.operands,
                  "What names stand for, NAME=VALUE: .npy files, of which an "
                  "index takes a part, and numbers");
  if (!explain) {
    run->add_option(
           "-o,--output", statements.outputs,
           "NAME=FILE, the .npy file to write a tensor to that the program "
           "makes, or has written; without any, results are only described")
        ->allow_extra_args(false);
  }
  AddProgramOptions(*run, explain, arguments, statements.program);
  run->callback([&arguments, &statements, explain] {
    statements.program.explain =
        WantedExplanation(arguments, explain, !statements.program.tree.empty());
    arguments.exit_code = RunProgram(arguments.address,
                                     MakeSessionOptions(arguments), statements);
  });
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

int Main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app(
      "Talks to a tensord server: asks how it is, and computes with it on "
      "NumPy's .npy files.\n\nExit codes: 0 done, 1 it failed (stderr says "
      "why), 2 the command line is wrong.",
      "tensorctl");
  app.require_subcommand(1);
  app.fallthrough();
  app.add_option("--address", arguments.address,
                 "The server: HOST:PORT or unix:/PATH")
      ->envname("TENSORD_ADDRESS")
      ->capture_default_str();
  app.add_option("--timeout", arguments.timeout_seconds,
                 "Most seconds that one call takes; transfers of much data "
                 "have more")
      ->check([](const std::string& text) -> std::string {
        double seconds = 0;
        return absl::SimpleAtod(text, &seconds) && seconds > 0
                   ? ""
                   : "'" + text + "' is not a time, wanted more than 0 seconds";
      })
      ->capture_default_str();
  app.add_option("--job", arguments.job,
                 "Label of the job, for the server's statistics")
      ->capture_default_str();
  app.add_option("--device", arguments.device,
                 "Device to compute on, e.g. cpu:0; the server's first unless "
                 "given");
  AddServerCommands(app, arguments);
  AddPlanCommands(app, arguments);
  AddPrograms(app, /*explain=*/false, arguments);
  AddOperations(app, /*explain=*/false, arguments);
  CLI::App* explain = app.add_subcommand(
      "explain", "Say how something would be computed, and run nothing");
  explain->require_subcommand(1);
  AddPrograms(*explain, /*explain=*/true, arguments);
  AddOperations(*explain, /*explain=*/true, arguments);
  // Subscripts of scalars, which CLI11 would take for an option `->`.
  std::vector<std::string> words(argv + 1, argv + argc);
  for (std::string& word : words) {
    if (word.starts_with("->")) word.insert(0, " ");
  }
  std::reverse(words.begin(), words.end());  // as parse() wants them
  try {
    app.parse(std::move(words));
  } catch (const CLI::RequiredError& error) {
    const std::string mistake = CommandMistake(app);
    if (!mistake.empty()) return FailUsage(mistake);
    app.exit(error);
    return kUsage;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kUsage;
  }
  return arguments.exit_code;
}

}  // namespace
}  // namespace tensord::cli

int main(int argc, char** argv) {
  // It stays until the process ends: its last user would wait for its poller,
  // up to 10 s.
  grpc_init();
  return tensord::cli::Main(argc, argv);
}
