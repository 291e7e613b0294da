// Exclusive or.
#include <algorithm>
#include <bit>
#include <limits>
#include <set>
#include <utility>

#include "core/view/index_domain.h"

namespace tensord::core {
namespace {

bool IsZero(const IndexSum& sum) {
  return sum.constant == 0 && sum.terms.empty();
}

/// The operands of the exclusive or that `sum` is, or `sum` itself.
std::vector<IndexSum> Flatten(const IndexSum& sum) {
  const bool is_xor = sum.constant == 0 && sum.terms.size() == 1 &&
                      sum.terms[0].factor == 1 &&
                      sum.terms[0].atom->kind == IndexAtom::Kind::kXor;
  if (is_xor) return sum.terms[0].atom->operands;
  return {sum};
}

/// Sorted, without constants and without what is there twice; then what the
/// constants make together, unless it is 0.
std::vector<IndexSum> Simplest(const std::vector<IndexSum>& operands) {
  std::vector<IndexSum> flat;
  Wide constant = 0;
  for (const IndexSum& operand : operands) {
    for (IndexSum& inner : Flatten(operand)) {
      if (inner.terms.empty()) {
        constant ^= inner.constant;
      } else {
        flat.push_back(std::move(inner));
      }
    }
  }
  std::ranges::sort(flat, [](const IndexSum& x, const IndexSum& y) {
    return Compare(x, y) < 0;
  });
  std::vector<IndexSum> simplest;
  for (IndexSum& operand : flat) {
    if (!simplest.empty() && Compare(simplest.back(), operand) == 0) {
      simplest.pop_back();
    } else {
      simplest.push_back(std::move(operand));
    }
  }
  if (constant != 0) simplest.push_back({constant, {}});
  return simplest;
}

/// Bits that can differ between two numbers of the range.
int VaryingBits(const IndexRange& range) {
  return std::bit_width(static_cast<uint64_t>(range.lowest ^ range.highest));
}

/// How many of its lowest bits say all of a number of the range but its sign.
int MagnitudeBits(const IndexRange& range) {
  const auto bits = [](int64_t x) {
    return std::bit_width(static_cast<uint64_t>(x < 0 ? ~x : x));
  };
  return std::max(bits(range.lowest), bits(range.highest));
}

}  // namespace

IndexSum IndexDomain::Xor(std::vector<IndexSum> operands) {
  if (!Spend()) return {};
  operands = Simplest(operands);
  if (operands.empty()) return {};
  if (operands.size() == 1) return operands[0];
  if (auto sum = XorByBits(operands)) return *std::move(sum);
  IndexAtom atom{.kind = IndexAtom::Kind::kXor, .operands = operands};
  int bits = 0;
  bool is_signed = false;
  for (const IndexSum& operand : operands) {
    const auto bounds = BoundsOf(operand);
    overflowed_ = overflowed_ || !bounds;
    if (!bounds) return {};
    bits = std::max(bits, MagnitudeBits(*bounds));
    is_signed = is_signed || bounds->lowest < 0;
  }
  atom.highest = static_cast<int64_t>((uint64_t{1} << bits) - 1);
  atom.lowest = is_signed ? -atom.highest - 1 : 0;
  // All bits flipped.
  if (operands.size() == 2 && operands[1].terms.empty() && !is_signed &&
      operands[1].constant == atom.highest) {
    return Add(operands[1], operands[0], -1);
  }
  return AtomSum(std::move(atom));
}

/// The high and the low bits apart, where that takes no new quotients.
std::optional<IndexSum> IndexDomain::XorByBits(
    const std::vector<IndexSum>& operands) {
  std::set<int> places;
  int varying = 0;
  int64_t atom_count = 0;
  for (const IndexSum& operand : operands) {
    atom_count += AtomCount(operand);
    for (const IndexTerm& term : operand.terms) {
      places.insert(std::countr_zero(static_cast<uint64_t>(term.factor)));
    }
    const auto bounds = BoundsOf(operand);
    if (bounds) varying = std::max(varying, VaryingBits(*bounds));
  }
  places.insert(varying);
  for (const int place : places) {
    if (place < 1 || place > 62) continue;
    const int64_t unit = int64_t{1} << place;
    std::vector<IndexSum> high;
    std::vector<IndexSum> low;
    int64_t split_count = 0;
    for (const IndexSum& operand : operands) {
      high.push_back(Quotient(operand, unit));
      low.push_back(Add(operand, high.back(), -unit));
      split_count += AtomCount(high.back()) + AtomCount(low.back());
    }
    if (split_count > atom_count || std::ranges::all_of(high, IsZero)) continue;
    return Add(Xor(std::move(low)), Xor(std::move(high)), unit);
  }
  return std::nullopt;
}

}  // namespace tensord::core
