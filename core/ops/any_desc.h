// An operation of any kind.
#pragma once

#include <variant>

#include "core/ops/contraction.h"
#include "core/ops/elementwise.h"
#include "core/ops/factorization.h"
#include "core/ops/permutation.h"
#include "core/ops/reduction.h"

namespace tensord::core {

using AnyDesc = std::variant<PermutationDesc, ElementwiseDesc, ReductionDesc,
                             ContractionDesc, FactorizationDesc>;

/// What an operation writes; the first of several results.
inline const OperandDesc& ResultOf(const AnyDesc& any) {
  return std::visit(
      [](const auto& desc) -> const OperandDesc& {
        if constexpr (requires { desc.q; }) {
          return desc.q;
        } else {
          return desc.d;
        }
      },
      any);
}

}  // namespace tensord::core
