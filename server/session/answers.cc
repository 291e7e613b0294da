#include "server/session/answers.h"

#include <cstdint>
#include <iterator>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace tensord::server {
namespace {

constexpr int64_t kCallBytes = 256;  // what keeping one takes, by and large

}  // namespace

absl::StatusOr<std::optional<std::string>> Answers::Begin(
    absl::string_view id, absl::string_view request) {
  const size_t request_hash = absl::HashOf(request);
  absl::MutexLock lock(&mutex_);
  const auto found = calls_.find(id);
  if (found != calls_.end()) {
    const Call& call = found->second;
    if (call.request_hash != request_hash) {
      return core::InvalidArgument(
          "REQUEST_ID_REUSED", "a call of id '", id,
          "' asked for something else, wanted an id for each call");
    }
    if (call.answer) return call.answer;
    return core::Error(
        absl::StatusCode::kAborted, "REQUEST_UNDER_WAY",
        absl::StrCat("a call of id '", id, "' has not ended; retry"));
  }
  Call call{.request_hash = request_hash};
  const int64_t bytes = kCallBytes + std::ssize(id);
  absl::Status taken;
  do {
    taken = call.hold.Take(ledger_, HostUse::kAnswers, bytes);
  } while (!taken.ok() && ForgetOldest());
  if (!taken.ok()) return taken;
  calls_.emplace(id, std::move(call));
  return std::nullopt;
}

void Answers::End(absl::string_view id, std::optional<std::string> answer) {
  absl::MutexLock lock(&mutex_);
  const auto found = calls_.find(id);
  if (!answer) {
    calls_.erase(found);
    return;
  }
  found->second.hold.Add(std::ssize(*answer));
  found->second.answer = std::move(answer);
  answered_.emplace_back(id);
  const HostAmount limit =
      ledger_->limits()[static_cast<int>(HostUse::kAnswers)];
  while (ledger_->used(HostUse::kAnswers).bytes > limit.bytes &&
         answered_.size() > 1) {
    ForgetOldest();
  }
}

bool Answers::ForgetOldest() {
  if (answered_.empty()) return false;
  calls_.erase(answered_.front());
  answered_.pop_front();
  return true;
}

}  // namespace tensord::server
