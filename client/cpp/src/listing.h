// Asking what tensors there are.
#pragma once

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cpp/src/channels.h"
#include "tensord/plan.h"
#include "tensord/remote_tensor.h"

namespace tensord::internal {

/// All pages of a session's tensors.
absl::StatusOr<std::vector<TensorInfo>> ListTensors(const Channels& channels,
                                                    std::string_view session);

absl::StatusOr<std::vector<PlanInfo>> ListPlans(const Channels& channels,
                                                std::string_view session);

absl::StatusOr<TensorInfo> DescribeTensor(const Channels& channels,
                                          std::string_view tensor);

}  // namespace tensord::internal
