// Sums of indices, of their quotients and of their exclusive ors: the one form
// in which every view keeps where its elements lie.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"

namespace tensord::core {

struct IndexAtom;

/// Constants and factors, which may leave int64 although the sums do not:
/// (i - 2^40 * floor(i / 2^40)) * 2^40 has a factor of -2^80.
__extension__ using Wide = __int128;

/// They stay below, so that the sum of two of them fits.
inline constexpr Wide kWideLimit = Wide{1} << 125;

inline Wide Magnitude(Wide x) { return x < 0 ? -x : x; }

struct IndexTerm {
  Wide factor = 0;
  std::shared_ptr<const IndexAtom> atom;
};

/// constant + sum of factor * atom.
///
/// A remainder is no atom of its own: x mod d is x - d * floor(x / d), so that
/// d * floor(x / d) + x mod d collapses to x by adding up.
///
/// Invariant  terms are sorted by Compare(); atoms differ; no factor is 0.
/// Threads    immutable value once made by an IndexDomain; share freely.
struct IndexSum {
  Wide constant = 0;
  absl::InlinedVector<IndexTerm, 4> terms;
};

/// What a sum adds up.
struct IndexAtom {
  enum class Kind : uint8_t { kIndex, kQuotient, kXor };

  Kind kind = Kind::kIndex;
  int mode = 0;                    // kIndex: of which mode
  int64_t divisor = 1;             // kQuotient: rounded down; >= 2
  std::vector<IndexSum> operands;  // kQuotient: 1; kXor: at least 2

  int64_t lowest = 0;      // no value is below, wherever the indices are
  int64_t highest = 0;     // no value is above
  uint64_t modes = 0;      // bit i: depends on the index of mode i
  int64_t atom_count = 1;  // in it, itself included
};

/// Negative, 0 or positive, as x comes before y, equals it or comes after it:
/// indices first, by mode, then quotients, then exclusive ors.
int Compare(const IndexAtom& x, const IndexAtom& y);
int Compare(const IndexSum& x, const IndexSum& y);

/// Atoms in the sum, those inside others included.
int64_t AtomCount(const IndexSum& sum);

/// True when all atoms are indices.
bool IsAffine(const IndexSum& sum);

/// Which modes the sum depends on, as bits.
uint64_t ModesOf(const IndexSum& sum);

/// The value at `indices`.
/// Requires  indices that the domain has, and a value that fits int64.
int64_t Evaluate(const IndexSum& sum, absl::Span<const int64_t> indices);

/// x / divisor rounded towards minus infinity.
/// Requires divisor > 0.
constexpr int64_t FloorQuotient(int64_t x, int64_t divisor) {
  return x / divisor - (x % divisor < 0 ? 1 : 0);
}
constexpr Wide FloorQuotient(Wide x, Wide divisor) {
  return x / divisor - (x % divisor < 0 ? 1 : 0);
}

}  // namespace tensord::core
