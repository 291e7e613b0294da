#include "core/executor/operands.h"

#include <variant>

namespace tensord::core {
namespace {

PermutationOperands Place(const PermutationDesc&, const Placement& at) {
  return {at.inputs[0], at.outputs[0], at.alpha};
}
ElementwiseOperands Place(const ElementwiseDesc&, const Placement& at) {
  return {at.inputs[0], at.inputs[1], at.inputs[2], at.outputs[0],
          at.alpha,     at.beta,      at.gamma};
}
ReductionOperands Place(const ReductionDesc&, const Placement& at) {
  return {at.inputs[0], at.inputs[2], at.outputs[0], at.alpha, at.beta};
}
FactorizationOperands Place(const FactorizationDesc&, const Placement& at) {
  return {at.inputs[0], at.outputs[0], at.outputs[1]};
}
ContractionOperands Place(const ContractionDesc&, const Placement& at) {
  return {at.inputs[0],  at.inputs[1], at.inputs[2],
          at.outputs[0], at.alpha,     at.beta};
}

}  // namespace

AnyOperands OperandsAt(const AnyDesc& desc, const Placement& at) {
  return std::visit(
      [&](const auto& one) -> AnyOperands { return Place(one, at); }, desc);
}

std::array<int64_t, 2> ResultBytes(const AnyDesc& desc) {
  const auto bytes = [](const OperandDesc& result) {
    return SpanElements(result.layout) * SizeOf(result.element_type);
  };
  return std::visit(
      [&](const auto& one) -> std::array<int64_t, 2> {
        if constexpr (requires { one.d; }) return {bytes(one.d), 0};
        if constexpr (requires { one.q; }) return {bytes(one.q), bytes(one.r)};
      },
      desc);
}

void RedirectOutputs(absl::Span<void* const> outputs, AnyOperands& operands) {
  std::visit(
      [&](auto& one) {
        if constexpr (requires { one.d; }) one.d = outputs[0];
        if constexpr (requires { one.q; }) {
          one.q = outputs[0];
          one.r = outputs[1];
        }
      },
      operands);
}

}  // namespace tensord::core
