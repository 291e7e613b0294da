#include "server/telemetry/activity.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tensord::server {

int64_t SpanCount(const Activity& activity) {
  return 1 + std::ranges::count_if(activity.phases, [](const auto& phase) {
           return phase.has_value();
         });
}

bool ActivityQueue::Add(Activity activity) {
  absl::MutexLock lock(&mutex_);
  if (waiting_.size() >= limit_) {
    ++dropped_count_;
    return false;
  }
  waiting_.push_back(std::move(activity));
  return true;
}

void ActivityQueue::Close() {
  absl::MutexLock lock(&mutex_);
  is_closed_ = true;
}

bool ActivityQueue::is_closed() const {
  absl::MutexLock lock(&mutex_);
  return is_closed_;
}

std::vector<Activity> ActivityQueue::Take(size_t most, absl::Duration wait) {
  const auto is_enough = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return is_closed_ || waiting_.size() >= most;
  };
  absl::MutexLock lock(&mutex_);
  mutex_.AwaitWithTimeout(absl::Condition(&is_enough), wait);
  const auto end = waiting_.begin() +
                   static_cast<std::ptrdiff_t>(std::min(most, waiting_.size()));
  std::vector<Activity> taken(std::move_iterator(waiting_.begin()),
                              std::move_iterator(end));
  waiting_.erase(waiting_.begin(), end);
  return taken;
}

}  // namespace tensord::server
