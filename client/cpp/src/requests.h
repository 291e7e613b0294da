// Requests for operations, as both running and explaining them need.
#pragma once

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

// Messages with a oneof of all operations, set to `request`.
template <typename Message>
Message Wrap(v1::PermuteRequest request) {
  Message message;
  *message.mutable_permute() = std::move(request);
  return message;
}
template <typename Message>
Message Wrap(v1::ElementwiseRequest request) {
  Message message;
  *message.mutable_elementwise() = std::move(request);
  return message;
}
template <typename Message>
Message Wrap(v1::ReduceRequest request) {
  Message message;
  *message.mutable_reduce() = std::move(request);
  return message;
}
template <typename Message>
Message Wrap(v1::ContractRequest request) {
  Message message;
  *message.mutable_contract() = std::move(request);
  return message;
}

}  // namespace tensord::internal
