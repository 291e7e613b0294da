// Messages of the wire <-> values of the core and the sessions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/element_type.h"
#include "core/base/layout.h"
#include "core/base/status.h"
#include "core/tensor/tensor.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"
#include "server/execution/operation_request.h"
#include "server/execution/prepared_plan.h"
#include "server/execution/program/program_request.h"
#include "server/execution/run.h"
#include "server/session/session.h"
#include "server/session/stored_tensor.h"
#include "server/session/tensor_view.h"
#include "tensord/v1/compute.pb.h"
#include "tensord/v1/plan.pb.h"
#include "tensord/v1/plan_cache.pb.h"
#include "tensord/v1/program.pb.h"
#include "tensord/v1/session.pb.h"
#include "tensord/v1/tensor.pb.h"
#include "tensord/v1/view.pb.h"

namespace tensord::rpc {

/// INVALID_ARGUMENT, reason ENUM_UNKNOWN: the field `what` is not given, or has
/// a number that its enum `type` lacks.
absl::Status UnknownEnum(absl::string_view what, int value,
                         const google::protobuf::EnumDescriptor& type);
template <typename Enum>
absl::Status UnknownEnum(absl::string_view what, Enum value) {
  return UnknownEnum(what, value, *google::protobuf::GetEnumDescriptor<Enum>());
}
/// Errors  as UnknownEnum().
absl::Status CheckLoad(v1::PlanCacheLoad load);

// Each that may fail does so with INVALID_ARGUMENT, and names the field.
absl::StatusOr<core::Selection> FromProto(v1::Selection selection);
/// OK unless a kernel is to be measured and also the same every time.
/// Errors  INVALID_ARGUMENT, reason SELECTION_CONFLICTS.
absl::Status CheckSelection(core::Selection selection, bool deterministic);
/// The limit on scratch memory that a client asks for.
/// Errors  INVALID_ARGUMENT, reason WORKSPACE_LIMIT_NEGATIVE.
absl::StatusOr<int64_t> WorkspaceLimit(int64_t asked);
absl::StatusOr<core::ElementType> FromProto(v1::ElementType type);
absl::StatusOr<core::Order> FromProto(v1::Order order);
core::Scalar FromProto(const v1::Scalar& scalar);
absl::StatusOr<core::TensorDesc> FromProto(v1::ElementType type,
                                           const v1::Layout& layout);

/// A tensor that a message brings, called `name` in errors. Views into the
/// message.
absl::StatusOr<server::InlineTensor> FromProto(const v1::InlineTensor& sent,
                                               absl::string_view name);
absl::StatusOr<std::optional<core::ComputeType>> FromProto(
    v1::ComputeType type);

/// A program that a client asks for. Views into the message: it must outlive
/// the result.
absl::StatusOr<server::ProgramRequest> FromProto(const v1::ProgramSpec& spec);
absl::StatusOr<std::vector<server::ProgramOperandRequest>> FromProto(
    const google::protobuf::RepeatedPtrField<v1::ProgramOperand>& operands);
absl::StatusOr<std::vector<server::ProgramOutputRequest>> FromProto(
    const google::protobuf::RepeatedPtrField<v1::ProgramOutput>& outputs);
v1::ProgramSource ToProto(const server::ProgramSource& source);

/// Most entries of a page for a client that asks for `asked`; 0: the server
/// decides.
/// Errors  INVALID_ARGUMENT, reason PAGE_SIZE_NEGATIVE.
absl::StatusOr<int> PageSize(int32_t asked);

/// Puts the page that `request` asks for into `response`: calls `add` for each
/// thing on it. `list(after, count)` are the first `count` things whose names
/// follow `after`.
/// Errors  those of PageSize() and of `add`.
template <typename Request, typename Response, typename List, typename Add>
absl::Status FillPage(const Request& request, const List& list, const Add& add,
                      Response& response) {
  TENSORD_ASSIGN_OR_RETURN(const int size, PageSize(request.page_size()));
  const auto things = list(request.page_token(), size + 1);
  for (int i = 0; i < std::min<int>(size, std::ssize(things)); ++i) {
    TENSORD_RETURN_IF_ERROR(add(*things[i]));
  }
  if (std::ssize(things) > size) {
    response.set_next_page_token(things[size - 1]->name());
  }
  return absl::OkStatus();
}

/// The stages of a view; whether they fit the modes is not looked at.
absl::StatusOr<std::vector<server::ViewStage>> FromProto(
    const google::protobuf::RepeatedPtrField<v1::ViewStage>& stages);
/// How a tensor is to be seen, which messages call `what`.
///
/// Errors  INVALID_ARGUMENT, reason VIEW_WITHOUT_TENSOR: `is_named` is false.
absl::StatusOr<server::ViewRequest> FromProto(const v1::ViewSpec& view,
                                              bool is_named,
                                              absl::string_view what);
/// The same of a message's field `view`; nothing where it has none.
template <typename Message>
absl::StatusOr<std::optional<server::ViewRequest>> ViewOf(
    const Message& message, bool is_named, absl::string_view what) {
  if (!message.has_view()) return std::nullopt;
  return FromProto(message.view(), is_named, what);
}

/// The operation that a request asks for. Views into the message: it must
/// outlive the result.
absl::StatusOr<server::OperationRequest> FromProto(
    const v1::PermuteRequest& request);
absl::StatusOr<server::OperationRequest> FromProto(
    const v1::ElementwiseRequest& request);
absl::StatusOr<server::OperationRequest> FromProto(
    const v1::ReduceRequest& request);
absl::StatusOr<server::OperationRequest> FromProto(
    const v1::ContractRequest& request);
absl::StatusOr<server::OperationRequest> FromProto(
    const v1::FactorizeRequest& request);
absl::StatusOr<server::OperationRequest> FromProto(
    const v1::SolveLinearRequest& request);

/// What an execution of a plan brings along. Views into the message: it must
/// outlive the result.
absl::StatusOr<server::PlanExecution> FromProto(
    const v1::ExecutePlanRequest& request);

/// What an operation has made, and how.
/// Requires  it is done.
v1::Result ToProto(const server::Run& run);

v1::TensorState ToProto(server::TensorState state);
v1::Tensor ToProto(const server::StoredTensor& tensor);
v1::PlanOperand ToProto(const core::TensorDesc& desc, const core::Modes& modes);
v1::ElementType ToProto(core::ElementType type);
v1::PlanSource ToProto(core::PlanSource source);
v1::Selection ToProto(core::Selection selection);
v1::Scalar ToProto(const core::Scalar& scalar);
v1::Session ToProto(const server::Session& session);

google::protobuf::Duration ToProto(absl::Duration duration);
google::protobuf::Timestamp ToProto(absl::Time time);
/// Errors  INVALID_ARGUMENT, naming `field`: its parts differ in sign, or nanos
///         are a second or more.
absl::StatusOr<absl::Duration> FromProto(
    const google::protobuf::Duration& duration, absl::string_view field);

}  // namespace tensord::rpc
