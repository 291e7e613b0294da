#include "server/http/timed_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/time/clock.h"

namespace tensord::http {

TimedStream::TimedStream(int socket, SslSession session, absl::Time deadline,
                         int64_t most_bytes)
    : socket_(socket),
      session_(std::move(session)),
      deadline_(deadline),
      bytes_left_(most_bytes) {
  fcntl(socket_, F_SETFL, fcntl(socket_, F_GETFL) | O_NONBLOCK);
  if (session_ == nullptr) return;
  SSL_set_fd(session_.get(), socket_);
  SSL_set_accept_state(session_.get());
}

TimedStream::~TimedStream() {
  if (session_ != nullptr) SSL_shutdown(session_.get());
  shutdown(socket_, SHUT_WR);
}

bool TimedStream::Await(short event) const {
  pollfd file = {.fd = socket_, .events = event, .revents = 0};
  const absl::Duration left = deadline_ - absl::Now();
  return left > absl::ZeroDuration() &&
         poll(&file, 1, static_cast<int>(absl::ToInt64Milliseconds(left) + 1)) >
             0;
}

ssize_t TimedStream::Move(const std::function<ssize_t()>& io,
                          const std::function<int(SSL*)>& tls, short io_event) {
  while (absl::Now() < deadline_) {
    short event = io_event;
    if (session_ == nullptr) {
      const ssize_t moved = io();
      if (moved > 0) return moved;
      if (moved == 0 || (errno != EAGAIN && errno != EINTR)) return -1;
    } else {
      ERR_clear_error();
      const int moved = tls(session_.get());
      if (moved > 0) return moved;
      const int error = SSL_get_error(session_.get(), moved);
      if (error == SSL_ERROR_WANT_READ) {
        event = POLLIN;
      } else if (error == SSL_ERROR_WANT_WRITE) {
        event = POLLOUT;
      } else {
        return -1;
      }
    }
    if (!Await(event)) return -1;
  }
  return -1;
}

ssize_t TimedStream::read(char* to, size_t size) {
  if (begin_ == end_) {
    const size_t most =
        std::min<size_t>(buffer_.size(), std::max<int64_t>(bytes_left_, 0));
    if (most == 0) return -1;
    const ssize_t got =
        Move([&] { return recv(socket_, buffer_.data(), most, 0); },
             [&](SSL* session) {
               return SSL_read(session, buffer_.data(), static_cast<int>(most));
             },
             POLLIN);
    if (got <= 0) return -1;
    bytes_left_ -= got;
    begin_ = 0;
    end_ = static_cast<size_t>(got);
  }
  const size_t taken = std::min(size, end_ - begin_);
  std::memcpy(to, buffer_.data() + begin_, taken);
  begin_ += taken;
  return static_cast<ssize_t>(taken);
}

ssize_t TimedStream::write(const char* from, size_t size) {
  constexpr size_t kMost = 1 << 20;
  if (size == 0) return 0;
  const size_t most = std::min(size, kMost);
  return Move([&] { return send(socket_, from, most, MSG_NOSIGNAL); },
              [&](SSL* session) {
                return SSL_write(session, from, static_cast<int>(most));
              },
              POLLOUT);
}

}  // namespace tensord::http
