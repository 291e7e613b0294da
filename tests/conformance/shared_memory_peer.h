// A client of shared memory that says what it wants to.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/shared_memory/protocol.h"
#include "tests/testing/memory_file.h"

namespace tensord {

/// One connection. What it hears, it hears within 15 s.
///
/// Threads  one at a time.
class Peer {
 public:
  explicit Peer(const std::string& path)
      : socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
    path.copy(name.sun_path, sizeof(name.sun_path) - 1);
    EXPECT_EQ(connect(socket_.get(), reinterpret_cast<const sockaddr*>(&name),
                      sizeof(name)),
              0);
    timeval patience = {.tv_sec = 15, .tv_usec = 0};
    setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience,
               sizeof(patience));
  }

  void Send(std::span<const std::byte> bytes,
            const std::vector<int>& descriptors = {}) {
    testing::SendPacket(socket_.get(), bytes, descriptors);
  }
  void Send(const shared_memory::Message& message,
            const std::vector<int>& descriptors = {}) {
    Send(Encode(message), descriptors);
  }
  void Add(uint64_t region, int64_t bytes, int descriptor) {
    shared_memory::Message add;
    add.kind = shared_memory::Message::Kind::kAdd;
    add.region = region;
    add.bytes = bytes;
    Send(add, {descriptor});
  }
  void Drop(uint64_t region) {
    shared_memory::Message drop;
    drop.kind = shared_memory::Message::Kind::kDrop;
    drop.region = region;
    Send(drop);
  }

  /// What the server says next; nothing: it has closed.
  std::optional<shared_memory::Reply> Hear() {
    std::array<std::byte, shared_memory::Reply::kBytes> packet;
    ssize_t bytes;
    do {
      bytes = recv(socket_.get(), packet.data(), packet.size(), 0);
    } while (bytes < 0 && errno == EINTR);  // its process was stopped
    if (bytes <= 0) {
      EXPECT_TRUE(bytes == 0 || errno == ECONNRESET) << std::strerror(errno);
      return std::nullopt;
    }
    auto reply = shared_memory::ParseReply(
        std::span(packet).first(static_cast<size_t>(bytes)));
    EXPECT_TRUE(reply.ok()) << reply.status();
    return *std::move(reply);
  }
  /// The reason of the next answer; "" of a good one, "closed" of none.
  std::string Reason() {
    const std::optional<shared_memory::Reply> reply = Hear();
    if (!reply) return "closed";
    EXPECT_EQ(reply->kind, shared_memory::Reply::Kind::kAnswer);
    return reply->text.substr(0, reply->text.find(' '));
  }

 private:
  shared_memory::Descriptor socket_;
};

}  // namespace tensord
