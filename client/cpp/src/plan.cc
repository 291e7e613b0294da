#include "tensord/plan.h"

#include "client/cpp/src/connection.h"
#include "client/cpp/src/convert.h"
#include "client/cpp/src/errors.h"
#include "client/cpp/src/results.h"

namespace tensord {

using internal::Channels;
using internal::FromProto;
using internal::Results;
using internal::ToProto;

namespace {

absl::StatusOr<v1::ExecutePlanResponse> Send(
    internal::Connection& connection, const v1::ExecutePlanRequest& request,
    std::optional<absl::Duration> deadline) {
  Channels& channels = connection.channels();
  return channels.Call(channels.compute, &v1::ComputeService::Stub::ExecutePlan,
                       request, connection.Deadline(deadline));
}

}  // namespace

absl::StatusOr<PlanInfo> Plan::Describe() const {
  Channels& channels = handle_.connection()->channels();
  v1::DescribePlanRequest request;
  request.set_plan(info_.name);
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const v1::DescribePlanResponse response,
      channels.Call(channels.plan, &v1::PlanService::Stub::DescribePlan,
                    request));
  return FromProto(response.plan());
}

absl::StatusOr<RemoteTensor> Plan::Execute(const PlanInputs& inputs,
                                           const PlanExecution& options) const {
  TENSORD_CLIENT_RETURN_IF_ERROR(CheckResultCount(1));
  v1::ExecutePlanRequest request;
  request.set_plan(info_.name);
  if (inputs.a != nullptr) request.mutable_a()->set_tensor(inputs.a->name());
  if (inputs.b != nullptr) request.mutable_b()->set_tensor(inputs.b->name());
  if (inputs.c != nullptr) request.mutable_c()->set_tensor(inputs.c->name());
  if (options.output != nullptr) request.set_d(options.output->name());
  request.set_tensor_id(options.output_name);
  if (options.alpha) *request.mutable_alpha() = ToProto(*options.alpha);
  if (options.beta) *request.mutable_beta() = ToProto(*options.beta);
  if (options.gamma) *request.mutable_gamma() = ToProto(*options.gamma);
  const auto& connection = handle_.connection();
  TENSORD_CLIENT_ASSIGN_OR_RETURN(const v1::ExecutePlanResponse response,
                                  Send(*connection, request, options.deadline));
  return Results::One(connection, response.result(), options.output);
}

absl::StatusOr<Factors> Plan::ExecuteFactorize(
    const RemoteTensor& a, const FactorizeExecution& options) const {
  TENSORD_CLIENT_RETURN_IF_ERROR(CheckResultCount(2));
  v1::ExecutePlanRequest request;
  request.set_plan(info_.name);
  request.mutable_a()->set_tensor(a.name());
  if (options.q.output != nullptr) request.set_d(options.q.output->name());
  request.set_tensor_id(options.q.output_name);
  v1::PlanOutput& r = *request.add_others();
  if (options.r.output != nullptr) r.set_tensor(options.r.output->name());
  r.set_tensor_id(options.r.output_name);
  const auto& connection = handle_.connection();
  TENSORD_CLIENT_ASSIGN_OR_RETURN(const v1::ExecutePlanResponse response,
                                  Send(*connection, request, options.deadline));
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      std::vector<RemoteTensor> made,
      Results::All(connection, response.result(),
                   {options.q.output, options.r.output}));
  return Factors{std::move(made[0]), std::move(made[1])};
}

absl::Status Plan::CheckResultCount(int count) const {
  const int has = info_.result_count;
  if (has == count) return absl::OkStatus();
  return internal::InvalidArgument(
      "PLAN_RESULT_COUNT", "plan ", info_.name, " of ", info_.operation,
      " has ", has, has == 1 ? " result" : " results", ", wanted ", count);
}

}  // namespace tensord
