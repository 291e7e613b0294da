#include "server/rpc/listening/connections.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

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
