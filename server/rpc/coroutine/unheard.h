// What goes again as nobody knows its name.
//
// Clients of calls that have ended before their answer could be sent never hear
// of what the server has made and named for them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/execution/run.h"
#include "server/rpc/coroutine/loop.h"
#include "server/session/session.h"

namespace tensord::rpc {

/// Tensors of `session` that the server has named.
inline void RemoveUnheard(
    Call& call, std::shared_ptr<server::Session> session,
    std::vector<std::shared_ptr<server::StoredTensor>> tensors) {
  if (tensors.empty()) return;
  call.OnUnheard(
      [session = std::move(session), tensors = std::move(tensors)]() mutable {
        for (const auto& tensor : tensors) session->Remove(*tensor);
      });
}
inline void RemoveUnheard(Call& call, const server::Run& run) {
  RemoveUnheard(call, call.shared_session(), run.unnamed_results());
}
/// A tensor that is called `asked` or, if that is empty, as the server likes.
inline void RemoveUnheard(Call& call, absl::string_view asked,
                          const std::shared_ptr<server::Session>& session,
                          const std::shared_ptr<server::StoredTensor>& tensor) {
  if (asked.empty()) RemoveUnheard(call, session, {tensor});
}

}  // namespace tensord::rpc
