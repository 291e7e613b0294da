// The operators that operations apply to elements.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/element_type.h"

namespace tensord::core {

/// Applied to each element of one operand before anything else.
/// The operators of cuTENSOR 2, in its order of introduction.
enum class UnaryOperator : uint8_t {
  kIdentity,
  kSqrt,
  kRelu,     // max(x, 0), NaN stays NaN
  kConj,     // identity on real types
  kRcp,      // 1 / x
  kSigmoid,  // 1 / (1 + exp(-x))
  kTanh,
  kExp,
  kLog,
  kAbs,  // on complex types the modulus, imaginary part 0
  kNeg,
  kSin,
  kCos,
  kTan,
  kSinh,
  kCosh,
  kAsin,
  kAcos,
  kAtan,
  kAsinh,
  kAcosh,
  kAtanh,
  kCeil,
  kFloor,
  kMish,      // x * tanh(softplus(x))
  kSwish,     // x * sigmoid(x)
  kSoftPlus,  // log(1 + exp(x))
  kSoftSign,  // x / (1 + |x|)
  // This project's own.
  kReal,  // imaginary part 0; identity on real types
  kImag,  // the imaginary part as real one; 0 on real types
};
inline constexpr int kUnaryOperatorCount = 30;

/// Combines two elements. MAX and MIN give NaN when either side is NaN.
///
/// The first four are cuTENSOR's and reduce, too; the others are for
/// element-wise operations.
enum class BinaryOperator : uint8_t {
  kAdd,
  kMul,
  kMax,
  kMin,
  kDiv,  // x / y
  kPow,  // x to the y; of integers, x to the -n is 1 / x^n without fraction
         // and 0 where x is 0
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  // Of three, the second of a type of its own, see ElementwiseDesc:
  kWhere,  // the first where the second is true, else the third
  kTake,   // the first at the index that the second is, else the third
};
inline constexpr int kBinaryOperatorCount = 14;

/// Whether results are of bool.
inline constexpr bool IsComparison(BinaryOperator op) {
  return op >= BinaryOperator::kEqual && op <= BinaryOperator::kGreaterEqual;
}

/// Whether it is of three operands, the second of a type of its own.
inline constexpr bool IsTernary(BinaryOperator op) {
  return op >= BinaryOperator::kWhere;
}

/// Whether `op` can combine all elements along a mode.
inline constexpr bool Reduces(BinaryOperator op) {
  return op <= BinaryOperator::kMin;
}

/// Whether indices are asked for that sort elements.
enum class Sorting : uint8_t { kNone, kAscending, kDescending };
inline constexpr int kSortingCount = 3;

/// "SQRT", "SOFT_PLUS", ...
absl::string_view NameOf(UnaryOperator op);
absl::string_view NameOf(BinaryOperator op);

/// OK when `op` is defined on elements of `type`.
///
/// Errors  INVALID_ARGUMENT: RELU, CEIL, FLOOR, MISH, SWISH, SIGMOID,
///         SOFT_PLUS and SOFT_SIGN on complex types, which have no order;
///         anything but IDENTITY, CONJ, REAL, IMAG, ABS, NEG and RELU on
///         integer types.
///         `what` names the operand in the message.
absl::Status ValidateUnary(UnaryOperator op, ElementType type,
                           absl::string_view what);

/// OK when `op` is defined on elements of `type`.
///
/// Errors  INVALID_ARGUMENT: MAX, MIN, LESS, LESS_EQUAL, GREATER and
///         GREATER_EQUAL on complex types; DIV on integer types, POW on bool.
absl::Status ValidateBinary(BinaryOperator op, ElementType type);

}  // namespace tensord::core
