#include "server/execution/operation_desc.h"

#include <algorithm>
#include <utility>

#include "core/base/checked_math.h"
#include "core/base/status.h"
#include "core/ops/type_tables.h"
#include "core/view/frame.h"
#include "server/execution/operation_table.h"
#include "server/session/stored_tensor.h"

namespace tensord::server {
namespace {

using core::ComputeType;
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
/// mode of d is broadcast along it. That numbered `taken` stays.
void DropRepeats(const std::optional<core::TensorDesc>& tensor,
                 OperandDesc& operand, int taken = -1) {
  if (!tensor) return;
  const core::ModeVector& strides = tensor->layout.strides;
  for (int i = static_cast<int>(strides.size()) - 1; i >= 0; --i) {
    if (strides[i] != 0) continue;
    if (i == taken) {
      operand.layout.strides[i] = 0;
      continue;
    }
    operand.layout.extents.erase(operand.layout.extents.begin() + i);
    operand.layout.strides.erase(operand.layout.strides.begin() + i);
    operand.modes.erase(operand.modes.begin() + i);
  }
}

/// The inputs that a request has, all that are read among them.
using Inputs = PerInput<std::optional<OperandDesc>>;
absl::StatusOr<Inputs> TakeInputs(const OperationRequest& request,
                                  const OperationTensors& tensors) {
  const OperationRow& row = RowOf(request.kind);
  Inputs inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    inputs[i] = Combine(request.inputs[i], tensors.inputs[i]);
    if (!inputs[i] && Reads(request, i)) {
      return core::InvalidArgument("INPUT_MISSING", "operand ", kInputNames[i],
                                   " is left out, but ",
                                   NameOf(row.inputs[i].factor), " is not 0");
    }
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) continue;
    TENSORD_RETURN_IF_ERROR(core::ValidateOperand(*inputs[i], kInputNames[i]));
  }
  return inputs;
}

bool Sorts(const OperationRequest& request) {
  return request.along && request.along->sorting != core::Sorting::kNone;
}

/// d, from the existing tensor or from the inputs.
absl::StatusOr<OperandDesc> Output(const OperationRequest& asking,
                                   const core::Margins& margins,
                                   const std::optional<core::TensorDesc>& there,
                                   const Inputs& inputs) {
  const OutputRequest& request = asking.results[0];
  const auto& [a, b, c] = inputs;
  if (there) {
    return OperandDesc{there->element_type, there->layout, request.modes,
                       core::UnaryOperator::kIdentity,
                       core::AlignmentOf(*there)};
  }
  OperandDesc d{.modes = request.modes};
  if (request.element_type) {
    d.element_type = *request.element_type;
  } else if (core::IsComparison(asking.op)) {
    d.element_type = ElementType::kBool;
  } else if (Sorts(asking)) {
    d.element_type = ElementType::kInt64;
  } else if (c) {
    d.element_type = c->element_type;
  } else if (a && b && !core::IsTernary(asking.op)) {
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
    for (const std::optional<OperandDesc>& input : inputs) {
      if (!input || extent) continue;
      const int at = core::PositionOf(mode, input->modes);
      if (at >= 0) extent = input->layout.extents[at];
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

/// The operands of a request with one result, d.
struct Operands {
  Inputs inputs;
  OperandDesc d;  // without its frame
  core::ComputeType compute_type;
  OperationDesc made;  // all but `desc`
};

absl::StatusOr<Operands> TakeOperands(const OperationRequest& request,
                                      const OperationTensors& tensors) {
  Operands taken;
  TENSORD_ASSIGN_OR_RETURN(taken.inputs, TakeInputs(request, tensors));
  const OutputRequest& asked = request.results[0];
  const std::optional<core::TensorDesc>& there = tensors.results[0];
  TENSORD_ASSIGN_OR_RETURN(const core::Margins margins,
                           MarginsOf(request.padding, asked.modes.size()));
  TENSORD_ASSIGN_OR_RETURN(taken.d,
                           Output(request, margins, there, taken.inputs));
  const int64_t offset = there ? there->offset : 0;
  taken.made.results = {{taken.d.element_type, taken.d.layout, offset}};
  if (request.padding) {
    TENSORD_ASSIGN_OR_RETURN(
        taken.made.frame,
        TakeFrame(*request.padding, margins, offset, taken.inputs[0], taken.d));
  }
  if (Sorts(request)) {
    taken.compute_type = request.compute_type.value_or(ComputeType::kInteger);
    for (const auto& [factor, name] :
         {std::pair(request.alpha, "alpha"), {request.beta, "beta"}}) {
      TENSORD_RETURN_IF_ERROR(
          core::ValidateScalar(factor, taken.d.element_type, name));
    }
    return taken;
  }
  ElementType widest = taken.d.element_type;
  bool has_double = core::RealPartOf(widest) == ElementType::kFloat64;
  for (const std::optional<OperandDesc>& input : taken.inputs) {
    if (!input) continue;
    widest = core::WidestOf(widest, input->element_type);
    has_double |=
        core::RealPartOf(input->element_type) == ElementType::kFloat64;
  }
  TENSORD_RETURN_IF_ERROR(core::ValidateScalar(request.alpha, widest, "alpha"));
  TENSORD_RETURN_IF_ERROR(core::ValidateScalar(request.beta, widest, "beta"));
  TENSORD_RETURN_IF_ERROR(core::ValidateScalar(request.gamma, widest, "gamma"));
  taken.compute_type = request.compute_type.value_or(
      core::DefaultComputeType(has_double ? ElementType::kFloat64 : widest));
  return taken;
}

}  // namespace

absl::StatusOr<OperationDesc> MakePermutation(const OperationRequest& request,
                                              const OperationTensors& tensors) {
  TENSORD_ASSIGN_OR_RETURN(Operands taken, TakeOperands(request, tensors));
  const OperandDesc& d = taken.d;
  core::PermutationDesc desc{taken.inputs[0].value_or(Like(d, d.element_type)),
                             d, taken.compute_type, request.alpha.IsOne()};
  TENSORD_RETURN_IF_ERROR(core::Validate(desc));
  DropRepeats(tensors.inputs[0], desc.a);
  taken.made.desc = std::move(desc);
  return std::move(taken.made);
}

absl::StatusOr<OperationDesc> MakeElementwise(const OperationRequest& request,
                                              const OperationTensors& tensors) {
  TENSORD_ASSIGN_OR_RETURN(Operands taken, TakeOperands(request, tensors));
  auto& [a, b, c] = taken.inputs;
  // Of a comparison d does not say what is compared.
  const bool is_comparison = core::IsComparison(request.op);
  if (!c) {
    // It is not read; an order of modes other than d's would mislead kernels.
    const auto& other = a ? a : b;
    c = taken.d;
    if (is_comparison && other) c->element_type = other->element_type;
  }
  const bool is_ternary = core::IsTernary(request.op);
  if (!a) a = ScalarOf(b && !is_ternary ? b->element_type : c->element_type);
  core::ElementwiseDesc desc{
      *a, b, *c, taken.d, request.op_ab, request.op, taken.compute_type};
  TENSORD_RETURN_IF_ERROR(core::Validate(desc));
  const int from = desc.taken();
  if (from >= 0) {
    TENSORD_RETURN_IF_ERROR(
        core::ValidateScalar(request.beta, b->element_type, "beta"));
  }
  DropRepeats(tensors.inputs[0], desc.a, from);
  if (desc.b) DropRepeats(tensors.inputs[1], *desc.b);
  DropRepeats(tensors.inputs[2], desc.c);
  taken.made.desc = std::move(desc);
  return std::move(taken.made);
}

absl::StatusOr<OperationDesc> MakeReduction(const OperationRequest& request,
                                            const OperationTensors& tensors) {
  TENSORD_ASSIGN_OR_RETURN(Operands taken, TakeOperands(request, tensors));
  const OperandDesc& d = taken.d;
  core::ReductionDesc desc{taken.inputs[0].value_or(Like(d, d.element_type)),
                           taken.inputs[2],
                           d,
                           request.op,
                           taken.compute_type,
                           request.along};
  TENSORD_RETURN_IF_ERROR(core::Validate(desc));
  taken.made.desc = std::move(desc);
  return std::move(taken.made);
}

absl::StatusOr<OperationDesc> MakeContraction(const OperationRequest& request,
                                              const OperationTensors& tensors) {
  TENSORD_ASSIGN_OR_RETURN(Operands taken, TakeOperands(request, tensors));
  auto& [a, b, c] = taken.inputs;
  if (!a || !b) {
    a = Like(taken.d, taken.d.element_type);
    b = ScalarOf(taken.d.element_type);
  }
  core::ContractionDesc desc{*a, *b, c, taken.d, taken.compute_type};
  TENSORD_RETURN_IF_ERROR(core::Validate(desc));
  taken.made.desc = std::move(desc);
  return std::move(taken.made);
}

absl::StatusOr<OperationDesc> MakeDesc(const OperationRequest& request,
                                       const OperationTensors& tensors) {
  return RowOf(request.kind).make_desc(request, tensors);
}

}  // namespace tensord::server
