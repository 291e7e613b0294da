// Every packet is a message and is written the same, or it is refused; a
// region is mapped as its message says, or not at all; and of what comes by a
// socket nothing is lost unseen. The first byte says how many bytes each packet
// has.
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/memory/host_resource.h"
#include "server/shared_memory/local_socket.h"
#include "server/shared_memory/protocol.h"
#include "server/shared_memory/region.h"
#include "tests/fuzz/check.h"
#include "tests/testing/memory_file.h"

namespace tensord::shared_memory {
namespace {

using fuzz::Check;

void TryMessage(std::span<const std::byte> packet) {
  const auto message = Parse(packet);
  if (!message.ok()) {
    Check(absl::IsInvalidArgument(message.status()) ||
              absl::IsUnimplemented(message.status()),
          "the code is one that is documented", message.status().ToString());
    return;
  }
  const auto encoded = Encode(*message);
  Check(std::ranges::equal(encoded, packet), "it is written the same");
  if (message->kind != Message::Kind::kAdd) return;
  Check(message->bytes > 0, "a region has bytes");
  // A file of one page, whatever is said of it.
  static core::HostResource host;
  static const Descriptor file = testing::MemoryFile();
  static const auto usage = std::make_shared<Usage>();
  const std::shared_ptr<core::MemoryResource> quota(
      &host, [](core::MemoryResource*) {});
  const auto region =
      Region::Map(file.get(), {.id = message->region,
                               .bytes = message->bytes,
                               .quota = quota,
                               .usage = usage,
                               .on_released = [](uint64_t, uint64_t) {}});
  Check(region.ok() == (message->bytes == 4096), "its size is what was said");
  if (!region.ok()) return;
  const auto offset = static_cast<int64_t>(message->region);
  const core::TensorDesc desc{core::ElementType::kUint8, {{16}, {1}}, 0};
  const absl::Status fits = (*region)->Check(desc, offset);
  Check(fits.ok() == (offset >= 0 && offset <= 4080 && offset % 256 == 0),
        "what fits is within it", fits.ToString());
  if (fits.ok()) {
    const auto storage = (*region)->Adopt("t", desc, offset);
    Check(storage.ok(), "what fits is adopted");
    (*storage)->data()[15] = std::byte{1};
  }
}

void TryReply(std::span<const std::byte> packet) {
  const auto reply = ParseReply(packet);
  if (!reply.ok()) return;
  const auto again = ParseReply(Encode(*reply));
  Check(again.ok() && *again == *reply, "a reply is read as it was");
}

void Try(std::span<const std::byte> bytes, size_t packet_bytes) {
  while (!bytes.empty()) {
    const auto packet = bytes.first(std::min(bytes.size(), packet_bytes));
    TryMessage(packet);
    bytes = bytes.subspan(packet.size());
  }
}

/// The same by a socket, with as many descriptors as the packet says.
void TryReceive(std::span<const std::byte> packet) {
  int ends[2] = {};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return;
  const Descriptor here(ends[0]), there(ends[1]);
  const size_t count =
      packet.empty() ? 0 : std::to_integer<size_t>(packet[0]) % 9;
  const std::vector<int> descriptors(count, here.get());
  testing::SendPacket(here.get(), packet, descriptors);
  std::byte into[Message::kBytes + 1];
  const auto received = Receive(there.get(), into);
  Check(received.ok(), "what was sent comes");
  Check(received->descriptors.size() == std::min<size_t>(count, 4),
        "descriptors come, no more than there is room for");
  Check(received->is_cut == (count > 4 || packet.size() > sizeof(into)),
        "it is known what was cut");
}

}  // namespace
}  // namespace tensord::shared_memory

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tensord::shared_memory;
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  Try(bytes, std::max<size_t>(data[0], 1));
  TryReply(bytes);
  if (!bytes.empty()) TryReceive(bytes);
  return 0;
}
