#include "server/shared_memory/broker.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status.h"

namespace tensord::shared_memory {
namespace {

// How often what waits for others is looked at: well within the second after
// which nothing of a dead client's is mapped.
constexpr int kTickMilliseconds = 50;
// How often sessions that have ended are looked for.
constexpr int kSlowTickMilliseconds = 200;
// Most of one connection before others have their turn.
constexpr int kMessagesPerTurn = 16;
// Answers that a client leaves unread; with more, its connection ends.
constexpr size_t kMostAnswers = 64;

/// Takes the same time whatever differs.
bool AreEqual(const Ticket& a, const Ticket& b) {
  std::byte difference{0};
  for (size_t i = 0; i < kTicketBytes; ++i) difference |= a[i] ^ b[i];
  return difference == std::byte{0};
}

int Accepted(int socket) {
  return accept4(socket, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

/// Any file, that takes a descriptor.
int Spare() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

}  // namespace

Broker::Broker(const BrokerLimits& limits, server::Log& log,
               server::Metrics& metrics)
    : limits_(limits),
      log_(log),
      metrics_(metrics),
      released_(std::make_shared<ReleasedRegions>()),
      poll_(epoll_create1(EPOLL_CLOEXEC)),
      spare_(Spare()) {}

Broker::~Broker() {
  {
    absl::MutexLock lock(&mutex_);
    ends_ = true;
  }
  released_->Wake();
  if (thread_.joinable()) thread_.join();
}

void Broker::Add(LocalSocket socket) { sockets_.push_back(std::move(socket)); }

std::vector<std::string> Broker::addresses() const {
  std::vector<std::string> addresses;
  for (const LocalSocket& each : sockets_) addresses.push_back(each.address());
  return addresses;
}

void Broker::Start() {
  for (const LocalSocket& each : sockets_) Watch(each.get());
  Watch(released_->descriptor());
  thread_ = std::thread([this] { Run(); });
}

void Broker::Watch(int descriptor) {
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.fd = descriptor;
  epoll_ctl(poll_.get(), EPOLL_CTL_ADD, descriptor, &event);
}

absl::StatusOr<Ticket> Broker::Invite(
    const std::shared_ptr<server::Session>& session) {
  Ticket ticket;
  if (getrandom(ticket.data(), ticket.size(), 0) != std::ssize(ticket)) {
    return core::Internal("NO_RANDOMNESS", "getrandom() failed");
  }
  absl::MutexLock lock(&mutex_);
  const absl::Time now = absl::Now();
  std::erase_if(invited_, [now](const Invited& invited) {
    return invited.expires < now || invited.session.expired();
  });
  const auto own = std::ranges::count_if(invited_, [&](const Invited& invited) {
    return invited.session.lock() == session;
  });
  if (static_cast<size_t>(own) >= limits_.tickets_per_session ||
      invited_.size() >= limits_.tickets) {
    return core::ResourceExhausted(
        "TOO_MANY_TICKETS", own, " clients of the session, and ",
        invited_.size(), " in all, are about to connect, the limits are ",
        limits_.tickets_per_session, " and ", limits_.tickets, "; retry soon");
  }
  invited_.push_back({ticket, session, now + limits_.patience});
  return ticket;
}

absl::StatusOr<std::shared_ptr<Region>> Broker::Find(
    const server::Session& session, uint64_t region) const {
  absl::MutexLock lock(&mutex_);
  const auto found = regions_.find({session.number(), region});
  if (found != regions_.end()) return found->second;
  return core::NotFound("SHARED_MEMORY_REGION_NOT_FOUND", "region ", region,
                        " is not, or no more, one of the session's");
}

void Broker::Run() {
  std::array<epoll_event, 64> events;
  while (true) {
    const int wait = !leaving_.empty()       ? kTickMilliseconds
                     : !connections_.empty() ? kSlowTickMilliseconds
                                             : -1;
    const int count =
        epoll_wait(poll_.get(), events.data(), events.size(), wait);
    {
      absl::MutexLock lock(&mutex_);
      if (ends_) break;
    }
    for (int i = 0; i < count; ++i) {
      const int descriptor = events[i].data.fd;
      const auto connection = connections_.find(descriptor);
      if (connection != connections_.end()) {
        if (!Read(*connection->second)) End(descriptor);
      } else if (descriptor == released_->descriptor()) {
        eventfd_t ignored = 0;
        eventfd_read(descriptor, &ignored);
      } else if (std::ranges::find(sockets_, descriptor, &LocalSocket::get) !=
                 sockets_.end()) {
        Accept(descriptor);
      }
    }
    TellReleased();
    EndOld();
    UnmapLeaving();
    metrics_.ShowSharedMemory(std::ssize(connections_), usage_->regions,
                              usage_->bytes);
  }
  while (!connections_.empty()) End(connections_.begin()->first);
  UnmapLeaving();
}

void Broker::Accept(int socket) {
  Descriptor accepted(Accepted(socket));
  if (accepted.get() < 0) {
    if (errno == EAGAIN || errno == ECONNABORTED) return;  // It has gone.
    // No file is left. Who connects would wait without end, and each poll
    // return at once, so the spare one's place has it told so.
    spare_ = Descriptor();
    TurnAway(Descriptor(Accepted(socket)),
             core::ResourceExhausted("TOO_MANY_FILES",
                                     "the server has no file left for it"));
    spare_ = Descriptor(Spare());
    return;
  }
  static constexpr auto kIsStranger = [](const auto& entry) {
    return entry.second->session == nullptr;
  };
  const auto strangers = std::ranges::count_if(connections_, kIsStranger);
  if (static_cast<size_t>(strangers) >= limits_.strangers) {
    const auto oldest =
        std::ranges::min_element(connections_, {}, [](const auto& entry) {
          return kIsStranger(entry) ? entry.second->number : ~uint64_t{0};
        });
    End(oldest->first);
  }
  if (connections_.size() >= limits_.connections) {
    TurnAway(std::move(accepted),
             core::ResourceExhausted("TOO_MANY_CONNECTIONS", "the server has ",
                                     connections_.size(),
                                     " connections, as many as it takes"));
    return;
  }
  const int descriptor = accepted.get();
  auto connection = std::make_unique<Connection>();
  connection->number = next_number_++;
  connection->descriptor = std::move(accepted);
  connection->since = absl::Now();
  Watch(descriptor);
  connections_.emplace(descriptor, std::move(connection));
}

void Broker::TurnAway(Descriptor accepted, const absl::Status& why) {
  Count(why);
  if (accepted.get() < 0) {  // Others were faster.
    absl::SleepFor(absl::Milliseconds(kTickMilliseconds));
    return;
  }
  // It is all that it hears, and fits.
  Send(accepted.get(), Encode(AnswerOf(why, 0))).IgnoreError();
}

bool Broker::Read(Connection& connection) {
  for (int i = 0; i < kMessagesPerTurn; ++i) {
    if (!connection.Flush().ok()) return false;
    if (connection.answers.size() >= kMostAnswers) return false;
    std::array<std::byte, Message::kBytes + 1> bytes;  // one more: too long
    const auto packet = Receive(connection.descriptor.get(), bytes);
    if (!packet.ok()) return absl::IsUnavailable(packet.status());
    if (packet->bytes == 0 && packet->descriptors.empty()) return false;
    const auto message = Parse(std::span(bytes).first(packet->bytes));
    absl::Status status = message.status();
    if (status.ok()) status = Handle(connection, *message, *packet);
    connection.answers.push_back(
        AnswerOf(status, message.ok() ? message->region : 0));
    const bool is_broken = !message.ok() || connection.session == nullptr;
    if (!status.ok()) Count(status);
    // Who does not keep to the protocol is told why, and not heard again.
    if (!connection.Flush().ok() || is_broken) return false;
  }
  return true;
}

absl::Status Broker::Handle(Connection& connection, const Message& message,
                            const Packet& packet) {
  const bool brings_one = packet.descriptors.size() == 1 && !packet.is_cut;
  const bool is_add = message.kind == Message::Kind::kAdd;
  if (is_add ? !brings_one : (packet.is_cut || !packet.descriptors.empty())) {
    return core::InvalidArgument(
        "SHARED_MEMORY_DESCRIPTORS_WRONG", "a message brings ",
        packet.is_cut ? "too many" : absl::StrCat(packet.descriptors.size()),
        " descriptors, wanted ", is_add ? "one" : "none");
  }
  const bool is_hello = message.kind == Message::Kind::kHello;
  if (is_hello != (connection.session == nullptr)) {
    return core::FailedPrecondition(
        "SHARED_MEMORY_HELLO_EXPECTED",
        is_hello ? "the connection has a session" : "there was no hello yet");
  }
  switch (message.kind) {
    case Message::Kind::kHello: return Greet(connection, message.ticket);
    case Message::Kind::kAdd: return AddRegion(connection, message, packet);
    case Message::Kind::kDrop: return DropRegion(connection, message.region);
  }
  __builtin_unreachable();
}

absl::Status Broker::Greet(Connection& connection, const Ticket& ticket) {
  absl::MutexLock lock(&mutex_);
  const absl::Time now = absl::Now();
  auto known = invited_.end();
  for (auto at = invited_.begin(); at != invited_.end(); ++at) {
    if (AreEqual(at->ticket, ticket)) known = at;
  }
  std::shared_ptr<server::Session> session;
  if (known != invited_.end()) session = known->session.lock();
  if (session == nullptr || known->expires < now || session->is_closed()) {
    return core::Error(absl::StatusCode::kUnauthenticated,
                       "SHARED_MEMORY_TICKET_UNKNOWN",
                       "the ticket is unknown, was used, or is too old");
  }
  const size_t connections = ShareOf(*session).connections;
  if (connections >= limits_.connections_per_session) {
    return core::ResourceExhausted("TOO_MANY_CONNECTIONS", "the session has ",
                                   connections,
                                   " connections, as many as it may have");
  }
  connection.session = std::move(session);
  invited_.erase(known);
  return absl::OkStatus();
}

Broker::Share Broker::ShareOf(const server::Session& session) const {
  Share share;
  for (const auto& [descriptor, connection] : connections_) {
    if (connection->session.get() != &session) continue;
    ++share.connections;
    share.regions += connection->regions.size();
  }
  return share;
}

absl::Status Broker::AddRegion(Connection& connection, const Message& message,
                               const Packet& packet) {
  const server::Session& session = *connection.session;
  const size_t own = ShareOf(session).regions;
  if (own >= limits_.regions_per_session ||
      usage_->regions >= limits_.regions) {
    return core::ResourceExhausted(
        "TOO_MANY_REGIONS", "the session has ", own, " regions, the server ",
        usage_->regions.load(), ", the limits are ",
        limits_.regions_per_session, " and ", limits_.regions);
  }
  const RegionKey key(session.number(), message.region);
  {
    absl::MutexLock lock(&mutex_);
    if (regions_.contains(key)) {
      return core::Error(
          absl::StatusCode::kAlreadyExists, "SHARED_MEMORY_REGION_EXISTS",
          absl::StrCat("the session has a region ", message.region));
    }
  }
  const auto on_released = [released = released_, number = connection.number](
                               uint64_t id, uint64_t adoptions) {
    released->Add({number, id, adoptions});
  };
  TENSORD_ASSIGN_OR_RETURN(std::shared_ptr<Region> region,
                           Region::Map(packet.descriptors.front().get(),
                                       {.id = message.region,
                                        .bytes = message.bytes,
                                        .quota = session.region_memory(),
                                        .usage = usage_,
                                        .on_released = on_released}));
  connection.regions.emplace(message.region, region);
  absl::MutexLock lock(&mutex_);
  regions_.emplace(key, std::move(region));
  return absl::OkStatus();
}

absl::Status Broker::DropRegion(Connection& connection, uint64_t id) {
  const auto found = connection.regions.find(id);
  if (found == connection.regions.end()) {
    return core::NotFound("SHARED_MEMORY_REGION_NOT_FOUND",
                          "the connection has no region ", id);
  }
  std::shared_ptr<Region> region = std::move(found->second);
  connection.regions.erase(found);
  connection.released.erase(id);
  {
    absl::MutexLock lock(&mutex_);
    regions_.erase({connection.session->number(), id});
  }
  Leave(std::move(region));
  return absl::OkStatus();
}

void Broker::Leave(std::shared_ptr<Region> region) {
  region->Drop();
  if (!region->TryUnmap()) leaving_.push_back(std::move(region));
}

void Broker::End(int descriptor) {
  const std::unique_ptr<Connection> ended =
      std::move(connections_.extract(descriptor).mapped());
  epoll_ctl(poll_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
  if (ended->session == nullptr) return;
  log_.Event(server::LogLevel::kDebug, "shared_memory_ended",
             {{"session", ended->session->number()},
              {"regions", std::ssize(ended->regions)}});
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [id, region] : ended->regions) {
      regions_.erase({ended->session->number(), id});
    }
  }
  for (auto& [id, region] : ended->regions) Leave(std::move(region));
}

void Broker::EndOld() {
  const absl::Time now = absl::Now();
  std::vector<int> old;
  for (const auto& [descriptor, connection] : connections_) {
    const bool is_old = connection->session == nullptr
                            ? connection->since + limits_.patience < now
                            : connection->session->is_closed();
    if (is_old || !connection->Flush().ok()) old.push_back(descriptor);
  }
  for (const int descriptor : old) End(descriptor);
}

void Broker::TellReleased() {
  const std::vector<ReleasedRegions::Released> all = released_->Take();
  for (const auto& [number, region, adoptions] : all) {
    const auto told = std::ranges::find_if(
        connections_, [number = number](const auto& entry) {
          return entry.second->number == number;
        });
    if (told == connections_.end() || !told->second->regions.contains(region)) {
      continue;
    }
    told->second->released[region] = adoptions;
    if (!told->second->Flush().ok()) End(told->first);
  }
}

bool Broker::UnmapLeaving() {
  std::erase_if(leaving_,
                [](const auto& region) { return region->TryUnmap(); });
  return leaving_.empty();
}

void Broker::Count(const absl::Status& refused) {
  metrics_.RefuseSharedMemory(core::ReasonOf(refused));
  log_.Event(server::LogLevel::kDebug, "shared_memory_refused",
             {{"message", refused.message()}});
}

}  // namespace tensord::shared_memory
