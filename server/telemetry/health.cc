#include "server/telemetry/health.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <utility>

namespace tensord::server {

void Health::Enter(Phase phase) {
  absl::MutexLock lock(&mutex_);
  phase_ = phase;
}

void Health::Note(std::string remark) {
  absl::MutexLock lock(&mutex_);
  remark_ = std::move(remark);
}

std::string Health::remark() const {
  absl::MutexLock lock(&mutex_);
  return remark_;
}

void Health::LoseDevice(const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  device_ = why;
}

absl::Status Health::readiness() const {
  absl::MutexLock lock(&mutex_);
  if (!device_.ok()) return device_;
  if (phase_ == Phase::kStarting) return absl::UnavailableError("starting");
  if (phase_ == Phase::kDraining) return absl::UnavailableError("draining");
  return absl::OkStatus();
}

absl::Status Health::liveness() const {
  absl::MutexLock lock(&mutex_);
  return device_;
}

void NotifyServiceManager(absl::string_view state) {
  const char* const path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const absl::string_view name = path == nullptr ? "" : path;
  if (name.empty() || name.size() >= sizeof(address.sun_path)) return;
  name.copy(address.sun_path, name.size());
  if (name.front() == '@') address.sun_path[0] = '\0';  // an abstract one
  const int file = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (file < 0) return;
  const auto size =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  // Who does not listen cannot be helped.
  [[maybe_unused]] const ssize_t sent =
      sendto(file, state.data(), state.size(), MSG_NOSIGNAL,
             reinterpret_cast<const sockaddr*>(&address), size);
  close(file);
}

}  // namespace tensord::server
