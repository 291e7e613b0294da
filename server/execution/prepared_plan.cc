#include "server/execution/prepared_plan.h"

#include <utility>

#include "core/base/status.h"
#include "server/execution/operation_table.h"

namespace tensord::server {
namespace {

/// Replaces what an operand was made of by what it is like.
void Describe(std::optional<InputRequest>& input,
              const std::optional<core::TensorDesc>& tensor) {
  if (!input) return;
  *input = {.source = InlineTensor{tensor->element_type, tensor->layout, {}},
            .modes = std::move(input->modes),
            .unary = input->unary};
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
                                 plan.name(), " is left out, but is read");
  }
  if (const auto* tensor = std::get_if<std::string>(&source->tensor)) {
    input->source = *tensor;
    input->view = source->view;
  } else {
    std::get<InlineTensor>(input->source).data =
        std::get<absl::string_view>(source->tensor);
  }
  return absl::OkStatus();
}

/// OK when the operation has the factor, or it is not given.
absl::Status CheckFactor(const std::optional<core::Scalar>& given,
                         Factor factor, const PreparedPlan& plan) {
  if (!given || HasFactor(plan.request(), factor)) return absl::OkStatus();
  return core::InvalidArgument("PLAN_HAS_NO_FACTOR", "plan ", plan.name(),
                               " has no factor ", NameOf(factor));
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

PreparedPlan::PreparedPlan(const OperationRequest& request,
                           PlannedOperation planned)
    : Prepared({std::move(planned.key)}),
      request_(request),
      tensors_(std::move(planned.tensors)) {
  for (size_t i = 0; i < request_.inputs.size(); ++i) {
    Describe(request_.inputs[i], tensors_.inputs[i]);
  }
  for (size_t i = 0; i < planned.results.size(); ++i) {
    OutputRequest& result = request_.results[i];
    core::TensorDesc& desc = planned.results[i];
    if (!result.tensor.empty()) {
      // A new one is to be like that which was named, if that is packed.
      const core::Layout last = core::PackedLayout(
          desc.layout.extents, core::Order::kLastModeFastest);
      result.order = desc.layout == last ? core::Order::kLastModeFastest
                                         : core::Order::kFirstModeFastest;
    }
    result.tensor.clear();
    result.view.reset();
    result.tensor_id.clear();
    result.is_inline = false;
    result.element_type = desc.element_type;
    tensors_.results[i] = std::move(desc);
  }
}

absl::StatusOr<OperationRequest> PreparedPlan::RequestFor(
    const PlanExecution& execution) const {
  OperationRequest request = request_;
  TENSORD_RETURN_IF_ERROR(CheckFactor(execution.alpha, Factor::kAlpha, *this));
  TENSORD_RETURN_IF_ERROR(CheckFactor(execution.beta, Factor::kBeta, *this));
  TENSORD_RETURN_IF_ERROR(CheckFactor(execution.gamma, Factor::kGamma, *this));
  request.alpha = execution.alpha.value_or(request.alpha);
  request.beta = execution.beta.value_or(request.beta);
  request.gamma = execution.gamma.value_or(request.gamma);
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    TENSORD_RETURN_IF_ERROR(Supply(execution.inputs[i], kInputNames[i],
                                   Reads(request, i), *this,
                                   request.inputs[i]));
  }
  if (execution.results.size() > request.results.size()) {
    return core::InvalidArgument(
        "PLAN_HAS_NO_OPERAND", "plan ", name(), " has ", request.results.size(),
        " results, places are given for ", execution.results.size());
  }
  for (size_t i = 0; i < execution.results.size(); ++i) {
    const PlanExecution::Result& given = execution.results[i];
    if (!given.tensor.empty() + !given.tensor_id.empty() + given.is_inline >
        1) {
      return core::InvalidArgument("OUTPUT_AMBIGUOUS", ResultNameOf(request, i),
                                   " is to be an existing tensor, a new one "
                                   "with a name, or inline, wanted one of "
                                   "them");
    }
    request.results[i].tensor = given.tensor;
    request.results[i].view = given.view;
    request.results[i].tensor_id = given.tensor_id;
    request.results[i].is_inline = given.is_inline;
  }
  return request;
}

absl::Status PreparedPlan::CheckOperands(
    const OperationTensors& tensors) const {
  for (size_t i = 0; i < tensors.inputs.size(); ++i) {
    TENSORD_RETURN_IF_ERROR(CheckLike(tensors.inputs[i], tensors_.inputs[i],
                                      kInputNames[i], name()));
  }
  return CheckResults(tensors.results);
}

absl::Status PreparedPlan::CheckResults(
    const PerResult<std::optional<core::TensorDesc>>& results) const {
  for (size_t i = 0; i < results.size(); ++i) {
    TENSORD_RETURN_IF_ERROR(CheckLike(results[i], tensors_.results[i],
                                      ResultNameOf(request_, i), name()));
  }
  return absl::OkStatus();
}

int64_t PreparedPlan::size_bytes() const {
  constexpr int64_t kBytes = 4096;  // layouts, modes, name and key
  return kBytes;
}

}  // namespace tensord::server
