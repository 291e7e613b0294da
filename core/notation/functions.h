// The functions that statements know, and how they are written.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "core/notation/syntax.h"

namespace tensord::core {

/// A function that is written as a name in front of its arguments.
struct NamedFunction {
  absl::string_view name;
  ElementFunction function;
  int argument_count;
};

/// Null when no function is called `name`.
const NamedFunction* FindFunction(absl::string_view name);

/// A function of whole tensors, see StatementCall.
struct StatementFunction {
  absl::string_view name;
  std::optional<FactorizationMethod> method;
  std::optional<AlongFunction> along;
  int argument_count;
  MatrixFunction function = MatrixFunction::kInverse;  // of inv and expm
};

/// Null when no function of whole tensors is called `name`.
const StatementFunction* FindStatementFunction(absl::string_view name);

/// `svd`, `solve`.
absl::string_view NotationOf(const StatementCall& call);
/// `cumsum`.
absl::string_view NotationOf(AlongFunction function);

/// What a name that is no function's may have been meant for: " the nearest is
/// 'sqrt'," or "".
std::string NearestFunction(absl::string_view name);

/// `sqrt`, `max`, or the operator that stands between two arguments: `^`, `<`.
absl::string_view NotationOf(const ElementFunction& function);

/// Whether it stands between its two arguments.
bool IsInfix(const ElementFunction& function);

}  // namespace tensord::core
