// Waits for time to pass.
#pragma once

#include <grpc/support/time.h>
#include <grpcpp/alarm.h>

#include <coroutine>

#include "absl/time/time.h"
#include "server/rpc/coroutine/loop.h"

namespace tensord::rpc {

/// Awaiting it resumes when `length` is over, or before, when the call has been
/// cancelled or the Loop refuses.
class [[nodiscard]] Pause final : Call::Wait, Loop::Watcher {
 public:
  Pause(Call& call, absl::Duration length)
      : Wait(call), Watcher(call.loop()), length_(length) {}

  bool await_ready() const noexcept {
    return call_.cancelled() || call_.loop().refuses();
  }
  void await_suspend(std::coroutine_handle<> waiter) {
    Suspend(waiter);
    const gpr_timespec wait =
        gpr_time_from_nanos(absl::ToInt64Nanoseconds(length_), GPR_TIMESPAN);
    alarm_.Set(call_.loop().queue(),
               gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), wait), AsTag());
  }
  void await_resume() const noexcept {}

 private:
  void Cancel() override { alarm_.Cancel(); }
  void Refused() override { alarm_.Cancel(); }

  const absl::Duration length_;
  grpc::Alarm alarm_;
};

}  // namespace tensord::rpc
