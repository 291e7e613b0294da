// Waits for work on a thread of the background.
#pragma once

#include <coroutine>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "server/execution/background.h"
#include "server/rpc/coroutine/loop.h"

namespace tensord::rpc {

/// Awaits fn(), which runs on a thread of the background; the handler resumes
/// on its Loop. A long fn() should look at call.cancelled(): a call cannot end
/// before it returns.
///
/// Requires  fn outlives the wait.
/// Errors    CANCELLED: the call ended before fn began, which never runs then.
///           RESOURCE_EXHAUSTED: the queue is full.
template <typename F>
class [[nodiscard]] InBackground final : server::Background::Job, Call::Wait {
 public:
  /// Lifetime  `client` outlives it.
  InBackground(Call& call, server::Background& background,
               const server::ClientId& client, F& fn)
      : Wait(call), background_(background), client_(client), fn_(fn) {}

  bool await_ready() const noexcept { return call_.cancelled(); }
  bool await_suspend(std::coroutine_handle<> waiter) {
    Suspend(waiter);
    const absl::Status added = background_.Add(client_, this);
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
  void Do() override {
    fn_();
    result_ = absl::OkStatus();
    call_.loop().Post(this);
  }
  void Cancel() override {
    if (background_.Remove(client_.number, this)) Fire(false);
  }

  server::Background& background_;
  const server::ClientId& client_;
  F& fn_;
  std::optional<absl::Status> result_;
};

}  // namespace tensord::rpc
