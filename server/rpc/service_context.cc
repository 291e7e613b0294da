#include "server/rpc/service_context.h"

#include "core/base/status.h"

namespace tensord::rpc {

absl::StatusOr<FoundTensor> ServiceContext::FindTensor(
    absl::string_view tensor_name) const {
  const absl::string_view session_name = server::SessionOfTensor(tensor_name);
  if (session_name.empty()) {
    return core::InvalidArgument(
        "TENSOR_NAME_MALFORMED", "tensor '", tensor_name.substr(0, 300),
        "' wanted as sessions/{session}/tensors/{tensor}");
  }
  FoundTensor found;
  TENSORD_ASSIGN_OR_RETURN(found.session, sessions.Find(session_name));
  TENSORD_ASSIGN_OR_RETURN(found.tensor, found.session->Find(tensor_name));
  return found;
}

absl::StatusOr<FoundPlan> ServiceContext::FindPlan(
    absl::string_view plan_name) const {
  const absl::string_view session_name = server::SessionOfPlan(plan_name);
  if (session_name.empty()) {
    return core::InvalidArgument("PLAN_NAME_MALFORMED", "plan '",
                                 plan_name.substr(0, 300),
                                 "' wanted as sessions/{session}/plans/{plan}");
  }
  FoundPlan found;
  TENSORD_ASSIGN_OR_RETURN(found.session, sessions.Find(session_name));
  TENSORD_ASSIGN_OR_RETURN(found.plan, found.session->FindPlan(plan_name));
  return found;
}

}  // namespace tensord::rpc
