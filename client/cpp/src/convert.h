// Values of the public headers as messages of the contract, and back.
#pragma once

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include <cstddef>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tensord/layout.h"
#include "tensord/operations.h"
#include "tensord/plan.h"
#include "tensord/remote_tensor.h"
#include "tensord/server.h"
#include "tensord/session.h"
#include "tensord/v1/admin.pb.h"
#include "tensord/v1/compute.pb.h"
#include "tensord/v1/plan.pb.h"
#include "tensord/v1/session.pb.h"
#include "tensord/v1/tensor.pb.h"

namespace tensord::internal {

google::protobuf::Duration ToProto(absl::Duration duration);
v1::Layout ToProto(const Layout& layout);
v1::Scalar ToProto(const Scalar& scalar);

/// Errors  INVALID_ARGUMENT: an inline operand whose layout makes no sense.
absl::StatusOr<v1::Operand> ToProto(const Operand& operand);
v1::Output OutputToProto(const Modes& modes, const ExecutionOptions& options,
                         Order default_order);
v1::ExecutionOptions ToProto(const ExecutionOptions& options);

absl::Duration FromProto(const google::protobuf::Duration& duration);
absl::Time FromProto(const google::protobuf::Timestamp& time);
TensorInfo FromProto(const v1::Tensor& tensor);
ExecutionReport FromProto(const v1::ExecutionReport& report);
Explanation FromProto(const v1::ExplainPlanResponse& response);
PlanInfo FromProto(const v1::Plan& plan);
SessionInfo FromProto(const v1::Session& session);
Limits FromProto(const v1::Limits& limits);
ServerInfo FromProto(const v1::GetServerInfoResponse& response);
ServerStats FromProto(const v1::GetServerStatsResponse& response);

/// The bytes that `view` spans. Names `what` in errors.
///
/// Errors  INVALID_ARGUMENT: extents and strides that make no sense, or no
///         data.
absl::StatusOr<std::span<const std::byte>> BytesOf(const UntypedHostView& view,
                                                   std::string_view what);

}  // namespace tensord::internal
