// Streams as queues that do not move by themselves, and marks in them.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "cuda_runtime_api.h"
#include "tests/simt/hidden_lock.h"
#include "tests/simt/node/node_memory.h"
#include "tests/simt/random.h"
#include "tests/simt/simt.h"

namespace tensord::simt {

struct Capture;
struct Stream;
using StreamPtr = std::shared_ptr<Stream>;

/// A point in a stream, as cudaEventRecord() makes one.
struct Mark {
  StreamPtr stream;
  uint64_t number = 0;      // the operations of the stream up to here
  bool is_implied = false;  // by what is queued; no operation makes it
  bool is_hold = false;     // passed when the host says so
  std::chrono::steady_clock::time_point passed_at;
  // Of a point in what is recorded, which is never passed: the steps before it.
  std::shared_ptr<Capture> capture;
  std::vector<size_t> captured;

  bool is_passed() const;
  /// What stands for all that comes before, for ThreadSanitizer.
  const void* sync() const;
};

struct HostRange {
  const void* memory;
  size_t bytes;
};

/// One thing to do on a stream.
struct Operation {
  /// Does it, without the node's lock; an error leaves the device unusable.
  /// Empty for operations that only order.
  std::function<cudaError_t()> run;
  std::vector<std::shared_ptr<const Mark>> after;
  std::shared_ptr<Mark> marks;         // if it makes a mark
  DeviceSet devices = 0;               // whose memory it touches
  std::vector<HostRange> host_ranges;  // that it reads or writes
  bool is_host_function = false;
};

struct Stream {
  enum class Kind { kNull, kBlocking, kNonBlocking };

  Stream(cudaStream_t stream_handle, int device_number, Kind kind_of_stream);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  const cudaStream_t handle;
  const int device;
  const Kind kind;
  bool is_destroyed = false;
  std::deque<std::unique_ptr<Operation>> queue;
  const Operation* running = nullptr;
  uint64_t queued_count = 0, done_count = 0;
  void* const tsan_fiber;  // as which its operations run
  // What it takes part in recording, and the steps that the next one follows.
  std::shared_ptr<Capture> capture;
  std::vector<size_t> captured;
};

/// All streams of a node.
///
/// Threads  under the lock of the node, which waiting and moving give up while
///          an operation runs. Several threads may wait at a time; each runs
///          whatever can run until what it waits for has happened.
class Streams {
 public:
  Streams(HiddenLock& lock, NodeMemory& memory)
      : lock_(lock), memory_(memory) {}
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  /// Forgets all streams and what is queued, after what is running.
  void Reset(int device_count);

  /// How to choose what runs next.
  void SetOrder(Order order, uint64_t seed);

  /// `handle` is null for the null stream of a device, and otherwise new.
  StreamPtr Create(cudaStream_t handle, int device, Stream::Kind kind);

  /// The stream of a handle, null's being that of `current_device`; null for
  /// what is no stream.
  StreamPtr Find(cudaStream_t handle, int current_device) const;

  /// The handle ends; what is queued is still done.
  void Destroy(const StreamPtr& stream);

  /// Appends an operation, or records it. The null stream waits for what is
  /// queued on blocking streams of its device, and they for it.
  void Push(const StreamPtr& stream, std::unique_ptr<Operation> operation);

  /// Appends a mark, or notes a point in what is recorded.
  std::shared_ptr<Mark> PushMark(const StreamPtr& stream);

  /// A mark that is passed on Release().
  static std::shared_ptr<Mark> CreateHold();
  void Release(const Mark& hold);

  /// Runs operations until `mark` is passed; then all before it happened.
  void WaitFor(const Mark& mark);

  /// Whether `mark` is passed; if so, all before it happened.
  static bool HasPassed(const Mark& mark);

  /// Runs one operation, of any stream, if one can run.
  void MoveOnce();

  /// Whether all of a stream is done; if so, it all happened.
  bool IsIdle(const StreamPtr& stream) const;

  /// Waits for all that is queued now on a stream, resp. a device.
  void Drain(const StreamPtr& stream);
  void DrainDevice(int device);

  /// The error that made a device unusable, or cudaSuccess.
  cudaError_t DeviceError(int device) const { return errors_[device]; }
  /// Makes a device unusable and drops what is queued there.
  void LoseDevice(int device, cudaError_t error);

  /// Whether queued or running work touches that host memory.
  bool IsHostMemoryInUse(const void* memory, size_t bytes) const;

 private:
  enum class Mover { kHost, kDriver };

  bool CanRun(const Stream& stream) const;
  static bool IsHeld(const Stream& stream);
  /// The stream whose first operation is to run next, or null.
  StreamPtr Choose(Mover mover);
  void RunFirst(const StreamPtr& stream);
  void MoveUntil(const std::function<bool()>& is_reached, Mover mover);
  void RunHostFunctions();

  HiddenLock& lock_;
  NodeMemory& memory_;
  std::vector<StreamPtr> streams_;       // by creation
  std::vector<StreamPtr> null_streams_;  // (device), also among the above
  std::vector<cudaError_t> errors_;      // (device)
  Order order_ = Order::kInOrder;
  Random random_{0};
  bool has_driver_thread_ = false;
};

}  // namespace tensord::simt
