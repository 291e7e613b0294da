#include "server/rpc/listening/peer_users.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "server/rpc/listening/peer.h"

namespace tensord::rpc {
namespace {

constexpr char kProperty[] = "tensord_user";

}  // namespace

/// Plaintext, over Unix sockets alone, and says whose a connection is. What is
/// said stays with the connection, so it is said once.
class PeerUsers::Credentials final : public grpc::ServerCredentials {
 public:
  Credentials() : credentials_(grpc_local_server_credentials_create(UDS)) {
    grpc_server_credentials_set_auth_metadata_processor(
        credentials_, {.process = &Process, .destroy = nullptr, .state = this});
  }
  ~Credentials() override { grpc_server_credentials_release(credentials_); }

  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {
    // It has one.
  }

  /// Of connections whose first call is yet to come.
  void SetUser(uid_t user) {
    absl::MutexLock lock(&mutex_);
    user_ = absl::StrCat(user);
  }

 private:
  /// gRPC has this look at each call, several at a time.
  static void Process(void* self, grpc_auth_context* connection,
                      const grpc_metadata*, size_t,
                      grpc_process_auth_metadata_done_cb done,
                      void* user_data) {
    static_cast<Credentials*>(self)->Say(connection);
    done(user_data, nullptr, 0, nullptr, 0, GRPC_STATUS_OK, nullptr);
  }
  void Say(grpc_auth_context* connection) {
    absl::MutexLock lock(&mutex_);
    auto said =
        grpc_auth_context_find_properties_by_name(connection, kProperty);
    if (grpc_auth_property_iterator_next(&said) != nullptr) return;
    grpc_auth_context_add_cstring_property(connection, kProperty,
                                           user_.c_str());
  }

  int AddPortToServer(const std::string& address,
                      grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  grpc_server_credentials* const credentials_;
  // Also held while what is said is written down: calls of one connection may
  // begin together.
  absl::Mutex mutex_;
  std::string user_ ABSL_GUARDED_BY(mutex_);
};

PeerUsers::PeerUsers(grpc::ServerBuilder& builder,
                     std::function<bool(uid_t)> knows)
    : knows_(std::move(knows)), strangers_(Open(builder)) {
  for (Way& way : ways_) way = Open(builder);
  if (!knows_) {
    own_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        grpc::InsecureServerCredentials());
  }
  strangers_.credentials->SetUser(kStranger);
}

PeerUsers::Way PeerUsers::Open(grpc::ServerBuilder& builder) {
  Way way;
  way.credentials = std::make_shared<Credentials>();
  way.acceptor = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      way.credentials);
  return way;
}

PeerUsers::~PeerUsers() = default;

PeerUsers::Acceptor* PeerUsers::Of(uid_t user, Connections& connections) {
  if (knows_ && !knows_(user)) return strangers_.acceptor.get();
  if (own_ != nullptr && user == geteuid()) return own_.get();
  auto way = std::ranges::find(ways_, user, &Way::user);
  if (way == ways_.end()) {
    way = std::ranges::find_if(ways_, [](const Way& way) { return !way.user; });
  }
  Way* const chosen = way == ways_.end() ? FindIdle(connections) : &*way;
  if (chosen == nullptr) return knows_ ? nullptr : strangers_.acceptor.get();
  if (chosen->user != user) chosen->credentials->SetUser(user);
  chosen->user = user;
  chosen->idle_since = absl::InfiniteFuture();
  return chosen->acceptor.get();
}

std::string PeerUsers::NameOf(uid_t user, const Acceptor& way) const {
  return &way == strangers_.acceptor.get() ? "unix" : UserPeer(user);
}

PeerUsers::Way* PeerUsers::FindIdle(Connections& connections) {
  connections.ForgetEnded();
  const absl::Time now = absl::Now();
  for (Way& way : ways_) {
    way.idle_since = connections.Has(UserPeer(*way.user))
                         ? absl::InfiniteFuture()
                         : std::min(way.idle_since, now);
  }
  Way& longest = *std::ranges::min_element(ways_, {}, &Way::idle_since);
  return now - longest.idle_since > kRest ? &longest : nullptr;
}

std::optional<uid_t> PeerUsers::UserOf(const grpc::AuthContext& connection) {
  const auto known = connection.FindPropertyValues(kProperty);
  uid_t user = 0;
  if (known.empty() ||
      !absl::SimpleAtoi(absl::string_view(known[0].data(), known[0].size()),
                        &user)) {
    return std::nullopt;
  }
  return user;
}

}  // namespace tensord::rpc
