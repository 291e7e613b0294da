#include "core/view/lower_indices.h"

#include <cstddef>
#include <cstdint>

namespace tensord::core {
namespace {

/// One transform between places.
class LowerIndicesOf {
 public:
  LowerIndicesOf(const ModePositions& upper,
                 absl::Span<const int64_t> lower_extents, IndexDomain& domain)
      : lower_extents_(lower_extents), domain_(domain) {
    for (const int mode : upper) upper_.push_back(domain.Index(mode));
  }

  std::vector<IndexSum> operator()(const transform::PassThrough&) const {
    return upper_;
  }

  std::vector<IndexSum> operator()(const transform::Merge& merge) const {
    std::vector<IndexSum> lower(lower_extents_.size());
    // Quotients by the number of steps of the faster modes; the remainders
    // are what two neighbours leave.
    int64_t steps = 1;
    IndexSum above = upper_[0];
    for (size_t i = 0; i < lower.size(); ++i) {
      const size_t mode = Fastest(i, lower.size(), merge.order);
      const IndexSum quotient = above;
      steps *= lower_extents_[mode];
      above = i + 1 == lower.size() ? IndexSum{}
                                    : domain_.Quotient(upper_[0], steps);
      lower[mode] = domain_.Add(quotient, above, -lower_extents_[mode]);
    }
    return lower;
  }

  std::vector<IndexSum> operator()(const transform::Unmerge& unmerge) const {
    IndexSum lower;
    int64_t stride = 1;
    for (size_t i = 0; i < upper_.size(); ++i) {
      const size_t mode = Fastest(i, upper_.size(), unmerge.order);
      lower = domain_.Add(lower, upper_[mode], stride);
      stride *= unmerge.extents[mode];
    }
    return {lower};
  }

  std::vector<IndexSum> operator()(const transform::Slice& slice) const {
    return {domain_.Add({slice.start, {}}, upper_[0], slice.step)};
  }

  std::vector<IndexSum> operator()(const transform::Pad& pad) const {
    return {domain_.Add(upper_[0], {pad.before, {}}, -1)};
  }

  std::vector<IndexSum> operator()(const transform::Freeze& freeze) const {
    return {IndexSum{freeze.index, {}}};
  }

  std::vector<IndexSum> operator()(const transform::Insert&) const {
    return {};
  }

  std::vector<IndexSum> operator()(const transform::Replicate&) const {
    return {};
  }

  std::vector<IndexSum> operator()(const transform::Embed& embed) const {
    IndexSum lower{embed.constant, {}};
    for (size_t i = 0; i < upper_.size(); ++i) {
      lower = domain_.Add(lower, upper_[i], embed.coefficients[i]);
    }
    return {lower};
  }

  std::vector<IndexSum> operator()(const transform::Modulo& modulo) const {
    return {domain_.Remainder(upper_[0], modulo.modulus)};
  }

  std::vector<IndexSum> operator()(const transform::Xor&) const {
    return {upper_[0],
            domain_.Xor(
                {upper_[1], domain_.Remainder(upper_[0], lower_extents_[1])})};
  }

  std::vector<IndexSum> operator()(const transform::Offset& offset) const {
    return {domain_.Add(upper_[0], {offset.offset, {}})};
  }

  std::vector<IndexSum> operator()(const transform::Diagonal&) const {
    return std::vector<IndexSum>(lower_extents_.size(), upper_[0]);
  }

 private:
  /// The mode that is i-th from the fastest.
  static size_t Fastest(size_t i, size_t mode_count, Order order) {
    return order == Order::kFirstModeFastest ? i : mode_count - 1 - i;
  }

  std::vector<IndexSum> upper_;
  absl::Span<const int64_t> lower_extents_;
  IndexDomain& domain_;
};

}  // namespace

std::vector<IndexSum> LowerIndices(const PlacedTransform& placed,
                                   absl::Span<const int64_t> lower_extents,
                                   IndexDomain& domain) {
  return std::visit(LowerIndicesOf(placed.upper, lower_extents, domain),
                    placed.transform);
}

}  // namespace tensord::core
