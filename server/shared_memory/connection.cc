#include "server/shared_memory/connection.h"

#include <sys/eventfd.h>

#include "core/base/status.h"

namespace tensord::shared_memory {

ReleasedRegions::ReleasedRegions()
    : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void ReleasedRegions::Add(const Released& released) {
  {
    absl::MutexLock lock(&mutex_);
    released_.push_back(released);
    if (released_.size() > 1) return;  // It was woken for the first.
  }
  Wake();
}

void ReleasedRegions::Wake() const { eventfd_write(event_.get(), 1); }

std::vector<ReleasedRegions::Released> ReleasedRegions::Take() {
  absl::MutexLock lock(&mutex_);
  return std::exchange(released_, {});
}

absl::Status Connection::Flush() {
  const auto sent = [this](const Reply& reply) {
    const auto packet = Encode(reply);
    return Send(descriptor.get(), packet);
  };
  const auto result = [](const absl::Status& status) {
    return absl::IsUnavailable(status) ? absl::OkStatus() : status;
  };
  while (!answers.empty()) {
    const absl::Status status = sent(answers.front());
    if (!status.ok()) return result(status);
    answers.pop_front();
  }
  while (!released.empty()) {
    const auto [region, adoptions] = *released.begin();
    Reply reply;
    reply.kind = Reply::Kind::kReleased;
    reply.region = region;
    reply.adoptions = adoptions;
    const absl::Status status = sent(reply);
    if (!status.ok()) return result(status);
    released.erase(released.begin());
  }
  return absl::OkStatus();
}

}  // namespace tensord::shared_memory
