#include "server/session/operation_request.h"

#include <algorithm>
#include <utility>

#include "core/base/checked_math.h"
#include "core/base/status.h"
#include "core/ops/type_tables.h"
#include "core/view/frame.h"
#include "server/session/stored_tensor.h"

namespace tensord::server {
namespace {

using core::ElementType;
using core::OperandDesc;

/// The operand, with strides of 1 in place of 0: what there is to validate.
std::optional<OperandDesc> Combine(const std::optional<InputRequest>& request,
                                   const std::optional<core::TensorDesc>& t) {
  if (!request || !t) return std::nullopt;
  OperandDesc operand{t->element_type, t->layout, request->modes,
                      request->unary, core::AlignmentOf(*t)};
  for (int64_t& stride : operand.layout.strides) {
    if (stride == 0) stride = 1;
  }
  return operand;
}

/// Leaves out the modes along which `tensor` repeats: an operand that lacks a
/// mode of d is broadcast along it.
void DropRepeats(const std::optional<core::TensorDesc>& tensor,
                 OperandDesc& operand) {
  if (!tensor) return;
  const core::ModeVector& strides = tensor->layout.strides;
  for (int i = static_cast<int>(strides.size()) - 1; i >= 0; --i) {
    if (strides[i] != 0) continue;
    operand.layout.extents.erase(operand.layout.extents.begin() + i);
    operand.layout.strides.erase(operand.layout.strides.begin() + i);
    operand.modes.erase(operand.modes.begin() + i);
  }
}

absl::Status CheckPresent(const std::optional<OperandDesc>& input, bool is_read,
                          absl::string_view name, absl::string_view factor) {
  if (input || !is_read) return absl::OkStatus();
  return core::InvalidArgument("INPUT_MISSING", "operand ", name,
                               " is left out, but ", factor, " is not 0");
}

/// d, from the existing tensor or from the inputs.
absl::StatusOr<OperandDesc> Output(const OutputRequest& request,
                                   const core::Margins& margins,
                                   const OperationTensors& tensors,
                                   const std::optional<OperandDesc>& a,
                                   const std::optional<OperandDesc>& b,
                                   const std::optional<OperandDesc>& c) {
  if (tensors.d) {
    return OperandDesc{tensors.d->element_type, tensors.d->layout,
                       request.modes, core::UnaryOperator::kIdentity,
                       core::AlignmentOf(*tensors.d)};
  }
  OperandDesc d{.modes = request.modes};
  if (request.element_type) {
    d.element_type = *request.element_type;
  } else if (c) {
    d.element_type = c->element_type;
  } else if (a && b) {
    d.element_type = core::WidestOf(a->element_type, b->element_type);
  } else if (a || b) {
    d.element_type = (a ? a : b)->element_type;
  } else {
    return core::InvalidArgument(
        "ELEMENT_TYPE_UNKNOWN",
        "d is a new tensor without element type, and no input says which");
  }
  core::ModeVector extents;
  for (size_t i = 0; i < request.modes.size(); ++i) {
    const core::Mode mode = request.modes[i];
    std::optional<int64_t> extent;
    for (const auto* input : {&a, &b, &c}) {
      if (!*input) continue;
      const int at = core::PositionOf(mode, (*input)->modes);
      if (at >= 0) {
        extent = (*input)->layout.extents[at];
        break;
      }
    }
    if (!extent) {
      return core::InvalidArgument(
          "MODE_EXTENT_UNKNOWN", "mode ", core::ToString(mode),
          " of d is in no input; to broadcast along it, name an existing "
          "tensor as d");
    }
    extent = core::CheckedAdd(*extent, margins.before[i]);
    if (extent) extent = core::CheckedAdd(*extent, margins.after[i]);
    if (!extent) {
      return core::InvalidArgument(
          "PADDING_TOO_LARGE", "padding of mode ", core::ToString(mode), ", ",
          margins.before[i], " and ", margins.after[i],
          ", gives d an extent of more than int64 has");
    }
    extents.push_back(*extent);
  }
  d.layout = core::PackedLayout(extents, request.order);
  return d;
}

/// The margins in d, one a mode.
absl::StatusOr<core::Margins> MarginsOf(
    const std::optional<PaddingRequest>& padding, size_t mode_count) {
  core::Margins margins{core::ModeVector(mode_count, 0),
                        core::ModeVector(mode_count, 0)};
  if (!padding) return margins;
  const auto take = [&](const core::ModeVector& from, absl::string_view name,
                        core::ModeVector& to) {
    if (from.empty()) return absl::OkStatus();
    if (from.size() != mode_count) {
      return core::InvalidArgument(
          "PADDING_COUNT_MISMATCH", "padding.", name, " has ", from.size(),
          " numbers, wanted one for each of the ", mode_count, " modes of d");
    }
    const auto negative = std::find_if(from.begin(), from.end(),
                                       [](int64_t width) { return width < 0; });
    if (negative != from.end()) {
      return core::InvalidArgument("NEGATIVE_PADDING", "padding.", name, " is ",
                                   core::ToString(from),
                                   ", wanted numbers >= 0");
    }
    to = from;
    return absl::OkStatus();
  };
  TENSORD_RETURN_IF_ERROR(take(padding->before, "before", margins.before));
  TENSORD_RETURN_IF_ERROR(take(padding->after, "after", margins.after));
  return margins;
}

/// Leaves of `d` the part that is no padding, and says where that is.
absl::StatusOr<OutputFrame> TakeFrame(const PaddingRequest& padding,
                                      const core::Margins& margins,
                                      int64_t offset,
                                      const std::optional<OperandDesc>& a,
                                      OperandDesc& d) {
  TENSORD_ASSIGN_OR_RETURN(
      const core::ElementBytes value,
      core::ElementOf(padding.value, d.element_type, "padding.value"));
  TENSORD_RETURN_IF_ERROR(core::ValidateOperand(d, "d"));
  for (size_t i = 0; i < d.modes.size(); ++i) {
    const int64_t extent = d.layout.extents[i];
    const int64_t before = margins.before[i], after = margins.after[i];
    if (before > extent || after > extent - before) {
      return core::InvalidArgument("PADDING_TOO_LARGE", "mode ",
                                   core::ToString(d.modes[i]), " has extent ",
                                   extent, " in d, less than its padding, ",
                                   before, " and ", after);
    }
    const int at = a ? core::PositionOf(d.modes[i], a->modes) : -1;
    if (at >= 0 && a->layout.extents[at] != extent - before - after) {
      return core::InvalidArgument(
          "MODE_EXTENT_MISMATCH", "mode ", core::ToString(d.modes[i]),
          " has extent ", a->layout.extents[at], " in a but ", extent,
          " in d, of which ", before, " and ", after, " are padding");
    }
  }
  const core::Framed framed = core::DivideIntoFrame(d.layout, margins);
  OutputFrame frame;
  frame.result_offset = framed.block.offset;
  frame.filling = Filling(core::PartsToFill(d.layout, margins, framed,
                                            core::SizeOf(d.element_type)),
                          d.element_type, value);
  d.layout.extents = framed.block.extents;
  d.alignment_bytes = core::AlignmentOf(
      {d.element_type, d.layout, offset + frame.result_offset});
  return frame;
}

/// Stands in for an input that is not read: as d, or as a scalar.
OperandDesc Like(const OperandDesc& d, ElementType type) {
  return {type,
          core::PackedLayout(d.layout.extents, core::Order::kFirstModeFastest),
          d.modes};
}
OperandDesc ScalarOf(ElementType type) { return {.element_type = type}; }

}  // namespace

absl::string_view NameOf(OperationKind kind) {
  switch (kind) {
    case OperationKind::kPermute: return "permute";
    case OperationKind::kElementwise: return "elementwise";
    case OperationKind::kReduce: return "reduce";
    case OperationKind::kContract: return "contract";
  }
  __builtin_unreachable();
}

OperationRequest CopyRequest(const StoredTensor& from, const StoredTensor& to) {
  core::Modes modes;
  for (int i = 0; i < from.desc().layout.mode_count(); ++i) modes.push_back(i);
  return {.kind = OperationKind::kPermute,
          .a = InputRequest{from.name(), modes},
          .b = {},
          .c = {},
          .d = {.tensor = to.name(), .modes = modes}};
}

InputsRead WhichInputs(const OperationRequest& request) {
  const bool alpha = !request.alpha.IsZero(), beta = !request.beta.IsZero(),
             gamma = !request.gamma.IsZero();
  switch (request.kind) {
    case OperationKind::kPermute: return {alpha, false, false};
    case OperationKind::kElementwise:
      return {alpha, beta && request.b.has_value(), gamma};
    case OperationKind::kReduce: return {alpha, false, beta};
    case OperationKind::kContract: return {alpha, alpha, beta};
  }
  __builtin_unreachable();
}

absl::StatusOr<OperationDesc> MakeDesc(const OperationRequest& request,
                                       const OperationTensors& tensors) {
  std::optional<OperandDesc> a = Combine(request.a, tensors.a);
  std::optional<OperandDesc> b = Combine(request.b, tensors.b);
  std::optional<OperandDesc> c = Combine(request.c, tensors.c);
  const InputsRead reads = WhichInputs(request);
  const bool is_elementwise = request.kind == OperationKind::kElementwise;
  TENSORD_RETURN_IF_ERROR(CheckPresent(a, reads.a, "a", "alpha"));
  TENSORD_RETURN_IF_ERROR(
      CheckPresent(b, reads.b, "b", is_elementwise ? "beta" : "alpha"));
  TENSORD_RETURN_IF_ERROR(
      CheckPresent(c, reads.c, "c", is_elementwise ? "gamma" : "beta"));
  if (a) TENSORD_RETURN_IF_ERROR(core::ValidateOperand(*a, "a"));
  if (b) TENSORD_RETURN_IF_ERROR(core::ValidateOperand(*b, "b"));
  if (c) TENSORD_RETURN_IF_ERROR(core::ValidateOperand(*c, "c"));
  TENSORD_ASSIGN_OR_RETURN(const core::Margins margins,
                           MarginsOf(request.padding, request.d.modes.size()));
  TENSORD_ASSIGN_OR_RETURN(OperandDesc d,
                           Output(request.d, margins, tensors, a, b, c));
  OperationDesc result{
      .desc = {},
      .output = {d.element_type, d.layout, tensors.d ? tensors.d->offset : 0},
      .frame = {}};
  if (request.padding) {
    TENSORD_ASSIGN_OR_RETURN(
        result.frame,
        TakeFrame(*request.padding, margins, result.output.offset, a, d));
  }

  ElementType widest = d.element_type;
  for (const auto* input : {&a, &b, &c}) {
    if (*input) widest = core::WidestOf(widest, (*input)->element_type);
  }
  TENSORD_RETURN_IF_ERROR(core::ValidateScalar(request.alpha, widest, "alpha"));
  TENSORD_RETURN_IF_ERROR(core::ValidateScalar(request.beta, widest, "beta"));
  TENSORD_RETURN_IF_ERROR(core::ValidateScalar(request.gamma, widest, "gamma"));
  const core::ComputeType compute =
      request.compute_type.value_or(core::DefaultComputeType(widest));

  switch (request.kind) {
    case OperationKind::kPermute:
      result.desc = core::PermutationDesc{a ? *a : Like(d, d.element_type), d,
                                          compute, request.alpha.IsOne()};
      break;
    case OperationKind::kElementwise:
      if (!c) c = Like(d, d.element_type);
      if (!a) a = ScalarOf(b ? b->element_type : c->element_type);
      result.desc = core::ElementwiseDesc{
          *a, b, *c, d, request.op_ab, request.op, compute};
      break;
    case OperationKind::kReduce:
      result.desc = core::ReductionDesc{a ? *a : Like(d, d.element_type), c, d,
                                        request.op, compute};
      break;
    case OperationKind::kContract:
      if (!a || !b) {
        a = Like(d, d.element_type);
        b = ScalarOf(d.element_type);
      }
      result.desc = core::ContractionDesc{*a, *b, c, d, compute};
      break;
  }
  TENSORD_RETURN_IF_ERROR(std::visit(
      [](const auto& desc) { return core::Validate(desc); }, result.desc));
  if (auto* permutation = std::get_if<core::PermutationDesc>(&result.desc)) {
    DropRepeats(tensors.a, permutation->a);
  }
  if (auto* elementwise = std::get_if<core::ElementwiseDesc>(&result.desc)) {
    DropRepeats(tensors.a, elementwise->a);
    if (elementwise->b) DropRepeats(tensors.b, *elementwise->b);
    DropRepeats(tensors.c, elementwise->c);
  }
  return result;
}

}  // namespace tensord::server
