// The sockets that an address stands for.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tensord::rpc {

/// Listening sockets: a Unix socket, or one for each of a host's addresses, all
/// of the same port. Gives them back at its end, and removes the file of a Unix
/// socket.
class BoundAddress {
 public:
  /// Listens on "HOST:PORT", port 0 being any, or "unix:PATH", whose file gets
  /// the permissions `mode` before anybody can connect; 0: as the umask says.
  /// A file that is there is taken away if nobody answers at it.
  ///
  /// Errors  INVALID_ARGUMENT, reason ADDRESS_MALFORMED: the path is empty or
  ///         too long, or the host has no address. UNAVAILABLE, reason
  ///         CANNOT_LISTEN: why, as the system says.
  static absl::StatusOr<BoundAddress> Bind(absl::string_view address, int mode);

  /// The sockets that systemd, or another as sd_listen_fds(3) has it, opened
  /// for this process: one address each. Their files stay.
  ///
  /// Errors  UNAVAILABLE, reason CANNOT_LISTEN: there are none, or one does not
  ///         listen.
  static absl::StatusOr<std::vector<BoundAddress>> Adopt();

  BoundAddress(BoundAddress&& other) noexcept;
  BoundAddress& operator=(BoundAddress&&) = delete;
  ~BoundAddress();

  /// As given to Bind(), with the port that was chosen for 0.
  const std::string& address() const { return address_; }
  /// They do not block.
  const std::vector<int>& sockets() const { return sockets_; }

 private:
  BoundAddress() = default;
  absl::Status BindUnix(const std::string& path, int mode);
  absl::Status BindHost(const std::string& host, int port);
  void Close();

  std::string address_;
  std::string path_;  // to remove; "": none
  std::vector<int> sockets_;
};

/// Whether it is a Unix socket.
bool IsLocal(absl::string_view address);

}  // namespace tensord::rpc
