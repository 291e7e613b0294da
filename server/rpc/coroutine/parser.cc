#include "server/rpc/coroutine/parser.h"

#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/slice.h>

#include <string>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "server/rpc/coroutine/in_background.h"
#include "server/rpc/door/door.h"

namespace tensord::rpc {
namespace {

// Of what is parsed at once: some 100 us. A message that has an inline tensor
// of usual limits is short.
constexpr int64_t kShortBytes = (int64_t{1} << 20) + (int64_t{1} << 16);
constexpr int64_t kShortFields = 4096;

// What a byte on the wire may take in memory, beyond a beginning.
constexpr int64_t kMostDensity = 32;
constexpr int64_t kFreeBytes = int64_t{1} << 16;

absl::Status NoMessage(absl::string_view why) {
  return core::InvalidArgument("REQUEST_MALFORMED",
                               "the request is no such message: ", why);
}

absl::Status CheckDensity(int64_t wire_bytes, const wire::MessageSize& size) {
  if (size.parsed_bytes - kFreeBytes <= kMostDensity * wire_bytes) {
    return absl::OkStatus();
  }
  return core::InvalidArgument(
      "REQUEST_TOO_DENSE", "the request of ", wire_bytes, " bytes has ",
      size.field_count, " fields, which would take ", size.parsed_bytes,
      " bytes of memory; wanted at most ", kFreeBytes, " and ", kMostDensity,
      " for each of its bytes; send less at a time, and no empty fields");
}

/// Parses, and lets `wire` go.
absl::Status ParseAll(grpc::ByteBuffer& wire,
                      google::protobuf::MessageLite& message) {
  bool is_message = false;
  if (grpc::Slice slice; wire.TrySingleSlice(&slice).ok()) {
    is_message =
        message.ParseFromArray(slice.begin(), static_cast<int>(slice.size()));
    wire.Clear();
  } else {
    grpc::ProtoBufferReader slices(&wire);
    is_message = message.ParseFromZeroCopyStream(&slices);
  }
  wire.Clear();
  return is_message ? absl::OkStatus() : NoMessage("it does not parse");
}

/// In whose name `work` is done on a message whose session nobody knows yet.
server::ClientId ClientOf(Call& call, absl::string_view work) {
  const server::Identity& identity = *call.record().identity;
  std::string who = absl::StrCat(work, " ", identity.tenant(), " ",
                                 identity.name(), " ", PeerOf(call.wire()));
  return {.number = absl::HashOf(who), .owner = std::move(who)};
}

/// Lets a message go, and itself.
class Discarding final : public server::Background::Job {
 public:
  Discarding(std::unique_ptr<google::protobuf::MessageLite> message,
             server::HostHold hold)
      : hold_(std::move(hold)), message_(std::move(message)) {}
  void Do() override { delete this; }

 private:
  const server::HostHold hold_;  // goes after the message
  const std::unique_ptr<google::protobuf::MessageLite> message_;
};

}  // namespace

std::optional<absl::Status> Parser::ParseShort(
    grpc::ByteBuffer& wire, const wire::MessageShape& shape,
    google::protobuf::MessageLite& message, int64_t& bytes) const {
  const auto wire_bytes = static_cast<int64_t>(wire.Length());
  if (wire_bytes > kShortBytes) return std::nullopt;
  const auto size = shape.Measure(wire, kShortFields);
  if (!size.ok()) return NoMessage(size.status().message());
  if (!size->is_complete) return std::nullopt;
  TENSORD_RETURN_IF_ERROR(CheckDensity(wire_bytes, *size));
  bytes = size->parsed_bytes + wire_bytes;
  return ParseAll(wire, message);
}

Task<absl::Status> Parser::ParseLong(Call& call, grpc::ByteBuffer& wire,
                                     const wire::MessageShape& shape,
                                     google::protobuf::MessageLite& message,
                                     int64_t& bytes, server::HostHold& hold) {
  const auto wire_bytes = static_cast<int64_t>(wire.Length());
  const absl::Status held =
      hold.Take(server_, server::HostUse::kRequests, wire_bytes, /*count=*/0);
  if (!held.ok()) co_return held;
  absl::Status parsed;
  auto parse = [&] {
    parsed = [&]() -> absl::Status {
      const auto size = shape.Measure(wire);
      if (!size.ok()) return NoMessage(size.status().message());
      TENSORD_RETURN_IF_ERROR(CheckDensity(wire_bytes, *size));
      TENSORD_RETURN_IF_ERROR(hold.Grow(size->parsed_bytes));
      bytes = size->parsed_bytes + wire_bytes;
      return ParseAll(wire, message);
    }();
  };
  const server::ClientId client = ClientOf(call, "parse");
  const absl::Status waited =
      co_await InBackground(call, threads_, client, parse);
  co_return waited.ok() ? parsed : waited;
}

void Parser::Discard(Call& call,
                     std::unique_ptr<google::protobuf::MessageLite> message,
                     server::HostHold hold) {
  auto discarding =
      std::make_unique<Discarding>(std::move(message), std::move(hold));
  // Not behind what waits to be parsed.
  if (threads_.Add(ClientOf(call, "discard"), discarding.get()).ok()) {
    (void)discarding.release();
  }
}

}  // namespace tensord::rpc
