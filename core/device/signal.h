// An event that a thread of the host reaches.
#pragma once

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "core/device/event.h"

namespace tensord::core {

/// Reached when Notify() was called.
class Signal final : public Event {
 public:
  /// Once.
  void Notify() { notification_.Notify(); }

  bool IsReached() override { return notification_.HasBeenNotified(); }
  absl::Status Wait() override {
    notification_.WaitForNotification();
    return absl::OkStatus();
  }

 private:
  absl::Notification notification_;
};

}  // namespace tensord::core
