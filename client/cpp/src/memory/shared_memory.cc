#include "client/cpp/src/memory/shared_memory.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cpp/src/errors.h"
#include "tensord/status.h"

namespace tensord::internal {
namespace {

// As server/shared_memory/protocol.h has them.
constexpr uint32_t kMagic = 0x314d5354;
constexpr uint64_t kVersion = 1;
constexpr uint32_t kHello = 1, kAdd = 2, kDrop = 3;
constexpr uint32_t kReleased = 2;
constexpr size_t kTicketBytes = 16;
struct Message {
  uint32_t magic = kMagic;
  uint32_t kind = kHello;
  uint64_t first = 0;
  std::array<uint64_t, 2> rest = {};
};
struct Reply {
  uint32_t magic;
  uint32_t kind;
  uint64_t region;
  uint64_t adoptions;
  uint32_t code;
  uint32_t text_bytes;
  std::array<char, 128> text;
};
static_assert(sizeof(Message) == 32 && sizeof(Reply) == 160 &&
              std::endian::native == std::endian::little);

constexpr int kPatienceMilliseconds = 10'000;
constexpr int64_t kKeptBytes = int64_t{512} << 20;

absl::Status Lost(absl::string_view why) {
  return Error(absl::StatusCode::kUnavailable, "SHARED_MEMORY_LOST",
               absl::StrCat("the connection for shared memory: ", why));
}

absl::Status Unreachable(const std::string& socket, int error) {
  const absl::string_view hint =
      error == ENOENT
          ? "; perhaps this container has only the server's other socket"
      : error == EACCES || error == EPERM
          ? "; this user may not connect, perhaps in another user namespace"
      : error == ECONNREFUSED
          ? "; nobody listens, perhaps as this is another network namespace"
          : "";
  return Error(absl::StatusCode::kUnavailable, "SHARED_MEMORY_UNREACHABLE",
               absl::StrCat("cannot connect to ", socket, ": ",
                            std::strerror(error), hint));
}

/// A size of which there are few: at most an eighth more.
int64_t RoundedUp(int64_t bytes) {
  constexpr int64_t kPageBytes = 4096;
  const auto octave = static_cast<int64_t>(
      std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(bytes, 1))));
  const int64_t step = std::max(kPageBytes, octave / 8);
  return (bytes + step - 1) / step * step;
}

}  // namespace

OwnedDescriptor::~OwnedDescriptor() {
  if (value_ >= 0) close(value_);
}

absl::StatusOr<OwnedDescriptor> MakeSealedFile(int64_t bytes) {
  OwnedDescriptor file(
      memfd_create("tensord", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  // Allocated now, so that all of its pages are there from then on.
  if (file.get() < 0 || fallocate(file.get(), 0, 0, bytes) != 0 ||
      fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) {
    return Error(
        absl::StatusCode::kResourceExhausted, "SHARED_MEMORY_EXHAUSTED",
        absl::StrCat("no memory of ", bytes,
                     " bytes that can be shared: ", std::strerror(errno)));
  }
  return file;
}

absl::Status CheckSharedAddress(const std::string& address) {
  if (absl::StartsWith(address, "unix:") || IsLocal(address)) {
    return absl::OkStatus();
  }
  return Error(absl::StatusCode::kFailedPrecondition, "SHARED_MEMORY_NOT_LOCAL",
               absl::StrCat(address,
                            " is perhaps another machine: only unix:PATH, "
                            "localhost and loopback addresses are this one"));
}

std::vector<std::string> SocketsFor(const std::string& address,
                                    std::span<const std::string> sockets) {
  std::vector<std::string> found;
  const bool is_unix = absl::StartsWith(address, "unix:");
  if (is_unix) {
    // The server's own path may be one of another container, where folders are
    // others. What it has not told of could be anybody's.
    const std::string ours = absl::StrCat(
        absl::StripPrefix(absl::StripPrefix(address, "unix:"), "//"), ".shm");
    const std::filesystem::path here = std::filesystem::absolute(ours);
    std::error_code ignored;
    // Links followed; empty where that cannot be.
    const auto end_of = [&](const std::filesystem::path& path) {
      return std::filesystem::weakly_canonical(path, ignored);
    };
    const std::filesystem::path end = end_of(here);
    const bool has_ours = std::ranges::any_of(sockets, [&](const auto& told) {
      if (absl::StartsWith(told, "@")) return false;
      const std::filesystem::path there = std::filesystem::absolute(told);
      return there == here || (!end.empty() && end_of(there) == end) ||
             (there.filename() == here.filename() &&
              !std::filesystem::exists(there, ignored));
    });
    if (has_ours) found.push_back(ours);
  }
  for (const std::string& socket : sockets) {
    if (!is_unix || absl::StartsWith(socket, "@")) found.push_back(socket);
  }
  return found;
}

absl::StatusOr<OwnedDescriptor> ConnectTo(const std::string& socket) {
  sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
  if (socket.size() >= sizeof(name.sun_path)) {
    return Unreachable(socket, ENAMETOOLONG);
  }
  socket.copy(name.sun_path, socket.size());
  socklen_t length = sizeof(name);
  if (absl::StartsWith(socket, "@")) {
    name.sun_path[0] = '\0';
    length =
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket.size());
  }
  OwnedDescriptor connected(
      ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (connect(connected.get(), reinterpret_cast<const sockaddr*>(&name),
              length) != 0) {
    return Unreachable(socket, errno);
  }
  return connected;
}

bool MayGoByGrpc(const absl::Status& status) {
  return absl::IsResourceExhausted(status) ||
         absl::StartsWith(ReasonOf(status), "SHARED_MEMORY_");
}

absl::StatusOr<std::unique_ptr<SharedMemory>> SharedMemory::Open(
    OwnedDescriptor socket, const std::string& ticket, std::string session) {
  std::unique_ptr<SharedMemory> memory(
      new SharedMemory(std::move(socket), std::move(session)));
  if (ticket.size() != kTicketBytes) return Lost("no ticket for it");
  Message hello;
  hello.first = kVersion;
  std::memcpy(hello.rest.data(), ticket.data(), kTicketBytes);
  absl::MutexLock lock(&memory->mutex_);
  TENSORD_CLIENT_RETURN_IF_ERROR(
      memory->Send(std::as_bytes(std::span(&hello, 1)), -1));
  TENSORD_CLIENT_RETURN_IF_ERROR(memory->Hear());
  return memory;
}

SharedMemory::~SharedMemory() {
  absl::MutexLock lock(&mutex_);
  for (const Region& region : regions_) {
    munmap(region.start, static_cast<size_t>(region.bytes));
  }
}

absl::StatusOr<v1::Tensor> SharedMemory::Upload(
    const Channels& channels, const v1::AdoptTensorRequest& like,
    std::span<const std::byte> bytes, absl::Time deadline) {
  TENSORD_CLIENT_ASSIGN_OR_RETURN(const Regions::iterator region,
                                  Take(static_cast<int64_t>(bytes.size())));
  std::memcpy(region->start, bytes.data(), bytes.size());
  v1::AdoptTensorRequest request = like;
  request.set_session(session_);
  request.set_region(static_cast<int64_t>(region->number));
  const absl::StatusOr<v1::AdoptTensorResponse> adopted =
      channels.Call(channels.tensor, &v1::TensorService::Stub::AdoptTensor,
                    request, deadline);
  GiveBack(region, adopted.ok());
  if (!adopted.ok()) return adopted.status();
  return adopted->tensor();
}

absl::Status SharedMemory::Download(const Channels& channels,
                                    const std::string& tensor,
                                    const v1::Layout& layout,
                                    std::span<std::byte> bytes,
                                    absl::Time deadline) {
  TENSORD_CLIENT_ASSIGN_OR_RETURN(const Regions::iterator region,
                                  Take(static_cast<int64_t>(bytes.size())));
  v1::StoreTensorRequest request;
  request.set_tensor(tensor);
  *request.mutable_layout() = layout;
  request.set_region(static_cast<int64_t>(region->number));
  const absl::Status stored =
      channels
          .Call(channels.tensor, &v1::TensorService::Stub::StoreTensor, request,
                deadline)
          .status();
  if (stored.ok()) std::memcpy(bytes.data(), region->start, bytes.size());
  GiveBack(region, stored.ok());
  return stored;
}

absl::StatusOr<SharedMemory::Regions::iterator> SharedMemory::Take(
    int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  absl::Status ignored;
  absl::StatusOr<bool> heard = true;
  while (heard.ok() && *heard) heard = HearOne(/*waits=*/false, ignored);
  if (!heard.ok() && !absl::IsNotFound(heard.status())) return heard.status();
  const auto fits = [bytes](const Region& region) {
    return !region.is_leased && region.adoptions == region.released &&
           region.bytes >= bytes &&
           region.bytes <= 2 * std::max(bytes, kLeastBytes);
  };
  auto region = std::find_if(regions_.begin(), regions_.end(), fits);
  if (region == regions_.end()) {
    KeepWithin(kKeptBytes);
    absl::StatusOr<Regions::iterator> added = Add(RoundedUp(bytes));
    if (absl::IsResourceExhausted(added.status())) {
      KeepWithin(0);
      added = Add(RoundedUp(bytes));
    }
    TENSORD_CLIENT_ASSIGN_OR_RETURN(region, std::move(added));
  }
  region->is_leased = true;
  ++region->adoptions;  // the one that is to come
  return region;
}

void SharedMemory::GiveBack(Regions::iterator region, bool is_known) {
  absl::MutexLock lock(&mutex_);
  region->is_leased = false;
  // Nobody knows whether the server has counted what it did not answer.
  if (!is_known) Drop(region);
}

absl::StatusOr<SharedMemory::Regions::iterator> SharedMemory::Add(
    int64_t bytes) {
  TENSORD_CLIENT_ASSIGN_OR_RETURN(const OwnedDescriptor file,
                                  MakeSealedFile(bytes));
  void* const start = mmap(nullptr, static_cast<size_t>(bytes),
                           PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (start == MAP_FAILED) {
    return Error(absl::StatusCode::kResourceExhausted,
                 "SHARED_MEMORY_EXHAUSTED", std::strerror(errno));
  }
  Message add;
  add.kind = kAdd;
  add.first = next_number_++;
  add.rest[0] = static_cast<uint64_t>(bytes);
  absl::Status status = Send(std::as_bytes(std::span(&add, 1)), file.get());
  if (status.ok()) status = Hear();
  if (!status.ok()) {
    munmap(start, static_cast<size_t>(bytes));
    return status;
  }
  regions_.push_back({.number = add.first,
                      .start = static_cast<std::byte*>(start),
                      .bytes = bytes});
  return std::prev(regions_.end());
}

void SharedMemory::Drop(Regions::iterator region) {
  Message drop;
  drop.kind = kDrop;
  drop.first = region->number;
  munmap(region->start, static_cast<size_t>(region->bytes));
  regions_.erase(region);
  // Of a connection that has ended, all is dropped already.
  if (Send(std::as_bytes(std::span(&drop, 1)), -1).ok()) Hear().IgnoreError();
}

void SharedMemory::KeepWithin(int64_t bytes) {
  for (auto next = regions_.begin(); next != regions_.end();) {
    const auto region = next++;
    if (region->is_leased || region->adoptions != region->released) continue;
    bytes -= region->bytes;
    if (bytes < 0) Drop(region);
  }
}

void SharedMemory::Trim() {
  absl::MutexLock lock(&mutex_);
  absl::Status ignored;
  absl::StatusOr<bool> heard = true;
  while (heard.ok() && *heard) heard = HearOne(/*waits=*/false, ignored);
  KeepWithin(0);
}

absl::Status SharedMemory::Send(std::span<const std::byte> packet,
                                int descriptor) {
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control = {};
  iovec part = {.iov_base = const_cast<std::byte*>(packet.data()),
                .iov_len = packet.size()};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
  }
  const ssize_t sent = sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
  return sent < 0 ? Lost(std::strerror(errno)) : absl::OkStatus();
}

absl::Status SharedMemory::Hear() {
  while (true) {
    absl::Status answer;
    TENSORD_CLIENT_ASSIGN_OR_RETURN(const bool is_answer,
                                    HearOne(/*waits=*/true, answer));
    if (is_answer) return answer;
  }
}

absl::StatusOr<bool> SharedMemory::HearOne(bool waits, absl::Status& answer) {
  pollfd ready = {.fd = socket_.get(), .events = POLLIN, .revents = 0};
  const int count = poll(&ready, 1, waits ? kPatienceMilliseconds : 0);
  if (count == 0 && !waits) return absl::NotFoundError("nothing now");
  if (count == 0) return Lost("the server is silent");
  Reply reply;
  const ssize_t bytes = recv(socket_.get(), &reply, sizeof(reply), 0);
  if (bytes != sizeof(reply) || reply.magic != kMagic ||
      reply.text_bytes > reply.text.size()) {
    return Lost("the server has closed it");
  }
  if (reply.kind == kReleased) {
    for (Region& region : regions_) {
      if (region.number == reply.region) region.released = reply.adoptions;
    }
    return waits ? false : true;
  }
  if (reply.code == 0) {
    answer = absl::OkStatus();
    return true;
  }
  const absl::string_view text(reply.text.data(), reply.text_bytes);
  const size_t space = std::min(text.find(' '), text.size());
  answer = Error(static_cast<absl::StatusCode>(reply.code),
                 std::string(text.substr(0, space)),
                 std::string(text.substr(std::min(space + 1, text.size()))));
  return true;
}

}  // namespace tensord::internal
