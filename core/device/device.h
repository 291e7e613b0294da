// Devices and their ordered queues of work.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/device/event.h"
#include "core/device/interruption.h"

namespace tensord::core {

/// Name of a device on the wire and in messages, e.g. "cpu:0".
using DeviceName = std::string;

/// What a device is, for people and for plan keys.
struct DeviceInfo {
  DeviceName name;
  std::string kind;          // "cpu" or "cuda"
  std::string model;         // e.g. "AMD EPYC 9B45"
  std::string architecture;  // what kernels are chosen by, e.g. "AVX3_ZEN4"
  int32_t thread_count = 0;  // threads that kernels run on
  int64_t memory_bytes = 0;
  /// The device's memory is the host's: anyone may read and write it.
  bool uses_host_memory = true;
  /// Calls that queue work do not wait for it; Stream::Branch() gives streams.
  bool is_asynchronous = false;
  /// What else tells which code runs, e.g.
  /// {"blas", "OpenBLAS 0.3.21 SkylakeX"}.
  std::vector<std::pair<std::string, std::string>> properties;
};

class Stream;

/// Work that was recorded once, to be queued as a whole.
///
/// Threads   used by one thread at a time.
/// Lifetime  what its work refers to must outlive it.
class Recording {
 public:
  virtual ~Recording() = default;

  /// Queues the work on a stream of the device that recorded it.
  /// Errors  INTERNAL; UNAVAILABLE: device lost.
  virtual absl::Status Launch(Stream& stream) = 0;
};

/// An ordered queue of device work.
///
/// Threads  used by one thread at a time, together with its branches.
class Stream {
 public:
  virtual ~Stream() = default;

  /// What is asked of whoever queues work, or computes it at once; may be null.
  /// Lifetime  outlives the work on the stream, or its being set anew.
  Interruption* interruption() const { return interruption_; }
  void set_interruption(Interruption* interruption) {
    interruption_ = interruption;
  }

  /// Queues a copy of `bytes` bytes between the device's memory, or what of the
  /// host's is pinned for it, and the host's.
  ///
  /// Lifetime  both must outlive the work on the stream.
  /// Errors    INTERNAL; UNAVAILABLE: device lost.
  virtual absl::Status CopyToDevice(void* to, const void* from,
                                    int64_t bytes) = 0;
  virtual absl::Status CopyToHost(void* to, const void* from,
                                  int64_t bytes) = 0;

  /// Queues a copy between memories of devices of the stream's kind.
  ///
  /// Lifetime  both must outlive the work on the stream.
  /// Errors    INTERNAL; UNAVAILABLE: device lost.
  virtual absl::Status CopyBetweenDevices(void* to, const void* from,
                                          int64_t bytes) = 0;

  /// Queues a call of `function(argument)`, on any thread. It must not use a
  /// device.
  ///
  /// Lifetime  the argument must outlive the work on the stream.
  /// Errors    INTERNAL; UNAVAILABLE: device lost.
  virtual absl::Status Call(void (*function)(void*), void* argument) = 0;

  /// The point behind all that was queued; null when that is done already.
  /// Errors  INTERNAL; UNAVAILABLE: device lost.
  virtual absl::StatusOr<std::unique_ptr<Event>> Record() = 0;

  /// The same with its time; never null.
  /// Errors  INTERNAL; UNAVAILABLE: device lost.
  virtual absl::StatusOr<std::unique_ptr<TimedPoint>> RecordTime() = 0;

  /// Waits until all that was queued is done.
  /// Errors  INTERNAL: work queued before failed; UNAVAILABLE: device lost.
  virtual absl::Status Synchronize() = 0;

  /// A stream whose work may be done beside this one's and other branches':
  /// always the same for a `number` from 0. Null where work is done as soon as
  /// it is queued.
  ///
  /// Lifetime  ends with this stream.
  /// Errors    INTERNAL; UNAVAILABLE: device lost.
  virtual absl::StatusOr<Stream*> Branch(int number) = 0;

  /// What is queued from here on waits for `event`, of another stream of the
  /// device. Null: it is reached.
  ///
  /// Errors  INTERNAL; UNAVAILABLE: device lost.
  virtual absl::Status WaitFor(const Event* event) = 0;

  /// From here to EndRecording(), work is recorded and not done: that of this
  /// stream and, from where they wait for an event of recorded work, of
  /// branches. In the end this stream has to wait for them. False where nothing
  /// can be recorded.
  ///
  /// Errors  INTERNAL; UNAVAILABLE: device lost.
  virtual absl::StatusOr<bool> BeginRecording() = 0;
  /// Requires  BeginRecording() was true.
  /// Errors    INTERNAL: what was queued cannot be recorded; UNAVAILABLE:
  ///           device lost. Nothing is being recorded any more then, either.
  virtual absl::StatusOr<std::unique_ptr<Recording>> EndRecording() = 0;

 private:
  Interruption* interruption_ = nullptr;
};

}  // namespace tensord::core
