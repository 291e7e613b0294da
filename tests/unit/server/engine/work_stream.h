// Streams of a device whose work ends when a test says so.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/device/device.h"
#include "core/device/host_stream.h"

namespace tensord::server {

/// Work of a device that ends when the test says so.
class Work {
 public:
  void End() {
    has_ended_.store(true);
    has_ended_.notify_all();
  }
  bool HasEnded() const { return has_ended_.load(); }
  void AwaitEnd() {
    is_awaited_.store(true);
    is_awaited_.notify_all();
    has_ended_.wait(false);
  }
  /// Returns when somebody waits for the end.
  void AwaitWaiting() const { is_awaited_.wait(false); }

  absl::Status status;
  bool has_event = true;

 private:
  std::atomic<bool> has_ended_ = false;
  std::atomic<bool> is_awaited_ = false;
};

class WorkEnd final : public core::Event {
 public:
  explicit WorkEnd(std::shared_ptr<Work> work) : work_(std::move(work)) {}
  bool IsReached() override { return work_->HasEnded(); }
  absl::Status Wait() override {
    work_->AwaitEnd();
    return work_->status;
  }

 private:
  const std::shared_ptr<Work> work_;
};

/// A stream whose end is that of the work which was queued last.
class WorkStream final : public core::Stream {
 public:
  absl::Status CopyToDevice(void*, const void*, int64_t) override {
    return absl::OkStatus();
  }
  absl::Status CopyToHost(void*, const void*, int64_t) override {
    return absl::OkStatus();
  }
  absl::Status CopyBetweenDevices(void*, const void*, int64_t) override {
    return absl::OkStatus();
  }
  absl::Status Call(void (*)(void*), void*) override {
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<core::Event>> Record() override {
    if (last == nullptr) return nullptr;
    if (!last->has_event) return absl::InternalError("no event");
    return std::make_unique<WorkEnd>(last);
  }
  absl::StatusOr<std::unique_ptr<core::TimedPoint>> RecordTime() override {
    return std::make_unique<core::HostTime>();
  }
  absl::Status Synchronize() override {
    if (last != nullptr) last->AwaitEnd();
    return absl::OkStatus();
  }
  absl::StatusOr<core::Stream*> Branch(int) override { return nullptr; }
  absl::Status WaitFor(const core::Event*) override { return absl::OkStatus(); }
  absl::StatusOr<bool> BeginRecording() override { return false; }
  absl::StatusOr<std::unique_ptr<core::Recording>> EndRecording() override {
    return nullptr;
  }

  std::shared_ptr<Work> last;
};

}  // namespace tensord::server
