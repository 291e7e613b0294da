#include "core/notation/forms.h"

#include <utility>
#include <variant>

namespace tensord::core {

Sum SumOf(Factor factor) {
  Sum sum;
  Term& term = sum.terms.emplace_back();
  term.position = factor.position;
  term.factors.push_back(std::move(factor));
  return sum;
}

void Conjugate(Factor& factor) {
  auto* const groups = std::get_if<std::vector<Sum>>(&factor.value);
  if (groups != nullptr && !factor.is_scalar && !factor.is_conjugated) {
    Term& term = groups->front().terms.front();
    if (groups->front().terms.size() == 1 && term.factors.size() == 1 &&
        !term.is_negated) {
      Factor only = std::move(term.factors.front());
      only.position = factor.position;
      factor = std::move(only);
    }
  }
  factor.is_conjugated = !factor.is_conjugated;
}

void UnwrapComparison(Factor& group) {
  if (group.is_scalar) return;
  const Sum& sum = *group.group();
  if (sum.terms.size() > 1 || sum.terms[0].is_negated) return;
  const Factor& first = sum.terms[0].factors[0];
  const Call* const call = first.call();
  if (call == nullptr || sum.terms[0].factors.size() > 1 ||
      first.is_conjugated) {
    return;
  }
  const auto* const op = std::get_if<BinaryOperator>(&call->function);
  if (op != nullptr && IsComparison(*op)) group.value = Call(*call);
}

void Enclose(Factor& factor) {
  Factor group;
  group.is_divisor = std::exchange(factor.is_divisor, false);
  group.position = factor.position;
  group.value.emplace<std::vector<Sum>>().push_back(SumOf(std::move(factor)));
  factor = std::move(group);
}

std::vector<Factor> ProductOf(std::vector<Factor> factors,
                              const std::vector<size_t>& starts) {
  if (starts.empty()) return factors;
  std::vector<Factor> ordered;
  ordered.reserve(factors.size());
  size_t end = factors.size();
  bool is_divided = false;  // by an odd number of `\`
  for (size_t part = starts.size() + 1; part-- > 0;) {
    const size_t start = part == 0 ? 0 : starts[part - 1];
    for (size_t i = start; i < end; ++i) {
      factors[i].is_divisor = factors[i].is_divisor != is_divided;
      ordered.push_back(std::move(factors[i]));
    }
    end = start;
    is_divided = !is_divided;
  }
  return ordered;
}

}  // namespace tensord::core
