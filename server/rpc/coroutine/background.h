// Work that takes too long for a Loop and is no device's.
#pragma once

#include <coroutine>
#include <deque>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "server/rpc/coroutine/loop.h"

namespace tensord::rpc {

/// A few threads that work off a queue.
///
/// Threads  safe for concurrent use.
class Background {
 public:
  /// Requires  thread_count >= 1.
  explicit Background(int thread_count) {
    for (int i = 0; i < thread_count; ++i) {
      threads_.emplace_back([this] { Run(); });
    }
  }
  /// Does what is queued first.
  ~Background() {
    {
      absl::MutexLock lock(&mutex_);
      closing_ = true;
    }
    for (std::thread& thread : threads_) thread.join();
  }
  Background(const Background&) = delete;

  void Add(absl::AnyInvocable<void()> work) {
    absl::MutexLock lock(&mutex_);
    queue_.push_back(std::move(work));
  }

 private:
  void Run() {
    while (true) {
      absl::AnyInvocable<void()> work;
      {
        absl::MutexLock lock(&mutex_);
        mutex_.Await(absl::Condition(this, &Background::HasTask));
        if (queue_.empty()) return;
        work = std::move(queue_.front());
        queue_.pop_front();
      }
      work();
    }
  }
  bool HasTask() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return closing_ || !queue_.empty();
  }

  absl::Mutex mutex_;
  std::deque<absl::AnyInvocable<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

/// Awaits fn(), which one of the threads calls, also when the call ends before;
/// the handler goes on on its Loop. Requires  fn outlives the wait.
template <typename F>
class [[nodiscard]] InBackground final : Call::Wait {
 public:
  InBackground(Call& call, Background& background, F& fn)
      : Wait(call), background_(background), fn_(fn) {}

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiter) {
    Suspend(waiter);
    background_.Add([this] {
      fn_();
      call_.loop().Post(this);
    });
  }
  void await_resume() const noexcept {}

 private:
  void Cancel() override {}  // what runs is waited for

  Background& background_;
  F& fn_;
};

}  // namespace tensord::rpc
