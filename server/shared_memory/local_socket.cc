#include "server/shared_memory/local_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "server/session/random_name.h"

namespace tensord::shared_memory {
namespace {

constexpr int kBacklog = 128;
/// More of one packet than any good one has are closed by the system.
constexpr size_t kMostDescriptors = 4;

int NewSocket() {
  return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

absl::Status CannotListen(absl::string_view address, int error) {
  return core::Error(absl::StatusCode::kUnavailable, "CANNOT_LISTEN",
                     absl::StrCat("cannot listen for shared memory at ",
                                  address, ": ", std::strerror(error)));
}

/// Takes a file away that a server has left.
absl::Status RemoveStale(const std::string& path, const sockaddr_un& name) {
  struct stat there = {};
  if (lstat(path.c_str(), &there) != 0) return absl::OkStatus();
  if (!S_ISSOCK(there.st_mode)) return CannotListen(path, EEXIST);
  const Descriptor probe(NewSocket());
  if (connect(probe.get(), reinterpret_cast<const sockaddr*>(&name),
              sizeof(name)) == 0 ||
      errno == EAGAIN) {
    return CannotListen(path, EADDRINUSE);
  }
  unlink(path.c_str());
  return absl::OkStatus();
}

/// Of a call that found nothing, or found the connection broken.
absl::Status Failure() {
  return errno == EAGAIN || errno == EINTR
             ? absl::UnavailableError("nothing now")
             : absl::AbortedError(std::strerror(errno));
}

}  // namespace

Descriptor::~Descriptor() {
  if (value_ >= 0) close(value_);
}

absl::StatusOr<LocalSocket> LocalSocket::Listen(absl::string_view path,
                                                int mode) {
  sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
  LocalSocket made;
  std::string shown(path);
  size_t length = sizeof(name);
  if (path.empty()) {
    TENSORD_ASSIGN_OR_RETURN(shown, server::RandomName("@tensord-"));
    // A zero and the name, which ends with the address.
    std::copy(shown.begin() + 1, shown.end(), name.sun_path + 1);
    length = offsetof(sockaddr_un, sun_path) + shown.size();
  } else {
    if (path.size() >= sizeof(name.sun_path)) {
      return CannotListen(path, ENAMETOOLONG);
    }
    std::copy(path.begin(), path.end(), name.sun_path);
    TENSORD_RETURN_IF_ERROR(RemoveStale(shown, name));
  }
  made.descriptor_ = Descriptor(NewSocket());
  if (bind(made.get(), reinterpret_cast<const sockaddr*>(&name),
           static_cast<socklen_t>(length)) != 0) {
    return CannotListen(shown, errno);
  }
  made.address_ = shown;
  if ((mode != 0 && !path.empty() &&
       chmod(shown.c_str(), static_cast<mode_t>(mode)) != 0) ||
      listen(made.get(), kBacklog) != 0) {
    return CannotListen(shown, errno);
  }
  return made;
}

LocalSocket::~LocalSocket() {
  if (!address_.empty() && address_[0] != '@') unlink(address_.c_str());
}

absl::StatusOr<Packet> Receive(int socket, std::span<std::byte> into) {
  alignas(cmsghdr)
      std::byte control[CMSG_SPACE(kMostDescriptors * sizeof(int))];
  iovec part = {.iov_base = into.data(), .iov_len = into.size()};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t bytes =
      recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (bytes < 0) return Failure();
  Packet packet;
  packet.bytes = static_cast<size_t>(bytes);
  packet.is_cut = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
  for (cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr;
       each = CMSG_NXTHDR(&message, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const size_t count = (each->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int value = -1;
      std::memcpy(&value, CMSG_DATA(each) + i * sizeof(int), sizeof(int));
      packet.descriptors.emplace_back(value);
    }
  }
  return packet;
}

absl::Status Send(int socket, std::span<const std::byte> packet) {
  const ssize_t sent =
      send(socket, packet.data(), packet.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  return sent < 0 ? Failure() : absl::OkStatus();
}

}  // namespace tensord::shared_memory
