#include "tests/simt/node/node.h"

#include <algorithm>

#include "tests/simt/device_limits.h"

namespace tensord::simt {
namespace {

thread_local int current_device = 0;
thread_local cudaError_t last_error = cudaSuccess;
thread_local bool is_in_host_function = false;

}  // namespace

Node::Node() { Reset({}); }

void Node::Reset(const NodeDesc& new_desc) {
  desc = new_desc;
  const int devices = desc.driver_error == cudaSuccess ? desc.device_count : 0;
  desc.device_count = devices;
  streams.Reset(devices);
  streams.SetOrder(schedule.order, schedule.seed);
  memory.Reset(devices, desc.memory_bytes);
  faults.Reset();
  launch_count = 0;
  events.clear();
  graphs.clear();
  graph_execs.clear();
  hold = nullptr;
  peers.assign(static_cast<size_t>(devices), 0);
  shared_memory_limits.clear();
  last_error = cudaSuccess;
  current_device = 0;
}

size_t Node::SharedMemoryLimit(int device, const void* kernel) const {
  const auto found = shared_memory_limits.find({device, kernel});
  return static_cast<size_t>(found == shared_memory_limits.end()
                                 ? kDefaultSharedBytes
                                 : found->second);
}

Event* Node::FindEvent(cudaEvent_t handle) const {
  const auto found = std::ranges::find_if(
      events, [handle](const auto& event) { return event->handle == handle; });
  return found == events.end() ? nullptr : found->get();
}

const GraphExec* Node::FindGraphExec(cudaGraphExec_t handle) const {
  const auto found = std::ranges::find(graph_execs, handle, &GraphExec::handle);
  return found == graph_execs.end() ? nullptr : &*found;
}

cudaError_t Node::Queue(CallKind kind, const StreamPtr& stream,
                        std::unique_ptr<Operation> operation) {
  if (stream->capture != nullptr) {
    if (stream->capture->is_invalid) return cudaErrorStreamCaptureInvalidated;
    const cudaError_t fault = kind == CallKind::kLaunch
                                  ? faults.Count(CallKind::kRecordedLaunch)
                                  : cudaSuccess;
    if (fault != cudaSuccess) {
      stream->capture->is_invalid = true;
      return fault;
    }
    streams.Push(stream, std::move(operation));
    return cudaSuccess;
  }
  const cudaError_t fault = faults.Count(kind);
  if (LosesDevice(fault)) {
    operation->run = [fault] { return fault; };
  } else if (fault != cudaSuccess) {
    return fault;
  }
  streams.Push(stream, std::move(operation));
  return cudaSuccess;
}

cudaError_t Node::Fail(int device, cudaError_t error) {
  if (LosesDevice(error)) streams.LoseDevice(device, error);
  return error;
}

Node& TheNode() {
  static Node& node = *new Node;
  return node;
}

int CurrentDevice() { return current_device; }
void SetCurrentDevice(int device) { current_device = device; }
cudaError_t LastError() { return last_error; }
void SetLastError(cudaError_t error) { last_error = error; }
void SetInHostFunction(bool is_inside) { is_in_host_function = is_inside; }

cudaError_t Refusal(const Node& node) {
  if (is_in_host_function) return cudaErrorNotPermitted;
  return node.desc.driver_error;
}

// What tests control.

void SetSchedule(const Schedule& schedule) {
  const tsan::Ignore ignore;
  Node& node = TheNode();
  const std::lock_guard lock(node.lock);
  node.schedule = schedule;
  node.streams.SetOrder(schedule.order, schedule.seed);
  node.launch_count = 0;
}

void ResetNode(const NodeDesc& desc) {
  const tsan::Ignore ignore;
  Node& node = TheNode();
  const std::lock_guard lock(node.lock);
  node.Reset(desc);
}

void FailCall(CallKind kind, int64_t n, cudaError_t error) {
  const tsan::Ignore ignore;
  Node& node = TheNode();
  const std::lock_guard lock(node.lock);
  node.faults.FailCall(kind, n, error);
}

void ForgetFailures() {
  const tsan::Ignore ignore;
  Node& node = TheNode();
  const std::lock_guard lock(node.lock);
  node.faults.ForgetFailures();
}

CallCounts CountCalls() {
  const tsan::Ignore ignore;
  Node& node = TheNode();
  const std::lock_guard lock(node.lock);
  return node.faults.counts();
}

int64_t DeviceBytesInUse(int device) {
  const tsan::Ignore ignore;
  Node& node = TheNode();
  const std::lock_guard lock(node.lock);
  return node.memory.device_bytes_in_use(device);
}

int64_t HostBytesInUse() {
  const tsan::Ignore ignore;
  Node& node = TheNode();
  const std::lock_guard lock(node.lock);
  return node.memory.host_bytes_in_use();
}

bool IsPeerAccessEnabled(int device, int peer) {
  const tsan::Ignore ignore;
  Node& node = TheNode();
  const std::lock_guard lock(node.lock);
  return node.IsDevice(device) && (node.peers[device] & SetOf(peer)) != 0;
}

LaunchHold::LaunchHold() {
  const tsan::Ignore ignore;
  Node& node = TheNode();
  const std::lock_guard lock(node.lock);
  mark_ = Streams::CreateHold();
  node.hold = mark_;
}

bool LaunchHold::HasCaught() const {
  const tsan::Ignore ignore;
  Node& node = TheNode();
  const std::lock_guard lock(node.lock);
  return node.hold != mark_;
}

void LaunchHold::Release() {
  const tsan::Ignore ignore;
  Node& node = TheNode();
  const std::lock_guard lock(node.lock);
  if (node.hold == mark_) node.hold = nullptr;
  node.streams.Release(*mark_);
}

HostAccess::HostAccess() {
  const tsan::Ignore ignore;
  Node& node = TheNode();
  const std::lock_guard lock(node.lock);
  node.memory.Expose(kAllDevices);
}

HostAccess::~HostAccess() {
  const tsan::Ignore ignore;
  Node& node = TheNode();
  const std::lock_guard lock(node.lock);
  node.memory.Hide(kAllDevices);
}

}  // namespace tensord::simt
