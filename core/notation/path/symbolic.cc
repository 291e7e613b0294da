#include "core/notation/path/symbolic.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"

namespace tensord::core {
namespace {

using Set = uint32_t;  // of inputs

/// The best tree of every set of inputs.
class SymbolicSearch {
 public:
  SymbolicSearch(const Network& network, absl::Span<const Polynomial> extents)
      : input_count_(static_cast<int>(network.inputs.size())),
        all_((Set{1} << input_count_) - 1),
        costs_(all_ + 1),
        splits_(all_ + 1) {
    std::vector<Index> indices(network.extents.size());
    for (size_t i = 0; i < indices.size(); ++i) indices[i].extent = extents[i];
    for (int input = 0; input < input_count_; ++input) {
      for (const int32_t index : network.inputs[input]) {
        indices[index].holders |= Set{1} << input;
      }
    }
    for (const int32_t index : network.output) {
      indices[index].is_in_output = true;
    }
    for (Index& index : indices) {
      if (std::popcount(index.holders) + index.is_in_output > 1) {
        indices_.push_back(std::move(index));
      }
    }
  }

  void Run() {
    for (Set set = 1; set <= all_; ++set) {
      if (std::has_single_bit(set)) continue;
      const Set low = set & -set;
      const Set rest = set ^ low;
      for (Set others = 0; others != rest; others = (others - rest) & rest) {
        Try(set, others | low);
      }
    }
  }

  const Polynomial& cost() const { return costs_[all_]; }

  ContractionTree Tree() const {
    ContractionTree tree;
    Append(all_, tree);
    return tree;
  }

 private:
  struct Index {
    Polynomial extent;
    Set holders = 0;
    bool is_in_output = false;

    bool IsIn(Set set) const {
      return (holders & set) != 0 && (is_in_output || (holders & ~set) != 0);
    }
  };

  void Try(Set set, Set a) {
    const Set b = set ^ a;
    const bool has_cost = splits_[set] != 0;
    if (has_cost && (costs_[set] < costs_[a] || costs_[set] < costs_[b])) {
      return;
    }
    int degree = 0;
    for (const Index& index : indices_) {
      if (index.IsIn(a) || index.IsIn(b)) degree += index.extent.degree();
    }
    if (has_cost && degree > costs_[set].degree()) return;
    Polynomial cost = Polynomial::Constant(1);
    for (const Index& index : indices_) {
      if (index.IsIn(a) || index.IsIn(b)) cost = cost * index.extent;
    }
    cost += costs_[a];
    cost += costs_[b];
    if (has_cost && !(cost < costs_[set])) return;
    costs_[set] = std::move(cost);
    splits_[set] = a;
  }

  int32_t Append(Set set, ContractionTree& tree) const {
    if (std::has_single_bit(set)) return std::countr_zero(set);
    const int32_t a = Append(splits_[set], tree);
    const int32_t b = Append(set ^ splits_[set], tree);
    tree.steps.emplace_back(std::minmax(a, b));
    return static_cast<int32_t>(input_count_ + tree.steps.size() - 1);
  }

  const int input_count_;
  const Set all_;
  std::vector<Index> indices_;     // that more than one input or output have
  std::vector<Polynomial> costs_;  // (set)
  std::vector<Set> splits_;        // (set)
};

}  // namespace

Polynomial Polynomial::Constant(double value) { return Power(value, 0); }

Polynomial Polynomial::Power(double factor, int degree) {
  Polynomial result;
  if (factor == 0) return result;
  result.coefficients.resize(degree + 1);
  result.coefficients.back() = factor;
  return result;
}

Polynomial& Polynomial::operator+=(const Polynomial& other) {
  if (other.coefficients.size() > coefficients.size()) {
    coefficients.resize(other.coefficients.size());
  }
  for (size_t i = 0; i < other.coefficients.size(); ++i) {
    coefficients[i] += other.coefficients[i];
  }
  return *this;
}

bool Polynomial::operator<(const Polynomial& other) const {
  if (degree() != other.degree()) return degree() < other.degree();
  return std::lexicographical_compare(
      coefficients.rbegin(), coefficients.rend(), other.coefficients.rbegin(),
      other.coefficients.rend());
}

Polynomial operator*(const Polynomial& a, const Polynomial& b) {
  Polynomial product;
  if (a.coefficients.empty() || b.coefficients.empty()) return product;
  product.coefficients.resize(a.coefficients.size() + b.coefficients.size() -
                              1);
  for (size_t i = 0; i < a.coefficients.size(); ++i) {
    for (size_t j = 0; j < b.coefficients.size(); ++j) {
      product.coefficients[i + j] += a.coefficients[i] * b.coefficients[j];
    }
  }
  return product;
}

std::string ToText(const Polynomial& polynomial, absl::string_view variable) {
  std::vector<std::string> terms;
  for (int degree = polynomial.degree(); degree >= 0; --degree) {
    const double factor = polynomial.coefficients[degree];
    if (factor == 0) continue;
    std::string power;
    if (degree > 0) power = std::string(variable);
    if (degree > 1) absl::StrAppend(&power, "^", degree);
    if (degree == 0 || factor != 1) {
      // Whole numbers in full while they are exact.
      const std::string number = factor < 0x1p53
                                     ? absl::StrFormat("%.15g", factor)
                                     : absl::StrFormat("%.6g", factor);
      power = power.empty() ? number : absl::StrCat(number, "*", power);
    }
    terms.push_back(std::move(power));
  }
  return terms.empty() ? "0" : absl::StrJoin(terms, " + ");
}

absl::StatusOr<SymbolicPath> FindSymbolicPath(
    const Network& network, absl::Span<const Polynomial> extents) {
  const size_t input_count = network.inputs.size();
  if (input_count > kSymbolicInputLimit) {
    return InvalidArgument("PATH_SEARCH_TOO_LARGE",
                           "the symbolic cost of a product of ", input_count,
                           " operands was asked for, at most ",
                           kSymbolicInputLimit, " are searched");
  }
  if (input_count < 2) return SymbolicPath{};
  SymbolicSearch search(network, extents);
  search.Run();
  return SymbolicPath{search.Tree(), search.cost()};
}

Polynomial SymbolicCostOf(const Network& network, const ContractionTree& tree,
                          absl::Span<const Polynomial> extents) {
  std::vector<int> uses(network.extents.size());
  for (const Network::Indices& input : network.inputs) {
    for (const int32_t index : input) ++uses[index];
  }
  for (const int32_t index : network.output) ++uses[index];
  std::vector<Network::Indices> nodes = network.inputs;
  for (const Network::Indices& result : ResultsOf(network, tree)) {
    nodes.push_back(result);
  }
  Polynomial cost;
  for (const auto& [a, b] : tree.steps) {
    std::vector<bool> is_counted(network.extents.size());
    Polynomial of_step = Polynomial::Constant(1);
    for (const int32_t node : {a, b}) {
      for (const int32_t index : nodes[node]) {
        if (uses[index] < 2 || is_counted[index]) continue;
        is_counted[index] = true;
        of_step = of_step * extents[index];
      }
    }
    cost += of_step;
  }
  return cost;
}

}  // namespace tensord::core
