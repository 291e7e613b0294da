// gpu_model_fit RAW_JSONL
//
// Fits the cycle model (core/backend/cuda/gpu_model.h) to the times of a run on
// a GPU, without one. The parameters are the better the less time is lost by
// taking, in each case, the kernel for which they predict least. Prints one
// JSON object a line, for the parameters as they are and for the best found:
//   lost    geometric mean of chosen / fastest, less 1
//   missed  cases in which another kernel was over 5 % faster
//   worst   the largest chosen / fastest
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "core/backend/cuda/permutation_kernels.h"
#include "tests/gpu/bench/bench_output.h"
#include "tests/gpu/bench/permutation_cases.h"

namespace tensord::test {
namespace {

using core::cuda::CycleParameters;
using core::cuda::GpuModel;

constexpr double kMissed = 1.05;

/// What `name` has in `line`, an object without others in it; "" when it has
/// nothing.
std::string FieldOf(const std::string& line, absl::string_view name) {
  const std::string key = absl::StrCat("\"", name, "\":");
  size_t begin = line.find(key);
  if (begin == std::string::npos) return "";
  begin = line.find_first_not_of(' ', begin + key.size());
  const bool is_text = line[begin] == '"';
  if (is_text) ++begin;
  return line.substr(begin,
                     line.find_first_of(is_text ? "\"" : ",}", begin) - begin);
}

double NumberOf(const std::string& line, absl::string_view name) {
  double number = 0;
  return absl::SimpleAtod(FieldOf(line, name), &number) ? number : 0;
}

std::vector<int64_t> NumbersOf(const std::string& line,
                               absl::string_view name) {
  std::vector<int64_t> numbers;
  const std::string text = FieldOf(line, name);
  for (const auto word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    int64_t number = 0;
    if (absl::SimpleAtoi(word, &number)) numbers.push_back(number);
  }
  return numbers;
}

/// A case with the time of each kernel that ran it.
struct TimedCase {
  core::PermutationProblem problem;
  std::map<std::string, double, std::less<>> ns;  // by kernel

  double least_ns() const {
    double least = ns.begin()->second;
    for (const auto& [kernel, each] : ns) least = std::min(least, each);
    return least;
  }
};

struct Recorded {
  GpuModel model;
  int32_t major = 0;
  std::vector<TimedCase> cases;
};

/// The model as the backend would make it on that device.
Recorded Read(const std::string& path) {
  Recorded recorded;
  std::map<std::string, TimedCase> cases;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::string part = FieldOf(line, "part");
    if (part == "device") {
      recorded.model.multiprocessor_count =
          static_cast<int32_t>(NumberOf(line, "multiprocessors"));
      recorded.model.shared_bytes_per_multiprocessor =
          static_cast<int64_t>(NumberOf(line, "shared_bytes"));
      recorded.model.memory_bytes_per_ns =
          std::max(2e-6 * NumberOf(line, "memory_clock_khz") *
                       NumberOf(line, "memory_bus_bits") / 8,
                   1.0);
      recorded.model.clock_ghz =
          std::max(1e-6 * NumberOf(line, "clock_khz"), 0.1);
      // "sm_90": the last digit is the minor number.
      int sm = 0;
      if (absl::SimpleAtoi(FieldOf(line, "architecture").substr(3), &sm)) {
        recorded.major = sm / 10;
      }
    }
    const auto type = core::ElementTypeFromName(FieldOf(line, "type"));
    if (part != "permutation" || !type || NumberOf(line, "ns") <= 0) continue;
    const PermutationCase c{.suite = FieldOf(line, "suite"),
                            .extents = NumbersOf(line, "extents"),
                            .perm = NumbersOf(line, "perm")};
    TimedCase& timed = cases[absl::StrCat(c.suite, " ", FieldOf(line, "id"),
                                          " ", FieldOf(line, "type"))];
    timed.problem = core::Canonicalize(c.Desc(*type));
    timed.ns[FieldOf(line, "kernel")] = NumberOf(line, "ns");
  }
  for (auto& [name, timed] : cases) recorded.cases.push_back(std::move(timed));
  return recorded;
}

struct Loss {
  double lost = 0;
  int missed = 0;
  double worst = 1;
};

/// Chosen / fastest of each case, were these the parameters.
std::vector<double> Ratios(const GpuModel& model, const TimedCase* begin,
                           const TimedCase* end) {
  using namespace core::cuda;  // NOLINT: the makers of all kernels
  std::vector<std::unique_ptr<const core::PermutationKernel>> kernels;
  // As the backend has them.
  kernels.push_back(CreateTrivialPermutation(model));
  kernels.push_back(CreateTiledPermutation(model));
  kernels.push_back(CreateTiledCopyPermutation(model));
  kernels.push_back(CreateRunsPermutation(model));
  kernels.push_back(CreatePackedPermutation(model, nullptr));
  kernels.push_back(CreatePackedSplitPermutation(model, nullptr));
  kernels.push_back(CreateReferencePermutation(model));
  std::vector<double> ratios;
  for (const TimedCase* each = begin; each != end; ++each) {
    double least_predicted = HUGE_VAL;
    double chosen_ns = 0;
    for (const auto& kernel : kernels) {
      const auto ran = each->ns.find(std::string(kernel->name()));
      // Kernels may have changed since.
      if (ran == each->ns.end()) continue;
      const auto solution = kernel->Solve(each->problem);
      if (!solution.ok()) continue;
      const double predicted = (*solution)->predicted_nanoseconds();
      if (predicted >= least_predicted) continue;
      least_predicted = predicted;
      chosen_ns = ran->second;
    }
    if (chosen_ns > 0) ratios.push_back(chosen_ns / each->least_ns());
  }
  return ratios;
}

Loss LossOf(GpuModel model, const CycleParameters& cycles,
            const std::vector<TimedCase>& cases) {
  model.cycles = cycles;
  const size_t threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::future<std::vector<double>>> shares;
  for (size_t i = 0; i < threads; ++i) {
    shares.push_back(std::async(std::launch::async, [&, i] {
      return Ratios(model, cases.data() + cases.size() * i / threads,
                    cases.data() + cases.size() * (i + 1) / threads);
    }));
  }
  Loss loss;
  double logarithms = 0;
  int count = 0;
  for (auto& share : shares) {
    for (const double ratio : share.get()) {
      logarithms += std::log(ratio);
      loss.missed += ratio > kMissed;
      loss.worst = std::max(loss.worst, ratio);
      ++count;
    }
  }
  loss.lost = std::expm1(logarithms / std::max(count, 1));
  return loss;
}

void PrintLoss(absl::string_view which, const CycleParameters& p,
               const Loss& loss, int64_t cases) {
  Print({{"part", "fit"},
         {"which", which},
         {"cases", cases},
         {"lost", loss.lost},
         {"missed", int64_t{loss.missed}},
         {"worst", loss.worst},
         {"paste",
          absl::StrFormat("{%.3g, %.4g, %.3g, %.4g}", p.departure,
                          p.base_latency, p.shared_latency, p.arithmetic)}});
}

/// Changes one parameter at a time, in smaller and smaller steps, as long as
/// less is lost.
int Fit(const Recorded& recorded) {
  const auto case_count = static_cast<int64_t>(recorded.cases.size());
  CycleParameters best = core::cuda::CyclesOf(recorded.major);
  Loss least = LossOf(recorded.model, best, recorded.cases);
  PrintLoss("as it is", best, least, case_count);
  constexpr std::array kParameters = {
      &CycleParameters::departure, &CycleParameters::base_latency,
      &CycleParameters::shared_latency, &CycleParameters::arithmetic};
  for (double step = 2; step > 1.1;) {
    bool is_better = false;
    for (const auto parameter : kParameters) {
      for (const double factor : {step, 1 / step}) {
        CycleParameters tried = best;
        tried.*parameter *= factor;
        const Loss loss = LossOf(recorded.model, tried, recorded.cases);
        if (loss.lost >= least.lost) continue;
        best = tried;
        least = loss;
        is_better = true;
      }
    }
    if (!is_better) step = std::sqrt(step);
  }
  PrintLoss("best found", best, least, case_count);
  return 0;
}

int Main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "gpu_model_fit RAW_JSONL\n");
    return 1;
  }
  const Recorded recorded = Read(argv[1]);
  if (recorded.cases.empty() || recorded.major == 0) {
    std::fprintf(stderr, "gpu_model_fit: %s has no device or no permutation\n",
                 argv[1]);
    return 1;
  }
  return Fit(recorded);
}

}  // namespace
}  // namespace tensord::test

int main(int argc, char** argv) { return tensord::test::Main(argc, argv); }
