// Whose limits hold for a connection.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <string>

#include "absl/strings/string_view.h"

namespace tensord::rpc {

/// A user of this machine, "user 1000".
std::string UserPeer(uid_t user);

/// A host's address, of IPv6 its network's, which is one host's to choose from:
/// "10.0.0.2", "2001:db8:0:7::". Not for Unix sockets.
std::string HostPeer(const sockaddr_storage& name);

/// The same of gRPC's name for it, as "ipv6:%5B2001:db8::2%5D:43210", and named
/// so, "ipv6:2001:db8::"; "unix" of Unix sockets.
std::string HostPeer(absl::string_view name);

/// One end of a connection by TCP: its host and port, "ipv4:10.0.0.2:43210", of
/// IPv6 the network's.
std::string EndName(const sockaddr_storage& name);
/// The same of gRPC's name.
std::string EndName(absl::string_view name);

/// Whether gRPC's name is that of a peer on this machine: of a Unix socket, or
/// a loopback address.
bool IsOfThisMachine(absl::string_view name);

}  // namespace tensord::rpc
