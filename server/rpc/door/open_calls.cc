#include "server/rpc/door/open_calls.h"

#include <chrono>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "server/rpc/door/door.h"
#include "server/rpc/listening/peer.h"

namespace tensord::rpc {

std::string ConnectionName(const WireCall& call) {
  const std::string name = call.peer();
  return absl::StartsWith(name, "unix") ? PeerOf(call) : EndName(name);
}

void OpenCalls::Look() {
  absl::flat_hash_map<const void*, int64_t> counts;
  absl::flat_hash_set<std::string> ends;
  for (One* each = first_; each != nullptr; each = each->next_) {
    if (each->call_.cancelled()) continue;
    int64_t& count = counts[each->call_.wire().connection()];
    if (++count > most_) {  // some may have lost their names
      ends.insert(ConnectionName(each->call_.wire()));
    }
  }
  connections_.EndThose(ends);
  // Each call pays for its share of the next.
  look_at_ = count() + most_ / 4;
}

void OpenCalls::EndWaits(bool all, const absl::Status& why) {
  constexpr std::chrono::milliseconds kWhile{200};
  const auto latest = Call::Clock::now() - kWhile;
  for (One* each = first_; each != nullptr; each = each->next_) {
    Call& call = each->call_;
    if (call.awaited() == Call::Awaited::kNothing || call.cancelled() ||
        call.awaited_since() > latest) {
      continue;
    }
    const Rpc* const rpc = call.record().rpc;  // null: a health check
    const bool is_request = call.awaited() == Call::Awaited::kMessage &&
                            (rpc == nullptr || rpc->has_one_request);
    if (!all && !is_request) continue;
    call.BreakOff(why);
    ended_waits_.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace tensord::rpc
