#include "core/executor/operands.h"

#include <algorithm>
#include <cstddef>
#include <utility>
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
FactorizationOperands Place(const FactorizationDesc& desc,
                            const Placement& at) {
  const auto results = desc.results();
  std::array<void*, kMostResults> places = {};
  std::ranges::transform(
      FactorsOf(desc), places.begin(), [&](const OperandDesc* factor) {
        const auto result = std::ranges::find(results, factor);
        return result == results.end() ? nullptr
                                       : at.outputs[result - results.begin()];
      });
  return {at.inputs[0], places[0],     places[1],
          places[2],    at.truncation, at.kept};
}
LinearSolveOperands Place(const LinearSolveDesc&, const Placement& at) {
  return {at.inputs[0], at.inputs[1], at.outputs[0]};
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

std::array<int64_t, kMostResults> ResultBytes(const AnyDesc& desc) {
  const auto bytes = [](const OperandDesc* result) -> int64_t {
    if (result == nullptr) return 0;
    return SpanElements(result->layout) * SizeOf(result->element_type);
  };
  return std::visit(
      [&](const auto& one) {
        std::array<int64_t, kMostResults> all = {};
        if constexpr (requires { one.d; }) {
          all[0] = bytes(&one.d);
        } else {
          std::ranges::transform(FactorsOf(one), all.begin(), bytes);
        }
        return all;
      },
      desc);
}

void RedirectOutputs(absl::Span<void* const> outputs, AnyOperands& operands) {
  std::visit(
      [&](auto& one) {
        if constexpr (requires { one.d; }) {
          one.d = outputs[0];
        } else {
          size_t i = 0;
          for (void** const factor : {&one.left, &one.right, &one.values}) {
            if (*factor != nullptr) *factor = outputs[i];
            ++i;
          }
        }
      },
      operands);
}

}  // namespace tensord::core
