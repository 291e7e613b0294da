#include "core/notation/program/call_desc.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status.h"
#include "core/notation/text_error.h"
#include "core/notation/to_text.h"
#include "core/ops/type_tables.h"

namespace tensord::core {
namespace {

/// Modes that operations complain of begin here, so that their numbers can be
/// told from others in a message: those are no extents.
constexpr Mode kFirstNamed = std::numeric_limits<Mode>::min();

Modes Named(absl::Span<const Mode> indices) {
  Modes modes;
  for (const Mode index : indices) modes.push_back(kFirstNamed + index);
  return modes;
}

OperandDesc Named(OperandDesc operand) {
  operand.modes = Named(operand.modes);
  return operand;
}

/// `text` with labels in place of the numbers of modes.
std::string WithLabels(absl::string_view text, const Bindings& bindings) {
  std::string result;
  while (!text.empty()) {
    size_t length = text[0] == '-' ? 1 : 0;
    while (length < text.size() && absl::ascii_isdigit(text[length])) ++length;
    Mode mode = 0;
    if (absl::SimpleAtoi(text.substr(0, length), &mode) &&
        mode < kFirstNamed + bindings.index_count()) {
      absl::StrAppend(&result, "'", bindings.name(mode - kFirstNamed), "'");
    } else {
      length = std::max<size_t>(length, 1);
      absl::StrAppend(&result, text.substr(0, length));
    }
    text.remove_prefix(length);
  }
  return result;
}

absl::Status ErrorOf(const absl::Status& status, const StatementCall& call,
                     const Bindings& bindings) {
  if (status.ok()) return status;
  return PlacedAt(call.position,
                  Error(status.code(), ReasonOf(status),
                        absl::StrCat(RolesOf(call),
                                     WithLabels(status.message(), bindings))));
}

/// The type that all arguments have, or can be had in.
ElementType PromotedTypeOf(const BoundStatementCall& bound) {
  ElementType type = bound.arguments[0].element_type;
  for (const BoundSum& argument : bound.arguments) {
    type = PromotedType(type, argument.element_type);
  }
  return type;
}

/// An argument of matrices as far as it is known before it is computed.
OperandDesc ArgumentOf(const BoundStatementCall& bound, size_t i,
                       const Bindings& bindings) {
  OperandDesc argument{.element_type = ReciprocalType(PromotedTypeOf(bound)),
                       .modes = Named(ArgumentModesOf(bound, i))};
  ModeVector extents;
  for (const Mode index : ArgumentModesOf(bound, i)) {
    extents.push_back(bindings.extent(index));
  }
  argument.layout = PackedLayout(extents, Order::kFirstModeFastest);
  return argument;
}

/// `modes`, those that `order` has first and like it.
std::vector<Mode> InOrder(absl::Span<const Mode> order,
                          absl::Span<const Mode> modes) {
  std::vector<Mode> ordered;
  for (const absl::Span<const Mode> from : {order, modes}) {
    for (const Mode mode : from) {
      if (absl::c_linear_search(modes, mode) &&
          !absl::c_linear_search(ordered, mode)) {
        ordered.push_back(mode);
      }
    }
  }
  return ordered;
}

absl::Status SetInnerExtent(FactorizationMethod method,
                            const BoundStatementCall& bound,
                            Bindings& bindings) {
  const FactorPlaces places = PlacesOf(method, bound.outputs.size());
  const auto modes_of = [&](std::optional<size_t> place) {
    return place ? std::optional(Named(ResultModesOf(bound, *place)))
                 : std::nullopt;
  };
  const auto left = modes_of(places.left), right = modes_of(places.right),
             values = modes_of(places.values);
  TENSORD_ASSIGN_OR_RETURN(
      const FactorizationModes modes,
      GroupModes(method, ArgumentOf(bound, 0, bindings), *left,
                 right ? &*right : nullptr, values ? &*values : nullptr));
  const Mode inner = modes.inner - kFirstNamed;
  if (bindings.extent(inner) < 0) {
    bindings.SetExtent(
        inner,
        std::min(modes.inner_extent, bound.rank.value_or(modes.inner_extent)));
  }
  return absl::OkStatus();
}

/// OK when the result of a function along an index has no others.
absl::Status CheckKnown(const BoundStatementCall& bound) {
  for (const Mode index : bound.outputs[0]) {
    if (absl::c_linear_search(bound.inputs[0], index)) continue;
    return InvalidArgument("MODE_NOT_IN_INPUT", "mode ", kFirstNamed + index,
                           " of d is not in a");
  }
  return absl::OkStatus();
}

absl::Status SetSideExtents(MatrixFunction function,
                            const BoundStatementCall& bound,
                            Bindings& bindings) {
  const OperandDesc a = ArgumentOf(bound, 0, bindings);
  std::optional<OperandDesc> b;
  if (bound.inputs.size() > 1) b = ArgumentOf(bound, 1, bindings);
  TENSORD_ASSIGN_OR_RETURN(const LinearSolveModes modes,
                           GroupModes(function, a, b ? &*b : nullptr,
                                      Named(ResultModesOf(bound, 0))));
  for (size_t i = 0; !b && i < modes.sides.size(); ++i) {
    const Mode side = modes.sides[i] - kFirstNamed;
    if (bindings.extent(side) >= 0) continue;
    bindings.SetExtent(side,
                       bindings.extent(modes.sides_in_a[i] - kFirstNamed));
  }
  return absl::OkStatus();
}

FactorizationDesc Factorization(FactorizationMethod method,
                                const BoundStatementCall& bound,
                                const OperandDesc& a,
                                absl::Span<const OperandDesc> results) {
  const FactorPlaces places = PlacesOf(method, results.size());
  FactorizationDesc desc{.method = method,
                         .a = a,
                         .left = results[places.left],
                         .sampling = bound.sampling};
  if (places.right) desc.right = results[*places.right];
  if (places.values) desc.values = results[*places.values];
  return desc;
}

LinearSolveDesc LinearSolve(MatrixFunction function,
                            const BoundStatementCall& bound,
                            absl::Span<const OperandDesc> inputs,
                            const OperandDesc& d) {
  LinearSolveDesc desc{.function = function,
                       .structure = bound.structure,
                       .has_unit_diagonal = bound.has_unit_diagonal,
                       .a = inputs[0],
                       .b = {},
                       .d = d};
  if (inputs.size() > 1) desc.b = inputs[1];
  return desc;
}

BinaryOperator OperatorOf(AlongFunction function) {
  switch (function) {
    case AlongFunction::kCumulativeProduct: return BinaryOperator::kMul;
    case AlongFunction::kCumulativeMax: return BinaryOperator::kMax;
    case AlongFunction::kCumulativeMin: return BinaryOperator::kMin;
    default: return BinaryOperator::kAdd;
  }
}

ReductionDesc Reduction(AlongFunction function, const BoundStatementCall& bound,
                        const OperandDesc& a, const OperandDesc& d,
                        Mode along) {
  ReductionDesc desc{.a = a,
                     .c = {},
                     .d = d,
                     .op = OperatorOf(function),
                     .compute_type = DefaultComputeType(d.element_type),
                     .along = Along{along}};
  if (function == AlongFunction::kArgsort) {
    desc.along->sorting =
        bound.descends ? Sorting::kDescending : Sorting::kAscending;
  }
  return desc;
}

absl::Status ValidateCall(const StatementCall& call,
                          const BoundStatementCall& bound,
                          absl::Span<const OperandDesc> inputs,
                          absl::Span<const OperandDesc> outputs) {
  if (call.along) {
    return Validate(Reduction(*call.along, bound, inputs[0], outputs[0],
                              kFirstNamed + bound.along));
  }
  if (call.solves()) {
    return Validate(LinearSolve(call.function, bound, inputs, outputs[0]));
  }
  const FactorizationDesc desc =
      Factorization(*call.method, bound, inputs[0], outputs);
  TENSORD_RETURN_IF_ERROR(Validate(desc));
  return ValidateRank(desc, bound.rank);
}

}  // namespace

ElementType ArgumentTypeOf(const StatementCall& call,
                           const BoundStatementCall& bound) {
  const ElementType type = PromotedTypeOf(bound);
  if (!call.along) return ReciprocalType(type);
  const bool grows = call.along == AlongFunction::kCumulativeSum ||
                     call.along == AlongFunction::kCumulativeProduct;
  return grows && IsInteger(type) ? ElementType::kInt64 : type;
}

ElementType ResultTypeOf(const StatementCall& call,
                         const BoundStatementCall& bound, size_t i) {
  if (call.along == AlongFunction::kArgsort) return ElementType::kInt64;
  const ElementType type = ArgumentTypeOf(call, bound);
  const bool are_values =
      call.method && PlacesOf(*call.method, bound.outputs.size()).values == i;
  return are_values ? RealPartOf(type) : type;
}

std::vector<Mode> ArgumentModesOf(const BoundStatementCall& bound, size_t i) {
  return InOrder(bound.inputs[0], bound.inputs[i]);
}

std::vector<Mode> ResultModesOf(const BoundStatementCall& bound, size_t i) {
  std::vector<Mode> modes = InOrder(bound.inputs[0], bound.outputs[i]);
  if (bound.outputs.size() != 2) return modes;
  // What both results have is a batch: eigenvalues say which.
  const std::vector<Mode>& other = bound.outputs[1 - i];
  std::ranges::stable_partition(modes, [&](Mode mode) {
    return absl::c_linear_search(bound.inputs[0], mode) &&
           absl::c_linear_search(other, mode);
  });
  return modes;
}

absl::Status SetResultExtents(const StatementCall& call,
                              const BoundStatementCall& bound,
                              Bindings& bindings) {
  absl::Status status;
  if (call.along) {
    status = CheckKnown(bound);
  } else if (call.method) {
    status = SetInnerExtent(*call.method, bound, bindings);
  } else {
    status = SetSideExtents(call.function, bound, bindings);
  }
  return ErrorOf(status, call, bindings);
}

absl::StatusOr<AnyDesc> CallDescOf(const StatementCall& call,
                                   const BoundStatementCall& bound,
                                   absl::Span<const OperandDesc> inputs,
                                   absl::Span<const OperandDesc> outputs,
                                   const Bindings& bindings) {
  const auto named = [](absl::Span<const OperandDesc> operands) {
    std::vector<OperandDesc> all;
    for (const OperandDesc& operand : operands) all.push_back(Named(operand));
    return all;
  };
  TENSORD_RETURN_IF_ERROR(
      ErrorOf(ValidateCall(call, bound, named(inputs), named(outputs)), call,
              bindings));
  if (call.along) {
    return AnyDesc(
        Reduction(*call.along, bound, inputs[0], outputs[0], bound.along));
  }
  if (call.solves()) {
    return AnyDesc(LinearSolve(call.function, bound, inputs, outputs[0]));
  }
  return AnyDesc(Factorization(*call.method, bound, inputs[0], outputs));
}

}  // namespace tensord::core
