// factorize on .npy files: upload, run, download.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/commands.h"
#include "client/cli/file_tensors.h"
#include "client/cli/indexed_file.h"
#include "client/cli/names.h"
#include "client/cli/options.h"
#include "client/cli/program_text.h"
#include "client/cpp/src/subscripts.h"

namespace tensord::cli {
namespace {

struct SamplingArguments {
  bool is_wanted = false;
  Sampling numbers;
};

struct FactorizeArguments {
  bool explain = false;  // instead of running
  std::string subscripts;
  std::string input;                 // file, perhaps with an index
  std::vector<std::string> outputs;  // files, of the results in their order
  FactorizeOptions options;
  SamplingArguments sampling;
};

/// How many results subscripts have; 0: they are malformed.
size_t ResultCount(const std::string& subscripts) {
  const auto sides = internal::ParseSubscripts(subscripts);
  return sides.ok() && sides->size() == 2 ? (*sides)[1].size() : 0;
}

/// What the results of a factorization are called, given how many there are.
std::vector<std::string> ResultNames(FactorizationMethod method, size_t count) {
  switch (method) {
    case FactorizationMethod::kQr: return {"q", "r"};
    case FactorizationMethod::kLq: return {"l", "q"};
    case FactorizationMethod::kSvd:
      if (count == 2) return {"u", "v"};
      return {"u", "s", "v"};
    case FactorizationMethod::kEigh: return {"w", "v"};
    case FactorizationMethod::kCholesky: return {"l"};
  }
  return {};
}

int RunFactorize(const CommandLine& line, const FactorizeArguments& arguments) {
  const std::vector<std::string>& files = arguments.outputs;
  const size_t result_count = ResultCount(arguments.subscripts);
  const std::vector<std::string> names =
      ResultNames(arguments.options.method, result_count);
  if (!arguments.explain) {
    if (result_count == names.size() && files.size() != names.size()) {
      std::string wanted;
      for (const std::string& name : names) {
        absl::StrAppend(&wanted, " -o ", name, ".npy");
      }
      return FailUsage(absl::StrCat("got ", files.size(), " -o, wanted ",
                                    names.size(), ":", wanted));
    }
    std::vector<Binding> outputs;
    for (size_t i = 0; i < std::min(names.size(), files.size()); ++i) {
      outputs.push_back({names[i], files[i]});
    }
    const absl::Status differ = CheckFilesDiffer(outputs);
    if (!differ.ok()) return FailUsage(std::string(differ.message()));
  }
  std::optional<InputFile> input;
  const int opened = OpenInput(arguments.input, input);
  if (opened != kOk) return opened;
  absl::StatusOr<Session> session =
      Session::Connect(line.address, line.session_options());
  if (!session.ok()) return Fail(session.status());
  const absl::Time start = absl::Now();
  const absl::StatusOr<PlacedFile> placed =
      Place(*session, *input, /*contents=*/!arguments.explain);
  if (!placed.ok()) return Fail(placed.status());
  const absl::Duration uploading = absl::Now() - start;
  const RemoteTensor& a = placed->tensor();
  if (arguments.explain) {
    return PrintExplanation(
        session->ExplainFactorize(arguments.subscripts, a, arguments.options));
  }
  const absl::StatusOr<std::vector<RemoteTensor>> made =
      session->FactorizeAll(arguments.subscripts, a, arguments.options);
  if (!made.ok()) return Fail(made.status());
  std::vector<Fetched> fetched;
  for (size_t i = 0; i < names.size(); ++i) {
    fetched.push_back({names[i], &(*made)[i], files[i]});
  }
  return Finish(fetched, uploading);
}

void AddSampling(CLI::App& command, SamplingArguments& sampling) {
  CLI::Option* const randomized =
      command.add_flag("--randomized", sampling.is_wanted,
                       "Of svd, with --rank: the values may be those that a "
                       "random sample finds");
  AddInteger(command, "--oversampling", sampling.numbers.oversampling,
             "Columns of the sample beyond the rank, 10 unless given")
      ->needs(randomized);
  AddInteger(command, "--power-iterations", sampling.numbers.power_iterations,
             "How often it is multiplied by the adjoint and the matrix, 2 "
             "unless given")
      ->needs(randomized);
  AddInteger(command, "--seed", sampling.numbers.seed,
             "Of its random numbers, 0 unless given")
      ->needs(randomized);
}

}  // namespace

void AddFactorizeCommand(CLI::App& app, bool explain, CommandLine& line) {
  const auto factorize = std::make_shared<FactorizeArguments>();
  factorize->explain = explain;
  CLI::App* command = app.add_subcommand(
      "factorize",
      "Factors of a, summed over the one label that a lacks: tensorctl "
      "factorize --method qr \"abcd->abk,kcd\" a.npy -o q.npy -o r.npy");
  AddChoice(*command, "--method", factorize->options.method,
            FactorizationMethodNames(),
            "qr: q, r; lq: l, q; svd: u, s, v, or u, v with --absorb; eigh: "
            "w, v; cholesky: l")
      ->required();
  command
      ->add_option("subscripts", factorize->subscripts,
                   "Modes of a and of the results, e.g. \"abcd->abk,kcd\" or "
                   "\"abcd->abk,k,kcd\": those of the first factor alone are "
                   "rows of a matrix, those of the last alone columns")
      ->required();
  command
      ->add_option("file", factorize->input,
                   ".npy file; an index takes a part: 'a.npy[1:5, ::-1]'")
      ->required();
  if (!explain) {
    AddOutput(*command, factorize->outputs,
              ".npy file to write; once for each result, in their order")
        ->required()
        ->allow_extra_args(false);
  }
  Truncation& truncation = factorize->options.truncation;
  command->add_option("--rank", truncation.rank,
                      "Of svd: the most values that are kept");
  command->add_option("--cutoff", truncation.cutoff,
                      "Of svd: keep values above it");
  command->add_option("--relative-cutoff", truncation.relative_cutoff,
                      "Of svd: keep values above it times the largest");
  command->add_option("--discarded-squares", truncation.discarded_squares,
                      "Of svd: the most that the squares of the rest add up "
                      "to");
  command->add_option("--relative-discarded-squares",
                      truncation.relative_discarded_squares,
                      "Of svd: the same as a part of all squares");
  AddChoice(*command, "--absorb", truncation.absorb, AbsorbNames(),
            "Of svd: which factor is multiplied by the values");
  command->add_flag("--renormalize", truncation.renormalizes,
                    "Of svd: scale what is kept to the norm of all");
  AddSampling(*command, factorize->sampling);
  AddCommonOptions(*command, factorize->options);
  command->callback([&line, factorize] {
    const SamplingArguments& sampling = factorize->sampling;
    if (sampling.is_wanted) {
      factorize->options.truncation.sampling = sampling.numbers;
    }
    line.exit_code = RunFactorize(line, *factorize);
  });
}

}  // namespace tensord::cli
