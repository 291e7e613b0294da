// A connection that ends when its time is up.
#pragma once

#include <httplib.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/time/time.h"
#include "server/http/tls_sessions.h"

namespace tensord::http {

/// Reads and writes until a deadline that holds for all of it together, however
/// little the client takes or sends at a time, and reads no more than a bound.
///
/// Threads  one.
class TimedStream final : public httplib::Stream {
 public:
  /// `session` is null where there is no TLS. The socket, which stays the
  /// caller's, becomes one that does not block.
  TimedStream(int socket, SslSession session, absl::Time deadline,
              int64_t most_bytes);
  /// Tells the client that this was all.
  ~TimedStream() override;

  bool is_readable() const override { return begin_ < end_; }
  bool is_writable() const override { return true; }
  /// Returns  how many bytes, or -1 in the end.
  ssize_t read(char* to, size_t size) override;
  ssize_t write(const char* from, size_t size) override;
  using httplib::Stream::write;
  // For headers that nobody here reads.
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return socket_; }

 private:
  /// Repeats `io`, which returns what read() and write() do and knows no TLS,
  /// or `tls`, which is for that, until it moves something.
  ssize_t Move(const std::function<ssize_t()>& io,
               const std::function<int(SSL*)>& tls, short io_event);
  /// Whether the socket is ready in time.
  bool Await(short event) const;

  const int socket_;
  const SslSession session_;
  const absl::Time deadline_;
  int64_t bytes_left_;
  std::array<char, 4096> buffer_;
  size_t begin_ = 0;  // of what is in it
  size_t end_ = 0;
};

}  // namespace tensord::http
