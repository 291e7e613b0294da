#include "tests/gpu/bench/bench_device.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/backend/cuda/cuda_backend.h"
#include "core/backend/cuda/cuda_stream.h"
#include "core/base/checked_math.h"
#include "core/base/status.h"
#include "tests/gpu/bench/bench_kernels.h"

namespace tensord::test {
namespace {

constexpr int64_t kTinyFlushBytes = 4096;
// Work that touches so many times the cache's bytes leaves nothing of what it
// found there.
constexpr int64_t kWashes = 4;
// Work that takes longer runs three times only.
constexpr std::chrono::milliseconds kSlow(10);
// Work that takes longer is not repeated: starting it does not matter then.
constexpr std::chrono::seconds kVerySlow(1);
constexpr size_t kSlowEvents = 6;

int Attribute(cudaDeviceAttr attribute) {
  int value = 0;
  if (cudaDeviceGetAttribute(&value, attribute, 0) != cudaSuccess) {
    cudaGetLastError();
  }
  return value;
}

}  // namespace

absl::Status CheckCuda(cudaError_t error, absl::string_view what) {
  if (error == cudaSuccess) return absl::OkStatus();
  cudaGetLastError();
  return core::Internal("CUDA_ERROR", what,
                        " failed: ", cudaGetErrorString(error));
}

Timing TimingOf(std::vector<double> durations_ns) {
  for (double& duration : durations_ns) duration = std::max(duration, 1.0);
  std::sort(durations_ns.begin(), durations_ns.end());
  return {.median_ns = durations_ns[durations_ns.size() / 2],
          .least_ns = durations_ns.front(),
          .most_ns = durations_ns.back()};
}

absl::StatusOr<std::unique_ptr<BenchDevice>> BenchDevice::Create(
    const Effort& effort) {
  TENSORD_ASSIGN_OR_RETURN(auto backend, core::CreateCudaBackend(0));
  TENSORD_ASSIGN_OR_RETURN(auto stream, backend->CreateStream());
  std::unique_ptr<BenchDevice> device(
      new BenchDevice(effort, std::move(backend), std::move(stream)));
  device->l2_bytes_ = Attribute(cudaDevAttrL2CacheSize);
  TENSORD_ASSIGN_OR_RETURN(
      device->flush_,
      device->Allocate(effort.tiny ? kTinyFlushBytes : 2 * device->l2_bytes_));
  TENSORD_ASSIGN_OR_RETURN(device->count_, device->Allocate(sizeof(uint32_t)));
  for (int i = 0; i < 2 * effort.repetitions(); ++i) {
    cudaEvent_t event = nullptr;
    TENSORD_RETURN_IF_ERROR(
        CheckCuda(cudaEventCreateWithFlags(&event, cudaEventDefault),
                  "cudaEventCreateWithFlags"));
    device->events_.push_back(event);
  }
  return device;
}

BenchDevice::BenchDevice(const Effort& effort,
                         std::unique_ptr<core::Backend> backend,
                         std::unique_ptr<core::Stream> stream)
    : effort_(effort),
      backend_(std::move(backend)),
      stream_(std::move(stream)),
      cuda_stream_(core::AsCuda(*stream_).get()) {}

BenchDevice::~BenchDevice() {
  for (const cudaEvent_t event : events_) cudaEventDestroy(event);
}

absl::StatusOr<core::Buffer> BenchDevice::Allocate(int64_t bytes) {
  return core::Buffer::Allocate(backend_->memory(),
                                core::RoundUp(std::max<int64_t>(bytes, 1), 16));
}

absl::Status BenchDevice::FlushCache() {
  return CheckCuda(
      cudaMemsetAsync(flush_.data(), 0x5a, static_cast<size_t>(flush_.bytes()),
                      cuda_stream_),
      "flushing the cache");
}

absl::StatusOr<Timing> BenchDevice::Time(
    int64_t bytes, absl::FunctionRef<absl::Status()> launch,
    absl::FunctionRef<absl::Status()> before) {
  const auto start = std::chrono::steady_clock::now();
  TENSORD_RETURN_IF_ERROR(launch());
  TENSORD_RETURN_IF_ERROR(stream_->Synchronize());
  const std::chrono::nanoseconds first =
      std::chrono::steady_clock::now() - start;
  if (first > kVerySlow) {
    return TimingOf({static_cast<double>(first.count())});
  }
  const bool is_slow = first > kSlow;
  const size_t event_count =
      is_slow ? std::min(events_.size(), kSlowEvents) : events_.size();
  for (size_t i = 0; i < event_count; i += 2) {
    if (bytes < kWashes * l2_bytes_) TENSORD_RETURN_IF_ERROR(FlushCache());
    TENSORD_RETURN_IF_ERROR(before());
    TENSORD_RETURN_IF_ERROR(CheckCuda(cudaEventRecord(events_[i], cuda_stream_),
                                      "cudaEventRecord"));
    TENSORD_RETURN_IF_ERROR(launch());
    TENSORD_RETURN_IF_ERROR(CheckCuda(
        cudaEventRecord(events_[i + 1], cuda_stream_), "cudaEventRecord"));
  }
  TENSORD_RETURN_IF_ERROR(stream_->Synchronize());
  std::vector<double> durations_ns;
  for (size_t i = 0; i < event_count; i += 2) {
    float milliseconds = 0;
    TENSORD_RETURN_IF_ERROR(CheckCuda(
        cudaEventElapsedTime(&milliseconds, events_[i], events_[i + 1]),
        "cudaEventElapsedTime"));
    durations_ns.push_back(1e6 * milliseconds);
  }
  return TimingOf(std::move(durations_ns));
}

absl::StatusOr<Timing> BenchDevice::TimeCopy(const core::Buffer& from,
                                             const core::Buffer& to,
                                             int64_t bytes) {
  return Time(2 * bytes, [&] {
    return CheckCuda(
        cudaMemcpyAsync(to.data(), from.data(), static_cast<size_t>(bytes),
                        cudaMemcpyDeviceToDevice, cuda_stream_),
        "cudaMemcpyAsync");
  });
}

absl::StatusOr<int64_t> BenchDevice::Differences(const core::Buffer& a,
                                                 const core::Buffer& b,
                                                 int64_t bytes) {
  uint32_t count = 0;
  TENSORD_RETURN_IF_ERROR(
      CheckCuda(cudaMemsetAsync(count_.data(), 0, sizeof(count), cuda_stream_),
                "cudaMemsetAsync"));
  TENSORD_RETURN_IF_ERROR(
      CheckCuda(CountDifferences(a.data(), b.data(), bytes,
                                 reinterpret_cast<uint32_t*>(count_.data()),
                                 cuda_stream_),
                "comparing"));
  TENSORD_RETURN_IF_ERROR(
      stream_->CopyToHost(&count, count_.data(), sizeof(count)));
  TENSORD_RETURN_IF_ERROR(stream_->Synchronize());
  return count;
}

absl::Status PrintDevice(BenchDevice& device) {
  const core::DeviceInfo& info = device.backend().info();
  size_t free_bytes = 0;
  size_t all_bytes = 0;
  TENSORD_RETURN_IF_ERROR(
      CheckCuda(cudaMemGetInfo(&free_bytes, &all_bytes), "cudaMemGetInfo"));
  Row row = {
      {"part", "device"},
      {"name", info.name},
      {"model", info.model},
      {"architecture", info.architecture},
      {"multiprocessors", int64_t{info.thread_count}},
      {"memory_bytes", info.memory_bytes},
      {"free_bytes", static_cast<int64_t>(free_bytes)},
      {"l2_bytes", device.l2_bytes()},
      {"shared_bytes",
       int64_t{Attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor)}},
      {"clock_khz", int64_t{Attribute(cudaDevAttrClockRate)}},
      {"memory_clock_khz", int64_t{Attribute(cudaDevAttrMemoryClockRate)}},
      {"memory_bus_bits", int64_t{Attribute(cudaDevAttrGlobalMemoryBusWidth)}},
      {"repetitions", int64_t{device.effort().repetitions()}}};
  for (const auto& [name, value] : info.properties) {
    row.emplace_back(name, value);
  }
  Print(row);
  return absl::OkStatus();
}

}  // namespace tensord::test
