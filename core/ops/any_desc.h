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
