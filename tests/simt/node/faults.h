// Which calls are to fail, and how many there were.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/simt/fake_runtime.h"

namespace tensord::simt {

/// Whether a device on which `error` struck answers nothing else any more.
bool LosesDevice(cudaError_t error);

/// Threads  under the lock of the node.
class Faults {
 public:
  void Reset();

  void FailCall(CallKind kind, int64_t n, cudaError_t error);
  void ForgetFailures() { faults_.clear(); }

  /// Counts a call; returns how it is to fail, or cudaSuccess.
  cudaError_t Count(CallKind kind);
  void CountEventWait() { ++counts_.event_waits; }
  void CountBytes(int64_t copied_bytes) {
    counts_.copied_bytes += copied_bytes;
  }

  const CallCounts& counts() const { return counts_; }

 private:
  struct Fault {
    CallKind kind;
    int64_t calls_left;
    cudaError_t error;
  };

  CallCounts counts_;
  std::vector<Fault> faults_;
};

}  // namespace tensord::simt
