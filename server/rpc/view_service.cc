#include "server/rpc/view_service.h"

#include "server/rpc/convert.h"

namespace tensord::rpc {

void ViewService::ServeOn(LoopGroup& loops) {
  loops.Serve(service_, &v1::ViewService::AsyncService::RequestCreateView,
              [this](auto& call, auto& q) { return Create(call, q); });
}

Task<absl::StatusOr<v1::CreateViewResponse>> ViewService::Create(
    Call&, const v1::CreateViewRequest& request) {
  const auto found = context_.FindTensor(request.tensor());
  if (!found.ok()) co_return found.status();
  const server::SessionUse use(found->session);
  const auto stages = FromProto(request.stages());
  if (!stages.ok()) co_return stages.status();
  std::optional<core::Scalar> padding;
  if (request.has_padding()) padding = FromProto(request.padding());
  const auto view = found->session->AddView(request.tensor_id(), *found->tensor,
                                            *stages, padding);
  if (!view.ok()) co_return view.status();
  v1::CreateViewResponse response;
  *response.mutable_tensor() = ToProto(**view);
  co_return response;
}

}  // namespace tensord::rpc
