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
  if (operands.op_abc == BinaryOperator::kTake && operands.b == nullptr) {
    TENSORD_CLIENT_ASSIGN_OR_RETURN(*request.mutable_b(), ToProto(operands.c));
    *request.mutable_alpha() = ToProto(options.alpha);
    *request.mutable_beta() = ToProto(options.gamma);
    *request.mutable_gamma() = ToProto(Scalar(0));
    request.set_op_abc(v1::BINARY_OPERATOR_TAKE);
    return request;
  }
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
  if (options.along) {
    request.mutable_along()->set_mode(options.along->mode);
    request.mutable_along()->set_sorting(
        static_cast<v1::Sorting>(options.along->sorting));
  }
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

absl::StatusOr<v1::SolveLinearRequest> MakeRequest(
    const Connection& connection, const Operand& a, const Operand* b,
    const Modes& d, const SolveOptions& options) {
  v1::SolveLinearRequest request;
  SetExecution(connection, d, options.execution, request);
  TENSORD_CLIENT_ASSIGN_OR_RETURN(*request.mutable_a(), ToProto(a));
  if (b != nullptr) {
    TENSORD_CLIENT_ASSIGN_OR_RETURN(*request.mutable_b(), ToProto(*b));
  }
  request.set_structure(static_cast<v1::MatrixStructure>(options.structure));
  request.set_unit_diagonal(options.has_unit_diagonal);
  return request;
}

absl::StatusOr<v1::SolveLinearRequest> MakeExponentialRequest(
    const Connection& connection, const Operand& a, const Modes& d,
    const SolveOptions& options) {
  absl::StatusOr<v1::SolveLinearRequest> request =
      MakeRequest(connection, a, nullptr, d, options);
  if (request.ok()) request->set_function(v1::MATRIX_FUNCTION_EXPONENTIAL);
  return request;
}

namespace {

v1::Truncation ToProto(const Truncation& truncation) {
  v1::Truncation message;
  if (truncation.rank) message.set_rank(*truncation.rank);
  message.set_cutoff(truncation.cutoff);
  message.set_relative_cutoff(truncation.relative_cutoff);
  message.set_discarded_squares(truncation.discarded_squares);
  message.set_relative_discarded_squares(truncation.relative_discarded_squares);
  message.set_absorb(static_cast<v1::Absorb>(truncation.absorb));
  message.set_renormalize(truncation.renormalizes);
  if (truncation.sampling) {
    v1::Sampling& sampling = *message.mutable_sampling();
    sampling.set_oversampling(truncation.sampling->oversampling);
    sampling.set_power_iterations(truncation.sampling->power_iterations);
    sampling.set_seed(truncation.sampling->seed);
  }
  return message;
}

}  // namespace

absl::StatusOr<std::vector<FactorPlace>> PlacesOf(
    const FactorizeOptions& options, size_t count) {
  using Request = v1::FactorizeRequest;
  const FactorPlace q{&options.q, &Request::mutable_q};
  const FactorPlace r{&options.r, &Request::mutable_r};
  const FactorPlace values{&options.values, &Request::mutable_values};
  std::vector<FactorPlace> places;
  const char* wanted = "2, q and r";
  switch (options.method) {
    case FactorizationMethod::kQr: places = {q, r}; break;
    case FactorizationMethod::kLq:
      places = {q, r};
      wanted = "2, l and q";
      break;
    case FactorizationMethod::kSvd:
      places = {q, values, r};
      if (count == 2) places = {q, r};
      wanted = "3, u, s and v, or 2, u and v";
      break;
    case FactorizationMethod::kEigh:
      places = {values, q};
      wanted = "2, w and v";
      break;
    case FactorizationMethod::kCholesky:
      places = {q};
      wanted = "1, l";
      break;
  }
  if (places.size() == count) return places;
  return InvalidArgument("SUBSCRIPTS_MALFORMED", "subscripts have ", count,
                         " results, wanted ", wanted);
}

absl::StatusOr<v1::FactorizeRequest> MakeRequest(
    const Connection& connection, std::string_view subscripts, Operand a,
    const FactorizeOptions& options) {
  TENSORD_CLIENT_ASSIGN_OR_RETURN(const FactorModes modes,
                                  ParseFactorModes(subscripts));
  TENSORD_CLIENT_ASSIGN_OR_RETURN(const std::vector<FactorPlace> places,
                                  PlacesOf(options, modes.results.size()));
  a.modes = modes.a;
  v1::FactorizeRequest request;
  request.set_session(connection.session().name);
  TENSORD_CLIENT_ASSIGN_OR_RETURN(*request.mutable_a(), ToProto(a));
  for (size_t i = 0; i < places.size(); ++i) {
    const FactorOutput& to = *places[i].output;
    *(request.*places[i].field)() =
        OutputToProto(modes.results[i],
                      {.output = to.output,
                       .output_name = to.output_name,
                       .output_order = to.output_order},
                      connection.order());
  }
  request.set_method(static_cast<v1::FactorizationMethod>(options.method));
  if (options.truncation != Truncation()) {
    *request.mutable_truncation() = ToProto(options.truncation);
  }
  *request.mutable_options() =
      ToProto({.kernel = options.kernel,
               .workspace_limit_bytes = options.workspace_limit_bytes,
               .deterministic = options.deterministic,
               .selection = options.selection});
  return request;
}

}  // namespace tensord::internal
