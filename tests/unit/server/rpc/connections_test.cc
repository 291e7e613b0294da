#include "server/rpc/listening/connections.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/rpc/listening/peer.h"

namespace tensord::rpc {
namespace {

using Answer = Connections::Answer;
using Kind = Connections::Kind;

/// Sockets as connections would be.
class ConnectionsTest : public ::testing::Test {
 protected:
  ~ConnectionsTest() override { CloseAll(); }

  Answer Take(Connections& connections, const std::string& peer,
              Kind kind = Kind::kRemote) {
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    const Answer answer = connections.Take(fd, peer, kind);
    if (answer == Answer::kTaken) {
      taken_.push_back(fd);
    } else {
      close(fd);
    }
    return answer;
  }
  /// How many of them a peer gets.
  int TakeAll(Connections& connections, const std::string& peer,
              Kind kind = Kind::kRemote) {
    int count = 0;
    while (Take(connections, peer, kind) == Answer::kTaken) ++count;
    return count;
  }
  void CloseAll() {
    for (const int fd : taken_) close(fd);
    taken_.clear();
  }

 private:
  std::vector<int> taken_;
};

TEST_F(ConnectionsTest, WhoeverTakesAllTheyGetLeavesSomeToOthers) {
  Connections connections({.total = 320, .per_peer = 320});
  const int alone =
      TakeAll(connections, "one");  // of 300 that are not set aside
  EXPECT_EQ(alone, 240);
  EXPECT_EQ(Take(connections, "one"), Answer::kTooManyOfPeer);
  EXPECT_EQ(TakeAll(connections, "two"), 48);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(Take(connections, absl::StrCat("new ", i)), Answer::kTaken) << i;
  }
}

TEST_F(ConnectionsTest, SomeAreSetAsideForWhoIsClose) {
  Connections connections({.total = 64, .per_peer = 64});
  for (int i = 0; i < 60; ++i) {
    EXPECT_EQ(Take(connections, absl::StrCat("host ", i)), Answer::kTaken) << i;
  }
  EXPECT_EQ(Take(connections, "host"), Answer::kTooMany);
  EXPECT_EQ(TakeAll(connections, "user 0", Kind::kClose), 4);
  EXPECT_EQ(Take(connections, "user 1", Kind::kClose), Answer::kTooMany);
}

TEST_F(ConnectionsTest, FewConnectionsAreSharedAsTheyCome) {
  Connections connections({.total = 3, .per_peer = 2});
  EXPECT_EQ(TakeAll(connections, "one"), 2);
  EXPECT_EQ(TakeAll(connections, "two"), 1);
  EXPECT_EQ(Take(connections, "three"), Answer::kTooMany);
}

TEST_F(ConnectionsTest, WhatHasEndedMakesRoom) {
  Connections connections({.total = 3, .per_peer = 3});
  EXPECT_EQ(TakeAll(connections, "one"), 3);
  EXPECT_EQ(connections.count(), 3);
  EXPECT_TRUE(connections.Has("one"));
  CloseAll();
  EXPECT_EQ(connections.count(), 0);
  absl::SleepFor(absl::Milliseconds(150));  // it looks so often
  connections.ForgetEnded();
  EXPECT_FALSE(connections.Has("one"));
  EXPECT_EQ(TakeAll(connections, "two"), 3);
}

/// A connection by TCP, on this machine.
class Loopback {
 public:
  Loopback() {
    const int listening = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const name = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listening, name, size), 0);
    EXPECT_EQ(listen(listening, 1), 0);
    EXPECT_EQ(getsockname(listening, name, &size), 0);
    client_ = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(connect(client_, name, size), 0);
    server_ = accept(listening, name, &size);
    name_ = absl::StrCat("ipv4:127.0.0.1:", ntohs(address.sin_port));
    close(listening);
  }
  ~Loopback() {
    close(client_);
    close(server_);
  }
  Loopback(const Loopback&) = delete;

  int server() const { return server_; }
  int client() const { return client_; }
  /// gRPC's, of the client's end.
  const std::string& name() const { return name_; }
  void Send(const std::string& text) const {
    EXPECT_EQ(send(client_, text.data(), text.size(), 0),
              static_cast<ssize_t>(text.size()));
  }
  bool is_ended() const {
    char byte = 0;
    return recv(client_, &byte, 1, MSG_DONTWAIT) == 0;
  }

 private:
  int client_ = -1;
  int server_ = -1;
  std::string name_;
};

TEST(EndConnectionsTest, OneIsFoundByItsName) {
  Connections connections({});
  const Loopback one;
  const Loopback other;
  connections.Take(one.server(), "127.0.0.1", Kind::kRemote);
  connections.SetName(one.server(), EndName(one.name()));
  connections.Take(other.server(), "127.0.0.1", Kind::kRemote);
  connections.SetName(other.server(), EndName(other.name()));
  one.Send("what nobody has read");
  connections.EndThose({EndName(one.name())});
  EXPECT_TRUE(one.is_ended());
  EXPECT_FALSE(other.is_ended());
  char byte = 0;
  EXPECT_EQ(recv(one.server(), &byte, 1, MSG_DONTWAIT), 0);  // nothing is left
  connections.EndAll();
  EXPECT_TRUE(other.is_ended());
}

/// Two connections of one name, of which one has much that nobody has taken.
class StuckConnectionsTest : public ::testing::TestWithParam<int> {
 protected:
  StuckConnectionsTest() {
    if (GetParam() == AF_UNIX) {
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_.data()), 0);
    } else {
      ends_ = {loopback_.server(), loopback_.client()};
    }
    connections_.Take(ends_[0], "user 1000", Kind::kClose);
    connections_.SetName(ends_[0], "stuck");
    connections_.Take(idle_.server(), "user 1000", Kind::kClose);
    connections_.SetName(idle_.server(), "stuck");
    const std::string some(size_t{1} << 16, 'x');
    while (send(ends_[0], some.data(), some.size(), MSG_DONTWAIT) > 0) {
    }
  }
  ~StuckConnectionsTest() override {
    if (GetParam() != AF_UNIX) return;
    for (const int end : ends_) close(end);
  }

  bool is_ended() const {
    return send(ends_[0], "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
           errno == EPIPE;
  }

  Connections connections_{{}};
  const Loopback loopback_;
  const Loopback idle_;
  std::array<int, 2> ends_ = {};
};

TEST_P(StuckConnectionsTest, WhoTakesNothingForAWhileLosesIt) {
  connections_.EndStuck({"stuck"});
  EXPECT_FALSE(is_ended());
  connections_.EndStuck({"another"});
  EXPECT_FALSE(is_ended());
  connections_.EndStuck({"stuck"});
  EXPECT_TRUE(is_ended());
  EXPECT_FALSE(idle_.is_ended());
}

TEST_P(StuckConnectionsTest, WhoTakesSomethingKeepsIt) {
  connections_.EndStuck({"stuck"});
  std::string taken(size_t{1} << 20, ' ');
  EXPECT_GT(recv(ends_[1], taken.data(), taken.size(), MSG_DONTWAIT), 0);
  EXPECT_FALSE(is_ended());
  connections_.EndStuck({"stuck"});
  EXPECT_FALSE(is_ended());
}

INSTANTIATE_TEST_SUITE_P(Sockets, StuckConnectionsTest,
                         ::testing::Values(AF_UNIX, AF_INET));

TEST(PeerTest, AnEndHasOneNameAsTheSystemAndGrpcHaveIt) {
  sockaddr_storage other = {};
  auto& host = reinterpret_cast<sockaddr_in6&>(other);
  host.sin6_family = AF_INET6;
  host.sin6_port = htons(43210);
  const auto name_of = [&](const char* address) {
    EXPECT_EQ(inet_pton(AF_INET6, address, &host.sin6_addr), 1);
    return EndName(other);
  };
  EXPECT_EQ(name_of("2001:db8::2"), "ipv6:2001:db8:::43210");
  EXPECT_EQ(EndName("ipv6:%5B2001:db8::2%5D:43210"), name_of("2001:db8::2"));
  EXPECT_EQ(EndName("ipv6:%5B::1%5D:43210"), name_of("::1"));
  EXPECT_EQ(EndName("ipv4:10.0.0.2:43210"), name_of("::ffff:10.0.0.2"));
  auto& older = reinterpret_cast<sockaddr_in&>(other);
  older.sin_family = AF_INET;
  EXPECT_EQ(inet_pton(AF_INET, "10.0.0.2", &older.sin_addr), 1);
  EXPECT_EQ(EndName(other), "ipv4:10.0.0.2:43210");
  EXPECT_EQ(EndName("unknown"), "unknown");
}

TEST(PeerTest, OfIpv6TheNetworkIsThePeer) {
  EXPECT_EQ(HostPeer("ipv4:10.0.0.2:43210"), "ipv4:10.0.0.2");
  EXPECT_EQ(HostPeer("ipv6:%5B2001:db8:0:7:1:2:3:4%5D:43210"),
            "ipv6:2001:db8:0:7::");
  EXPECT_EQ(HostPeer("ipv6:[2001:db8:0:7:ffff::1]:1"), "ipv6:2001:db8:0:7::");
  EXPECT_EQ(HostPeer("ipv6:%5B::1%5D:43210"), "ipv6:::1");
  EXPECT_EQ(HostPeer("ipv6:%5Bfe80::1%25eth0%5D:43210"), "ipv6:fe80::");
  for (const char* const near :
       {"unix:", "unix:/run/x", "ipv4:127.0.0.1:4", "ipv4:127.9.0.1:4",
        "ipv6:%5B::1%5D:43210", "ipv6:[::1]:4", "ipv6:[::ffff:127.0.0.1]:4"}) {
    EXPECT_TRUE(IsOfThisMachine(near)) << near;
  }
  for (const char* const far :
       {"ipv4:10.0.0.2:4", "ipv4:192.168.127.1:4", "ipv6:[2001:db8::1]:4",
        "ipv6:[::ffff:10.0.0.2]:4", "ipv6:[127::1]:4", "", "vsock:1"}) {
    EXPECT_FALSE(IsOfThisMachine(far)) << far;
  }
  EXPECT_EQ(HostPeer("unix:"), "unix");
  EXPECT_EQ(HostPeer("unix:/run/x"), "unix");
}

}  // namespace
}  // namespace tensord::rpc
