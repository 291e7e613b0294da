#include "client/cpp/src/requests.h"

#include "client/cpp/src/convert.h"
#include "client/cpp/src/subscripts.h"

namespace tensord::internal {
namespace {

template <typename Request>
void SetExecution(const Connection& connection, const Modes& d,
                  const ExecutionOptions& options, Request& request) {
  request.set_session(connection.session().name);
  *request.mutable_d() = OutputToProto(d, options, connection.order());
  request.set_compute_type(static_cast<v1::ComputeType>(options.compute_type));
  *request.mutable_options() = ToProto(options);
}

template <typename Request, typename Options>
absl::Status SetAddend(const Options& options, Request& request) {
  *request.mutable_beta() = ToProto(options.beta);
  if (options.c.has_value()) {
    TENSORD_CLIENT_ASSIGN_OR_RETURN(*request.mutable_c(), ToProto(*options.c));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::PermuteRequest> MakeRequest(const Connection& connection,
                                               const Operand& a, const Modes& d,
                                               const PermuteOptions& options) {
  v1::PermuteRequest request;
  SetExecution(connection, d, options.execution, request);
  TENSORD_CLIENT_ASSIGN_OR_RETURN(*request.mutable_a(), ToProto(a));
  *request.mutable_alpha() = ToProto(options.alpha);
  const OutputPadding& padding = options.padding;
  if (!padding.before.empty() || !padding.after.empty()) {
    v1::OutputPadding& message = *request.mutable_padding();
    message.mutable_before()->Add(padding.before.begin(), padding.before.end());
    message.mutable_after()->Add(padding.after.begin(), padding.after.end());
    *message.mutable_value() = ToProto(padding.value);
  }
  return request;
}

absl::StatusOr<v1::ElementwiseRequest> MakeRequest(
    const Connection& connection, const ElementwiseOperands& operands,
    const Modes& d, const ElementwiseOptions& options) {
  v1::ElementwiseRequest request;
  SetExecution(connection, d, options.execution, request);
  TENSORD_CLIENT_ASSIGN_OR_RETURN(*request.mutable_a(), ToProto(operands.a));
  TENSORD_CLIENT_ASSIGN_OR_RETURN(*request.mutable_c(), ToProto(operands.c));
  *request.mutable_alpha() = ToProto(options.alpha);
  *request.mutable_gamma() = ToProto(options.gamma);
  request.set_op_abc(static_cast<v1::BinaryOperator>(operands.op_abc));
  if (operands.b != nullptr) {
    TENSORD_CLIENT_ASSIGN_OR_RETURN(*request.mutable_b(), ToProto(*operands.b));
    *request.mutable_beta() = ToProto(options.beta);
    request.set_op_ab(static_cast<v1::BinaryOperator>(operands.op_ab));
  }
  return request;
}

absl::StatusOr<v1::ReduceRequest> MakeRequest(const Connection& connection,
                                              BinaryOperator op,
                                              const Operand& a, const Modes& d,
                                              const ReduceOptions& options) {
  v1::ReduceRequest request;
  SetExecution(connection, d, options.execution, request);
  TENSORD_CLIENT_ASSIGN_OR_RETURN(*request.mutable_a(), ToProto(a));
  request.set_op(static_cast<v1::BinaryOperator>(op));
  *request.mutable_alpha() = ToProto(options.alpha);
  TENSORD_CLIENT_RETURN_IF_ERROR(SetAddend(options, request));
  return request;
}

absl::StatusOr<v1::ContractRequest> MakeRequest(
    const Connection& connection, const Operand& a, const Operand& b,
    const Modes& d, const ContractOptions& options) {
  v1::ContractRequest request;
  SetExecution(connection, d, options.execution, request);
  TENSORD_CLIENT_ASSIGN_OR_RETURN(*request.mutable_a(), ToProto(a));
  TENSORD_CLIENT_ASSIGN_OR_RETURN(*request.mutable_b(), ToProto(b));
  *request.mutable_alpha() = ToProto(options.alpha);
  TENSORD_CLIENT_RETURN_IF_ERROR(SetAddend(options, request));
  return request;
}

absl::StatusOr<v1::FactorizeRequest> MakeRequest(
    const Connection& connection, std::string_view subscripts, Operand a,
    const FactorizeOptions& options) {
  TENSORD_CLIENT_ASSIGN_OR_RETURN(const FactorModes modes,
                                  ParseFactorModes(subscripts));
  a.modes = modes.a;
  const auto output = [&](const Modes& of, const FactorOutput& to) {
    return OutputToProto(of,
                         {.output = to.output,
                          .output_name = to.output_name,
                          .output_order = to.output_order},
                         connection.order());
  };
  v1::FactorizeRequest request;
  request.set_session(connection.session().name);
  TENSORD_CLIENT_ASSIGN_OR_RETURN(*request.mutable_a(), ToProto(a));
  *request.mutable_q() = output(modes.q, options.q);
  *request.mutable_r() = output(modes.r, options.r);
  request.set_method(static_cast<v1::FactorizationMethod>(options.method));
  *request.mutable_options() =
      ToProto({.kernel = options.kernel,
               .workspace_limit_bytes = options.workspace_limit_bytes,
               .deterministic = options.deterministic,
               .selection = options.selection});
  return request;
}

}  // namespace tensord::internal
