// The parts of the benchmark. Each prints its rows (bench_output.h).
#pragma once

#include <string>

#include "absl/status/status.h"
#include "tests/gpu/bench/bench_device.h"

namespace tensord::test {

/// What is measured once and pasted into the cost models
/// (core/backend/cuda/gpu_model.h).
absl::Status RunModel(BenchDevice& device);

/// The suites in `data_folder`, in each element size, with every kernel.
absl::Status RunPermutation(BenchDevice& device,
                            const std::string& data_folder);

absl::Status RunElementwise(BenchDevice& device);
absl::Status RunReduction(BenchDevice& device);

/// TCCG-48 and random contractions from `data_folder`, by the planner's kernel
/// and, when all have run, by the others.
absl::Status RunContraction(BenchDevice& device,
                            const std::string& data_folder);

/// What small contractions cost above their kernels.
absl::Status RunOverhead(BenchDevice& device);

/// The device pool beside the driver's pool and plain cudaMalloc().
absl::Status RunMemory(BenchDevice& device);

}  // namespace tensord::test
