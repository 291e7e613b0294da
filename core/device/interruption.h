// Asks work that is under way to stop, or to let other work go first.
#pragma once

#include <atomic>
#include <memory>

#include "core/device/event.h"

namespace tensord::core {

/// What others ask of a piece of work. Work that may take long looks every few
/// milliseconds, or more often.
///
/// Threads  safe for concurrent use.
class Interruption {
 public:
  virtual ~Interruption() = default;

  /// Whether there is anything to hear; costs next to nothing.
  bool is_asked() const { return asked_.load(std::memory_order_relaxed); }
  /// What the work has not computed by now, nobody wants.
  bool is_stopped() const { return stopped_.load(std::memory_order_relaxed); }
  /// Some of the work was left undone, as it was stopped.
  bool is_cut() const { return cut_.load(std::memory_order_relaxed); }
  /// Requires  is_stopped().
  void Cut() { cut_.store(true, std::memory_order_relaxed); }

  void Stop() {
    stopped_.store(true);
    asked_.store(true);
  }

  /// Waits while other work should go first. On the thread that began the work,
  /// in any place where it holds no lock.
  virtual void GiveWay() {}
  /// Waits until `event` is reached or the work is stopped; others may go first
  /// meanwhile. Where GiveWay() may be called.
  virtual void Await(const std::shared_ptr<Event>& event) {
    event->Wait().IgnoreError();  // for the next to tell
  }
  /// Waits until `event` is reached, even if the work is stopped meanwhile;
  /// others may go first. Where GiveWay() may be called.
  virtual void Outlast(const std::shared_ptr<Event>& event) {
    event->Wait().IgnoreError();
  }

 protected:
  /// Others should go first, or nobody wants to any more.
  void AskToGiveWay(bool asks) {
    asked_.store(asks);
    if (stopped_.load()) asked_.store(true);
  }

 private:
  std::atomic<bool> asked_ = false;
  std::atomic<bool> stopped_ = false;
  std::atomic<bool> cut_ = false;
};

/// Says, while it lives, whose work this thread does. Null: nobody asks.
///
/// Lifetime  the interruption outlives it.
class CurrentWork {
 public:
  enum class Thread { kBegan, kHelps };

  explicit CurrentWork(Interruption* interruption,
                       Thread thread = Thread::kBegan)
      : before_(current_) {
    current_ = {interruption, thread};
  }
  ~CurrentWork() { current_ = before_; }
  CurrentWork(const CurrentWork&) = delete;
  CurrentWork& operator=(const CurrentWork&) = delete;

  static Interruption* interruption() { return current_.interruption; }

  /// Whether the work is to be left where it stands, and so is cut. Lets others
  /// go first before, where that is possible.
  static bool ShouldStop() {
    const State& current = current_;
    return current.interruption != nullptr &&
           current.interruption->is_asked() && Hear(current);
  }

 private:
  struct State {
    Interruption* interruption;
    Thread thread;
  };

  static bool Hear(const State& state) {
    // A thread that helps has others to help meanwhile: it leaves instead.
    if (state.thread == Thread::kBegan) state.interruption->GiveWay();
    if (!state.interruption->is_stopped()) return false;
    state.interruption->Cut();
    return true;
  }

  static inline constinit thread_local State current_ = {nullptr,
                                                         Thread::kBegan};

  const State before_;
};

}  // namespace tensord::core
