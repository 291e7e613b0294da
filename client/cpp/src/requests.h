// Requests for operations, to be run, explained or prepared.
#pragma once

#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "client/cpp/src/connection.h"
#include "tensord/operations.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::internal {

struct ElementwiseOperands {
  const Operand& a;
  const Operand* b = nullptr;  // null: the binary operation
  const Operand& c;
  BinaryOperator op_ab = BinaryOperator::kAdd;
  BinaryOperator op_abc = BinaryOperator::kAdd;
};

absl::StatusOr<v1::PermuteRequest> MakeRequest(const Connection& connection,
                                               const Operand& a, const Modes& d,
                                               const PermuteOptions& options);
absl::StatusOr<v1::ElementwiseRequest> MakeRequest(
    const Connection& connection, const ElementwiseOperands& operands,
    const Modes& d, const ElementwiseOptions& options);
absl::StatusOr<v1::ReduceRequest> MakeRequest(const Connection& connection,
                                              BinaryOperator op,
                                              const Operand& a, const Modes& d,
                                              const ReduceOptions& options);
absl::StatusOr<v1::ContractRequest> MakeRequest(const Connection& connection,
                                                const Operand& a,
                                                const Operand& b,
                                                const Modes& d,
                                                const ContractOptions& options);

/// Without `b`, of an inverse.
absl::StatusOr<v1::SolveLinearRequest> MakeRequest(const Connection& connection,
                                                   const Operand& a,
                                                   const Operand* b,
                                                   const Modes& d,
                                                   const SolveOptions& options);

absl::StatusOr<v1::SolveLinearRequest> MakeExponentialRequest(
    const Connection& connection, const Operand& a, const Modes& d,
    const SolveOptions& options);

/// Where a result of a factorization goes, and its field in the request.
struct FactorPlace {
  const FactorOutput* output;
  v1::Output* (v1::FactorizeRequest::*field)();
};
/// Of `count` results, in their order.
/// Errors  INVALID_ARGUMENT, reason SUBSCRIPTS_MALFORMED: the method has not as
///         many.
absl::StatusOr<std::vector<FactorPlace>> PlacesOf(
    const FactorizeOptions& options, size_t count);

/// `a` has no modes yet.
absl::StatusOr<v1::FactorizeRequest> MakeRequest(
    const Connection& connection, std::string_view subscripts, Operand a,
    const FactorizeOptions& options);

// The field of a message with a oneof of all operations.
inline auto* FieldOf(auto& message, const v1::PermuteRequest&) {
  return message.mutable_permute();
}
inline auto* FieldOf(auto& message, const v1::ElementwiseRequest&) {
  return message.mutable_elementwise();
}
inline auto* FieldOf(auto& message, const v1::ReduceRequest&) {
  return message.mutable_reduce();
}
inline auto* FieldOf(auto& message, const v1::ContractRequest&) {
  return message.mutable_contract();
}
inline auto* FieldOf(auto& message, const v1::FactorizeRequest&) {
  return message.mutable_factorize();
}
inline auto* FieldOf(auto& message, const v1::SolveLinearRequest&) {
  return message.mutable_solve();
}

/// Such a message, set to `request`.
template <typename Message, typename Request>
Message Wrap(Request request) {
  Message message;
  *FieldOf(message, request) = std::move(request);
  return message;
}

}  // namespace tensord::internal
