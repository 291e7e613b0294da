#include "tensord/plan.h"

#include "client/cpp/src/connection.h"
#include "client/cpp/src/convert.h"

namespace tensord {

using internal::Channels;
using internal::FromProto;
using internal::ToProto;

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
  Channels& channels = connection->channels();
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const v1::ExecutePlanResponse response,
      channels.Call(channels.compute, &v1::ComputeService::Stub::ExecutePlan,
                    request, connection->Deadline(options.deadline)));
  return RemoteTensor(connection, FromProto(response.result().tensor()),
                      /*owns=*/options.output == nullptr,
                      FromProto(response.result().report()));
}

}  // namespace tensord
