// Answers GET over HTTP: what machines and people look at, not what they use.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/http/tls_sessions.h"
#include "server/identity/certificates.h"

namespace tensord::http {

struct Answer {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

struct Route {
  std::function<Answer()> answer;  // on any thread
  bool needs_token = false;
};
/// By path, a regular expression: "/metrics".
using Routes = std::map<std::string, Route>;

struct HttpOptions {
  std::string address;  // "HOST:PORT"
  /// Null: no TLS. They outlive the listener.
  const server::Certificates* certificates = nullptr;
  /// A file whose first line is what clients have to send as
  /// `Authorization: Bearer ...`; empty: nothing. It may change.
  std::string token_file;
  absl::Duration longest = absl::Seconds(5);  // of a connection
};

/// A connection is answered once and has some seconds for that. There are few
/// threads: when all are busy, the connection that has been there longest ends,
/// so that clients which are slow, or many, only harm each other.
///
/// Threads  safe for concurrent use.
class HttpListener {
 public:
  /// Listens and serves.
  /// Errors  UNAVAILABLE, reason CANNOT_LISTEN. INVALID_ARGUMENT, reason
  ///         TOKEN_FILE_WRONG.
  static absl::StatusOr<std::unique_ptr<HttpListener>> Start(
      const HttpOptions& options, const Routes& routes);
  ~HttpListener();

  /// With the port that was chosen for 0.
  const std::string& address() const { return address_; }

 private:
  class Server;

  HttpListener();

  std::unique_ptr<TlsSessions> tls_;  // null: none
  std::unique_ptr<Server> server_;
  std::string address_;
};

}  // namespace tensord::http
