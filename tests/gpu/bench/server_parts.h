// The parts of the benchmark that go through a server. Each prints its rows
// (bench_output.h).
#pragma once

#include <string>

#include "absl/status/status.h"
#include "tensord/session.h"
#include "tests/gpu/bench/bench_output.h"

namespace tensord::test {

/// Uploads to new tensors and downloads, by gRPC and by shared memory, beside
/// copies of as many bytes between device 0 and pinned and pageable memory of
/// this process.
absl::Status RunTransfer(const std::string& address, const std::string& device,
                         const Effort& effort);

/// Small products as calls of their own, in a pipeline and as programs.
absl::Status RunProgram(Session& session, const Effort& effort);

}  // namespace tensord::test
