// An operation of any kind.
#pragma once

#include <cstddef>
#include <variant>

#include "core/ops/contraction.h"
#include "core/ops/elementwise.h"
#include "core/ops/factorization.h"
#include "core/ops/linear_solve.h"
#include "core/ops/permutation.h"
#include "core/ops/reduction.h"

namespace tensord::core {

using AnyDesc =
    std::variant<PermutationDesc, ElementwiseDesc, ReductionDesc,
                 ContractionDesc, FactorizationDesc, LinearSolveDesc>;

/// How many results an operation can have.
inline constexpr size_t kMostResults = 3;

/// Whether an operation can be refused for the elements that it reads: for
/// matrices, or indices.
inline bool MayRefuseElements(const AnyDesc& any) {
  const auto* const elementwise = std::get_if<ElementwiseDesc>(&any);
  return std::holds_alternative<FactorizationDesc>(any) ||
         std::holds_alternative<LinearSolveDesc>(any) ||
         (elementwise != nullptr &&
          elementwise->op_abc == BinaryOperator::kTake);
}

/// What an operation writes; the first of several results.
inline const OperandDesc& ResultOf(const AnyDesc& any) {
  return std::visit(
      [](const auto& desc) -> const OperandDesc& {
        if constexpr (requires { desc.results(); }) {
          return *desc.results()[0];
        } else {
          return desc.d;
        }
      },
      any);
}

}  // namespace tensord::core
