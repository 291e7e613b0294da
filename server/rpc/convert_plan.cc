// Executions of plans, from messages of the wire.
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/status.h"
#include "server/rpc/convert.h"

namespace tensord::rpc {
namespace {

absl::StatusOr<server::PlanExecution::Source> SourceFrom(
    const v1::PlanInput& input, absl::string_view name) {
  server::PlanExecution::Source source;
  switch (input.source_case()) {
    case v1::PlanInput::kTensor: source.tensor = input.tensor(); break;
    case v1::PlanInput::kData:
      source.tensor = absl::string_view(input.data());
      break;
    case v1::PlanInput::SOURCE_NOT_SET:
      return core::InvalidArgument("OPERAND_EMPTY", "operand ", name,
                                   " has neither tensor nor data");
  }
  TENSORD_ASSIGN_OR_RETURN(source.view,
                           ViewOf(input, input.has_tensor(), name));
  return source;
}

}  // namespace

absl::StatusOr<server::PlanExecution> FromProto(
    const v1::ExecutePlanRequest& request) {
  server::PlanExecution execution;
  if (request.has_a()) {
    TENSORD_ASSIGN_OR_RETURN(execution.inputs[0], SourceFrom(request.a(), "a"));
  }
  if (request.has_b()) {
    TENSORD_ASSIGN_OR_RETURN(execution.inputs[1], SourceFrom(request.b(), "b"));
  }
  if (request.has_c()) {
    TENSORD_ASSIGN_OR_RETURN(execution.inputs[2], SourceFrom(request.c(), "c"));
  }
  server::PlanExecution::Result d{.tensor = request.d(),
                                  .tensor_id = request.tensor_id(),
                                  .is_inline = request.inline_()};
  if (request.has_d_view()) {
    TENSORD_ASSIGN_OR_RETURN(
        d.view, FromProto(request.d_view(), !request.d().empty(), "d"));
  }
  execution.results = {std::move(d)};
  for (const v1::PlanOutput& other : request.others()) {
    TENSORD_ASSIGN_OR_RETURN(auto of_other,
                             ViewOf(other, !other.tensor().empty(), "others"));
    execution.results.push_back({.tensor = other.tensor(),
                                 .view = std::move(of_other),
                                 .tensor_id = other.tensor_id(),
                                 .is_inline = other.inline_()});
  }
  if (request.has_alpha()) execution.alpha = FromProto(request.alpha());
  if (request.has_beta()) execution.beta = FromProto(request.beta());
  if (request.has_gamma()) execution.gamma = FromProto(request.gamma());
  return execution;
}

}  // namespace tensord::rpc
