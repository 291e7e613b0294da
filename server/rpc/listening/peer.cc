#include "server/rpc/listening/peer.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace tensord::rpc {
namespace {

std::string TextOf(in6_addr address) {
  if (!IN6_IS_ADDR_V4MAPPED(&address) && !IN6_IS_ADDR_LOOPBACK(&address)) {
    std::memset(&address.s6_addr[8], 0, 8);
  }
  char text[INET6_ADDRSTRLEN] = {};
  inet_ntop(AF_INET6, &address, text, sizeof(text));
  return text;
}

}  // namespace

std::string UserPeer(uid_t user) { return absl::StrCat("user ", user); }

std::string HostPeer(const sockaddr_storage& name) {
  if (name.ss_family == AF_INET6) {
    return TextOf(reinterpret_cast<const sockaddr_in6&>(name).sin6_addr);
  }
  char text[INET_ADDRSTRLEN] = {};
  inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(name).sin_addr, text,
            sizeof(text));
  return text;
}

std::string HostPeer(absl::string_view name) {
  if (absl::StartsWith(name, "unix")) return "unix";
  const absl::string_view host = name.substr(0, name.rfind(':'));
  absl::string_view bare = host;
  if (!absl::ConsumePrefix(&bare, "ipv6:")) return std::string(host);
  const std::string text = absl::StrReplaceAll(
      bare, {{"%5B", ""}, {"%5D", ""}, {"[", ""}, {"]", ""}});
  in6_addr address = {};
  // One of a link has its interface behind a '%'.
  const bool is_one =
      inet_pton(AF_INET6, text.substr(0, text.find('%')).c_str(), &address) ==
      1;
  return is_one ? absl::StrCat("ipv6:", TextOf(address)) : std::string(host);
}

std::string EndName(const sockaddr_storage& name) {
  const std::string host = HostPeer(name);
  if (name.ss_family != AF_INET6) {
    const auto& of = reinterpret_cast<const sockaddr_in&>(name);
    return absl::StrCat("ipv4:", host, ":", ntohs(of.sin_port));
  }
  const auto& of = reinterpret_cast<const sockaddr_in6&>(name);
  // gRPC names hosts of the older kind as such.
  absl::string_view bare = host;
  const bool is_mapped = absl::ConsumePrefix(&bare, "::ffff:");
  return absl::StrCat(is_mapped ? "ipv4:" : "ipv6:", bare, ":",
                      ntohs(of.sin6_port));
}

std::string EndName(absl::string_view name) {
  const size_t colon = std::min(name.rfind(':'), name.size());
  return absl::StrCat(HostPeer(name), name.substr(colon));
}

bool IsOfThisMachine(absl::string_view name) {
  const std::string peer = HostPeer(name);
  absl::string_view host = peer;
  if (host == "unix" || host == "ipv6:::1") return true;
  const bool is_ipv4 = absl::ConsumePrefix(&host, "ipv4:") ||
                       absl::ConsumePrefix(&host, "ipv6:::ffff:");
  return is_ipv4 && absl::StartsWith(host, "127.");
}

}  // namespace tensord::rpc
