// Searches paths for the networks of a text file and prints what was found, a
// line each: network, method, flops, log2 of the peak, milliseconds of a
// processor, trees tried, slices, the steps as pairs of nodes, log2 of the
// largest result, milliseconds, and the sliced indices or "-".
//
//   path_bench FILE [METHODS [SECONDS [LOG2_OF_MAX_PEAK
//                   [LOG2_OF_MAX_RESULT [THREADS [SEED]]]]]]
//
// METHODS are names of PathMethod joined by commas; 0 seconds, the default,
// leaves the time to the search; "-" stands for no limit. In the file, indices
// numbered from 0:
//
//   network NAME
//   extents 4 5 6
//   input 0 1
//   input 1 2
//   output 0 2
//   steps 0-1        # of a tree to cost with the method "given", or to search
//                    # on from; optional
//   sliced 0         # of that tree; optional
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/notation/path/find_path.h"

namespace tensord::test {
namespace {

struct NamedNetwork {
  std::string name;
  core::Network network;
  core::ContractionTree tree;  // that the file gives
  std::vector<int32_t> sliced;
};

std::vector<NamedNetwork> ReadNetworks(const std::string& file) {
  std::vector<NamedNetwork> networks;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    std::vector<std::string> words =
        absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.empty()) continue;
    const std::string kind = words[0];
    if (kind == "network") {
      networks.emplace_back().name = words.at(1);
      continue;
    }
    core::Network& network = networks.back().network;
    if (kind == "steps") {
      for (const absl::string_view step : absl::StrSplit(words.at(1), ',')) {
        const std::pair<std::string, std::string> ends =
            absl::StrSplit(step, '-');
        auto& [a, b] = networks.back().tree.steps.emplace_back();
        if (!absl::SimpleAtoi(ends.first, &a) ||
            !absl::SimpleAtoi(ends.second, &b)) {
          a = b = 0;
        }
      }
      continue;
    }
    core::Network::Indices numbers;
    for (size_t i = 1; i < words.size(); ++i) {
      int64_t number = 0;
      if (!absl::SimpleAtoi(words[i], &number)) continue;
      if (kind == "extents") network.extents.push_back(number);
      numbers.push_back(static_cast<int32_t>(number));
    }
    if (kind == "input") network.inputs.push_back(numbers);
    if (kind == "output") network.output = numbers;
    if (kind == "sliced") {
      networks.back().sliced.assign(numbers.begin(), numbers.end());
    }
  }
  return networks;
}

core::PathMethod MethodOf(absl::string_view name) {
  using core::PathMethod;
  for (const PathMethod method :
       {PathMethod::kOptimal, PathMethod::kGreedy, PathMethod::kRandomGreedy,
        PathMethod::kPartition, PathMethod::kGiven}) {
    if (core::NameOf(method) == name) return method;
  }
  return PathMethod::kAuto;
}

double LimitOf(absl::string_view log2) {
  double bits = std::numeric_limits<double>::infinity();
  if (log2 != "-" && !absl::SimpleAtod(log2, &bits)) return 0;
  return std::exp2(bits);
}

void Run(const NamedNetwork& named, core::PathOptions options) {
  if (!named.tree.steps.empty()) {
    options.start = core::PathStart{named.tree, named.sliced};
  }
  const absl::Time started = absl::Now();
  const std::clock_t begun = std::clock();
  const absl::StatusOr<core::Path> path =
      options.method == core::PathMethod::kGiven
          ? core::SlicePath(named.network, named.tree, options.max_peak)
          : core::FindPath(named.network, options);
  const double milliseconds =
      1e3 * static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC;
  if (!path.ok()) {
    absl::PrintF("%s %s error %s\n", named.name, core::NameOf(options.method),
                 path.status().message());
    return;
  }
  double slices = 1;
  for (const int32_t index : path->sliced) {
    slices *= static_cast<double>(named.network.extents[index]);
  }
  const std::string steps = absl::StrJoin(
      path->tree.steps, ",",
      [](std::string* out, const std::pair<int32_t, int32_t>& step) {
        absl::StrAppend(out, step.first, "-", step.second);
      });
  const std::string sliced =
      path->sliced.empty() ? "-" : absl::StrJoin(path->sliced, ",");
  absl::PrintF("%s %s>%s %.10g %.3f %.3f %d %g %s %.3f %.3f %s\n", named.name,
               core::NameOf(options.method), core::NameOf(path->method),
               path->cost.flops, std::log2(path->cost.peak), milliseconds,
               path->tried_count, slices, steps, std::log2(path->cost.largest),
               absl::ToDoubleMilliseconds(absl::Now() - started), sliced);
  std::fflush(stdout);
}

}  // namespace
}  // namespace tensord::test

int main(int argc, char** argv) {
  if (argc < 2) {
    absl::FPrintF(stderr,
                  "usage: %s FILE [METHODS [SECONDS [LOG2_OF_MAX_PEAK "
                  "[LOG2_OF_MAX_RESULT [THREADS [SEED]]]]]]\n",
                  argv[0]);
    return 2;
  }
  const std::string methods = argc > 2 ? argv[2] : "auto";
  tensord::core::PathOptions options;
  if (argc > 3) options.time_budget = absl::Seconds(std::atof(argv[3]));
  if (argc > 4) options.max_peak = tensord::test::LimitOf(argv[4]);
  if (argc > 5) options.max_result = tensord::test::LimitOf(argv[5]);
  if (argc > 6) options.thread_count = std::atoi(argv[6]);
  if (argc > 7) options.seed = std::strtoull(argv[7], nullptr, 10);
  for (const auto& named : tensord::test::ReadNetworks(argv[1])) {
    for (const absl::string_view method : absl::StrSplit(methods, ',')) {
      options.method = tensord::test::MethodOf(method);
      tensord::test::Run(named, options);
    }
  }
  return 0;
}
