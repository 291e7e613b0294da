#include "server/shared_memory/protocol.h"

#include <algorithm>
#include <cstddef>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "gtest/gtest.h"

namespace tensord::shared_memory {
namespace {

Message Hello() {
  Message hello;
  for (size_t i = 0; i < kTicketBytes; ++i) hello.ticket[i] = std::byte(i + 1);
  return hello;
}
Message Add(uint64_t region, int64_t bytes) {
  Message add;
  add.kind = Message::Kind::kAdd;
  add.region = region;
  add.bytes = bytes;
  return add;
}
Message Drop(uint64_t region) {
  Message drop;
  drop.kind = Message::Kind::kDrop;
  drop.region = region;
  return drop;
}

TEST(SharedMemoryProtocolTest, MessagesComeAsTheyWent) {
  for (const Message& message :
       {Hello(), Add(7, 4096), Add(~uint64_t{0}, int64_t{1} << 62), Drop(3)}) {
    const auto packet = Encode(message);
    const auto parsed = Parse(packet);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, message);
  }
}

TEST(SharedMemoryProtocolTest, EveryOtherLengthIsRefused) {
  const auto packet = Encode(Add(1, 4096));
  for (size_t length = 0; length < packet.size(); ++length) {
    EXPECT_EQ(core::ReasonOf(Parse(std::span(packet).first(length)).status()),
              "SHARED_MEMORY_MESSAGE_MALFORMED")
        << length;
  }
  std::vector<std::byte> longer(packet.begin(), packet.end());
  longer.push_back(std::byte{0});
  EXPECT_FALSE(Parse(longer).ok());
}

TEST(SharedMemoryProtocolTest, WhatMeansNothingIsRefused) {
  const auto spoiled = [](const Message& message, size_t at, int value) {
    auto packet = Encode(message);
    packet[at] = static_cast<std::byte>(value);
    return core::ReasonOf(Parse(packet).status());
  };
  constexpr char kMalformed[] = "SHARED_MEMORY_MESSAGE_MALFORMED";
  EXPECT_EQ(spoiled(Hello(), 0, 0), kMalformed);
  EXPECT_EQ(spoiled(Hello(), 4, 0), kMalformed);
  EXPECT_EQ(spoiled(Hello(), 4, 9), kMalformed);
  EXPECT_EQ(spoiled(Hello(), 8, 2), "SHARED_MEMORY_VERSION_UNKNOWN");
  EXPECT_EQ(spoiled(Add(1, 4096), 23, 0x80), kMalformed);  // beyond an int64
  EXPECT_EQ(spoiled(Add(1, 4096), 24, 1), kMalformed);
  EXPECT_EQ(spoiled(Drop(1), 16, 1), kMalformed);
  EXPECT_FALSE(Parse(Encode(Add(1, 0))).ok());
}

TEST(SharedMemoryProtocolTest, WhatIsReadIsWrittenTheSame) {
  std::mt19937 rng(1);
  int read = 0;
  for (int i = 0; i < 20'000; ++i) {
    auto packet = Encode(i % 2 == 0 ? Add(rng(), 1 + rng()) : Drop(rng()));
    if (i % 3 == 0) packet[rng() % packet.size()] ^= std::byte(1 + rng() % 255);
    const auto message = Parse(packet);
    if (!message.ok()) continue;
    ++read;
    EXPECT_EQ(Encode(*message), packet);
  }
  EXPECT_GT(read, 10'000);
}

TEST(SharedMemoryProtocolTest, RepliesComeAsTheyWent) {
  Reply reply = AnswerOf(core::NotFound("NOT_THERE", "no region ", 7), 7);
  EXPECT_EQ(reply.text, "NOT_THERE no region 7");
  auto parsed = ParseReply(Encode(reply));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, reply);
  reply.kind = Reply::Kind::kReleased;
  reply.adoptions = 3;
  parsed = ParseReply(Encode(reply));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(*parsed, reply);
}

TEST(SharedMemoryProtocolTest, LongReasonsAreCut) {
  const Reply reply =
      AnswerOf(core::NotFound("LONG", std::string(1000, 'x')), 1);
  const auto parsed = ParseReply(Encode(reply));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->text, reply.text.substr(0, Reply::kTextBytes));
}

TEST(SharedMemoryProtocolTest, RepliesOfNobodyAreRefused) {
  const auto packet = Encode(AnswerOf(absl::OkStatus(), 1));
  EXPECT_FALSE(ParseReply(std::span(packet).first(31)).ok());
  auto spoiled = packet;
  spoiled[29] = std::byte{1};  // 256 bytes of text
  EXPECT_FALSE(ParseReply(spoiled).ok());
  spoiled = packet;
  spoiled[24] = std::byte{200};
  EXPECT_FALSE(ParseReply(spoiled).ok());
}

}  // namespace
}  // namespace tensord::shared_memory
