#include "client/cli/tree_search.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cli/json.h"

namespace tensord::cli {
namespace {

constexpr absl::Duration kRound = absl::Seconds(10);
// Rounds in turn that end early and find nothing better, before the search is
// thought to be at its end.
constexpr int kVainRounds = 3;

/// The steps by positions in the list of what there is, as einsum_path writes
/// them.
std::vector<std::vector<int64_t>> StepsOf(const ProgramProduct& product) {
  std::vector<std::vector<int64_t>> steps;
  std::vector<int> there;  // nodes
  for (int i = 0; i < static_cast<int>(product.nodes.size()); ++i) {
    const std::vector<int>& children = product.nodes[i].children;
    if (!children.empty()) {
      std::vector<int64_t>& step = steps.emplace_back();
      for (const int child : children) {
        step.push_back(std::ranges::find(there, child) - there.begin());
      }
      for (const int child : children) std::erase(there, child);
    }
    there.push_back(i);
  }
  return steps;
}

absl::StatusOr<const ProgramProduct*> OnlyProduct(
    const ProgramExplanation& explanation) {
  if (explanation.products.size() == 1) return &explanation.products[0];
  return absl::FailedPreconditionError(
      absl::StrCat("the program has ", explanation.products.size(),
                   " products of three factors or more, wanted one, whose "
                   "order is kept"));
}

void PrintProgress(absl::Duration since, const ProgramProduct& product) {
  absl::FPrintF(stderr, "%5.0f s  10^%.3f flops", absl::ToDoubleSeconds(since),
                std::log10(product.flops));
  if (product.slice_count > 1) {
    absl::FPrintF(stderr, " in %d slices of %d labels", product.slice_count,
                  product.sliced.size());
  }
  absl::FPrintF(stderr, ", largest result 2^%.1f\n",
                std::log2(std::max(1.0, product.largest)));
}

}  // namespace

absl::StatusOr<std::optional<PathStart>> ReadTree(const std::string& path) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  try {
    std::ifstream file(path);
    const Json json = Json::parse(file);
    PathStart start;
    json.at("steps").get_to(start.steps);
    json.at("sliced").get_to(start.sliced);
    return start;
  } catch (const std::exception& error) {  // of JSON, or of reading
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        " is no order to go on with, wanted what --tree wrote, or no "
        "file: ",
        error.what()));
  }
}

absl::Status WriteTree(const ProgramExplanation& explanation,
                       const std::string& path) {
  const absl::StatusOr<const ProgramProduct*> product =
      OnlyProduct(explanation);
  if (!product.ok()) return product.status();
  Json json;
  json["log10_flops"] = std::log10((*product)->flops);
  json["log2_largest"] = std::log2(std::max(1.0, (*product)->largest));
  json["slices"] = (*product)->slice_count;
  json["sliced"] = (*product)->sliced;
  json["steps"] = StepsOf(**product);
  const std::string beside = path + ".new";
  std::ofstream file(beside);
  file << JsonText(json) << '\n';
  file.close();
  if (file && std::rename(beside.c_str(), path.c_str()) == 0) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
}

absl::StatusOr<ProgramExplanation> SearchTree(
    const std::string& path, ProgramOptions options,
    const std::function<
        absl::StatusOr<ProgramExplanation>(const ProgramOptions&)>& explain) {
  const absl::Time begun = absl::Now();
  auto start = ReadTree(path);
  if (!start.ok()) return start.status();
  if (!std::ofstream(path + ".new")) {  // before the time is spent
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
  }
  std::filesystem::remove(path + ".new");
  // What it finds may be dearer, and would take the place of what is kept.
  const bool begins_anew =
      options.path.method == PathMethod::kGreedy || options.path.costs;
  if (*start && begins_anew) {
    return absl::InvalidArgumentError(
        absl::StrCat("a greedy search, or one by --costs, does not go on from ",
                     path, ", wanted another --path, or another file"));
  }
  options.path.start = *std::move(start);
  const std::optional<absl::Duration> time = options.path.time_budget;
  double best = std::numeric_limits<double>::infinity();
  int vain_count = 0;
  while (true) {
    const absl::Time round = absl::Now();
    if (time) {
      const absl::Duration left = *time - (absl::Now() - begun);
      options.path.time_budget =
          std::clamp(left, absl::Milliseconds(1), kRound);
    }
    absl::StatusOr<ProgramExplanation> explained = explain(options);
    if (!explained.ok()) return explained.status();
    const absl::Status written = WriteTree(*explained, path);
    if (!written.ok()) return written;
    const ProgramProduct& product = explained->products[0];
    PrintProgress(absl::Now() - begun, product);
    const bool ended_early =
        time && absl::Now() - round < *options.path.time_budget / 2;
    vain_count = ended_early && product.flops >= best ? vain_count + 1 : 0;
    best = std::min(best, product.flops);
    if (!time || absl::Now() - begun >= *time || vain_count == kVainRounds) {
      return explained;
    }
    options.path.start = {StepsOf(product), product.sliced};
    ++options.path.seed;
  }
}

}  // namespace tensord::cli
