// Which session a request is for.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/rpc/operations.h"
#include "server/session/collection.h"
#include "tensord/v1/program.pb.h"

namespace tensord::rpc {

/// `sessions/{session}` of the name of something that a session keeps.
/// Errors  INVALID_ARGUMENT, reason {KIND}_NAME_MALFORMED.
inline absl::StatusOr<std::optional<absl::string_view>> SessionNameOf(
    absl::string_view name, const server::CollectionKind& kind) {
  const absl::string_view session = server::SessionOf(name, kind);
  if (session.empty()) return server::NameMalformed(name, kind);
  return session;
}

/// Which session `request` names, directly or as the beginning of another name;
/// nothing: it names none. A view into the request.
///
/// Errors  as SessionNameOf().
template <typename Request>
absl::StatusOr<std::optional<absl::string_view>> SessionNameIn(
    const Request& request) {
  // A request with a source may name a session, too: that of the copy.
  if constexpr (requires { request.source(); }) {
    return SessionNameOf(request.source(), server::kTensors);
  } else if constexpr (requires { request.session(); }) {
    return request.session();
  } else if constexpr (requires { request.tensor(); }) {
    return SessionNameOf(request.tensor(), server::kTensors);
  } else if constexpr (requires { request.plan(); }) {
    return SessionNameOf(request.plan(), server::kPlans);
  } else if constexpr (requires { request.program(); }) {
    return SessionNameOf(request.program(), server::kPrograms);
  } else if constexpr (requires { request.contract().session(); }) {
    using Name = absl::StatusOr<std::optional<absl::string_view>>;
    return VisitOperation(
        request,
        [](const auto& operation) -> Name { return operation.session(); },
        [&]() -> Name {
          if constexpr (requires { request.execute_plan(); }) {
            if (request.has_execute_plan()) {
              return SessionNameIn(request.execute_plan());
            }
          }
          return std::nullopt;
        });
  } else {
    return std::nullopt;
  }
}
inline absl::StatusOr<std::optional<absl::string_view>> SessionNameIn(
    const v1::ExecuteProgramRequest& request) {
  if (request.has_spec()) return request.session();
  return SessionNameOf(request.name(), server::kPrograms);
}

}  // namespace tensord::rpc
