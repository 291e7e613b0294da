#include "server/session/prepared_plan.h"

#include <utility>

#include "core/base/status.h"

namespace tensord::server {
namespace {

/// Replaces what an operand was made of by what it is like.
void Describe(std::optional<InputRequest>& input,
              const std::optional<core::TensorDesc>& tensor) {
  if (!input) return;
  input->source = InlineTensor{tensor->element_type, tensor->layout, {}};
}

/// Gives an operand what this execution brings along for it.
absl::Status Supply(const std::optional<PlanExecution::Source>& source,
                    absl::string_view name, bool is_read,
                    const PreparedPlan& plan,
                    std::optional<InputRequest>& input) {
  if (source && !input) {
    return core::InvalidArgument("PLAN_HAS_NO_OPERAND", "plan ", plan.name(),
                                 " has no operand ", name);
  }
  if (!source) {
    if (!input || !is_read) return absl::OkStatus();
    return core::InvalidArgument("INPUT_MISSING", "operand ", name, " of plan ",
                                 plan.name(),
                                 " is left out, but its factor is not 0");
  }
  if (const auto* tensor = std::get_if<std::string>(&*source)) {
    input->source = *tensor;
  } else {
    std::get<InlineTensor>(input->source).data =
        std::get<absl::string_view>(*source);
  }
  return absl::OkStatus();
}

/// OK when the operation has the factor, or it is not given.
absl::Status CheckFactor(const std::optional<core::Scalar>& factor,
                         absl::string_view name, bool has_factor,
                         const PreparedPlan& plan) {
  if (!factor || has_factor) return absl::OkStatus();
  return core::InvalidArgument("PLAN_HAS_NO_FACTOR", "plan ", plan.name(),
                               " has no factor ", name);
}

absl::Status CheckLike(const std::optional<core::TensorDesc>& got,
                       const std::optional<core::TensorDesc>& wanted,
                       absl::string_view name, const std::string& plan) {
  if (!got || !wanted) return absl::OkStatus();
  if (got->element_type != wanted->element_type) {
    return core::InvalidArgument("PLAN_OPERAND_DIFFERS", "operand ", name,
                                 " has ", core::NameOf(got->element_type),
                                 " elements, plan ", plan, " is for ",
                                 core::NameOf(wanted->element_type));
  }
  if (got->layout.extents != wanted->layout.extents) {
    return core::InvalidArgument(
        "PLAN_OPERAND_DIFFERS", "operand ", name, " has extents ",
        core::ToString(got->layout.extents), ", plan ", plan, " is for ",
        core::ToString(wanted->layout.extents));
  }
  if (!core::AreAlike(got->layout, wanted->layout)) {
    return core::InvalidArgument(
        "PLAN_OPERAND_DIFFERS", "operand ", name, " has strides ",
        core::ToString(got->layout.strides), ", plan ", plan, " is for ",
        core::ToString(wanted->layout.strides));
  }
  return absl::OkStatus();
}

}  // namespace

PreparedPlan::PreparedPlan(std::string name, const OperationRequest& request,
                           OperationTensors tensors, core::TensorDesc output,
                           core::PlanKey key)
    : name_(std::move(name)),
      request_(request),
      tensors_(std::move(tensors)),
      key_(std::move(key)) {
  Describe(request_.a, tensors_.a);
  Describe(request_.b, tensors_.b);
  Describe(request_.c, tensors_.c);
  if (!request_.d.tensor.empty()) {
    // A new d is to be like the one that was named, if that is packed.
    const core::Layout last = core::PackedLayout(output.layout.extents,
                                                 core::Order::kLastModeFastest);
    request_.d.order = output.layout == last ? core::Order::kLastModeFastest
                                             : core::Order::kFirstModeFastest;
  }
  request_.d.tensor.clear();
  request_.d.tensor_id.clear();
  request_.d.is_inline = false;
  request_.d.element_type = output.element_type;
  tensors_.d = std::move(output);
}

absl::StatusOr<OperationRequest> PreparedPlan::RequestFor(
    const PlanExecution& execution) const {
  OperationRequest request = request_;
  const bool is_elementwise = request.kind == OperationKind::kElementwise;
  const bool has_beta = is_elementwise
                            ? request.b.has_value()
                            : request.kind != OperationKind::kPermute;
  TENSORD_RETURN_IF_ERROR(CheckFactor(execution.beta, "beta", has_beta, *this));
  TENSORD_RETURN_IF_ERROR(
      CheckFactor(execution.gamma, "gamma", is_elementwise, *this));
  request.alpha = execution.alpha.value_or(request.alpha);
  request.beta = execution.beta.value_or(request.beta);
  request.gamma = execution.gamma.value_or(request.gamma);
  const InputsRead reads = WhichInputs(request);
  TENSORD_RETURN_IF_ERROR(Supply(execution.a, "a", reads.a, *this, request.a));
  TENSORD_RETURN_IF_ERROR(Supply(execution.b, "b", reads.b, *this, request.b));
  TENSORD_RETURN_IF_ERROR(Supply(execution.c, "c", reads.c, *this, request.c));
  if (!execution.d.empty() + !execution.tensor_id.empty() +
          execution.is_inline >
      1) {
    return core::InvalidArgument(
        "OUTPUT_AMBIGUOUS",
        "d is to be an existing tensor, a new one with a "
        "name, or inline, wanted one of them");
  }
  request.d.tensor = execution.d;
  request.d.tensor_id = execution.tensor_id;
  request.d.is_inline = execution.is_inline;
  return request;
}

absl::Status PreparedPlan::CheckOperands(
    const OperationTensors& tensors) const {
  TENSORD_RETURN_IF_ERROR(CheckLike(tensors.a, tensors_.a, "a", name_));
  TENSORD_RETURN_IF_ERROR(CheckLike(tensors.b, tensors_.b, "b", name_));
  TENSORD_RETURN_IF_ERROR(CheckLike(tensors.c, tensors_.c, "c", name_));
  return CheckLike(tensors.d, tensors_.d, "d", name_);
}

}  // namespace tensord::server
