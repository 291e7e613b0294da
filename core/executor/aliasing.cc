#include "core/executor/aliasing.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <variant>

#include "absl/strings/string_view.h"
#include "core/base/status.h"

namespace tensord::core {
namespace {

struct Placed {
  const OperandDesc& desc;
  const void* address;

  const std::byte* begin() const {
    return static_cast<const std::byte*>(address);
  }
  const std::byte* end() const {
    return begin() + SpanElements(desc.layout) * SizeOf(desc.element_type);
  }
};

bool Overlap(const Placed& x, const Placed& y) {
  if (x.begin() == x.end() || y.begin() == y.end()) return false;
  const std::less<const std::byte*> before;
  return before(x.begin(), y.end()) && before(y.begin(), x.end());
}

bool IsSame(const Placed& x, const Placed& y) {
  return x.address == y.address && x.desc.modes == y.desc.modes &&
         AreAlike(x.desc.layout, y.desc.layout) &&
         x.desc.element_type == y.desc.element_type;
}

absl::Status Check(const Placed& input, absl::string_view name, const Placed& d,
                   bool may_be_d, bool is_disjoint) {
  if (is_disjoint || !Overlap(input, d) || (may_be_d && IsSame(input, d))) {
    return absl::OkStatus();
  }
  return InvalidArgument(
      "OUTPUT_OVERLAPS_INPUT", "d overlaps ", name,
      may_be_d ? ", wanted disjoint memory or the same tensor with the same "
                 "layout and mode order"
               : ", wanted disjoint memory");
}

/// The same of one of several results.
absl::Status CheckFactor(const Placed& factor, absl::string_view factor_name,
                         const Placed& other, absl::string_view other_name,
                         absl::string_view reason, bool is_disjoint) {
  if (is_disjoint || !Overlap(factor, other)) return absl::OkStatus();
  return InvalidArgument(reason, factor_name, " overlaps ", other_name,
                         ", wanted disjoint memory");
}

}  // namespace

absl::Status CheckAliasing(const PermutationDesc& desc,
                           const PermutationOperands& operands,
                           const DisjointOperands& disjoint) {
  if (operands.alpha.IsZero()) return absl::OkStatus();
  return Check({desc.a, operands.a}, "a", {desc.d, operands.d}, false,
               disjoint.inputs[0][0]);
}

absl::Status CheckAliasing(const ElementwiseDesc& desc,
                           const ElementwiseOperands& operands,
                           const DisjointOperands& disjoint) {
  const Placed d{desc.d, operands.d};
  if (!operands.alpha.IsZero()) {
    const bool may_be_d = desc.op_abc != BinaryOperator::kTake;
    TENSORD_RETURN_IF_ERROR(
        Check({desc.a, operands.a}, "a", d, may_be_d, disjoint.inputs[0][0]));
  }
  if (desc.b && !operands.beta.IsZero()) {
    TENSORD_RETURN_IF_ERROR(
        Check({*desc.b, operands.b}, "b", d, true, disjoint.inputs[1][0]));
  }
  if (operands.gamma.IsZero()) return absl::OkStatus();
  return Check({desc.c, operands.c}, "c", d, true, disjoint.inputs[2][0]);
}

absl::Status CheckAliasing(const ReductionDesc& desc,
                           const ReductionOperands& operands,
                           const DisjointOperands& disjoint) {
  const Placed d{desc.d, operands.d};
  if (!operands.alpha.IsZero()) {
    TENSORD_RETURN_IF_ERROR(
        Check({desc.a, operands.a}, "a", d, false, disjoint.inputs[0][0]));
  }
  if (!desc.c || operands.beta.IsZero()) return absl::OkStatus();
  return Check({*desc.c, operands.c}, "c", d, true, disjoint.inputs[2][0]);
}

absl::Status CheckAliasing(const ContractionDesc& desc,
                           const ContractionOperands& operands,
                           const DisjointOperands& disjoint) {
  const Placed d{desc.d, operands.d};
  if (!operands.alpha.IsZero()) {
    TENSORD_RETURN_IF_ERROR(
        Check({desc.a, operands.a}, "a", d, false, disjoint.inputs[0][0]));
    TENSORD_RETURN_IF_ERROR(
        Check({desc.b, operands.b}, "b", d, false, disjoint.inputs[1][0]));
  }
  if (!desc.c || operands.beta.IsZero()) return absl::OkStatus();
  return Check({*desc.c, operands.c}, "c", d, true, disjoint.inputs[2][0]);
}

absl::Status CheckAliasing(const FactorizationDesc& desc,
                           const FactorizationOperands& operands,
                           const DisjointOperands& disjoint) {
  const auto factors = FactorsOf(desc);
  const void* const places[] = {operands.left, operands.right, operands.values};
  const auto placed = [&](const OperandDesc* result) {
    const auto factor = std::ranges::find(factors, result);
    return Placed{*result, places[factor - factors.begin()]};
  };
  const auto results = desc.results();
  const auto names = ResultNamesOf(desc.method, desc.values.has_value());
  for (size_t i = 0; i < results.size(); ++i) {
    const Placed factor = placed(results[i]);
    TENSORD_RETURN_IF_ERROR(CheckFactor(factor, names[i], {desc.a, operands.a},
                                        "a", "OUTPUT_OVERLAPS_INPUT",
                                        disjoint.inputs[0][i]));
    for (size_t j = i + 1; j < results.size(); ++j) {
      TENSORD_RETURN_IF_ERROR(CheckFactor(factor, names[i], placed(results[j]),
                                          names[j], "OUTPUTS_OVERLAP",
                                          disjoint.results[i][j]));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckAliasing(const LinearSolveDesc& desc,
                           const LinearSolveOperands& operands,
                           const DisjointOperands& disjoint) {
  const Placed d{desc.d, operands.d};
  TENSORD_RETURN_IF_ERROR(
      Check({desc.a, operands.a}, "a", d, false, disjoint.inputs[0][0]));
  if (!desc.b) return absl::OkStatus();
  return Check({*desc.b, operands.b}, "b", d, false, disjoint.inputs[1][0]);
}

absl::Status CheckAnyAliasing(const AnyDesc& desc, const AnyOperands& operands,
                              const DisjointOperands& disjoint) {
  return std::visit(
      [&](const auto& one, const auto& its) {
        if constexpr (requires { CheckAliasing(one, its, disjoint); }) {
          return CheckAliasing(one, its, disjoint);
        } else {
          return Internal("WRONG_OPERANDS", "operands of another operation");
        }
      },
      desc, operands);
}

}  // namespace tensord::core
