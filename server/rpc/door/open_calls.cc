#include "server/rpc/door/open_calls.h"

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
  look_at_ = count_ + most_ / 4;
}

}  // namespace tensord::rpc
