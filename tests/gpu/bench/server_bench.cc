// gpu_server_bench PART --server=PATH_OF_TENSORD [--device=cuda:0]
//                  [--seconds=N] [--tiny]
//
// Measures what goes through a server on a Unix socket and prints one JSON
// object a line. PART is transfer or program. After N seconds no new case is
// started. Without a device it prints why, and exits with 77.
#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdio>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tests/gpu/bench/node.h"
#include "tests/gpu/bench/server_parts.h"
#include "tests/testing/server_process.h"

namespace tensord::test {
namespace {

constexpr int kNoDevice = 77;

absl::Status RunPart(absl::string_view part, const std::string& server_path,
                     const std::string& device, const Effort& effort) {
  const bool is_transfer = part == "transfer";
  if (!is_transfer && part != "program") {
    return absl::InvalidArgumentError("PART is none of transfer and program");
  }
  const testing::ServerProcess server(
      server_path, {"--log-level=error", "--drain-timeout-seconds=1",
                    absl::StrCat("--devices=", device)});
  if (is_transfer) return RunTransfer(server.address(), device, effort);
  auto session = Session::Connect(server.address(), {.device = device});
  if (!session.ok()) return session.status();
  return RunProgram(*session, effort);
}

int Main(int argc, char** argv) {
  std::string part, server, device = "cuda:0";
  double seconds = 3600;
  Effort effort;
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (absl::ConsumePrefix(&argument, "--server=")) {
      server = std::string(argument);
    } else if (absl::ConsumePrefix(&argument, "--device=")) {
      device = std::string(argument);
    } else if (argument == "--tiny") {
      effort.tiny = true;
    } else if (absl::ConsumePrefix(&argument, "--seconds=")) {
      if (!absl::SimpleAtod(argument, &seconds)) part.clear();
    } else {
      part = std::string(argument);
    }
  }
  effort.end = std::chrono::steady_clock::now() +
               std::chrono::duration_cast<std::chrono::nanoseconds>(
                   std::chrono::duration<double>(seconds));
  PrepareNode();
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count);
      error != cudaSuccess || count == 0) {
    Print({{"part", part}, {"skipped", cudaGetErrorString(error)}});
    return kNoDevice;
  }
  const absl::Status status = RunPart(part, server, device, effort);
  if (status.ok()) return 0;
  Print({{"part", part}, {"failed", status.ToString()}});
  std::fprintf(stderr, "gpu_server_bench %s: %s\n", part.c_str(),
               status.ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace tensord::test

int main(int argc, char** argv) { return tensord::test::Main(argc, argv); }
