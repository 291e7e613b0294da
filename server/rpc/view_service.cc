#include "server/rpc/view_service.h"

#include "server/rpc/convert.h"
#include "server/rpc/coroutine/unheard.h"

namespace tensord::rpc {

void ViewService::ServeOn(LoopGroup& loops) {
  loops.Serve(raw(), "CreateView", *this, &ViewService::Create);
}

Task<absl::StatusOr<v1::CreateViewResponse>> ViewService::Create(
    Call& call, const v1::CreateViewRequest& request) {
  const auto viewed = call.session().Find(request.tensor());
  if (!viewed.ok()) co_return viewed.status();
  const auto stages = FromProto(request.stages());
  if (!stages.ok()) co_return stages.status();
  std::optional<core::Scalar> padding;
  if (request.has_padding()) padding = FromProto(request.padding());
  const auto view =
      call.session().AddView(request.tensor_id(), **viewed, *stages, padding);
  if (!view.ok()) co_return view.status();
  RemoveUnheard(call, request.tensor_id(), call.shared_session(), *view);
  v1::CreateViewResponse response;
  *response.mutable_tensor() = ToProto(**view);
  co_return response;
}

}  // namespace tensord::rpc
