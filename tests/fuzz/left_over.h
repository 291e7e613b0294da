// What a server has to be rid of once its clients are gone.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/engine/host_memory.h"
#include "tests/testing/in_process_server.h"

namespace tensord::fuzz {

/// All that its counters say is still there, as text; "": nothing.
inline std::string LeftOver(testing::InProcessServer& server) {
  std::string left;
  const auto add = [&](absl::string_view what, int64_t count) {
    if (count != 0) absl::StrAppend(&left, count, " ", what, " ");
  };
  add("sessions", server.sessions().session_count());
  add("tensors", server.sessions().tensor_count());
  add("bytes on the device", server.used_bytes());
  for (int i = 0; i < server::kHostUseCount; ++i) {
    const auto use = static_cast<server::HostUse>(i);
    const server::HostAmount used = server.sessions().host_memory()->used(use);
    add(absl::StrCat(server::NameOf(use), " in the ledger"), used.count);
    add(absl::StrCat("bytes of ", server::NameOf(use)), used.bytes);
  }
  return left;
}

}  // namespace tensord::fuzz
