// One GPU: its number, and whether it is still there.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace tensord::core {

/// What all that works on one GPU shares.
///
/// Threads  safe for concurrent use.
class CudaDevice {
 public:
  explicit CudaDevice(int ordinal);

  /// "cuda:0"
  const std::string& name() const { return name_; }
  int ordinal() const { return ordinal_; }

  /// Makes this the device that the calling thread's CUDA calls go to.
  /// Errors  UNAVAILABLE: the device is lost.
  absl::Status Select();

  /// Lets this device and GPU `ordinal` copy from and to each other's memory
  /// without the host's, if the node can; only the first call for a GPU does
  /// anything. Makes a CUDA context on either GPU that has none. Call Select()
  /// afterwards.
  void ConnectTo(int ordinal);

  /// Calls `function(argument)`, which a stream of the device asks for, unless
  /// the device is lost. A loss is only told of when no such call is under way
  /// any more: memory may be given back then.
  void CallOnHost(void (*function)(void*), void* argument);

  /// The outcome of a CUDA call as a status; `what` says what was tried. An
  /// error that CUDA repeats at every later call marks the device lost.
  ///
  /// Errors  RESOURCE_EXHAUSTED, reason DEVICE_MEMORY_EXHAUSTED. UNAVAILABLE,
  ///         reason DEVICE_LOST. INTERNAL, reason CUDA_ERROR.
  absl::Status Check(cudaError_t error, absl::string_view what);

  /// OK, or the error with which the device was lost.
  absl::Status health() const;

 private:
  /// The error with which the device was lost; waits until calls on the host
  /// are over.
  absl::Status Loss();

  const int ordinal_;
  const std::string name_;
  std::atomic<bool> is_lost_ = false;
  mutable absl::Mutex mutex_;
  absl::Status loss_ ABSL_GUARDED_BY(mutex_);
  absl::Mutex host_calls_;  // read by each of them
  absl::Mutex peers_mutex_;
  std::set<int> peers_ ABSL_GUARDED_BY(peers_mutex_);  // connected to, or tried
};

}  // namespace tensord::core
