// Where a server may listen.
#include <arpa/inet.h>
#include <sys/un.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "core/base/status.h"
#include "server/config/options.h"

namespace tensord::server {

bool IsOfThisMachine(absl::string_view address) {
  if (absl::StartsWith(address, "unix:")) return true;
  const std::string host(address.substr(0, address.rfind(':')));
  in_addr number = {};
  const bool is_number = inet_pton(AF_INET, host.c_str(), &number) == 1;
  return host == "localhost" || host == "[::1]" ||
         (is_number && ntohl(number.s_addr) >> 24 == IN_LOOPBACKNET);
}

absl::Status ValidateListen(absl::string_view flag, absl::string_view address,
                            bool allow_remote) {
  if (absl::StartsWith(address, "unix:")) {
    // None is what systemd's sockets without a file have.
    const size_t size = absl::StripPrefix(address, "unix:").size();
    constexpr size_t kMost = sizeof(sockaddr_un::sun_path) - 1;
    if (size <= kMost) return absl::OkStatus();
    return core::InvalidArgument("ADDRESS_MALFORMED", flag, " is '", address,
                                 "', whose path has ", size,
                                 " characters, wanted 1 to ", kMost);
  }
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon == absl::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 0 ||
      port > 65535) {
    return core::InvalidArgument("ADDRESS_MALFORMED", flag, " is '", address,
                                 "', wanted HOST:PORT or unix:PATH");
  }
  if (IsOfThisMachine(address) || allow_remote) return absl::OkStatus();
  return core::InvalidArgument(
      "LISTEN_NEEDS_TLS", flag, "=", address,
      " would serve other machines without TLS, or strangers; give it "
      "--tls-certificate and --tls-key, and --tls-client-ca, --tokens or "
      "--jwt-keys; listen on localhost or unix:PATH; or say --insecure");
}

}  // namespace tensord::server
