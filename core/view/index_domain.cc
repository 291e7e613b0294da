#include "core/view/index_domain.h"

#include <functional>
#include <numeric>
#include <set>
#include <utility>

#include "core/base/checked_math.h"
#include "core/base/status.h"

namespace tensord::core {
namespace {

/// Most operations that one stage of a view may cost.
constexpr int64_t kLargestEffort = 5000;
/// Most atoms in an atom.
constexpr int64_t kMaxAtomCount = 1024;

/// The multiple of `divisor` nearest to x, halves down, as a quotient.
Wide NearestQuotient(Wide x, Wide divisor) {
  const Wide quotient = FloorQuotient(x, divisor);
  const Wide remainder = x - quotient * divisor;
  return quotient + (remainder > divisor - remainder ? 1 : 0);
}

bool IsIndex(const IndexAtom& atom) {
  return atom.kind == IndexAtom::Kind::kIndex;
}

}  // namespace

absl::Status IndexDomain::status(absl::string_view where) const {
  if (overflowed_) {
    return InvalidArgument("SIZE_OVERFLOW", where,
                           " needs numbers beyond 2^63 - 1 for extents ",
                           ToString(extents_));
  }
  if (too_complex_) {
    return Unimplemented("VIEW_TOO_COMPLEX", where,
                         " makes a view of too many nested divisions; copy "
                         "the view into a tensor before this stage");
  }
  return absl::OkStatus();
}

Wide IndexDomain::Sum(Wide x, Wide y) {
  const bool fits = Magnitude(x + y) < kWideLimit;
  overflowed_ = overflowed_ || !fits;
  return fits ? x + y : 0;
}

Wide IndexDomain::Product(Wide x, Wide y) {
  const bool fits = x == 0 || Magnitude(y) < kWideLimit / Magnitude(x);
  overflowed_ = overflowed_ || !fits;
  return fits ? x * y : 0;
}

bool IndexDomain::Spend() {
  too_complex_ = too_complex_ || ++spent_ > kLargestEffort;
  return !too_complex_;
}

IndexSum IndexDomain::AtomSum(IndexAtom atom) {
  for (const IndexSum& operand : atom.operands) {
    atom.modes |= ModesOf(operand);
    atom.atom_count += AtomCount(operand);
  }
  too_complex_ = too_complex_ || atom.atom_count > kMaxAtomCount;
  return {0, {{1, std::make_shared<const IndexAtom>(std::move(atom))}}};
}

IndexSum IndexDomain::Index(int mode) {
  if (extents_[mode] == 1) return {};
  return AtomSum({.kind = IndexAtom::Kind::kIndex,
                  .mode = mode,
                  .lowest = 0,
                  .highest = extents_[mode] - 1,
                  .modes = uint64_t{1} << mode});
}

IndexSum IndexDomain::Add(const IndexSum& x, const IndexSum& y, Wide factor) {
  IndexSum sum;
  sum.constant = Sum(x.constant, Product(y.constant, factor));
  auto left = x.terms.begin();
  auto right = y.terms.begin();
  while (left != x.terms.end() || right != y.terms.end()) {
    const int order = left == x.terms.end() ? 1
                      : right == y.terms.end()
                          ? -1
                          : Compare(*left->atom, *right->atom);
    IndexTerm term;
    if (order <= 0) {
      term = *left++;
    } else {
      term.atom = right->atom;
    }
    if (order >= 0) {
      term.factor = Sum(term.factor, Product(right++->factor, factor));
    }
    if (term.factor != 0) sum.terms.push_back(std::move(term));
  }
  return sum;
}

IndexSum IndexDomain::Multiply(const IndexSum& x, Wide factor) {
  return Add({}, x, factor);
}

IndexSum IndexDomain::Remainder(const IndexSum& x, int64_t divisor) {
  return Add(x, Quotient(x, divisor), -divisor);
}

IndexSum IndexDomain::Quotient(const IndexSum& x, int64_t divisor) {
  if (!Spend()) return {};
  if (divisor == 1) return x;
  // Whole multiples of the divisor come out; what remains of every factor is
  // the nearest to 0, and the first is made positive, so that equal quotients
  // are written alike.
  IndexSum whole;
  IndexSum rest;
  for (const IndexTerm& term : x.terms) {
    const Wide quotient = NearestQuotient(term.factor, divisor);
    if (quotient != 0) whole.terms.push_back({quotient, term.atom});
    const Wide factor = term.factor - quotient * divisor;
    if (factor != 0) rest.terms.push_back({factor, term.atom});
  }
  whole.constant = FloorQuotient(x.constant, Wide{divisor});
  rest.constant = x.constant - whole.constant * divisor;
  if (rest.terms.empty()) return whole;
  const bool is_negated = rest.terms[0].factor < 0;
  if (is_negated) {
    // floor(-x / d) == -floor((x + d - 1) / d)
    rest.constant = divisor - 1 - rest.constant;
    IndexSum halves;
    for (IndexTerm& term : rest.terms) {
      term.factor = -term.factor;
      if (term.factor == -divisor - term.factor) {
        term.factor += divisor;
        halves.terms.push_back({1, term.atom});
      }
    }
    whole = Add(whole, halves);
  }
  if (const auto quotient = QuotientOfRest(rest, divisor)) {
    return Add(whole, *quotient, is_negated ? -1 : 1);
  }
  // The rest may leave int64 where quotients in x no longer cancel.
  auto quotient = QuotientAtom(x, divisor);
  if (quotient) return *std::move(quotient);
  overflowed_ = true;
  return {};
}

std::optional<IndexSum> IndexDomain::QuotientOfRest(const IndexSum& rest,
                                                    int64_t divisor) {
  if (auto sum = AffineQuotient(rest, divisor)) return sum;
  if (auto sum = QuotientByFactor(rest, divisor)) return sum;
  if (auto sum = QuotientOfQuotient(rest, divisor)) return sum;
  return QuotientAtom(rest, divisor);
}

/// The quotient as it stands; nothing when x leaves int64.
std::optional<IndexSum> IndexDomain::QuotientAtom(const IndexSum& x,
                                                  int64_t divisor) {
  const auto bounds = BoundsOf(x);
  if (!bounds) return std::nullopt;
  return AtomSum({.kind = IndexAtom::Kind::kQuotient,
                  .divisor = divisor,
                  .operands = {x},
                  .lowest = FloorQuotient(bounds->lowest, divisor),
                  .highest = FloorQuotient(bounds->highest, divisor)});
}

/// The quotient when it is affine in the atoms of x: then its factors show in
/// the first steps from the lowest corner, and what it leaves of x stays below
/// the divisor everywhere.
std::optional<IndexSum> IndexDomain::AffineQuotient(const IndexSum& x,
                                                    int64_t divisor) {
  const bool overflowed_before = std::exchange(overflowed_, false);
  Wide corner = x.constant;
  for (const IndexTerm& term : x.terms) {
    corner = Sum(corner, Product(term.factor, term.atom->lowest));
  }
  const Wide at_corner = FloorQuotient(corner, Wide{divisor});
  IndexSum quotient{at_corner, {}};
  for (const IndexTerm& term : x.terms) {
    const Wide factor =
        FloorQuotient(Sum(corner, term.factor), Wide{divisor}) - at_corner;
    if (factor == 0) continue;
    quotient.constant =
        Sum(quotient.constant, Product(-factor, term.atom->lowest));
    quotient.terms.push_back({factor, term.atom});
  }
  const IndexSum left = Add(x, quotient, -divisor);
  const bool fits = !std::exchange(overflowed_, overflowed_before);
  if (!fits) return std::nullopt;
  const auto bounds = BoundsOf(left);
  if (!bounds || !IndexRange{0, divisor - 1}.Contains(*bounds)) {
    return std::nullopt;
  }
  return quotient;
}

/// floor((g * x + y) / (g * d)) == floor((x + floor(y / g)) / d), when that
/// makes the sum no longer.
std::optional<IndexSum> IndexDomain::QuotientByFactor(const IndexSum& x,
                                                      int64_t divisor) {
  std::set<int64_t, std::greater<>> factors;
  for (const IndexTerm& term : x.terms) {
    // What remains of a factor is smaller than the divisor.
    const int64_t factor = std::gcd(static_cast<int64_t>(term.factor), divisor);
    if (factor > 1) factors.insert(factor);
  }
  for (const int64_t factor : factors) {
    IndexSum multiple;
    IndexSum other{x.constant, {}};
    for (const IndexTerm& term : x.terms) {
      if (term.factor % factor == 0) {
        multiple.terms.push_back({term.factor / factor, term.atom});
      } else {
        other.terms.push_back(term);
      }
    }
    IndexSum sum;
    if (IsAffine(x)) {
      // A new quotient would have none to cancel.
      const auto quotient = AffineQuotient(other, factor);
      if (!quotient) continue;
      sum = Add(multiple, *quotient);
    } else {
      sum = Add(multiple, Quotient(other, factor));
    }
    if (AtomCount(sum) <= AtomCount(x)) {
      return Quotient(sum, divisor / factor);
    }
  }
  return std::nullopt;
}

/// floor((x + floor(y / e)) / d) == floor((e * x + y) / (e * d))
/// floor((x - floor(y / e)) / d) == floor((e * x - y + e - 1) / (e * d))
std::optional<IndexSum> IndexDomain::QuotientOfQuotient(const IndexSum& x,
                                                        int64_t divisor) {
  for (const IndexTerm& term : x.terms) {
    if (term.atom->kind != IndexAtom::Kind::kQuotient) continue;
    if (term.factor != 1 && term.factor != -1) continue;
    const int64_t inner = term.atom->divisor;
    const auto product = CheckedMultiply(inner, divisor);
    if (!product) continue;
    const bool overflowed_before = std::exchange(overflowed_, false);
    IndexSum sum = Add(x, {0, {term}}, -1);
    sum = Add(Multiply(sum, inner), term.atom->operands[0], term.factor);
    if (term.factor < 0) sum.constant = Sum(sum.constant, inner - 1);
    sum = Quotient(sum, *product);
    if (!std::exchange(overflowed_, overflowed_before)) return sum;
  }
  return std::nullopt;
}

IndexSum IndexDomain::Substitute(const IndexSum& sum,
                                 absl::Span<const IndexSum> indices) {
  IndexSum result{sum.constant, {}};
  for (const IndexTerm& term : sum.terms) {
    if (!Spend()) return {};
    const IndexAtom& atom = *term.atom;
    if (IsIndex(atom)) {
      result = Add(result, indices[atom.mode], term.factor);
      continue;
    }
    std::vector<IndexSum> operands;
    for (const IndexSum& operand : atom.operands) {
      operands.push_back(Substitute(operand, indices));
    }
    result = Add(result,
                 atom.kind == IndexAtom::Kind::kQuotient
                     ? Quotient(operands[0], atom.divisor)
                     : Xor(std::move(operands)),
                 term.factor);
  }
  return result;
}

}  // namespace tensord::core
