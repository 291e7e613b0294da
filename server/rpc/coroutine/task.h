// Coroutines that serve calls.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

#include "core/base/pooled.h"

namespace tensord::rpc {

/// A coroutine that computes one T for the one coroutine that awaits it.
///
/// Lazy: awaiting runs the body up to its first wait. A body that never waits
/// returns at once and uses no extra stack, so it may be awaited in a loop.
/// Start() runs that first part early, so that caller and body overlap.
///
/// Threads  started, resumed and finished on one thread, that of its call.
/// Errors   are values; an exception that leaves the body ends the process.
template <typename T>
class [[nodiscard]] Task {
 public:
  class promise_type : public core::Pooled {
   public:
    Task get_return_object() {
      return Task(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    auto final_suspend() noexcept {
      finished_ = true;
      struct ResumeWaiter {
        bool await_ready() const noexcept { return false; }
        std::coroutine_handle<> await_suspend(
            std::coroutine_handle<promise_type> self) const noexcept {
          return self.promise().waiter_;
        }
        void await_resume() const noexcept {}
      };
      return ResumeWaiter{};
    }
    template <typename U = T>
    void return_value(U&& value) {
      value_.emplace(std::forward<U>(value));
    }
    void unhandled_exception() const noexcept { std::terminate(); }

   private:
    friend Task;
    std::coroutine_handle<> waiter_ = std::noop_coroutine();
    bool started_ = false;
    bool finished_ = false;
    std::optional<T> value_;
  };

  Task(Task&& other) noexcept : body_(std::exchange(other.body_, nullptr)) {}
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (body_) body_.destroy();
  }

  /// Runs the body up to its first wait. What it refers to must live until the
  /// Task has been awaited, which is due.
  void Start() {
    body_.promise().started_ = true;
    body_.resume();
  }

  bool await_ready() const noexcept { return body_.promise().finished_; }
  /// Looks at the body after it ran up to its first wait: being confined to one
  /// thread is what makes that safe, and what saves the stack.
  bool await_suspend(std::coroutine_handle<> waiter) {
    if (!body_.promise().started_) Start();
    if (body_.promise().finished_) return false;
    body_.promise().waiter_ = waiter;
    return true;
  }
  T await_resume() { return *std::move(body_.promise().value_); }

 private:
  explicit Task(std::coroutine_handle<promise_type> body) : body_(body) {}
  std::coroutine_handle<promise_type> body_;
};

/// What one coroutine awaits until another one on its thread calls Notify().
class Signal {
 public:
  Signal() = default;
  Signal(const Signal&) = delete;

  /// Runs the one that waits, if any, up to its next wait.
  void Notify() {
    if (waiter_) std::exchange(waiter_, nullptr).resume();
  }

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiter) { waiter_ = waiter; }
  void await_resume() const noexcept {}

 private:
  std::coroutine_handle<> waiter_;
};

/// What a coroutine returns that starts at once, that nobody awaits, and whose
/// frame is freed when it ends.
struct Detached {
  struct promise_type : core::Pooled {
    Detached get_return_object() const noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }
  };
};

}  // namespace tensord::rpc
