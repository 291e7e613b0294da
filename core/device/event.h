// Points in the order of a stream.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tensord::core {

/// A point in the order of a stream.
///
/// Threads   safe for concurrent use.
/// Lifetime  may outlive the stream.
class Event {
 public:
  virtual ~Event() = default;

  /// True when Wait() would return at once.
  virtual bool IsReached() = 0;

  /// Waits until the device is done with all that was queued before.
  /// Errors  as Stream::Synchronize.
  virtual absl::Status Wait() = 0;
};

/// A point in the order of a stream that can tell when it was reached.
///
/// Threads   safe for concurrent use.
/// Lifetime  may outlive the stream.
class TimedPoint {
 public:
  virtual ~TimedPoint() = default;

  /// The device's time from `earlier`, of the same stream, to here.
  ///
  /// Requires  both are reached.
  /// Errors    as Stream::Synchronize.
  virtual absl::StatusOr<double> NanosecondsSince(
      const TimedPoint& earlier) const = 0;
};

}  // namespace tensord::core
