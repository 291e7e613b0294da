#include "client/cpp/src/transfer/bulk_channel.h"

#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/support/channel_arguments.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace tensord::internal {
namespace {

// What may be on its way, of which the system makes twice as much.
constexpr int kSendBytes = 256 << 10;

/// "unix:PATH" or "unix:///PATH"; "": it is none, or too long.
std::string PathOf(std::string_view address) {
  absl::string_view path(address.data(), address.size());
  if (!absl::ConsumePrefix(&path, "unix:")) return "";
  absl::ConsumePrefix(&path, "//");
  return path.size() < sizeof(sockaddr_un::sun_path) ? std::string(path) : "";
}

/// A socket connected to `path` that does not block; -1: there is nobody.
int ConnectSocket(const std::string& path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kSendBytes, sizeof(kSendBytes));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  path.copy(name.sun_path, sizeof(name.sun_path) - 1);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) ==
      0) {
    return fd;
  }
  close(fd);
  return -1;
}

}  // namespace

BulkChannel::BulkChannel(std::string_view address,
                         std::shared_ptr<grpc::Channel> other)
    : path_(PathOf(address)), other_(std::move(other)) {}

BulkChannel::~BulkChannel() {
  absl::MutexLock lock(&mutex_);
  Drop();
}

std::shared_ptr<grpc::Channel> BulkChannel::get() const {
  if (path_.empty()) return other_;
  absl::MutexLock lock(&mutex_);
  if (own_ != nullptr) {
    pollfd ends = {.fd = socket_, .events = POLLRDHUP, .revents = 0};
    if (poll(&ends, 1, 0) == 0) return own_;
    Drop();
  }
  Connect();
  return own_ != nullptr ? own_ : other_;
}

void BulkChannel::Connect() const {
  const int fd = ConnectSocket(path_);
  if (fd < 0) return;
  socket_ = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (socket_ < 0) {
    close(fd);
    return;
  }
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  own_ = grpc::CreateCustomInsecureChannelFromFd("localhost", fd, arguments);
}

void BulkChannel::Drop() const {
  own_.reset();
  if (socket_ >= 0) close(std::exchange(socket_, -1));
}

}  // namespace tensord::internal
