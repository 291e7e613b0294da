#include "core/view/index_bounds.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace tensord::core {
namespace {

struct WideRange {
  Wide lowest = 0;
  Wide highest = 0;
};

constexpr int64_t kSmallest = std::numeric_limits<int64_t>::min();
constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();

bool IsModerate(const WideRange& range) {
  return Magnitude(range.lowest) < kWideLimit &&
         Magnitude(range.highest) < kWideLimit;
}

/// Greatest common divisor of x and divisor.
Wide Common(Wide x, Wide divisor) {
  x = Magnitude(x);
  while (x != 0) divisor = std::exchange(x, divisor % x);
  return divisor;
}

/// A sum with one denominator for all of it, and what rounding may add to it:
/// (constant + sum of factor * atom + slack) / denominator.
class Fraction {
 public:
  explicit Fraction(const IndexSum& sum) { Add(sum, 1); }

  /// Replaces every quotient floor(x / d) by (x - r) / d, r in 0 .. d - 1.
  void EliminateQuotients() {
    while (fits_) {
      // Outer quotients first: the same inner one may be in several of them.
      const auto outermost =
          std::ranges::max_element(terms_, {}, [](const Term& term) {
            return term.atom->kind == IndexAtom::Kind::kQuotient
                       ? term.atom->atom_count
                       : 0;
          });
      if (outermost == terms_.end() ||
          outermost->atom->kind != IndexAtom::Kind::kQuotient) {
        return;
      }
      const Term term = *outermost;
      terms_.erase(outermost);
      const Wide divisor = term.atom->divisor;
      const Wide common = Common(term.factor, divisor);
      Scale(divisor / common);
      const Wide factor = term.factor / common;
      const Wide rounding = Product(factor, divisor - 1);
      (factor > 0 ? slack_.lowest : slack_.highest) -= rounding;
      fits_ = fits_ && IsModerate(slack_);
      Add(term.atom->operands[0], factor);
    }
  }

  std::optional<WideRange> Bounds() {
    WideRange range{constant_ + slack_.lowest, constant_ + slack_.highest};
    for (const Term& term : terms_) {
      const Wide x = Product(term.factor, term.atom->lowest);
      const Wide y = Product(term.factor, term.atom->highest);
      range.lowest += std::min(x, y);
      range.highest += std::max(x, y);
      fits_ = fits_ && IsModerate(range);
      if (!fits_) break;
    }
    if (!fits_) return std::nullopt;
    return WideRange{-FloorQuotient(-range.lowest, denominator_),
                     FloorQuotient(range.highest, denominator_)};
  }

 private:
  struct Term {
    Wide factor;
    const IndexAtom* atom;
  };

  Wide Product(Wide x, Wide y) {
    if (x != 0 && Magnitude(y) >= kWideLimit / Magnitude(x)) {
      fits_ = false;
      return 0;
    }
    return x * y;
  }

  void Scale(Wide by) {
    if (by == 1) return;
    for (Term& term : terms_) term.factor = Product(term.factor, by);
    denominator_ = Product(denominator_, by);
    constant_ = Product(constant_, by);
    slack_ = {Product(slack_.lowest, by), Product(slack_.highest, by)};
    if (!fits_) denominator_ = 1;
  }

  void Add(const IndexSum& sum, Wide factor) {
    constant_ += Product(sum.constant, factor);
    fits_ = fits_ && Magnitude(constant_) < kWideLimit;
    for (const IndexTerm& term : sum.terms) {
      Wide total = Product(term.factor, factor);
      const auto same = std::ranges::find_if(terms_, [&](const Term& x) {
        return Compare(*x.atom, *term.atom) == 0;
      });
      if (same != terms_.end()) {
        total += same->factor;
        terms_.erase(same);
      }
      fits_ = fits_ && Magnitude(total) < kWideLimit;
      if (!fits_) return;
      if (total != 0) terms_.push_back({total, term.atom.get()});
    }
  }

  Wide constant_ = 0;
  std::vector<Term> terms_;
  WideRange slack_;
  Wide denominator_ = 1;
  bool fits_ = true;
};

bool HasQuotient(const IndexSum& sum) {
  return std::ranges::any_of(sum.terms, [](const IndexTerm& term) {
    return term.atom->kind == IndexAtom::Kind::kQuotient;
  });
}

/// Bounds of terms that depend on one another.
std::optional<WideRange> BoundsOfPart(const IndexSum& part) {
  const std::optional<WideRange> range = Fraction(part).Bounds();
  if (part.terms.size() < 2 || !HasQuotient(part)) return range;
  Fraction fraction(part);
  fraction.EliminateQuotients();
  const std::optional<WideRange> other = fraction.Bounds();
  if (!range || !other) return range ? range : other;
  return WideRange{std::max(range->lowest, other->lowest),
                   std::min(range->highest, other->highest)};
}

}  // namespace

std::vector<IndexSum> IndependentParts(const IndexSum& sum) {
  std::vector<IndexSum> parts;
  for (const IndexTerm& term : sum.terms) {
    IndexSum joined;
    for (auto part = parts.begin(); part != parts.end();) {
      if ((ModesOf(*part) & term.atom->modes) == 0) {
        ++part;
        continue;
      }
      joined.terms.insert(joined.terms.end(), part->terms.begin(),
                          part->terms.end());
      part = parts.erase(part);
    }
    joined.terms.push_back(term);
    std::ranges::sort(joined.terms, [](const IndexTerm& x, const IndexTerm& y) {
      return Compare(*x.atom, *y.atom) < 0;
    });
    parts.push_back(std::move(joined));
  }
  return parts;
}

std::optional<IndexRange> BoundsOf(const IndexSum& sum) {
  WideRange range{sum.constant, sum.constant};
  const std::vector<IndexSum> parts =
      IsAffine(sum) ? std::vector<IndexSum>{{0, sum.terms}}
                    : IndependentParts(sum);
  for (const IndexSum& part : parts) {
    const std::optional<WideRange> of_part = BoundsOfPart(part);
    if (!of_part) return std::nullopt;
    range.lowest += of_part->lowest;
    range.highest += of_part->highest;
    if (!IsModerate(range)) return std::nullopt;
  }
  if (range.lowest < kSmallest || range.highest > kLargest) {
    return std::nullopt;
  }
  return IndexRange{static_cast<int64_t>(range.lowest),
                    static_cast<int64_t>(range.highest)};
}

}  // namespace tensord::core
