// The node that the API acts on, and how each of its calls begins and ends.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "cuda_runtime_api.h"
#include "tests/simt/fake_runtime.h"
#include "tests/simt/hidden_lock.h"
#include "tests/simt/node/capture.h"
#include "tests/simt/node/faults.h"
#include "tests/simt/node/node_memory.h"
#include "tests/simt/node/streams.h"
#include "tests/simt/sanitizers.h"
#include "tests/simt/simt.h"

namespace tensord::simt {

struct Event {
  cudaEvent_t handle;
  int device;
  bool keeps_time;
  std::shared_ptr<Mark> mark;  // none before it is recorded
};

/// Every member but the lock is under the lock.
struct Node {
  HiddenLock lock;
  NodeDesc desc;
  Schedule schedule;
  NodeMemory memory;
  Streams streams{lock, memory};
  Faults faults;
  uint64_t launch_count = 0;
  uintptr_t last_handle = 0x1000;
  std::vector<std::unique_ptr<Event>> events;
  std::map<cudaGraph_t, std::shared_ptr<const Capture>> graphs;
  std::vector<GraphExec> graph_execs;
  std::vector<DeviceSet> peers;      // (device) whose memory it may touch
  std::shared_ptr<const Mark> hold;  // what the next launch waits for, if any
  /// Shared memory that a kernel may have on a device beyond what all may.
  std::map<std::pair<int, const void*>, int> shared_memory_limits;

  Node();
  void Reset(const NodeDesc& new_desc);

  bool IsDevice(int device) const {
    return device >= 0 && device < desc.device_count;
  }
  /// Bytes that a block of `kernel` may have on `device`.
  size_t SharedMemoryLimit(int device, const void* kernel) const;
  Event* FindEvent(cudaEvent_t handle) const;
  const GraphExec* FindGraphExec(cudaGraphExec_t handle) const;

  /// A handle, of a stream, an event or a graph, that never was one before.
  template <typename Handle>
  Handle NewHandle() {
    constexpr uintptr_t kDistance = 16;
    return reinterpret_cast<Handle>(last_handle += kDistance);
  }

  /// Queues a copy or a launch, as it is or as it is to fail.
  cudaError_t Queue(CallKind kind, const StreamPtr& stream,
                    std::unique_ptr<Operation> operation);

  /// What a call that fails with `error` on `device` returns.
  cudaError_t Fail(int device, cudaError_t error);
};

/// The only one; never destroyed.
Node& TheNode();

// Of the calling thread.
int CurrentDevice();
void SetCurrentDevice(int device);
cudaError_t LastError();
void SetLastError(cudaError_t error);
/// While true, the API refuses to be called.
void SetInHostFunction(bool is_in_host_function);
/// Why no call can work now, or cudaSuccess.
cudaError_t Refusal(const Node& node);

/// One call of the API: `body(node)` under the lock. Its error becomes the
/// thread's last one.
template <typename Body>
cudaError_t ApiCall(const Body& body) {
  tsan::ReleaseOsThread();
  const tsan::Ignore ignore;
  Node& node = TheNode();
  const std::lock_guard lock(node.lock);
  cudaError_t error = Refusal(node);
  if (error == cudaSuccess) error = body(node);
  if (error != cudaSuccess) SetLastError(error);
  return error;
}

/// A call that needs the current device to work: `body(node, device)`.
template <typename Body>
cudaError_t DeviceCall(const Body& body) {
  return ApiCall([&](Node& node) {
    const int device = CurrentDevice();
    if (!node.IsDevice(device)) return cudaErrorInvalidDevice;
    const cudaError_t error = node.streams.DeviceError(device);
    return error == cudaSuccess ? body(node, device) : error;
  });
}

/// A call on a stream: `body(node, stream)`.
template <typename Body>
cudaError_t StreamCall(cudaStream_t handle, const Body& body) {
  return ApiCall([&](Node& node) {
    if (!node.IsDevice(CurrentDevice())) return cudaErrorInvalidDevice;
    const StreamPtr stream = node.streams.Find(handle, CurrentDevice());
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    const cudaError_t error = node.streams.DeviceError(stream->device);
    return error == cudaSuccess ? body(node, stream) : error;
  });
}

/// A call on an event: `body(node, event)`.
template <typename Body>
cudaError_t EventCall(cudaEvent_t handle, const Body& body) {
  return ApiCall([&](Node& node) {
    Event* const event = node.FindEvent(handle);
    if (event == nullptr) return cudaErrorInvalidResourceHandle;
    const cudaError_t error = node.streams.DeviceError(event->device);
    return error == cudaSuccess ? body(node, *event) : error;
  });
}

}  // namespace tensord::simt
