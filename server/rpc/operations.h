// The operations of the contract, wherever messages hold one of them.
#pragma once

#include "absl/strings/string_view.h"
#include "server/execution/operation_request.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::rpc {

inline constexpr server::OperationKind KindOf(const v1::PermuteRequest*) {
  return server::OperationKind::kPermute;
}
inline constexpr server::OperationKind KindOf(const v1::ElementwiseRequest*) {
  return server::OperationKind::kElementwise;
}
inline constexpr server::OperationKind KindOf(const v1::ReduceRequest*) {
  return server::OperationKind::kReduce;
}
inline constexpr server::OperationKind KindOf(const v1::ContractRequest*) {
  return server::OperationKind::kContract;
}

inline constexpr server::OperationKind KindOf(const v1::FactorizeRequest*) {
  return server::OperationKind::kFactorize;
}

inline constexpr server::OperationKind KindOf(const v1::SolveLinearRequest*) {
  return server::OperationKind::kSolve;
}

/// Calls `visit` with the request that `message`, which has a oneof of
/// operations, holds; `otherwise` when it holds none.
template <typename Message, typename Visit, typename Otherwise>
auto VisitOperation(const Message& message, const Visit& visit,
                    const Otherwise& otherwise) {
  switch (message.operation_case()) {
    case Message::kPermute: return visit(message.permute());
    case Message::kElementwise: return visit(message.elementwise());
    case Message::kReduce: return visit(message.reduce());
    case Message::kContract: return visit(message.contract());
    case Message::kFactorize: return visit(message.factorize());
    case Message::kSolve: return visit(message.solve());
    default: return otherwise();
  }
}

}  // namespace tensord::rpc
