// Whatever clients do to a broker of shared memory, it goes on, and when they
// have gone nothing of theirs is left. Each byte is a deed of one of four
// clients, see Do(); the bytes behind it say what of.
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "server/shared_memory/broker.h"
#include "tests/fuzz/check.h"
#include "tests/testing/memory_file.h"

namespace tensord::shared_memory {
namespace {

using fuzz::Check;
using server::Session;
using testing::MemoryFile;
using testing::SendPacket;

constexpr size_t kClients = 4;
constexpr uint64_t kRegions = 8;
constexpr int64_t kBytes = 4096;
constexpr int kPatienceMilliseconds = 60'000;

/// What is there as long as the process.
struct World {
  World() {
    broker.Add(LocalSocket::Listen("", 0).value());
    broker.Start();
  }

  std::unique_ptr<server::Engine> engine =
      server::Engine::Create(
          {.cpu_threads = 1, .memory_limit_bytes = int64_t{1} << 30})
          .value();
  server::Log log{server::LogLevel::kError};
  server::Metrics metrics;
  // Its bounds are within reach.
  Broker broker{{.connections = 6,
                 .connections_per_session = 3,
                 .strangers = 2,
                 .tickets = 100,
                 .tickets_per_session = 4,
                 .regions = 10,
                 .regions_per_session = 6},
                log,
                metrics};
  const Descriptor good = MemoryFile({.bytes = kBytes});
  const Descriptor unsealed = MemoryFile({.bytes = kBytes, .seals = 0});
  const Descriptor hollow =
      MemoryFile({.bytes = kBytes, .is_allocated = false});
  const Descriptor pipe{eventfd(0, EFD_CLOEXEC)};
  uint64_t sessions = 0;
};

/// Bytes that say what is done; zeros behind their end.
class Deeds {
 public:
  explicit Deeds(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool has_more() const { return !bytes_.empty(); }
  uint8_t Next() { return std::to_integer<uint8_t>(Take(1).front()); }
  std::vector<std::byte> Take(size_t count) {
    std::vector<std::byte> taken(count);
    const size_t there = std::min(count, bytes_.size());
    std::copy_n(bytes_.begin(), there, taken.begin());
    bytes_ = bytes_.subspan(there);
    return taken;
  }

 private:
  std::span<const std::byte> bytes_;
};

/// Clients of a session, which goes with them.
class Clients {
 public:
  explicit Clients(World& world) : world_(world), session_(NewSession()) {}

  void Do(Deeds& deeds) {
    const uint8_t deed = deeds.Next();
    Descriptor& client = clients_[deed / 8 % kClients];
    switch (deed % 8) {
      case 0: client = Connected(); break;
      case 1: Greet(client); break;
      case 2: Add(client, deeds.Next() % kRegions, {world_.good.get()}); break;
      case 3: Add(client, deeds.Next() % kRegions, Wrong(deeds.Next())); break;
      case 4: Drop(client, deeds.Next() % kRegions); break;
      case 5: {
        const std::vector<std::byte> packet = deeds.Take(deeds.Next() % 64);
        SendPacket(client.get(), packet, Wrong(deeds.Next()));
        break;
      }
      case 6: Adopt(deeds.Next() % kRegions); break;
      case 7: client = Descriptor(); break;
    }
  }

  /// Takes all clients away. Nothing is left of them, and another has what it
  /// asks for.
  void CheckThatAllGoesOn() {
    storages_.clear();
    for (Descriptor& each : clients_) each = Descriptor();
    const std::shared_ptr<core::LimitingResource> quota = session_->memory();
    const std::weak_ptr<Session> gone = session_;
    session_.reset();
    Await([&] { return gone.expired(); }, "sessions go with their clients");
    Check(quota->used_bytes() == 0, "nothing counts of those that have gone");
    // Strangers keep a place until the broker has heard that they have gone.
    Descriptor client;
    Await(
        [&] {
          session_ = NewSession();
          client = Connected();
          Greet(client);
          return IsGood(client);
        },
        "a good client is known");
    Add(client, 1, {world_.good.get()});
    Check(IsGood(client), "a good region is taken");
    Check(world_.broker.Find(*session_, 1).ok(), "and found");
    Drop(client, 1);
    Check(IsGood(client), "and given back");
    Check(session_->memory()->used_bytes() == 0, "and counts no more");
  }

 private:
  std::shared_ptr<Session> NewSession() {
    const uint64_t number = ++world_.sessions;
    return std::make_shared<Session>(
        absl::StrCat("sessions/s", number), number,
        *world_.engine->devices().front(),
        server::SessionOptions{.lease = absl::Hours(1),
                               .memory_quota_bytes = 5 * kBytes});
  }

  Descriptor Connected() {
    Descriptor client(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const std::string address = world_.broker.addresses().front();
    sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
    std::copy(address.begin() + 1, address.end(), name.sun_path + 1);
    const auto length = offsetof(sockaddr_un, sun_path) + address.size();
    Check(connect(client.get(), reinterpret_cast<const sockaddr*>(&name),
                  static_cast<socklen_t>(length)) == 0,
          "everybody may connect");
    return client;
  }

  void Greet(const Descriptor& client) {
    const auto ticket = world_.broker.Invite(session_);
    if (!ticket.ok()) {
      Check(core::ReasonOf(ticket.status()) == "TOO_MANY_TICKETS",
            "all others are given", ticket.status().ToString());
      return;
    }
    Message hello;
    hello.ticket = *ticket;
    SendPacket(client.get(), Encode(hello));
  }

  static void Add(const Descriptor& client, uint64_t region,
                  const std::vector<int>& descriptors) {
    Message add;
    add.kind = Message::Kind::kAdd;
    add.region = region;
    add.bytes = kBytes;
    SendPacket(client.get(), Encode(add), descriptors);
  }

  static void Drop(const Descriptor& client, uint64_t region) {
    Message drop;
    drop.kind = Message::Kind::kDrop;
    drop.region = region;
    SendPacket(client.get(), Encode(drop));
  }

  /// Descriptors that no message brings, or some may.
  std::vector<int> Wrong(uint8_t which) const {
    switch (which % 8) {
      case 0: return {world_.unsealed.get()};
      case 1: return {world_.hollow.get()};
      case 2: return {world_.pipe.get()};
      case 3: return {world_.good.get(), world_.good.get()};
      case 4: return std::vector<int>(200, world_.good.get());
      default: return {};
    }
  }

  void Adopt(uint64_t region) {
    const auto found = world_.broker.Find(*session_, region);
    if (!found.ok()) {
      if (!storages_.empty()) storages_.pop_back();
      return;
    }
    const auto storage =
        (*found)->Adopt("t", {core::ElementType::kUint8, {{16}, {1}}, 0}, 0);
    // It may have gone meanwhile.
    if (storage.ok()) storages_.push_back(*storage);
  }

  /// What a client is told next, is good.
  static bool IsGood(const Descriptor& client) {
    pollfd ready = {.fd = client.get(), .events = POLLIN, .revents = 0};
    Check(poll(&ready, 1, kPatienceMilliseconds) == 1, "there is an answer");
    std::array<std::byte, Reply::kBytes> packet;
    const auto received = Receive(client.get(), packet);
    if (!received.ok() || received->bytes == 0) return false;
    const auto reply = ParseReply(std::span(packet).first(received->bytes));
    Check(reply.ok(), "what is said is a reply", reply.status().ToString());
    return reply->code == absl::StatusCode::kOk;
  }

  template <typename Fact>
  static void Await(Fact fact, absl::string_view claim) {
    using Clock = std::chrono::steady_clock;
    const auto limit =
        Clock::now() + std::chrono::milliseconds(kPatienceMilliseconds);
    while (!fact()) {
      Check(Clock::now() < limit, claim);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  World& world_;
  std::shared_ptr<Session> session_;
  std::array<Descriptor, kClients> clients_;
  std::vector<std::shared_ptr<server::Storage>> storages_;
};

}  // namespace
}  // namespace tensord::shared_memory

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tensord::shared_memory;
  static World world;
  Clients clients(world);
  Deeds deeds(std::as_bytes(std::span(data, size)));
  while (deeds.has_more()) clients.Do(deeds);
  clients.CheckThatAllGoesOn();
  return 0;
}
