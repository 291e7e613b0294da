#include "server/execution/program/kept_values.h"

#include <algorithm>
#include <utility>

#include "core/base/status.h"

namespace tensord::server {
namespace {

/// Also when one of them is gone, and another has its address.
bool AreSame(const std::weak_ptr<const StoredTensor>& x,
             const std::weak_ptr<const StoredTensor>& y) {
  return !x.owner_before(y) && !y.owner_before(x);
}

}  // namespace

absl::Status KeptValues::Allocate() {
  absl::MutexLock lock(&mutex_);
  if (buffer_.bytes() == bytes_) return absl::OkStatus();
  TENSORD_ASSIGN_OR_RETURN(buffer_, core::Buffer::Allocate(*memory_, bytes_));
  return absl::OkStatus();
}

std::byte* KeptValues::data() const {
  absl::MutexLock lock(&mutex_);
  return buffer_.data();
}

bool KeptValues::AreOf(const Sources& sources) const {
  absl::MutexLock lock(&mutex_);
  return has_values_ &&
         std::ranges::equal(
             sources, sources_, [](const Source& x, const Source& y) {
               return x.version == y.version && AreSame(x.tensor, y.tensor);
             });
}

uint64_t KeptValues::BeginComputing() {
  absl::MutexLock lock(&mutex_);
  has_values_ = false;
  return ++number_;
}

void KeptValues::Queued(uint64_t number, Sources sources,
                        std::vector<int64_t> extents) {
  absl::MutexLock lock(&mutex_);
  if (number != number_) return;
  has_values_ = true;
  sources_ = std::move(sources);
  extents_ = std::move(extents);
}

std::vector<int64_t> KeptValues::extents() const {
  absl::MutexLock lock(&mutex_);
  return extents_;
}

void KeptValues::Discard(uint64_t number) {
  absl::MutexLock lock(&mutex_);
  if (number == number_) has_values_ = false;
}

}  // namespace tensord::server
