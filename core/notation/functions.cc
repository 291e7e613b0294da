#include "core/notation/functions.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/nearest.h"

namespace tensord::core {
namespace {

/// Of several names of a function the first is the one that is told.
constexpr NamedFunction kFunctions[] = {
    {"abs", UnaryOperator::kAbs, 1},
    {"acos", UnaryOperator::kAcos, 1},
    {"acosh", UnaryOperator::kAcosh, 1},
    {"asin", UnaryOperator::kAsin, 1},
    {"asinh", UnaryOperator::kAsinh, 1},
    {"atan", UnaryOperator::kAtan, 1},
    {"atanh", UnaryOperator::kAtanh, 1},
    {"ceil", UnaryOperator::kCeil, 1},
    {"cos", UnaryOperator::kCos, 1},
    {"cosh", UnaryOperator::kCosh, 1},
    {"exp", UnaryOperator::kExp, 1},
    {"floor", UnaryOperator::kFloor, 1},
    {"imag", UnaryOperator::kImag, 1},
    {"log", UnaryOperator::kLog, 1},
    {"mish", UnaryOperator::kMish, 1},
    {"real", UnaryOperator::kReal, 1},
    {"relu", UnaryOperator::kRelu, 1},
    {"sigmoid", UnaryOperator::kSigmoid, 1},
    {"sin", UnaryOperator::kSin, 1},
    {"sinh", UnaryOperator::kSinh, 1},
    {"softplus", UnaryOperator::kSoftPlus, 1},
    {"softsign", UnaryOperator::kSoftSign, 1},
    {"sqrt", UnaryOperator::kSqrt, 1},
    {"swish", UnaryOperator::kSwish, 1},
    {"tan", UnaryOperator::kTan, 1},
    {"tanh", UnaryOperator::kTanh, 1},
    {"max", BinaryOperator::kMax, 2},
    {"maximum", BinaryOperator::kMax, 2},
    {"min", BinaryOperator::kMin, 2},
    {"minimum", BinaryOperator::kMin, 2},
    {"where", BinaryOperator::kWhere, 3},
};

constexpr StatementFunction kStatementFunctions[] = {
    {"svd", FactorizationMethod::kSvd, {}, 1},
    {"qr", FactorizationMethod::kQr, {}, 1},
    {"lq", FactorizationMethod::kLq, {}, 1},
    {"eigh", FactorizationMethod::kEigh, {}, 1},
    {"cholesky", FactorizationMethod::kCholesky, {}, 1},
    {"solve", {}, {}, 2},
    {"inv", {}, {}, 1},
    {"expm", {}, {}, 1, MatrixFunction::kExponential},
    {"cumsum", {}, AlongFunction::kCumulativeSum, 1},
    {"cumprod", {}, AlongFunction::kCumulativeProduct, 1},
    {"cummax", {}, AlongFunction::kCumulativeMax, 1},
    {"cummin", {}, AlongFunction::kCumulativeMin, 1},
    {"argsort", {}, AlongFunction::kArgsort, 1},
};

}  // namespace

const NamedFunction* FindFunction(absl::string_view name) {
  const auto* const found =
      std::ranges::find(kFunctions, name, &NamedFunction::name);
  return found == std::end(kFunctions) ? nullptr : found;
}

const StatementFunction* FindStatementFunction(absl::string_view name) {
  const auto* const found =
      std::ranges::find(kStatementFunctions, name, &StatementFunction::name);
  return found == std::end(kStatementFunctions) ? nullptr : found;
}

absl::string_view NotationOf(const StatementCall& call) {
  for (const StatementFunction& function : kStatementFunctions) {
    if (function.method == call.method && function.along == call.along &&
        function.function == call.function &&
        function.argument_count == std::ssize(call.arguments)) {
      return function.name;
    }
  }
  return "";
}

absl::string_view NotationOf(AlongFunction function) {
  return std::ranges::find(kStatementFunctions, std::optional(function),
                           &StatementFunction::along)
      ->name;
}

std::string NearestFunction(absl::string_view name) {
  std::vector<std::string> known = {"conj",   "adjoint",  "tensorscalar",
                                    "scalar", "Diagonal", "norm"};
  for (const NamedFunction& function : kFunctions) {
    known.emplace_back(function.name);
  }
  for (const StatementFunction& function : kStatementFunctions) {
    known.emplace_back(function.name);
  }
  const std::string nearest = Nearest(name, known);
  if (nearest.empty()) return "";
  return absl::StrCat(" the nearest is '", nearest, "',");
}

absl::string_view NotationOf(const ElementFunction& function) {
  const auto* const named =
      std::ranges::find(kFunctions, function, &NamedFunction::function);
  if (named != std::end(kFunctions)) return named->name;
  if (function == ElementFunction(UnaryOperator::kConj)) return "conj";
  if (const auto* const op = std::get_if<UnaryOperator>(&function)) {
    return NameOf(*op);
  }
  switch (std::get<BinaryOperator>(function)) {
    case BinaryOperator::kAdd: return "+";
    case BinaryOperator::kMul: return "*";
    case BinaryOperator::kDiv: return "/";
    case BinaryOperator::kPow: return "^";
    case BinaryOperator::kEqual: return "==";
    case BinaryOperator::kNotEqual: return "!=";
    case BinaryOperator::kLess: return "<";
    case BinaryOperator::kLessEqual: return "<=";
    case BinaryOperator::kGreater: return ">";
    case BinaryOperator::kGreaterEqual: return ">=";
    case BinaryOperator::kTake: return "take";
    default: return "";
  }
}

bool IsInfix(const ElementFunction& function) {
  const auto* const op = std::get_if<BinaryOperator>(&function);
  return op != nullptr && *op != BinaryOperator::kMax &&
         *op != BinaryOperator::kMin && !IsTernary(*op);
}

}  // namespace tensord::core
