#include "server/shared_memory/broker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "tests/conformance/shared_memory_peer.h"
#include "tests/testing/memory_file.h"
#include "tests/testing/places.h"
#include "tests/testing/soon.h"

namespace tensord::shared_memory {
namespace {

using server::Session;
using ::tensord::testing::MemoryFile;
using test::Soon;

constexpr int64_t kRegionBytes = 4096;

class BrokerTest : public ::testing::Test {
 protected:
  /// One that listens, in place of that which was.
  void Start(const BrokerLimits& limits) {
    broker_.reset();
    const std::string path =
        absl::StrCat(testing::TemporaryFolder(), "/broker.shm");
    broker_ = std::make_unique<Broker>(limits, log_, metrics_);
    broker_->Add(LocalSocket::Listen(path, 0600).value());
    broker_->Start();
  }
  std::shared_ptr<Session> NewSession(uint64_t number) {
    return std::make_shared<Session>(
        absl::StrCat("sessions/s", number), number, *engine_->devices().front(),
        server::SessionOptions{.lease = absl::Seconds(60),
                               .memory_quota_bytes = 16 * kRegionBytes});
  }
  std::string path() const { return broker_->addresses().front(); }
  /// One that has said hello with a ticket of the session.
  std::unique_ptr<Peer> Greeting(const std::shared_ptr<Session>& session) {
    auto peer = std::make_unique<Peer>(path());
    Message hello;
    hello.ticket = broker_->Invite(session).value();
    peer->Send(hello);
    return peer;
  }
  std::unique_ptr<Peer> Known(const std::shared_ptr<Session>& session) {
    auto peer = Greeting(session);
    EXPECT_EQ(peer->Reason(), "");
    return peer;
  }
  /// Float32 at the region's begin.
  static absl::StatusOr<std::shared_ptr<server::Storage>> Adopt(
      Region& region) {
    return region.Adopt("t", {core::ElementType::kFloat32, {{4}, {1}}, 0}, 0);
  }

  const std::unique_ptr<server::Engine> engine_ =
      server::Engine::Create(
          {.cpu_threads = 1, .memory_limit_bytes = 1024 * kRegionBytes})
          .value();
  server::Log log_{server::LogLevel::kError};
  server::Metrics metrics_;
  std::unique_ptr<Broker> broker_;
};

TEST_F(BrokerTest, ThreadsBringRegionsAndFindThem) {
  Start({});
  std::vector<std::thread> threads;
  for (uint64_t number = 1; number <= 4; ++number) {
    threads.emplace_back([this, number] {
      const auto session = NewSession(number);
      const Descriptor file = MemoryFile();
      for (int round = 0; round < 20; ++round) {
        const auto peer = Known(session);
        peer->Add(7, kRegionBytes, file.get());
        ASSERT_EQ(peer->Reason(), "");
        const auto region = broker_->Find(*session, 7);
        ASSERT_TRUE(region.ok()) << region.status();
        auto storage = Adopt(**region);
        ASSERT_TRUE(storage.ok()) << storage.status();
        if (round % 2 == 0) {
          storage->reset();
          EXPECT_EQ(peer->Hear()->kind, Reply::Kind::kReleased);
          peer->Drop(7);
          EXPECT_EQ(peer->Reason(), "");
        }
      }
      EXPECT_TRUE(Soon([&] { return session->memory()->used_bytes() == 0; }));
      EXPECT_EQ(core::ReasonOf(broker_->Find(*session, 7).status()),
                "SHARED_MEMORY_REGION_NOT_FOUND");
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(BrokerTest, WhatIsInRegionsGoesWithIt) {
  Start({});
  const auto session = NewSession(1);
  const auto peer = Known(session);
  const Descriptor file = MemoryFile();
  peer->Add(1, kRegionBytes, file.get());
  ASSERT_EQ(peer->Reason(), "");
  const auto storage = Adopt(**broker_->Find(*session, 1));
  ASSERT_TRUE(storage.ok()) << storage.status();
  broker_.reset();
  EXPECT_EQ(peer->Hear(), std::nullopt);
  EXPECT_EQ((*storage)->state(), server::TensorState::kInvalid);
  EXPECT_EQ(session->memory()->used_bytes(), 0);
}

TEST_F(BrokerTest, BoundsAreThoseOfAllAndOfEachSession) {
  const auto session = NewSession(1);
  const auto other = NewSession(2);
  const Descriptor file = MemoryFile();
  Start({.connections = 2, .connections_per_session = 1});
  {
    const auto first = Known(session);
    EXPECT_EQ(Greeting(session)->Reason(), "TOO_MANY_CONNECTIONS");
    const auto second = Known(other);
    EXPECT_EQ(Peer(path()).Reason(), "TOO_MANY_CONNECTIONS");
  }
  Start({.tickets = 3, .tickets_per_session = 2});
  EXPECT_TRUE(broker_->Invite(session).ok());
  EXPECT_TRUE(broker_->Invite(session).ok());
  EXPECT_EQ(core::ReasonOf(broker_->Invite(session).status()),
            "TOO_MANY_TICKETS");
  EXPECT_TRUE(broker_->Invite(other).ok());
  EXPECT_EQ(core::ReasonOf(broker_->Invite(other).status()),
            "TOO_MANY_TICKETS");
  Start({.regions = 2, .regions_per_session = 1});
  const auto first = Known(session);
  const auto second = Known(session);
  const auto third = Known(other);
  const auto reason = [&](Peer& peer, uint64_t region) {
    peer.Add(region, kRegionBytes, file.get());
    return peer.Reason();
  };
  EXPECT_EQ(reason(*first, 1), "");
  EXPECT_EQ(reason(*first, 2), "TOO_MANY_REGIONS");
  EXPECT_EQ(reason(*second, 2), "TOO_MANY_REGIONS");
  EXPECT_EQ(reason(*third, 1), "");
  const auto last = NewSession(3);
  EXPECT_EQ(reason(*Known(last), 1), "TOO_MANY_REGIONS");
}

TEST_F(BrokerTest, TicketsOfSessionsThatHaveEndedMakeRoom) {
  Start({.tickets = 1});
  auto gone = NewSession(1);
  ASSERT_TRUE(broker_->Invite(gone).ok());
  const auto session = NewSession(2);
  EXPECT_FALSE(broker_->Invite(session).ok());
  gone.reset();
  EXPECT_TRUE(broker_->Invite(session).ok());
}

TEST_F(BrokerTest, StrangersAndTicketsAreNotAwaitedForLong) {
  Start({.patience = absl::Milliseconds(1)});
  const auto session = NewSession(1);
  const Ticket ticket = broker_->Invite(session).value();
  EXPECT_EQ(Peer(path()).Hear(), std::nullopt);
  // That took longer than a ticket is good for.
  EXPECT_TRUE(Soon([&] {
    Peer late(path());
    Message hello;
    hello.ticket = ticket;
    late.Send(hello);
    const std::string reason = late.Reason();
    EXPECT_NE(reason, "");
    return reason == "SHARED_MEMORY_TICKET_UNKNOWN";
  }));
}

}  // namespace
}  // namespace tensord::shared_memory
