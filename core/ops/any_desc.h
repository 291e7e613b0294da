// An operation of any kind.
#pragma once

#include <variant>

#include "core/ops/contraction.h"
#include "core/ops/elementwise.h"
#include "core/ops/permutation.h"
#include "core/ops/reduction.h"

namespace tensord::core {

using AnyDesc = std::variant<PermutationDesc, ElementwiseDesc, ReductionDesc,
                             ContractionDesc>;

}  // namespace tensord::core
