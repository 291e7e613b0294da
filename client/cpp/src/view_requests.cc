#include "client/cpp/src/view_requests.h"

#include <algorithm>
#include <utility>

#include "client/cpp/src/convert.h"
#include "client/cpp/src/errors.h"

namespace tensord::internal {
namespace {

/// Writes a transform into a message.
struct TransformWriter {
  v1::Transform& to;

  void operator()(const transform::PassThrough&) { to.mutable_pass_through(); }
  void operator()(const transform::Merge& merge) {
    to.mutable_merge()->set_order(static_cast<v1::Order>(merge.order));
  }
  void operator()(const transform::Unmerge& unmerge) {
    Append(unmerge.extents, to.mutable_unmerge()->mutable_extents());
    to.mutable_unmerge()->set_order(static_cast<v1::Order>(unmerge.order));
  }
  void operator()(const transform::Slice& slice) {
    to.mutable_slice()->set_start(slice.start);
    to.mutable_slice()->set_stop(slice.stop);
    to.mutable_slice()->set_step(slice.step);
  }
  void operator()(const transform::Pad& pad) {
    to.mutable_pad()->set_before(pad.before);
    to.mutable_pad()->set_after(pad.after);
  }
  void operator()(const transform::Freeze& freeze) {
    to.mutable_freeze()->set_index(freeze.index);
  }
  void operator()(const transform::Insert& insert) {
    to.mutable_insert()->set_extent(insert.extent);
  }
  void operator()(const transform::Replicate& replicate) {
    Append(replicate.extents, to.mutable_replicate()->mutable_extents());
  }
  void operator()(const transform::Embed& embed) {
    Append(embed.extents, to.mutable_embed()->mutable_extents());
    Append(embed.coefficients, to.mutable_embed()->mutable_coefficients());
    to.mutable_embed()->set_constant(embed.constant);
  }
  void operator()(const transform::Modulo& modulo) {
    to.mutable_modulo()->set_modulus(modulo.modulus);
    to.mutable_modulo()->set_extent(modulo.extent);
  }
  void operator()(const transform::Xor&) { to.mutable_xor_(); }
  void operator()(const transform::Offset& offset) {
    to.mutable_offset()->set_offset(offset.offset);
    to.mutable_offset()->set_extent(offset.extent);
  }
  void operator()(const transform::Diagonal&) { to.mutable_diagonal(); }

  template <typename Repeated>
  static void Append(const std::vector<int64_t>& numbers, Repeated* to) {
    to->Add(numbers.begin(), numbers.end());
  }
};

/// Writes an item into a message.
struct ItemWriter {
  v1::IndexItem& to;

  void operator()(int64_t index) { to.set_index(index); }
  void operator()(const Range& range) {
    v1::IndexSlice& slice = *to.mutable_slice();
    if (range.start) slice.set_start(*range.start);
    if (range.stop) slice.set_stop(*range.stop);
    if (range.step) slice.set_step(*range.step);
  }
  void operator()(const All&) { to.mutable_all(); }
  void operator()(const NewMode&) { to.mutable_new_mode(); }
  void operator()(const Ellipsis&) { to.mutable_ellipsis(); }
};

v1::CreateViewRequest EmptyRequest(const std::string& tensor,
                                   const ViewOptions& options) {
  v1::CreateViewRequest request;
  request.set_tensor(tensor);
  request.set_tensor_id(options.name);
  if (options.padding) *request.mutable_padding() = ToProto(*options.padding);
  return request;
}

std::vector<int> Count(int first, int count) {
  std::vector<int> numbers;
  for (int i = 0; i < count; ++i) numbers.push_back(first + i);
  return numbers;
}

/// Modes that NumPy's reshape takes apart and puts together with no others.
struct ReshapeGroup {
  int from_begin, from_count;
  int to_begin, to_count;
};

/// Goes through both lists and ends a group where the products agree.
std::vector<ReshapeGroup> GroupsOf(const std::vector<int64_t>& from,
                                   const std::vector<int64_t>& to) {
  std::vector<ReshapeGroup> groups;
  const int from_size = static_cast<int>(from.size());
  const int to_size = static_cast<int>(to.size());
  int i = 0, j = 0;
  while (i < from_size || j < to_size) {
    ReshapeGroup group{i, 0, j, 0};
    int64_t lower = 1, upper = 1;
    do {
      if (i < from_size && (lower <= upper || j == to_size)) {
        lower *= from[i++];
      } else {
        upper *= to[j++];
      }
    } while (lower != upper);
    // What follows with extent 1 in one list alone forms a group of its own.
    group.from_count = i - group.from_begin;
    group.to_count = j - group.to_begin;
    groups.push_back(group);
  }
  return groups;
}

}  // namespace

v1::CreateViewRequest MakeViewRequest(const std::string& tensor,
                                      absl::Span<const Stage> stages,
                                      const ViewOptions& options) {
  v1::CreateViewRequest request = EmptyRequest(tensor, options);
  for (const Stage& stage : stages) {
    v1::TransformStage& message = *request.add_stages()->mutable_transform();
    for (const PlacedTransform& placed : stage) {
      v1::Transform& to = *message.add_transforms();
      to.mutable_lower()->Add(placed.lower.begin(), placed.lower.end());
      to.mutable_upper()->Add(placed.upper.begin(), placed.upper.end());
      std::visit(TransformWriter{to}, placed.transform);
    }
  }
  return request;
}

v1::CreateViewRequest MakeViewRequest(const std::string& tensor,
                                      absl::Span<const IndexItem> items,
                                      const ViewOptions& options) {
  v1::CreateViewRequest request = EmptyRequest(tensor, options);
  v1::IndexStage& message = *request.add_stages()->mutable_index();
  for (const IndexItem& item : items) {
    std::visit(ItemWriter{*message.add_items()}, item);
  }
  return request;
}

absl::StatusOr<Stage> TransposeStage(absl::Span<const int> axes,
                                     int mode_count) {
  Stage stage;
  std::vector<bool> is_taken(static_cast<size_t>(mode_count), false);
  for (int i = 0; i < static_cast<int>(axes.size()); ++i) {
    const int axis = axes[i] < 0 ? axes[i] + mode_count : axes[i];
    if (axis < 0 || axis >= mode_count || is_taken[axis]) {
      return InvalidArgument("AXES_MALFORMED", "axis ", axes[i],
                             " of a tensor with ", mode_count,
                             " modes, wanted each of them once");
    }
    is_taken[axis] = true;
    stage.push_back({transform::PassThrough{}, {axis}, {i}});
  }
  if (static_cast<int>(axes.size()) != mode_count) {
    return InvalidArgument("AXES_MALFORMED", "got ", axes.size(),
                           " axes for a tensor with ", mode_count, " modes");
  }
  return stage;
}

absl::StatusOr<std::vector<Stage>> ReshapeStages(
    const std::vector<int64_t>& from, std::vector<int64_t> to) {
  const int64_t count = ElementCount(from);
  const auto open = std::find(to.begin(), to.end(), -1);
  if (open != to.end()) {
    *open = 1;
    const int64_t others = ElementCount(to);
    *open = others > 0 && count % others == 0 ? count / others : -1;
  }
  if (ElementCount(to) != count) {
    return InvalidArgument("RESHAPE_MISMATCH", "a tensor with ", count,
                           " elements cannot have the ", to.size(),
                           " extents asked for");
  }
  if (count == 0) {
    // Any one mode of extent 0 makes all of it empty.
    Stage merge = {
        {transform::Merge{}, Count(0, static_cast<int>(from.size())), {0}}};
    Stage unmerge = {
        {transform::Unmerge{to}, {0}, Count(0, static_cast<int>(to.size()))}};
    return std::vector<Stage>{std::move(merge), std::move(unmerge)};
  }
  Stage merges, unmerges;
  int middle = 0;
  for (const ReshapeGroup& group : GroupsOf(from, to)) {
    const std::vector<int> lower = Count(group.from_begin, group.from_count);
    const std::vector<int> upper = Count(group.to_begin, group.to_count);
    if (lower.size() == 1) {
      merges.push_back({transform::PassThrough{}, lower, {middle}});
    } else {
      merges.push_back({transform::Merge{}, lower, {middle}});
    }
    if (upper.size() == 1) {
      unmerges.push_back({transform::PassThrough{}, {middle}, upper});
    } else {
      const std::vector<int64_t> extents(
          to.begin() + group.to_begin,
          to.begin() + group.to_begin + group.to_count);
      unmerges.push_back({transform::Unmerge{extents}, {middle}, upper});
    }
    ++middle;
  }
  return std::vector<Stage>{std::move(merges), std::move(unmerges)};
}

absl::StatusOr<std::vector<Stage>> BroadcastStages(
    const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
  const int added = static_cast<int>(to.size()) - static_cast<int>(from.size());
  bool fits = added >= 0;
  for (int i = 0; fits && i < static_cast<int>(from.size()); ++i) {
    fits = from[i] == 1 || from[i] == to[added + i];
  }
  if (!fits) {
    return InvalidArgument("BROADCAST_MISMATCH", "a tensor with ", from.size(),
                           " modes is not broadcast to ", to.size(),
                           " modes whose extents differ from its own");
  }
  Stage freezes, inserts;
  int kept = 0;
  for (int i = 0; i < static_cast<int>(to.size()); ++i) {
    const bool is_kept = i >= added && from[i - added] == to[i];
    if (i >= added && !is_kept) {
      freezes.push_back({transform::Freeze{0}, {i - added}, {}});
    }
    if (is_kept) {
      freezes.push_back({transform::PassThrough{}, {i - added}, {kept}});
      inserts.push_back({transform::PassThrough{}, {kept++}, {i}});
    } else {
      inserts.push_back({transform::Insert{to[i]}, {}, {i}});
    }
  }
  return std::vector<Stage>{std::move(freezes), std::move(inserts)};
}

absl::StatusOr<Stage> PadStage(absl::Span<const transform::Pad> pads,
                               int mode_count) {
  if (static_cast<int>(pads.size()) != mode_count) {
    return InvalidArgument("PADDING_MALFORMED", "got padding for ", pads.size(),
                           " modes of a tensor with ", mode_count);
  }
  Stage stage;
  for (int i = 0; i < mode_count; ++i) {
    stage.push_back({pads[i], {i}, {i}});
  }
  return stage;
}

absl::StatusOr<std::vector<Stage>> DiagonalStages(
    int first, int second, const std::vector<int64_t>& extents) {
  const int mode_count = static_cast<int>(extents.size());
  for (int* const mode : {&first, &second}) {
    if (*mode < -mode_count || *mode >= mode_count) {
      return InvalidArgument("AXES_MALFORMED", "axis ", *mode,
                             " of a tensor with ", mode_count, " modes");
    }
    if (*mode < 0) *mode += mode_count;
  }
  if (first == second) {
    return InvalidArgument("AXES_MALFORMED", "the diagonal of mode ", first,
                           " and itself");
  }
  const int64_t length = std::min(extents[first], extents[second]);
  Stage square, diagonal;
  int upper = 0;
  for (int i = 0; i < mode_count; ++i) {
    if (i == first || i == second) {
      square.push_back({transform::Slice{0, length}, {i}, {i}});
    } else {
      square.push_back({transform::PassThrough{}, {i}, {i}});
      diagonal.push_back({transform::PassThrough{}, {i}, {upper++}});
    }
  }
  diagonal.push_back({transform::Diagonal{}, {first, second}, {upper}});
  return std::vector<Stage>{std::move(square), std::move(diagonal)};
}

}  // namespace tensord::internal
