// Where clients on the same host bring their memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/session/session.h"
#include "server/shared_memory/connection.h"
#include "server/shared_memory/local_socket.h"
#include "server/shared_memory/protocol.h"
#include "server/shared_memory/region.h"
#include "server/telemetry/log.h"
#include "server/telemetry/metrics.h"

namespace tensord::shared_memory {

/// Bounds on what clients may have, all together and those of one session.
struct BrokerLimits {
  size_t connections = 1024;
  size_t connections_per_session = 16;
  /// Of those that have not said whose they are; the oldest go first.
  size_t strangers = 64;
  size_t tickets = 1024;
  size_t tickets_per_session = 16;
  int64_t regions = 16'384;  // each is a mapping of the process
  size_t regions_per_session = 1024;
  absl::Duration patience = absl::Seconds(10);  // with strangers, and tickets
};

/// Takes regions from clients on Unix sockets, and gives them up when their
/// connection ends, or their session. Who a client is, a ticket says, which its
/// session has got by gRPC and which is good once.
///
/// Threads   safe for concurrent use; one of its own serves all connections.
/// Lifetime  log and metrics outlive it.
class Broker {
 public:
  Broker(const BrokerLimits& limits, server::Log& log,
         server::Metrics& metrics);
  /// Gives all regions up.
  ~Broker();

  /// Listens there, too. Before Start().
  void Add(LocalSocket socket);
  void Start();

  /// Where it listens.
  std::vector<std::string> addresses() const;

  /// Lets a client connect once, soon, as the session's.
  ///
  /// Errors  RESOURCE_EXHAUSTED, reason TOO_MANY_TICKETS. INTERNAL.
  absl::StatusOr<Ticket> Invite(
      const std::shared_ptr<server::Session>& session);

  /// A region that a connection of the session has brought.
  /// Errors  NOT_FOUND, reason SHARED_MEMORY_REGION_NOT_FOUND.
  absl::StatusOr<std::shared_ptr<Region>> Find(const server::Session& session,
                                               uint64_t region) const;

 private:
  struct Invited {
    Ticket ticket;
    std::weak_ptr<server::Session> session;
    absl::Time expires;
  };
  /// (session's number, region's id).
  using RegionKey = std::pair<uint64_t, uint64_t>;

  void Run();
  void Accept(int socket);
  /// Tells who connects why that is not to be.
  void TurnAway(Descriptor accepted, const absl::Status& why);
  /// What a connection has sent. False: it ends.
  bool Read(Connection& connection);
  absl::Status Handle(Connection& connection, const Message& message,
                      const Packet& packet);
  absl::Status Greet(Connection& connection, const Ticket& ticket);
  struct Share {
    size_t connections = 0;
    size_t regions = 0;
  };
  /// What a session has.
  Share ShareOf(const server::Session& session) const;
  absl::Status AddRegion(Connection& connection, const Message& message,
                         const Packet& packet);
  absl::Status DropRegion(Connection& connection, uint64_t id);
  /// Takes a connection out; its regions are given up.
  void End(int descriptor);
  void EndOld();
  /// Says which regions no tensor is in any more.
  void TellReleased();
  /// Unmaps what nobody uses any more. False: some is used.
  bool UnmapLeaving();
  void Leave(std::shared_ptr<Region> region);
  void Count(const absl::Status& refused);
  void Watch(int descriptor);

  const BrokerLimits limits_;
  server::Log& log_;
  server::Metrics& metrics_;
  const std::shared_ptr<Usage> usage_ = std::make_shared<Usage>();
  const std::shared_ptr<ReleasedRegions> released_;
  std::vector<LocalSocket> sockets_;
  Descriptor poll_;
  /// Given up where no file is left for who connects.
  Descriptor spare_;
  std::thread thread_;
  // Of the thread.
  std::map<int, std::unique_ptr<Connection>> connections_;  // by descriptor
  std::vector<std::shared_ptr<Region>> leaving_;
  uint64_t next_number_ = 1;

  mutable absl::Mutex mutex_;
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Invited> invited_ ABSL_GUARDED_BY(mutex_);
  std::map<RegionKey, std::shared_ptr<Region>> regions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord::shared_memory
