// The part of operation_desc.h that is about linear equations.
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/status.h"
#include "core/ops/linear_solve.h"
#include "core/ops/type_tables.h"
#include "server/execution/operation_desc.h"

namespace tensord::server {
namespace {

/// Nothing when there is no such operand.
absl::StatusOr<std::optional<core::OperandDesc>> Take(
    const OperationRequest& request, const OperationTensors& tensors, size_t i,
    absl::string_view name) {
  if (!request.inputs[i]) return std::nullopt;
  if (!tensors.inputs[i]) {
    return core::InvalidArgument("INPUT_MISSING", "operand ", name,
                                 " is left out");
  }
  const core::TensorDesc& t = *tensors.inputs[i];
  core::OperandDesc operand{t.element_type, t.layout, request.inputs[i]->modes,
                            request.inputs[i]->unary, core::AlignmentOf(t)};
  TENSORD_RETURN_IF_ERROR(core::ValidateOperand(operand, name));
  return operand;
}

/// A new d: as long as a along what is a's, as b along its right sides, or else
/// as what these stand for.
core::OperandDesc NewResult(const OutputRequest& asked,
                            const core::LinearSolveDesc& desc,
                            const core::LinearSolveModes& modes) {
  const core::OperandDesc& a = desc.a;
  const auto extent = [&](core::Mode mode) {
    const core::OperandDesc* from = &a;
    if (core::PositionOf(mode, a.modes) < 0) {
      if (desc.b) {
        from = &*desc.b;
      } else {
        mode = modes.sides_in_a[core::PositionOf(mode, modes.sides)];
      }
    }
    return from->layout.extents[core::PositionOf(mode, from->modes)];
  };
  core::ModeVector extents;
  for (const core::Mode mode : asked.modes) extents.push_back(extent(mode));
  return {asked.element_type.value_or(a.element_type),
          core::PackedLayout(extents, asked.order), asked.modes};
}

}  // namespace

absl::StatusOr<OperationDesc> MakeLinearSolve(const OperationRequest& request,
                                              const OperationTensors& tensors) {
  core::LinearSolveDesc desc{.function = request.function,
                             .structure = request.structure,
                             .has_unit_diagonal = request.has_unit_diagonal,
                             .a = {},
                             .b = {},
                             .d = {}};
  TENSORD_ASSIGN_OR_RETURN(auto a, Take(request, tensors, 0, "a"));
  if (!a) {
    return core::InvalidArgument("INPUT_MISSING", "operand a is left out");
  }
  desc.a = *std::move(a);
  TENSORD_ASSIGN_OR_RETURN(desc.b, Take(request, tensors, 1, "b"));
  const OutputRequest& asked = request.results[0];
  const std::optional<core::TensorDesc>& there = tensors.results[0];
  if (there) {
    desc.d = {there->element_type, there->layout, asked.modes,
              core::UnaryOperator::kIdentity, core::AlignmentOf(*there)};
  } else {
    TENSORD_ASSIGN_OR_RETURN(
        const core::LinearSolveModes modes,
        core::GroupModes(desc.function, desc.a, desc.b ? &*desc.b : nullptr,
                         asked.modes));
    desc.d = NewResult(asked, desc, modes);
  }
  TENSORD_RETURN_IF_ERROR(core::Validate(desc));
  const core::ElementType type = desc.a.element_type;
  const core::ComputeType computed = core::DefaultComputeType(type);
  if (request.compute_type.value_or(computed) != computed) {
    return core::Unimplemented("TYPES_NOT_SUPPORTED", "compute_type is ",
                               core::NameOf(*request.compute_type), ", wanted ",
                               core::NameOf(computed), " for matrices of ",
                               core::NameOf(type));
  }
  OperationDesc made;
  made.results = {
      {desc.d.element_type, desc.d.layout, there ? there->offset : 0}};
  made.desc = std::move(desc);
  return made;
}

}  // namespace tensord::server
