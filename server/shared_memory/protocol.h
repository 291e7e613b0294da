// What clients on the same host and the server say to each other beside gRPC.
//
// Messages are packets of a fixed size on a Unix socket (SOCK_SEQPACKET), of
// little-endian integers. A message that adds a region brings its descriptor.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tensord::shared_memory {

inline constexpr uint32_t kMagic = 0x314d5354;  // "TSM1"
inline constexpr uint64_t kVersion = 1;
inline constexpr size_t kTicketBytes = 16;

using Ticket = std::array<std::byte, kTicketBytes>;

/// What a client says.
struct Message {
  enum class Kind : uint32_t {
    kHello = 1,  // the first one: whose connection it is
    kAdd = 2,    // a region, with its descriptor
    kDrop = 3,   // the client takes a region back
  };
  static constexpr size_t kBytes = 32;

  Kind kind = Kind::kHello;
  Ticket ticket = {};   // of a hello
  uint64_t region = 0;  // the client's choice; of the others
  int64_t bytes = 0;    // of an added region

  bool operator==(const Message&) const = default;
};

/// Reads one packet; no byte of it means nothing.
/// Errors  INVALID_ARGUMENT, reason SHARED_MEMORY_MESSAGE_MALFORMED;
///         UNIMPLEMENTED, reason SHARED_MEMORY_VERSION_UNKNOWN.
absl::StatusOr<Message> Parse(std::span<const std::byte> packet);
std::array<std::byte, Message::kBytes> Encode(const Message& message);

/// What the server says.
struct Reply {
  enum class Kind : uint32_t {
    kAnswer = 1,    // to the client's messages, in their order
    kReleased = 2,  // no tensor is in the region any more
  };
  static constexpr size_t kBytes = 160;
  static constexpr size_t kTextBytes = 128;

  Kind kind = Kind::kAnswer;
  uint64_t region = 0;
  uint64_t adoptions = 0;  // tensors that have been in it so far
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string text;  // "REASON message", cut where it is too long

  bool operator==(const Reply&) const = default;
};

std::array<std::byte, Reply::kBytes> Encode(const Reply& reply);
/// Errors  INVALID_ARGUMENT, reason SHARED_MEMORY_MESSAGE_MALFORMED.
absl::StatusOr<Reply> ParseReply(std::span<const std::byte> packet);

/// An answer to a message about a region, 0 where it was about none.
Reply AnswerOf(const absl::Status& status, uint64_t region);

}  // namespace tensord::shared_memory
