#include "core/view/index_sum.h"

#include <algorithm>
#include <cstddef>

namespace tensord::core {
namespace {

int CompareNumbers(Wide x, Wide y) { return x < y ? -1 : x > y ? 1 : 0; }

int64_t Evaluate(const IndexAtom& atom, absl::Span<const int64_t> indices) {
  switch (atom.kind) {
    case IndexAtom::Kind::kIndex: return indices[atom.mode];
    case IndexAtom::Kind::kQuotient:
      return FloorQuotient(Evaluate(atom.operands[0], indices), atom.divisor);
    case IndexAtom::Kind::kXor: break;
  }
  int64_t bits = 0;
  for (const IndexSum& operand : atom.operands) {
    bits ^= Evaluate(operand, indices);
  }
  return bits;
}

}  // namespace

int Compare(const IndexAtom& x, const IndexAtom& y) {
  if (&x == &y) return 0;
  if (x.kind != y.kind) return x.kind < y.kind ? -1 : 1;
  if (x.mode != y.mode) return CompareNumbers(x.mode, y.mode);
  if (x.divisor != y.divisor) return CompareNumbers(x.divisor, y.divisor);
  if (x.operands.size() != y.operands.size()) {
    return x.operands.size() < y.operands.size() ? -1 : 1;
  }
  for (size_t i = 0; i < x.operands.size(); ++i) {
    const int order = Compare(x.operands[i], y.operands[i]);
    if (order != 0) return order;
  }
  return 0;
}

int Compare(const IndexSum& x, const IndexSum& y) {
  const size_t shared = std::min(x.terms.size(), y.terms.size());
  for (size_t i = 0; i < shared; ++i) {
    const int order = Compare(*x.terms[i].atom, *y.terms[i].atom);
    if (order != 0) return order;
    if (x.terms[i].factor != y.terms[i].factor) {
      return CompareNumbers(x.terms[i].factor, y.terms[i].factor);
    }
  }
  if (x.terms.size() != y.terms.size()) {
    return x.terms.size() < y.terms.size() ? -1 : 1;
  }
  return CompareNumbers(x.constant, y.constant);
}

int64_t AtomCount(const IndexSum& sum) {
  int64_t count = 0;
  for (const IndexTerm& term : sum.terms) count += term.atom->atom_count;
  return count;
}

bool IsAffine(const IndexSum& sum) {
  return std::ranges::all_of(sum.terms, [](const IndexTerm& term) {
    return term.atom->kind == IndexAtom::Kind::kIndex;
  });
}

uint64_t ModesOf(const IndexSum& sum) {
  uint64_t modes = 0;
  for (const IndexTerm& term : sum.terms) modes |= term.atom->modes;
  return modes;
}

int64_t Evaluate(const IndexSum& sum, absl::Span<const int64_t> indices) {
  // Modulo 2^64: what the value itself does not need cancels.
  auto value = static_cast<uint64_t>(sum.constant);
  for (const IndexTerm& term : sum.terms) {
    value += static_cast<uint64_t>(term.factor) *
             static_cast<uint64_t>(Evaluate(*term.atom, indices));
  }
  return static_cast<int64_t>(value);
}

}  // namespace tensord::core
