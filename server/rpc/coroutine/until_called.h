// Waits for work that somebody else does and tells the end of.
#pragma once

#include <coroutine>
#include <functional>
#include <utility>

#include "server/rpc/coroutine/loop.h"

namespace tensord::rpc {

/// Awaits a call of `done`, on any thread, that `start(done)` has somebody
/// make, once; not when that returns false. The wait goes on when the call
/// ends; the handler resumes on its Loop.
///
/// Requires  start outlives the wait.
template <typename Start>
class [[nodiscard]] UntilCalled final : Call::Wait {
 public:
  UntilCalled(Call& call, Start& start) : Wait(call), start_(start) {}

  bool await_ready() const noexcept { return false; }
  // It may be done by now. That is posted to this Loop, which cannot deliver it
  // before this returns.
  bool await_suspend(std::coroutine_handle<> waiter) {
    Suspend(waiter);
    if (start_(std::function<void()>([this] { call_.loop().Post(this); }))) {
      return true;
    }
    Abandon();
    return false;
  }
  void await_resume() const noexcept {}

 private:
  void Cancel() override {}

  Start& start_;
};

}  // namespace tensord::rpc
