#include "server/engine/fair_turns.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tensord::server {
namespace {

struct Client {
  FairTurns::Member member;
  double seconds = 0;  // had
};

/// Turns of 5 ms, all of them waiting all the time.
void Share(FairTurns& turns, std::vector<Client*> clients, int count) {
  for (Client* const client : clients) turns.Wait(client->member);
  for (int turn = 0; turn < count; ++turn) {
    Client* next = clients[0];
    for (Client* const client : clients) {
      if (turns.IsBefore(client->member, next->member)) next = client;
    }
    turns.Choose(next->member);
    turns.Count(next->member, absl::Milliseconds(5));
    next->seconds += 0.005;
    turns.Wait(next->member);
  }
}

TEST(FairTurnsTest, OwnersShareByWeightWhateverTheirNumberOfClients) {
  FairTurns turns({{"a", 3}});
  Client a, b1, b2, b3;
  turns.Join(a.member, {.owner = "a", .priority = 0});
  for (Client* const b : {&b1, &b2, &b3})
    turns.Join(b->member, {.owner = "b", .priority = 0});
  Share(turns, {&b1, &b2, &b3, &a}, 4000);
  EXPECT_NEAR(a.seconds, 15, 0.02);
  for (const Client* const b : {&b1, &b2, &b3}) {
    EXPECT_NEAR(b->seconds, 5.0 / 3, 0.02);
  }
}

TEST(FairTurnsTest, WeightsMayChange) {
  FairTurns turns({{"a", 3}});
  Client a, b;
  turns.Join(a.member, {.owner = "a", .priority = 0});
  turns.Join(b.member, {.owner = "b", .priority = 0});
  turns.SetWeights({{"b", 4}});
  Share(turns, {&a, &b}, 1000);
  EXPECT_NEAR(a.seconds, 1, 0.02);
  EXPECT_NEAR(b.seconds, 4, 0.02);
}

TEST(FairTurnsTest, NobodySavesUpTime) {
  FairTurns turns({});
  Client busy, late;
  turns.Join(busy.member, {.owner = "busy", .priority = 0});
  turns.Join(late.member, {.owner = "late", .priority = 0});
  Share(turns, {&busy}, 1000);
  busy.seconds = 0;
  Share(turns, {&busy, &late}, 1000);
  EXPECT_NEAR(busy.seconds, 2.5, 0.02);
}

TEST(FairTurnsTest, PriorityIsAmongTheOwnersClients) {
  FairTurns turns({});
  Client low, high, other;
  turns.Join(low.member, {.owner = "a", .priority = 0});
  turns.Join(high.member, {.owner = "a", .priority = 5});
  turns.Join(other.member, {.owner = "b", .priority = 0});
  Share(turns, {&low, &high, &other}, 1000);
  EXPECT_EQ(low.seconds, 0);
  EXPECT_NEAR(high.seconds, other.seconds, 0.02);
}

TEST(FairTurnsTest, WhatWasPredictedTooHighIsGivenBack) {
  FairTurns turns({});
  Client x, y;
  turns.Join(x.member, {.owner = "x", .priority = 0});
  turns.Join(y.member, {.owner = "y", .priority = 0});
  for (Client* const client : {&x, &y}) turns.Wait(client->member);
  turns.Choose(x.member);
  turns.Count(x.member, absl::Seconds(10));
  EXPECT_TRUE(turns.IsBefore(y.member, x.member));
  turns.Count(x.member, absl::Milliseconds(1) - absl::Seconds(10));
  turns.Choose(y.member);
  turns.Count(y.member, absl::Milliseconds(2));
  EXPECT_TRUE(turns.IsBefore(x.member, y.member));
}

TEST(FairTurnsTest, ClientsThatComeBackAtOnceHaveWhatTheyHadUsed) {
  FairTurns turns({});
  Client once, often;
  turns.Join(once.member, {.number = 1, .owner = "x", .priority = 0});
  turns.Choose(once.member);
  turns.Count(once.member, absl::Milliseconds(5));
  turns.Wait(once.member);
  // One that ends each time, and asks anew, does not go before one that was
  // interrupted, again and again.
  int before = 0;
  for (; before < 10; ++before) {
    often.member = {};
    turns.Join(often.member, {.number = 2, .owner = "x", .priority = 0});
    turns.Wait(often.member);
    if (turns.IsBefore(once.member, often.member)) break;
    turns.Choose(often.member);
    turns.Count(often.member, absl::Milliseconds(10));
    turns.Leave(often.member);
  }
  EXPECT_EQ(before, 1);
}

TEST(FairTurnsTest, OwnersThatHavePausedOweNothing) {
  FairTurns turns({});
  Client x, y;
  turns.Join(x.member, {.owner = "x", .priority = 0});
  turns.Choose(x.member);
  turns.Count(x.member, absl::Seconds(10));
  turns.Leave(x.member);  // Nobody is there: all begin anew.
  turns.Join(y.member, {.owner = "y", .priority = 0});
  turns.Join(x.member, {.owner = "x", .priority = 0});
  turns.Wait(x.member);
  turns.Wait(y.member);
  EXPECT_TRUE(turns.IsBefore(x.member, y.member));
}

}  // namespace
}  // namespace tensord::server
