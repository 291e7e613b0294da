// Where a view finds its elements in another's storage.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/layout.h"
#include "core/view/index_sum.h"
#include "core/view/stage.h"

namespace tensord::core {

/// A view that any kernel which takes strides can read.
///
/// Units      elements; `offset` is that of the first one, from the first of
///            the storage.
/// Invariant  extents.size() == strides.size(). A stride may be negative, or 0
///            where a mode repeats. Modes of extent 1, and all modes of an
///            empty view, have stride 1; the offset of an empty view is 0.
struct StridedView {
  ModeVector extents;
  ModeVector strides;
  int64_t offset = 0;

  bool operator==(const StridedView&) const = default;
};

/// True when no two indices share an element. Decided by nesting, as that of a
/// Layout.
bool IsInjective(const StridedView& view);

class IndexDomain;

/// Padding unless 0 <= sum <= limit.
struct IndexCondition {
  IndexSum sum;
  int64_t limit = 0;
};

/// Takes the indices of a view to elements of a storage, or to padding.
///
/// However many stages led to it, it is kept as one sum of the indices and
/// conditions on them, simplified at each stage: what undoes an earlier stage
/// leaves no trace.
///
/// Units    elements, from the first of the storage's buffer.
/// Threads  immutable value; share freely.
class View {
 public:
  /// The view of a whole storage, then of each stage in turn.
  ///
  /// Errors  INVALID_ARGUMENT: an invalid layout, a negative offset, a stage
  ///         that does not fit (Then()).
  static absl::StatusOr<View> Create(const Layout& storage, int64_t offset,
                                     absl::Span<const Stage> stages = {});

  /// A view of this view.
  ///
  /// Errors  INVALID_ARGUMENT: what UpperExtents() refuses; numbers beyond
  ///         2^63 - 1. UNIMPLEMENTED, VIEW_TOO_COMPLEX: stages that neither
  ///         simplify nor end.
  absl::StatusOr<View> Then(const Stage& stage) const;

  const ModeVector& extents() const { return extents_; }
  int mode_count() const { return static_cast<int>(extents_.size()); }
  /// Product of the extents, padding included.
  int64_t element_count() const;

  /// The element at `indices`; nothing in padding.
  /// Requires  0 <= index < extent for every mode.
  std::optional<int64_t> Locate(absl::Span<const int64_t> indices) const;

  /// The same view by strides, if it has no padding and is affine, whatever its
  /// stages were. Certain to be found for a view of at most 1024 elements; a
  /// larger one may rarely be missed, say where an exclusive or happens to come
  /// out affine.
  const std::optional<StridedView>& strided() const { return strided_; }

  /// False when every index is known to have an element.
  bool may_pad() const { return is_padding_ || !conditions_.empty(); }

  /// True when different indices never share an element. Padding shares
  /// nothing. False may be said of a view that is injective all the same: one
  /// that repeats elements at some stage and drops the repetition at a later
  /// one, unless it is strided.
  bool IsInjective() const;

  /// Elements from the lowest to the highest that an index can lead to, gaps
  /// included: 1 + sum of |stride| * (extent - 1), or 0 when there are none.
  /// At least that many when the view is not strided.
  int64_t span_elements() const { return span_; }
  /// Elements to reserve for the same strides: AllocationElements() of
  /// aligned_layout.h, and the span of a view that is not strided.
  int64_t allocation_elements() const { return allocation_; }

  /// The conditions and the sum of which Locate() consists, for those that
  /// translate a view. `address` means nothing where a condition fails or
  /// is_padding().
  const std::vector<IndexCondition>& conditions() const { return conditions_; }
  const IndexSum& address() const { return address_; }
  /// True when every index is known to be padding.
  bool is_padding() const { return is_padding_; }

 private:
  View() = default;
  bool is_empty() const;
  /// Makes all indices padding unless 0 <= sum <= limit for some, and keeps
  /// the condition unless that holds for all.
  void Require(const IndexSum& sum, int64_t limit, IndexDomain& domain);
  /// Fills in what follows from the map.
  void Finish(IndexDomain* domain);

  ModeVector extents_;
  IndexSum address_;
  std::vector<IndexCondition> conditions_;
  bool is_padding_ = false;
  bool is_injective_ = true;
  int stage_count_ = 0;
  int64_t storage_offset_ = 0;
  int64_t storage_span_ = 0;
  std::optional<StridedView> strided_;
  int64_t span_ = 0;
  int64_t allocation_ = 0;
};

}  // namespace tensord::core
