// The part of operation_desc.h that is about factorizations.
#include <optional>
#include <utility>

#include "core/base/status.h"
#include "core/ops/factorization.h"
#include "server/execution/operation_desc.h"

namespace tensord::server {
namespace {

/// A factor of a, from the existing tensor or from what a is like.
core::OperandDesc FactorOf(const OutputRequest& request,
                           const std::optional<core::TensorDesc>& there,
                           const core::OperandDesc& a, int64_t inner_extent) {
  core::OperandDesc factor{.modes = request.modes};
  if (there) {
    factor.element_type = there->element_type;
    factor.layout = there->layout;
    factor.alignment_bytes = core::AlignmentOf(*there);
    return factor;
  }
  factor.element_type = request.element_type.value_or(a.element_type);
  core::ModeVector extents;
  for (const core::Mode mode : request.modes) {
    const int at = core::PositionOf(mode, a.modes);
    extents.push_back(at < 0 ? inner_extent : a.layout.extents[at]);
  }
  factor.layout = core::PackedLayout(extents, request.order);
  return factor;
}

}  // namespace

absl::StatusOr<OperationDesc> MakeFactorization(
    const OperationRequest& request, const OperationTensors& tensors) {
  const std::optional<core::TensorDesc>& t = tensors.inputs[0];
  if (!t) {
    return core::InvalidArgument("INPUT_MISSING", "operand a is left out");
  }
  const InputRequest& input = *request.inputs[0];
  core::FactorizationDesc desc{.method = request.method,
                               .a = {t->element_type, t->layout, input.modes,
                                     input.unary, core::AlignmentOf(*t)}};
  TENSORD_RETURN_IF_ERROR(core::ValidateOperand(desc.a, "a"));
  TENSORD_ASSIGN_OR_RETURN(const int64_t inner_extent,
                           core::InnerExtent(desc.a, request.results[0].modes,
                                             request.results[1].modes));
  OperationDesc made;
  for (size_t i = 0; i < request.results.size(); ++i) {
    core::OperandDesc& factor = i == 0 ? desc.q : desc.r;
    const std::optional<core::TensorDesc>& there = tensors.results[i];
    factor = FactorOf(request.results[i], there, desc.a, inner_extent);
    made.results.push_back(
        {factor.element_type, factor.layout, there ? there->offset : 0});
  }
  TENSORD_RETURN_IF_ERROR(core::Validate(desc));
  made.desc = std::move(desc);
  return made;
}

}  // namespace tensord::server
