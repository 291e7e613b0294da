#include "core/executor/aliasing.h"

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

}  // namespace

absl::Status CheckAliasing(const PermutationDesc& desc,
                           const PermutationOperands& operands,
                           DisjointFromOutput disjoint) {
  if (operands.alpha.IsZero()) return absl::OkStatus();
  return Check({desc.a, operands.a}, "a", {desc.d, operands.d}, false,
               disjoint.a);
}

absl::Status CheckAliasing(const ElementwiseDesc& desc,
                           const ElementwiseOperands& operands,
                           DisjointFromOutput disjoint) {
  const Placed d{desc.d, operands.d};
  if (!operands.alpha.IsZero()) {
    TENSORD_RETURN_IF_ERROR(
        Check({desc.a, operands.a}, "a", d, true, disjoint.a));
  }
  if (desc.b && !operands.beta.IsZero()) {
    TENSORD_RETURN_IF_ERROR(
        Check({*desc.b, operands.b}, "b", d, true, disjoint.b));
  }
  if (operands.gamma.IsZero()) return absl::OkStatus();
  return Check({desc.c, operands.c}, "c", d, true, disjoint.c);
}

absl::Status CheckAliasing(const ReductionDesc& desc,
                           const ReductionOperands& operands,
                           DisjointFromOutput disjoint) {
  const Placed d{desc.d, operands.d};
  if (!operands.alpha.IsZero()) {
    TENSORD_RETURN_IF_ERROR(
        Check({desc.a, operands.a}, "a", d, false, disjoint.a));
  }
  if (!desc.c || operands.beta.IsZero()) return absl::OkStatus();
  return Check({*desc.c, operands.c}, "c", d, true, disjoint.c);
}

absl::Status CheckAliasing(const ContractionDesc& desc,
                           const ContractionOperands& operands,
                           DisjointFromOutput disjoint) {
  const Placed d{desc.d, operands.d};
  if (!operands.alpha.IsZero()) {
    TENSORD_RETURN_IF_ERROR(
        Check({desc.a, operands.a}, "a", d, false, disjoint.a));
    TENSORD_RETURN_IF_ERROR(
        Check({desc.b, operands.b}, "b", d, false, disjoint.b));
  }
  if (!desc.c || operands.beta.IsZero()) return absl::OkStatus();
  return Check({*desc.c, operands.c}, "c", d, true, disjoint.c);
}

absl::Status CheckAliasing(const FactorizationDesc& desc,
                           const FactorizationOperands& operands,
                           DisjointFromOutput disjoint) {
  const Placed a{desc.a, operands.a}, q{desc.q, operands.q},
      r{desc.r, operands.r};
  const bool overlaps_input = !disjoint.a && (Overlap(a, q) || Overlap(a, r));
  if (!overlaps_input && !Overlap(q, r)) return absl::OkStatus();
  return InvalidArgument("OUTPUT_OVERLAPS_INPUT",
                         overlaps_input ? "q or r overlaps a" : "q overlaps r",
                         ", wanted disjoint memory");
}

absl::Status CheckAnyAliasing(const AnyDesc& desc, const AnyOperands& operands,
                              DisjointFromOutput disjoint) {
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
