// Arithmetic on sums of indices that simplifies by what is known of the
// indices.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/layout.h"
#include "core/view/index_bounds.h"
#include "core/view/index_sum.h"

namespace tensord::core {

/// The indices of a view, 0 <= index < extent each, and the sums over them.
///
/// Every result has the same value as what was asked for, wherever the indices
/// are, and is simplified: a quotient or exclusive or of indices that is affine
/// over the whole domain comes out affine. Nothing is enumerated but in
/// Linearize(), so extents may be as large as they like.
///
/// Threads   for one thread; the sums may be shared.
/// Requires  every extent >= 1.
/// Errors    status(): arithmetic that leaves int64 or a sum that grows beyond
///           all measure is remembered, and results are meaningless from then.
class IndexDomain {
 public:
  explicit IndexDomain(const ModeVector& extents) : extents_(extents) {}

  /// The index of a mode; the constant 0 when its extent is 1.
  IndexSum Index(int mode);

  /// x + factor * y.
  IndexSum Add(const IndexSum& x, const IndexSum& y, Wide factor = 1);
  IndexSum Multiply(const IndexSum& x, Wide factor);

  /// x / divisor, rounded down.
  /// Requires divisor > 0.
  IndexSum Quotient(const IndexSum& x, int64_t divisor);

  /// x - divisor * floor(x / divisor), in 0 .. divisor - 1.
  /// Requires divisor > 0.
  IndexSum Remainder(const IndexSum& x, int64_t divisor);

  /// Exclusive or of the bits in two's complement.
  IndexSum Xor(std::vector<IndexSum> operands);

  /// `sum`, a sum over another domain, with each of its indices replaced by
  /// the sum over this domain that `indices` has for its mode.
  IndexSum Substitute(const IndexSum& sum, absl::Span<const IndexSum> indices);

  /// The same sum, affine when it is so by value in every part that depends on
  /// few coordinates: those are enumerated.
  IndexSum Linearize(const IndexSum& sum);

  /// BoundsOf(), and exact in every part that depends on few coordinates.
  std::optional<IndexRange> TightBounds(const IndexSum& sum);

  /// Remembers that the caller holds more than is sensible.
  void GiveUp() { too_complex_ = true; }

  /// Errors  INVALID_ARGUMENT SIZE_OVERFLOW, UNIMPLEMENTED VIEW_TOO_COMPLEX;
  ///         `where` begins the message.
  absl::Status status(absl::string_view where) const;

 private:
  Wide Sum(Wide x, Wide y);
  Wide Product(Wide x, Wide y);
  /// False when too much has been done already.
  bool Spend();
  IndexSum AtomSum(IndexAtom atom);
  std::optional<IndexSum> QuotientOfRest(const IndexSum& rest, int64_t divisor);
  std::optional<IndexSum> QuotientAtom(const IndexSum& x, int64_t divisor);
  std::optional<IndexSum> AffineQuotient(const IndexSum& x, int64_t divisor);
  std::optional<IndexSum> QuotientByFactor(const IndexSum& x, int64_t divisor);
  std::optional<IndexSum> QuotientOfQuotient(const IndexSum& x,
                                             int64_t divisor);
  std::optional<IndexSum> XorByBits(const std::vector<IndexSum>& operands);
  std::optional<IndexSum> AffineByValue(const IndexSum& part);
  std::optional<IndexRange> BoundsByValue(const IndexSum& part);

  ModeVector extents_;
  bool overflowed_ = false;
  bool too_complex_ = false;
  int64_t spent_ = 0;
};

}  // namespace tensord::core
