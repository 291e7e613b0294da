#include "core/ops/operators.h"

#include <array>

#include "absl/strings/string_view.h"
#include "core/base/status.h"

namespace tensord::core {
namespace {

constexpr std::array<absl::string_view, kUnaryOperatorCount> kUnaryNames = {
    "IDENTITY", "SQRT",  "RELU",      "CONJ",      "RCP",  "SIGMOID",
    "TANH",     "EXP",   "LOG",       "ABS",       "NEG",  "SIN",
    "COS",      "TAN",   "SINH",      "COSH",      "ASIN", "ACOS",
    "ATAN",     "ASINH", "ACOSH",     "ATANH",     "CEIL", "FLOOR",
    "MISH",     "SWISH", "SOFT_PLUS", "SOFT_SIGN", "REAL", "IMAG"};
constexpr std::array<absl::string_view, kBinaryOperatorCount> kBinaryNames = {
    "ADD",     "MUL",           "MAX",       "MIN",  "DIV",
    "POW",     "EQUAL",         "NOT_EQUAL", "LESS", "LESS_EQUAL",
    "GREATER", "GREATER_EQUAL", "WHERE",     "TAKE"};

bool NeedsOrder(UnaryOperator op) {
  switch (op) {
    case UnaryOperator::kRelu:
    case UnaryOperator::kSigmoid:
    case UnaryOperator::kCeil:
    case UnaryOperator::kFloor:
    case UnaryOperator::kMish:
    case UnaryOperator::kSwish:
    case UnaryOperator::kSoftPlus:
    case UnaryOperator::kSoftSign: return true;
    default: return false;
  }
}

bool StaysInteger(UnaryOperator op) {
  switch (op) {
    case UnaryOperator::kIdentity:
    case UnaryOperator::kConj:
    case UnaryOperator::kReal:
    case UnaryOperator::kImag:
    case UnaryOperator::kAbs:
    case UnaryOperator::kNeg:
    case UnaryOperator::kRelu: return true;
    default: return false;
  }
}

bool NeedsOrder(BinaryOperator op) {
  switch (op) {
    case BinaryOperator::kMax:
    case BinaryOperator::kMin:
    case BinaryOperator::kLess:
    case BinaryOperator::kLessEqual:
    case BinaryOperator::kGreater:
    case BinaryOperator::kGreaterEqual: return true;
    default: return false;
  }
}

}  // namespace

absl::string_view NameOf(UnaryOperator op) {
  return kUnaryNames[static_cast<int>(op)];
}

absl::string_view NameOf(BinaryOperator op) {
  return kBinaryNames[static_cast<int>(op)];
}

absl::Status ValidateUnary(UnaryOperator op, ElementType type,
                           absl::string_view what) {
  if (IsComplex(type) && NeedsOrder(op)) {
    return InvalidArgument("OPERATOR_NEEDS_ORDER", "operator ", NameOf(op),
                           " of ", what, " is not defined on ", NameOf(type),
                           ", wanted a real element type");
  }
  if (IsInteger(type) && !StaysInteger(op)) {
    return InvalidArgument(
        "OPERATOR_NEEDS_FLOAT", "operator ", NameOf(op), " of ", what,
        " is not defined on ", NameOf(type),
        ", wanted IDENTITY, CONJ, REAL, IMAG, ABS, NEG or RELU");
  }
  return absl::OkStatus();
}

absl::Status ValidateBinary(BinaryOperator op, ElementType type) {
  if (IsComplex(type) && NeedsOrder(op)) {
    return InvalidArgument("OPERATOR_NEEDS_ORDER", "operator ", NameOf(op),
                           " is not defined on ", NameOf(type),
                           ", wanted a real element type");
  }
  if (op == BinaryOperator::kDiv && IsInteger(type)) {
    return InvalidArgument("OPERATOR_NEEDS_FLOAT",
                           "operator DIV is not "
                           "defined on ",
                           NameOf(type),
                           ", wanted a floating-point element type");
  }
  if (op == BinaryOperator::kPow && type == ElementType::kBool) {
    return InvalidArgument("OPERATOR_NEEDS_NUMBERS",
                           "operator POW is not defined on bool, wanted "
                           "an element type of numbers");
  }
  return absl::OkStatus();
}

}  // namespace tensord::core
