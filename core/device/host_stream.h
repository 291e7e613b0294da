// A stream of the host's own work.
#pragma once

#include <cstring>
#include <memory>

#include "absl/time/time.h"
#include "core/base/steady_time.h"
#include "core/device/device.h"

namespace tensord::core {

/// The time at which it was made.
class HostTime final : public TimedPoint {
 public:
  absl::StatusOr<double> NanosecondsSince(
      const TimedPoint& earlier) const override {
    return absl::ToDoubleNanoseconds(
        time_ - static_cast<const HostTime&>(earlier).time_);
  }

 private:
  const absl::Time time_ = SteadyNow();
};

/// Everything is done as soon as it is asked for.
class HostStream : public Stream {
 public:
  absl::Status CopyToDevice(void* to, const void* from,
                            int64_t bytes) override {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return absl::OkStatus();
  }
  absl::Status CopyToHost(void* to, const void* from, int64_t bytes) override {
    return CopyToDevice(to, from, bytes);
  }
  absl::Status CopyBetweenDevices(void* to, const void* from,
                                  int64_t bytes) override {
    return CopyToDevice(to, from, bytes);
  }
  absl::Status Call(void (*function)(void*), void* argument) override {
    function(argument);
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<Event>> Record() override { return nullptr; }
  absl::StatusOr<std::unique_ptr<TimedPoint>> RecordTime() override {
    return std::make_unique<HostTime>();
  }
  absl::Status Synchronize() override { return absl::OkStatus(); }
  absl::StatusOr<Stream*> Branch(int /*number*/) override { return nullptr; }
  absl::Status WaitFor(const Event* /*event*/) override {
    return absl::OkStatus();
  }
  absl::StatusOr<bool> BeginRecording() override { return false; }
  absl::StatusOr<std::unique_ptr<Recording>> EndRecording() override {
    return nullptr;
  }
};

}  // namespace tensord::core
