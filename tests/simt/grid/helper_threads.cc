#include "tests/simt/grid/helper_threads.h"

#include <mutex>

namespace tensord::simt {

HelperThreads::~HelperThreads() {
  {
    const std::lock_guard lock(lock_);
    is_closing_ = true;
    lock_.NotifyOfChange();
  }
  for (std::thread& thread : threads_) thread.join();
}

void HelperThreads::Run(int count, const std::function<void()>& body) {
  {
    const std::lock_guard lock(lock_);
    body_ = &body;
    wanted_count_ = running_count_ = count;
    ++round_;
    while (static_cast<int>(threads_.size()) < count) {
      const int index = static_cast<int>(threads_.size());
      threads_.emplace_back([this, index] { Work(index); });
    }
    lock_.NotifyOfChange();
  }
  body();
  const std::lock_guard lock(lock_);
  while (running_count_ > 0) lock_.WaitForChange();
}

void HelperThreads::Work(int index) {
  const std::lock_guard lock(lock_);
  uint64_t last_round = 0;
  while (true) {
    while (!is_closing_ && (round_ == last_round || index >= wanted_count_)) {
      lock_.WaitForChange();
    }
    if (is_closing_) return;
    last_round = round_;
    const std::function<void()>& body = *body_;
    lock_.unlock();
    body();
    lock_.lock();
    --running_count_;
    lock_.NotifyOfChange();
  }
}

}  // namespace tensord::simt
