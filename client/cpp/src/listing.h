// Asking what tensors there are.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cpp/src/channels.h"
#include "tensord/plan.h"
#include "tensord/remote_tensor.h"

namespace tensord::internal {

/// Asks for pages, from `request` on, until there are no more. `visit` is given
/// each.
template <typename Stub, typename Request, typename Response, typename Visit>
absl::Status ForEachPage(const Channels& channels,
                         const std::unique_ptr<Stub>& stub,
                         grpc::Status (Stub::*method)(grpc::ClientContext*,
                                                      const Request&,
                                                      Response*),
                         Request request, Visit visit) {
  do {
    TENSORD_CLIENT_ASSIGN_OR_RETURN(const Response page,
                                    channels.Call(stub, method, request));
    visit(page);
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return absl::OkStatus();
}

/// All pages of a session's tensors.
absl::StatusOr<std::vector<TensorInfo>> ListTensors(const Channels& channels,
                                                    std::string_view session);

absl::StatusOr<std::vector<PlanInfo>> ListPlans(const Channels& channels,
                                                std::string_view session);

absl::StatusOr<TensorInfo> DescribeTensor(const Channels& channels,
                                          std::string_view tensor);

}  // namespace tensord::internal
