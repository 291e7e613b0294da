// What the operators mean, written from their definitions.
#pragma once

#include "core/base/element_type.h"
#include "core/ops/operators.h"
#include "tests/testing/oracle/error_bound.h"

namespace tensord::test {

/// op(x) for an exact x, and how far a good implementation may be from it.
Estimate ApplyUnary(core::UnaryOperator op, const Number& x,
                    const Rounding& rounding);

/// op(x, y), of no comparison. MAX and MIN give NaN when either is NaN.
Estimate ApplyBinary(core::BinaryOperator op, const Estimate& x,
                     const Estimate& y, const Rounding& rounding);

/// Whether a comparison holds, and whether it does where the errors of both are
/// as bad as they can be: {0, 1} where an error decides.
struct Verdict {
  bool holds;
  bool may_hold_not;
};
Verdict Compare(core::BinaryOperator op, const Estimate& x, const Estimate& y);
bool Compare(core::BinaryOperator op, int64_t x, int64_t y);

/// What a reduction over nothing gives.
Number IdentityOf(core::BinaryOperator op);

/// Integers of `type`; each result wraps.
int64_t ApplyUnary(core::UnaryOperator op, int64_t x, core::ElementType type);
int64_t ApplyBinary(core::BinaryOperator op, int64_t x, int64_t y,
                    core::ElementType type);
/// The integer of `type` that `x` is converted to.
int64_t Truncate(Real x, core::ElementType type);
int64_t IntegerIdentityOf(core::BinaryOperator op, core::ElementType type);

}  // namespace tensord::test
