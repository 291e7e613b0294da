#include "core/view/view.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/checked_math.h"
#include "core/base/status.h"
#include "core/view/aligned_layout.h"
#include "core/view/index_domain.h"
#include "core/view/lower_indices.h"

namespace tensord::core {
namespace {

/// Most atoms in all sums of a view.
constexpr int64_t kMaxAtomCount = 1024;

bool HasNoIndex(const ModeVector& extents) {
  return std::ranges::count(extents, 0) > 0;
}

StridedView StridedForm(const ModeVector& extents, const IndexSum& address) {
  // Steps within the storage fit.
  StridedView view{extents, ModeVector(extents.size(), 0),
                   static_cast<int64_t>(address.constant)};
  for (const IndexTerm& term : address.terms) {
    view.strides[term.atom->mode] = static_cast<int64_t>(term.factor);
  }
  for (size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] == 1) view.strides[i] = 1;
  }
  return view;
}

}  // namespace

bool IsInjective(const StridedView& view) {
  Layout magnitudes;
  for (size_t i = 0; i < view.extents.size(); ++i) {
    magnitudes.extents.push_back(view.extents[i]);
    magnitudes.strides.push_back(view.strides[i] < 0 ? -view.strides[i]
                                                     : view.strides[i]);
  }
  return IsInjective(magnitudes);
}

absl::StatusOr<View> View::Create(const Layout& storage, int64_t offset,
                                  absl::Span<const Stage> stages) {
  TENSORD_RETURN_IF_ERROR(ValidateLayout(storage, 1, "the storage"));
  if (offset < 0) {
    return InvalidArgument("NEGATIVE_OFFSET", "offset is ", offset,
                           ", wanted >= 0");
  }
  View view;
  view.extents_ = storage.extents;
  view.storage_offset_ = offset;
  view.storage_span_ = SpanElements(storage);
  if (!CheckedAdd(offset, view.storage_span_)) {
    return InvalidArgument("SIZE_OVERFLOW", "offset ", offset,
                           " and a span of ", view.storage_span_,
                           " elements reach beyond 2^63 - 1");
  }
  view.is_injective_ = core::IsInjective(storage);
  if (view.is_empty()) {
    view.Finish(nullptr);
  } else {
    IndexDomain domain(view.extents_);
    view.address_.constant = offset;
    for (int mode = 0; mode < storage.mode_count(); ++mode) {
      view.address_ =
          domain.Add(view.address_, domain.Index(mode), storage.strides[mode]);
    }
    view.Finish(&domain);
  }
  for (const Stage& stage : stages) {
    TENSORD_ASSIGN_OR_RETURN(view, view.Then(stage));
  }
  return view;
}

absl::StatusOr<View> View::Then(const Stage& stage) const {
  View next;
  TENSORD_ASSIGN_OR_RETURN(next.extents_,
                           UpperExtents(stage, extents_, stage_count_));
  next.stage_count_ = stage_count_ + 1;
  next.storage_offset_ = storage_offset_;
  next.storage_span_ = storage_span_;
  if (next.is_empty()) {
    next.Finish(nullptr);
    return next;
  }
  IndexDomain domain(next.extents_);
  // Where a mode was empty, only its pad can have made indices.
  next.is_padding_ = is_padding_;
  next.is_injective_ = is_injective_;
  std::vector<IndexSum> lower(extents_.size());
  for (const PlacedTransform& placed : stage.transforms) {
    const ModeVector lower_extents = At(placed.lower, extents_);
    std::vector<IndexSum> indices = LowerIndices(placed, lower_extents, domain);
    if (std::holds_alternative<transform::Pad>(placed.transform)) {
      next.Require(indices[0], lower_extents[0] - 1, domain);
    }
    next.is_injective_ =
        next.is_injective_ && core::IsInjective(placed.transform);
    for (size_t i = 0; i < indices.size(); ++i) {
      lower[placed.lower[i]] = std::move(indices[i]);
    }
  }
  for (const IndexCondition& condition : conditions_) {
    next.Require(domain.Substitute(condition.sum, lower), condition.limit,
                 domain);
  }
  if (!next.is_padding_) {
    next.address_ = domain.Linearize(domain.Substitute(address_, lower));
  }
  next.Finish(&domain);
  const std::string where = absl::StrCat("stage ", stage_count_);
  TENSORD_RETURN_IF_ERROR(domain.status(where));
  return next;
}

void View::Require(const IndexSum& sum, int64_t limit, IndexDomain& domain) {
  if (is_padding_) return;
  IndexCondition condition{domain.Linearize(sum), limit};
  // Where the sum leaves int64, its indices are padding by a later condition.
  const auto bounds = domain.TightBounds(condition.sum);
  if (bounds && IndexRange{0, limit}.Contains(*bounds)) return;
  const auto same =
      std::ranges::find_if(conditions_, [&](const IndexCondition& x) {
        return Compare({0, x.sum.terms}, {0, condition.sum.terms}) == 0;
      });
  // 0 <= terms + constant <= limit, as a range of the terms.
  Wide lowest = -condition.sum.constant;
  Wide highest = limit - condition.sum.constant;
  if (same != conditions_.end()) {
    lowest = std::max(lowest, -same->sum.constant);
    highest = std::min(highest, same->limit - same->sum.constant);
    conditions_.erase(same);
  }
  is_padding_ = lowest > highest ||
                (bounds && (bounds->highest < 0 || bounds->lowest > limit));
  condition.sum.constant = -lowest;
  condition.limit = static_cast<int64_t>(highest - lowest);
  conditions_.push_back(std::move(condition));
}

void View::Finish(IndexDomain* domain) {
  if (is_empty()) {
    strided_ = StridedView{extents_, ModeVector(extents_.size(), 1), 0};
    is_injective_ = true;
    return;
  }
  if (is_padding_) {
    conditions_.clear();
    is_injective_ = true;
    return;
  }
  int64_t atom_count = AtomCount(address_);
  for (const IndexCondition& condition : conditions_) {
    atom_count += AtomCount(condition.sum);
  }
  if (atom_count > kMaxAtomCount) domain->GiveUp();
  // What lies outside the storage is padding.
  IndexRange range{storage_offset_, storage_offset_ + storage_span_ - 1};
  if (const auto bounds = domain->TightBounds(address_)) {
    range.lowest = std::max(range.lowest, bounds->lowest);
    range.highest = std::min(range.highest, bounds->highest);
  }
  span_ = std::max<int64_t>(0, range.highest - range.lowest + 1);
  allocation_ = span_;
  if (conditions_.empty() && IsAffine(address_)) {
    strided_ = StridedForm(extents_, address_);
    allocation_ = AllocationElements(strided_->extents, strided_->strides);
  }
}

bool View::is_empty() const { return HasNoIndex(extents_); }

int64_t View::element_count() const {
  int64_t count = 1;
  for (const int64_t extent : extents_) count *= extent;
  return count;
}

std::optional<int64_t> View::Locate(absl::Span<const int64_t> indices) const {
  if (is_padding_) return std::nullopt;
  for (const IndexCondition& condition : conditions_) {
    const int64_t value = Evaluate(condition.sum, indices);
    if (value < 0 || value > condition.limit) return std::nullopt;
  }
  return Evaluate(address_, indices);
}

bool View::IsInjective() const {
  return is_injective_ || (strided_ && core::IsInjective(*strided_));
}

}  // namespace tensord::core
