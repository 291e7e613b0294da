#include "server/shared_memory/protocol.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status.h"

namespace tensord::shared_memory {
namespace {

static_assert(std::endian::native == std::endian::little);

template <typename T>
T Read(std::span<const std::byte> packet, size_t offset) {
  T value;
  std::memcpy(&value, packet.data() + offset, sizeof(value));
  return value;
}

template <typename T>
void Write(std::span<std::byte> packet, size_t offset, T value) {
  std::memcpy(packet.data() + offset, &value, sizeof(value));
}

template <typename... Parts>
absl::Status Malformed(const Parts&... parts) {
  return core::InvalidArgument("SHARED_MEMORY_MESSAGE_MALFORMED", parts...);
}

// Where the fields of messages and replies are.
constexpr size_t kMagicAt = 0, kKindAt = 4;
constexpr size_t kFirstAt = 8, kSecondAt = 16, kThirdAt = 24;
constexpr size_t kCodeAt = 24, kLengthAt = 28, kTextAt = 32;

}  // namespace

absl::StatusOr<Message> Parse(std::span<const std::byte> packet) {
  if (packet.size() != Message::kBytes) {
    return Malformed("a message has ", packet.size(), " bytes, wanted ",
                     Message::kBytes);
  }
  if (Read<uint32_t>(packet, kMagicAt) != kMagic) {
    return Malformed("a message does not begin with TSM1");
  }
  const auto kind = Read<uint32_t>(packet, kKindAt);
  const auto first = Read<uint64_t>(packet, kFirstAt);
  const auto second = Read<uint64_t>(packet, kSecondAt);
  const auto third = Read<uint64_t>(packet, kThirdAt);
  Message message;
  message.kind = static_cast<Message::Kind>(kind);
  switch (message.kind) {
    case Message::Kind::kHello:
      if (first != kVersion) {
        return core::Unimplemented("SHARED_MEMORY_VERSION_UNKNOWN", "version ",
                                   first, " is unknown, wanted ", kVersion);
      }
      std::memcpy(message.ticket.data(), packet.data() + kSecondAt,
                  kTicketBytes);
      return message;
    case Message::Kind::kAdd:
      if (second == 0 ||
          second > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) ||
          third != 0) {
        return Malformed("a region of ", second, " bytes, wanted 1 or more");
      }
      message.region = first;
      message.bytes = static_cast<int64_t>(second);
      return message;
    case Message::Kind::kDrop:
      if (second != 0 || third != 0) return Malformed("a drop of more than it");
      message.region = first;
      return message;
  }
  return Malformed("a message is of kind ", kind);
}

std::array<std::byte, Message::kBytes> Encode(const Message& message) {
  std::array<std::byte, Message::kBytes> packet = {};
  Write(packet, kMagicAt, kMagic);
  Write(packet, kKindAt, static_cast<uint32_t>(message.kind));
  if (message.kind == Message::Kind::kHello) {
    Write(packet, kFirstAt, kVersion);
    std::memcpy(packet.data() + kSecondAt, message.ticket.data(), kTicketBytes);
    return packet;
  }
  Write(packet, kFirstAt, message.region);
  Write(packet, kSecondAt, message.bytes);
  return packet;
}

std::array<std::byte, Reply::kBytes> Encode(const Reply& reply) {
  std::array<std::byte, Reply::kBytes> packet = {};
  Write(packet, kMagicAt, kMagic);
  Write(packet, kKindAt, static_cast<uint32_t>(reply.kind));
  Write(packet, kFirstAt, reply.region);
  Write(packet, kSecondAt, reply.adoptions);
  Write(packet, kCodeAt, static_cast<uint32_t>(reply.code));
  const size_t length = std::min(reply.text.size(), Reply::kTextBytes);
  Write(packet, kLengthAt, static_cast<uint32_t>(length));
  std::memcpy(packet.data() + kTextAt, reply.text.data(), length);
  return packet;
}

absl::StatusOr<Reply> ParseReply(std::span<const std::byte> packet) {
  if (packet.size() != Reply::kBytes ||
      Read<uint32_t>(packet, kMagicAt) != kMagic) {
    return Malformed("a reply of ", packet.size(), " bytes, wanted ",
                     Reply::kBytes, " that begin with TSM1");
  }
  const auto kind = Read<uint32_t>(packet, kKindAt);
  const auto code = Read<uint32_t>(packet, kCodeAt);
  const auto length = Read<uint32_t>(packet, kLengthAt);
  constexpr auto kLastCode =
      static_cast<uint32_t>(absl::StatusCode::kUnauthenticated);
  if (kind < 1 || kind > 2 || code > kLastCode || length > Reply::kTextBytes) {
    return Malformed("a reply of kind ", kind, " with code ", code, " and ",
                     length, " bytes of text");
  }
  Reply reply;
  reply.kind = static_cast<Reply::Kind>(kind);
  reply.region = Read<uint64_t>(packet, kFirstAt);
  reply.adoptions = Read<uint64_t>(packet, kSecondAt);
  reply.code = static_cast<absl::StatusCode>(code);
  reply.text.assign(reinterpret_cast<const char*>(packet.data()) + kTextAt,
                    length);
  return reply;
}

Reply AnswerOf(const absl::Status& status, uint64_t region) {
  Reply reply;
  reply.region = region;
  reply.code = status.code();
  if (!status.ok()) {
    reply.text = absl::StrCat(core::ReasonOf(status), " ", status.message());
  }
  return reply;
}

}  // namespace tensord::shared_memory
