// The parts of the benchmark that go through a server. Each prints its rows
// (bench_output.h).
#pragma once

#include "absl/status/status.h"
#include "tensord/session.h"
#include "tests/gpu/bench/bench_output.h"

namespace tensord::test {

/// Uploads and downloads beside copies of as many bytes between device 0 and
/// pinned and pageable memory of this process.
absl::Status RunTransfer(Session& session, const Effort& effort);

/// Small products as calls of their own, in a pipeline and as programs.
absl::Status RunProgram(Session& session, const Effort& effort);

}  // namespace tensord::test
