// gpu_bench PART --data=FOLDER [--seconds=N] [--only=TEXT] [--tiny]
//
// Measures device 0 and prints one JSON object a line. PART is device, model,
// permutation, elementwise, reduction, contraction, overhead or memory. After N
// seconds no new case is started; the last line says how many were left out.
// With a TEXT, only cases of permutations and contractions that have it in
// "SUITE ID TYPE" run.
// Without a device it prints why, and exits with 77.
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "tests/gpu/bench/bench_device.h"
#include "tests/gpu/bench/node.h"
#include "tests/gpu/bench/parts.h"

namespace tensord::test {
namespace {

constexpr int kNoDevice = 77;

absl::Status RunPart(absl::string_view part, BenchDevice& device,
                     const std::string& data_folder) {
  if (part == "device") return PrintDevice(device);
  if (part == "model") return RunModel(device);
  if (part == "permutation") return RunPermutation(device, data_folder);
  if (part == "elementwise") return RunElementwise(device);
  if (part == "reduction") return RunReduction(device);
  if (part == "contraction") return RunContraction(device, data_folder);
  if (part == "overhead") return RunOverhead(device);
  if (part == "memory") return RunMemory(device);
  return absl::InvalidArgumentError(
      "PART is none of device, model, permutation, elementwise, reduction, "
      "contraction, overhead, memory");
}

int Main(int argc, char** argv) {
  std::string part, data_folder;
  double seconds = 3600;
  Effort effort;
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (absl::ConsumePrefix(&argument, "--data=")) {
      data_folder = std::string(argument);
    } else if (absl::ConsumePrefix(&argument, "--seconds=")) {
      if (!absl::SimpleAtod(argument, &seconds)) part.clear();
    } else if (absl::ConsumePrefix(&argument, "--only=")) {
      effort.only = std::string(argument);
    } else if (argument == "--tiny") {
      effort.tiny = true;
    } else {
      part = std::string(argument);
    }
  }
  effort.end = std::chrono::steady_clock::now() +
               std::chrono::duration_cast<std::chrono::nanoseconds>(
                   std::chrono::duration<double>(seconds));
  PrepareNode();
  const auto device = BenchDevice::Create(effort);
  if (!device.ok()) {
    Print(
        {{"part", part}, {"skipped", std::string(device.status().message())}});
    return absl::IsUnavailable(device.status()) ? kNoDevice : 1;
  }
  const absl::Status status = RunPart(part, **device, data_folder);
  if (status.ok()) return 0;
  Print({{"part", part}, {"failed", status.ToString()}});
  std::fprintf(stderr, "gpu_bench %s: %s\n", part.c_str(),
               status.ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace tensord::test

int main(int argc, char** argv) { return tensord::test::Main(argc, argv); }
