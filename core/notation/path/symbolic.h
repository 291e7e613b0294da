// Costs of trees as polynomials, for extents that are not known yet.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/notation/path/network.h"

namespace tensord::core {

/// Most inputs that SymbolicPath() takes.
inline constexpr int kSymbolicInputLimit = 12;

/// A polynomial in one variable.
///
/// Units      coefficients are exact up to 2^53.
/// Invariant  no coefficient is negative, the last is not zero.
struct Polynomial {
  std::vector<double> coefficients;  // (degree); none of zero

  static Polynomial Constant(double value);
  /// `factor` times the variable to the power of `degree`.
  static Polynomial Power(double factor, int degree);

  int degree() const { return static_cast<int>(coefficients.size()) - 1; }
  Polynomial& operator+=(const Polynomial& other);

  bool operator==(const Polynomial&) const = default;
  /// Where the variable is large: the highest degree first.
  bool operator<(const Polynomial& other) const;
};

Polynomial operator*(const Polynomial& a, const Polynomial& b);

/// As "2*χ^3 + χ + 5", highest degree first; "0".
std::string ToText(const Polynomial& polynomial, absl::string_view variable);

/// A label that costs speak of, and where.
struct CostLabel {
  std::string text;
  int column = 0;  // in characters, from 1
};

/// Extents in terms of a variable.
struct SymbolicExtents {
  std::string variable = "χ";
  std::vector<Polynomial> extents;  // (index)
  std::vector<CostLabel> named;     // in the order of the text
};

/// Reads what indices cost, by their labels:
///
///   (a,b,c)            χ for those, 1 for others
///   !(a,b,c)           1 for those, χ for others
///   (a=>χ, b=>2*χ^2)   as said, 1 for others; sums too, also `a=χ`
///   ((a,b)=>χ, c=>5)   several labels of one cost
///   empty              χ for all
///
/// Parentheses may be left out where no `!` is in front.
///
/// The variable is χ or the one name that the costs use. What is said of a
/// label that is not among `labels` is checked and has no effect.
///
/// Errors  INVALID_ARGUMENT, reason COST_MALFORMED: "costs, column 3: ...",
///         which counts characters.
absl::StatusOr<SymbolicExtents> ParseCosts(
    absl::string_view text, absl::Span<const std::string> labels  // (index)
);

struct SymbolicPath {
  ContractionTree tree;
  Polynomial cost;
};

/// The tree with the fewest multiplications where the variable is large: for
/// every step the product of the extents of all its indices. Indices of a
/// single input are summed before, which costs nothing.
///
/// Requires  an extent for every index of `network`; its own do not count.
/// Errors    INVALID_ARGUMENT, reason PATH_SEARCH_TOO_LARGE.
absl::StatusOr<SymbolicPath> FindSymbolicPath(
    const Network& network, absl::Span<const Polynomial> extents);

/// What `tree` costs, counted as FindSymbolicPath() does.
Polynomial SymbolicCostOf(const Network& network, const ContractionTree& tree,
                          absl::Span<const Polynomial> extents);

}  // namespace tensord::core
