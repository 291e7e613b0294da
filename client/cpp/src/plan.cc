#include "tensord/plan.h"

#include <utility>

#include "client/cpp/src/connection.h"
#include "client/cpp/src/convert.h"

namespace tensord {

using internal::Channels;
using internal::FromProto;
using internal::ToProto;

Plan::Plan(Plan&& other) noexcept
    : connection_(std::move(other.connection_)),
      info_(std::move(other.info_)),
      owns_(std::exchange(other.owns_, false)) {}

Plan& Plan::operator=(Plan&& other) noexcept {
  if (this == &other) return *this;
  Discard();
  connection_ = std::move(other.connection_);
  info_ = std::move(other.info_);
  owns_ = std::exchange(other.owns_, false);
  return *this;
}

Plan::~Plan() { Discard(); }

void Plan::Discard() {
  if (owns_ && connection_ != nullptr) connection_->DiscardPlan(info_.name);
}

absl::StatusOr<PlanInfo> Plan::Describe() const {
  Channels& channels = connection_->channels();
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
  Channels& channels = connection_->channels();
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const v1::ExecutePlanResponse response,
      channels.Call(channels.compute, &v1::ComputeService::Stub::ExecutePlan,
                    request, connection_->Deadline(options.deadline)));
  return RemoteTensor(connection_, FromProto(response.result().tensor()),
                      /*owns=*/options.output == nullptr,
                      FromProto(response.result().report()));
}

}  // namespace tensord
