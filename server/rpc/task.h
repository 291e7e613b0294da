// Coroutines that serve calls.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

namespace tensord::rpc {

/// A coroutine that computes one T for the one coroutine that awaits it.
///
/// Lazy: awaiting runs the body like a call, up to its first wait. A body that
/// never waits takes no stack beyond its caller's, in loops neither.
///
/// Threads  started, resumed and finished on one thread, that of its call.
/// Errors   are values; an exception that leaves the body ends the process.
template <typename T>
class [[nodiscard]] Task {
 public:
  class promise_type {
   public:
    Task get_return_object() {
      return Task(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    auto final_suspend() const noexcept {
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
    std::optional<T> value_;
  };

  Task(Task&& other) noexcept : body_(std::exchange(other.body_, nullptr)) {}
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (body_) body_.destroy();
  }

  bool await_ready() const noexcept { return false; }
  /// Looks at the body after it ran up to its first wait: being confined to one
  /// thread is what makes that safe, and what saves the stack.
  bool await_suspend(std::coroutine_handle<> waiter) {
    body_.resume();
    if (body_.done()) return false;
    body_.promise().waiter_ = waiter;
    return true;
  }
  T await_resume() { return *std::move(body_.promise().value_); }

 private:
  explicit Task(std::coroutine_handle<promise_type> body) : body_(body) {}
  std::coroutine_handle<promise_type> body_;
};

/// What a coroutine returns that starts at once, that nobody awaits, and whose
/// frame is freed when it ends.
struct Detached {
  struct promise_type {
    Detached get_return_object() const noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }
  };
};

}  // namespace tensord::rpc
