#include "server/telemetry/timelines.h"

#include <iterator>

#include "core/base/status.h"

namespace tensord::server {
namespace {

constexpr int kMostRecordings = 4;

}  // namespace

Timelines::Recording::~Recording() {
  absl::MutexLock lock(&timelines_.mutex_);
  std::erase(timelines_.recordings_, this);
  timelines_.is_recording_ = !timelines_.recordings_.empty();
}

void Timelines::Recording::Add(const Activity& activity) {
  if (!tenant_.empty() && activity.tenant != tenant_) return;
  if (request_id_.empty()) {
    activities_.Add(activity);
  } else if (activity.request_id == request_id_) {
    activities_.Add(activity);
    if (!activity.is_of_stream) activities_.Close();
  }
}

absl::StatusOr<std::unique_ptr<Timelines::Recording>> Timelines::Record(
    std::string request_id, std::string tenant) {
  auto recording = std::make_unique<Recording>(*this, std::move(request_id),
                                               std::move(tenant));
  absl::MutexLock lock(&mutex_);
  if (std::ssize(recordings_) == kMostRecordings) {
    return core::ResourceExhausted("TOO_MANY_RECORDINGS", kMostRecordings,
                                   " timelines are being recorded already, as "
                                   "many as may be; retry later");
  }
  recordings_.push_back(recording.get());
  is_recording_ = true;
  return recording;
}

void Timelines::Add(const Activity& activity) {
  absl::MutexLock lock(&mutex_);
  for (Recording* const recording : recordings_) recording->Add(activity);
}

}  // namespace tensord::server
