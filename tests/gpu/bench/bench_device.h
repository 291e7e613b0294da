// The device that is measured, and how long work on it takes.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/backend/backend.h"
#include "core/memory/memory_resource.h"
#include "tests/gpu/bench/bench_output.h"

namespace tensord::test {

/// Bytes of results before they are computed: NaN in every type.
inline constexpr int kPoison = 0xff;

/// What repetitions of the same work took.
struct Timing {
  double median_ns = 0;
  double least_ns = 0;
  double most_ns = 0;
};

/// Of durations in nanoseconds. A clock may be too coarse for what it times:
/// no duration counts as less than one.
Timing TimingOf(std::vector<double> durations_ns);

/// Device 0, one of its streams, and memory for operands.
///
/// Threads  used by one thread at a time.
class BenchDevice {
 public:
  /// Errors  UNAVAILABLE: there is no device, and why.
  static absl::StatusOr<std::unique_ptr<BenchDevice>> Create(
      const Effort& effort);
  ~BenchDevice();
  BenchDevice(const BenchDevice&) = delete;
  BenchDevice& operator=(const BenchDevice&) = delete;

  core::Backend& backend() { return *backend_; }
  core::Stream& stream() { return *stream_; }
  cudaStream_t cuda_stream() const { return cuda_stream_; }
  const Effort& effort() const { return effort_; }
  int64_t l2_bytes() const { return l2_bytes_; }

  /// A buffer of the device; at least 16 bytes, padded to multiples of 16.
  absl::StatusOr<core::Buffer> Allocate(int64_t bytes);

  /// Times `launch`, which queues work on stream(), by events around each of
  /// several runs after one that does not count. Work that touches too few
  /// `bytes` to wash the L2 cache clean itself finds it full of other data.
  ///
  /// Errors  of `launch`; INTERNAL, UNAVAILABLE: the device failed.
  /// `before` queues what comes before each run and does not count.
  absl::StatusOr<Timing> Time(
      int64_t bytes, absl::FunctionRef<absl::Status()> launch,
      absl::FunctionRef<absl::Status()> before = absl::OkStatus);

  /// Device to device, `bytes` bytes read and as many written. Measured each
  /// time: what is compared with it ran just after it.
  absl::StatusOr<Timing> TimeCopy(const core::Buffer& from,
                                  const core::Buffer& to, int64_t bytes);

  /// Fills the L2 cache with data of nobody's.
  absl::Status FlushCache();

  /// Bytes in which the first `bytes` of both differ.
  absl::StatusOr<int64_t> Differences(const core::Buffer& a,
                                      const core::Buffer& b, int64_t bytes);

 private:
  BenchDevice(const Effort& effort, std::unique_ptr<core::Backend> backend,
              std::unique_ptr<core::Stream> stream);

  const Effort effort_;
  const std::unique_ptr<core::Backend> backend_;
  const std::unique_ptr<core::Stream> stream_;
  const cudaStream_t cuda_stream_;
  int64_t l2_bytes_ = 0;
  core::Buffer flush_;
  core::Buffer count_;
  std::vector<cudaEvent_t> events_;  // a pair a repetition
};

/// The outcome of a CUDA call as a status.
/// Errors  INTERNAL, reason CUDA_ERROR.
absl::Status CheckCuda(cudaError_t error, absl::string_view what);

/// Prints which device and driver this is.
absl::Status PrintDevice(BenchDevice& device);

}  // namespace tensord::test
