// Which session a request is for.
#pragma once

#include <concepts>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/session/collection.h"
#include "tensord/v1/program.pb.h"

namespace tensord::rpc {

/// The session's part of `name`, of something that a session keeps.
/// Errors  INVALID_ARGUMENT, reason {KIND}_NAME_MALFORMED.
inline absl::StatusOr<std::optional<absl::string_view>> SessionNameOf(
    absl::string_view name, const server::CollectionKind& kind) {
  const absl::string_view session = server::SessionOf(name, kind);
  if (session.empty()) return server::NameMalformed(name, kind);
  return session;
}

template <typename Request>
concept NamesSession = requires(const Request& request) {
  { request.session() } -> std::convertible_to<absl::string_view>;
};
template <typename Request>
concept NamesSource = requires(const Request& request) {
  request.source();
};
template <typename Request>
concept NamesTensor = requires(const Request& request) {
  request.tensor();
};
template <typename Request>
concept NamesPlan = requires(const Request& request) {
  request.plan();
};
template <typename Request>
concept NamesProgram = requires(const Request& request) {
  request.program();
};
template <typename Request>
concept HoldsOperation = requires(const Request& request) {
  request.operation_case();
  request.contract().session();
};

/// The session that `request` is for, by the names in it; nothing: it names
/// none. Views into the request.
///
/// Errors  as SessionNameOf().
template <typename Request>
absl::StatusOr<std::optional<absl::string_view>> SessionNameIn(
    const Request& request) {
  if constexpr (NamesSource<Request>) {  // it may name a session to go to, too
    return SessionNameOf(request.source(), server::kTensors);
  } else if constexpr (NamesSession<Request>) {
    return request.session();
  } else if constexpr (NamesTensor<Request>) {
    return SessionNameOf(request.tensor(), server::kTensors);
  } else if constexpr (NamesPlan<Request>) {
    return SessionNameOf(request.plan(), server::kPlans);
  } else if constexpr (NamesProgram<Request>) {
    return SessionNameOf(request.program(), server::kPrograms);
  } else if constexpr (HoldsOperation<Request>) {
    switch (request.operation_case()) {
      case Request::kPermute: return request.permute().session();
      case Request::kElementwise: return request.elementwise().session();
      case Request::kReduce: return request.reduce().session();
      case Request::kContract: return request.contract().session();
      default: break;
    }
    if constexpr (requires { request.execute_plan(); }) {
      if (request.has_execute_plan()) {
        return SessionNameIn(request.execute_plan());
      }
    }
    return std::nullopt;
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
