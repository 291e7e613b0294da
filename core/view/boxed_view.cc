#include "core/view/boxed_view.h"

#include <algorithm>
#include <bit>

namespace tensord::core {
namespace {

/// First and last index of a mode.
struct Interval {
  Wide first;
  Wide last;
};

/// Leaves of `interval` what a condition on factor * index + constant lets
/// through.
void Narrow(const IndexCondition& condition, Wide factor, Interval& interval) {
  // 0 <= factor * index + constant <= limit, as low <= |factor| * index <=
  // high.
  const Wide constant = condition.sum.constant, limit = condition.limit;
  const Wide low = factor > 0 ? -constant : constant - limit;
  const Wide high = factor > 0 ? limit - constant : constant;
  const Wide magnitude = factor > 0 ? factor : -factor;
  interval.first = std::max(interval.first, -FloorQuotient(-low, magnitude));
  interval.last = std::min(interval.last, FloorQuotient(high, magnitude));
}

}  // namespace

std::optional<BoxedView> BoxOf(const View& view) {
  const size_t mode_count = view.extents().size();
  BoxedView result;
  result.margins.before.resize(mode_count, 0);
  result.margins.after.resize(mode_count, 0);
  if (view.strided()) {
    result.box = *view.strided();
    return result;
  }
  if (view.is_padding()) {
    if (mode_count == 0) return std::nullopt;  // It has no margins.
    result.margins.before = view.extents();
    result.box.extents.resize(mode_count, 0);
    result.box.strides.resize(mode_count, 1);
    return result;
  }
  if (!IsAffine(view.address())) return std::nullopt;
  std::vector<Interval> intervals;
  for (const int64_t extent : view.extents()) {
    intervals.push_back({0, Wide{extent} - 1});
  }
  for (const IndexCondition& condition : view.conditions()) {
    // One that depends on nothing or on several modes cuts no box.
    const IndexSum& sum = condition.sum;
    if (sum.terms.size() != 1 || !IsAffine(sum)) return std::nullopt;
    Narrow(condition, sum.terms[0].factor, intervals[sum.terms[0].atom->mode]);
  }
  bool is_empty = false;
  for (size_t m = 0; m < mode_count; ++m) {
    Interval& interval = intervals[m];
    if (interval.first > interval.last) {
      is_empty = true;
      interval = {view.extents()[m], Wide{view.extents()[m]} - 1};
    }
    const Wide extent = interval.last - interval.first + 1;
    result.margins.before[m] = static_cast<int64_t>(interval.first);
    result.margins.after[m] =
        static_cast<int64_t>(view.extents()[m] - interval.last - 1);
    result.box.extents.push_back(static_cast<int64_t>(extent));
  }
  result.box.strides.resize(mode_count, 1);
  if (is_empty) return result;
  // Elements of the box are elements of the storage, so offset and steps fit.
  Wide offset = view.address().constant;
  for (size_t m = 0; m < mode_count; ++m) {
    if (result.box.extents[m] > 1) result.box.strides[m] = 0;
  }
  for (const IndexTerm& term : view.address().terms) {
    const int mode = term.atom->mode;
    offset += term.factor * intervals[mode].first;
    if (result.box.extents[mode] > 1) {
      result.box.strides[mode] = static_cast<int64_t>(term.factor);
    }
  }
  result.box.offset = static_cast<int64_t>(offset);
  return result;
}

}  // namespace tensord::core
