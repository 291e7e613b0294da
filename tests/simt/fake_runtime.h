// A node with GPUs that is not there, for tests: what it has, what goes wrong
// on it, and what was asked of it. The product talks to it through CUDA's
// runtime API (tests/simt/include/cuda_runtime_api.h).
//
// Streams are queues that move only while some host thread waits or asks
// whether work is done; what may run next is then chosen by the schedule
// (tests/simt/simt.h). So a missing event wait, and host memory that is freed
// or written while a copy still needs it, show as wrong values. Builds with
// AddressSanitizer also find host code that touches device memory, and kernels
// that touch memory of a device they have no access to; builds with
// ThreadSanitizer find whatever streams, events and waits leave unordered.
// Nobody finds a kernel that reads pageable host memory, which no device can.
//
// Stricter than CUDA: copies from and to pageable memory are as asynchronous as
// others; cudaFreeHost() does not wait; launches take no attributes; a host
// function may not call the API.
//
// There is one node in a process, as the API has no handle for it. Every test
// starts with ResetNode().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "cuda_runtime_api.h"

namespace tensord::simt {

struct Mark;

/// What a fake node consists of.
struct NodeDesc {
  /// What every call says instead of working: cudaErrorInsufficientDriver or
  /// cudaErrorNoDevice on a node without a driver or without devices.
  cudaError_t driver_error = cudaSuccess;

  // The devices, all alike.
  int device_count = 2;
  std::string device_name = "Simulated GPU";
  int64_t memory_bytes = int64_t{64} << 20;
  int compute_capability_major = 9;
  int compute_capability_minor = 0;
  int multiprocessor_count = 4;
  int memory_clock_kilohertz = 2'619'000;  // of a bus of kMemoryBusBits
  bool can_access_peers = true;
};

/// Replaces the node: nothing allocated, queued, failed or counted.
///
/// Requires  no thread is in a call of the API. Handles from before are void.
void ResetNode(const NodeDesc& desc = {});

/// Kinds of calls that can be made to fail.
enum class CallKind {
  kDeviceAllocation,  // cudaMalloc
  kHostAllocation,    // cudaMallocHost, cudaHostAlloc
  kCopy,              // cudaMemcpy..., cudaMemset...
  kLaunch,            // of a kernel
  kRecordedLaunch,    // of a kernel that is recorded: nothing is, in the end
  kGraphLaunch,       // of a graph, whatever is in it
  kSynchronization,   // of a stream, an event or a device
};

/// The `n`-th call of `kind` from now, counted from 1, fails with `error`.
///
/// After an error that leaves a device unusable, such as
/// cudaErrorIllegalAddress, every call on that device returns it, and what was
/// queued there is dropped. Such an error of a copy or launch comes, as from a
/// device, when the work would have been done, and its call returns success.
void FailCall(CallKind kind, int64_t n, cudaError_t error);
/// Takes back every FailCall() that has not come up yet.
void ForgetFailures();

/// Calls that passed their checks, and what they moved, since ResetNode(). What
/// is recorded is not among them.
struct CallCounts {
  int64_t device_allocations = 0;
  int64_t host_allocations = 0;
  int64_t copies = 0;
  int64_t copied_bytes = 0;
  int64_t launches = 0;
  int64_t graph_launches = 0;
  int64_t synchronizations = 0;
  int64_t event_waits = 0;  // of streams
};
CallCounts CountCalls();

/// What is allocated now on a device or, pinned, on the host.
int64_t DeviceBytesInUse(int device);
int64_t HostBytesInUse();

/// Whether `device` has been allowed to access the memory of `peer`.
bool IsPeerAccessEnabled(int device, int peer);

/// Queues `run` as a launch of a library that stands in for NVIDIA's: like a
/// kernel of a single thread. A failure is not the runtime's last error, since
/// libraries have a runtime of their own.
cudaError_t QueueLibraryCall(cudaStream_t stream, std::function<void()> run);

/// Catches the next launch, which does not begin, nor does what is behind it on
/// its stream, before Release(): as if it took that long.
///
/// Requires  one that has caught nothing at a time.
class LaunchHold {
 public:
  LaunchHold();
  ~LaunchHold() { Release(); }
  LaunchHold(const LaunchHold&) = delete;
  LaunchHold& operator=(const LaunchHold&) = delete;

  bool HasCaught() const;
  void Release();

 private:
  std::shared_ptr<const Mark> mark_;
};

/// While one lives, host code may touch device memory.
class HostAccess {
 public:
  HostAccess();
  ~HostAccess();
  HostAccess(const HostAccess&) = delete;
  HostAccess& operator=(const HostAccess&) = delete;
};

}  // namespace tensord::simt
