#include "server/rpc/door/open_calls.h"

#include <grpc/grpc_security.h>

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "server/rpc/door/door.h"
#include "server/rpc/listening/peer.h"

namespace tensord::rpc {
namespace {

/// What calls of one connection have in common: what gRPC knows of who is at
/// the other end.
const void* ConnectionOf(Call& call) {
  grpc_auth_context* const known =
      grpc_call_auth_context(call.context().c_call());
  if (known != nullptr) grpc_auth_context_release(known);  // its own stays
  return known;
}

}  // namespace

std::string ConnectionName(const grpc::ServerContext& context) {
  const std::string name = context.peer();
  return absl::StartsWith(name, "unix") ? PeerOf(context) : EndName(name);
}

void OpenCalls::Look() {
  absl::flat_hash_map<const void*, int64_t> counts;
  absl::flat_hash_set<std::string> ends;
  for (One* each = first_; each != nullptr; each = each->next_) {
    if (each->call_.cancelled()) continue;
    int64_t& count = counts[ConnectionOf(each->call_)];
    if (++count == most_ + 1) {
      ends.insert(ConnectionName(each->call_.context()));
    }
  }
  connections_.EndThose(ends);
  // Each call pays for its share of the next.
  look_at_ = count_ + most_ / 4;
}

}  // namespace tensord::rpc
