// Waits for work on a device's thread.
#pragma once

#include <coroutine>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "core/base/status.h"
#include "server/engine/device_worker.h"
#include "server/rpc/coroutine/loop.h"

namespace tensord::rpc {

/// Awaits the work that `fn(stream)` queues on the device, behind what `client`
/// has queued; the handler goes on on its Loop. Yields the Status that fn
/// returned or that the work ended with.
///
/// `fn` may be something with a DeviceWorker::Job's methods instead, which are
/// called on threads of the device.
///
/// `order`, when given, is released as soon as the work is queued, or cannot
/// be.
///
/// Errors  CANCELLED: the call ended before fn began, which never runs then, or
///         between parts of its work.
///         RESOURCE_EXHAUSTED: the queue is full.
template <typename F>
class [[nodiscard]] OnDevice final : server::DeviceWorker::Job, Call::Wait {
  static_assert(std::is_lvalue_reference_v<F> ||
                    std::is_trivially_destructible_v<F>,
                "GCC 12 would destroy this closure twice: give it a name");

 public:
  OnDevice(Call& call, server::DeviceWorker& worker, uint64_t client, F&& fn,
           absl::ReleasableMutexLock* order = nullptr)
      : Wait(call), worker_(worker), client_(client), fn_(fn), order_(order) {}

  bool await_ready() noexcept {
    if (!call_.cancelled()) return false;
    if (order_ != nullptr) order_->Release();
    return true;
  }
  bool await_suspend(std::coroutine_handle<> waiter) {
    // Suspended first: once queued, the job may be done at any moment. That it
    // is done shows on this Loop only, so not before this returns.
    Suspend(waiter);
    const absl::Status added = worker_.Add(client_, this);
    if (order_ != nullptr) order_->Release();
    if (added.ok()) return true;
    result_ = added;
    Abandon();
    return false;
  }
  absl::Status await_resume() {
    if (result_) return *result_;
    return absl::CancelledError("the call ended before its work began");
  }

 private:
  absl::Status Launch(core::Stream& stream) override {
    if (IsUnfinished() && call_.cancelled()) {
      return absl::CancelledError(
          "the call ended while its work was under way");
    }
    if constexpr (requires { fn_.Launch(stream); }) {
      return fn_.Launch(stream);
    } else {
      return fn_(stream);
    }
  }
  bool CanLaunchAgain() const override {
    if constexpr (requires { fn_.CanLaunchAgain(); }) {
      return fn_.CanLaunchAgain();
    } else {
      return false;
    }
  }
  bool IsUnfinished() const override {
    if constexpr (requires { fn_.IsUnfinished(); }) {
      return fn_.IsUnfinished();
    } else {
      return false;
    }
  }
  bool WantsDeviceAlone() const override {
    if constexpr (requires { fn_.WantsDeviceAlone(); }) {
      return fn_.WantsDeviceAlone();
    } else {
      return false;
    }
  }
  void Complete(const absl::Status& status,
                const server::DeviceWorker::Times& times) override {
    if constexpr (requires { fn_.Complete(status, times); }) {
      fn_.Complete(status, times);
    } else if constexpr (requires { fn_.Complete(status); }) {
      fn_.Complete(status);
    }
    result_ = status;
    call_.loop().Post(this);
  }
  void Cancel() override {
    if (worker_.Remove(client_, this)) Fire(false);
  }

  server::DeviceWorker& worker_;
  const uint64_t client_;
  F fn_;
  absl::ReleasableMutexLock* const order_;
  std::optional<absl::Status> result_;
};
template <typename F>
OnDevice(Call&, server::DeviceWorker&, uint64_t, F&&,
         absl::ReleasableMutexLock* = nullptr) -> OnDevice<F>;

}  // namespace tensord::rpc
