#include "client/cpp/src/listing.h"

#include <string>

#include "client/cpp/src/convert.h"

namespace tensord::internal {

absl::StatusOr<std::vector<TensorInfo>> ListTensors(const Channels& channels,
                                                    std::string_view session) {
  std::vector<TensorInfo> tensors;
  v1::ListTensorsRequest request;
  request.set_session(std::string(session));
  TENSORD_CLIENT_RETURN_IF_ERROR(ForEachPage(
      channels, channels.tensor, &v1::TensorService::Stub::ListTensors, request,
      [&](const v1::ListTensorsResponse& page) {
        for (const v1::Tensor& tensor : page.tensors()) {
          tensors.push_back(FromProto(tensor));
        }
      }));
  return tensors;
}

absl::StatusOr<std::vector<PlanInfo>> ListPlans(const Channels& channels,
                                                std::string_view session) {
  std::vector<PlanInfo> plans;
  v1::ListPlansRequest request;
  request.set_session(std::string(session));
  TENSORD_CLIENT_RETURN_IF_ERROR(
      ForEachPage(channels, channels.plan, &v1::PlanService::Stub::ListPlans,
                  request, [&](const v1::ListPlansResponse& page) {
                    for (const v1::Plan& plan : page.plans()) {
                      plans.push_back(FromProto(plan));
                    }
                  }));
  return plans;
}

absl::StatusOr<TensorInfo> DescribeTensor(const Channels& channels,
                                          std::string_view tensor) {
  v1::DescribeTensorRequest request;
  request.set_tensor(std::string(tensor));
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const v1::DescribeTensorResponse response,
      channels.Call(channels.tensor, &v1::TensorService::Stub::DescribeTensor,
                    request));
  return FromProto(response.tensor());
}

}  // namespace tensord::internal
