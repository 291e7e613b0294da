#include "server/session/tensor_view.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <utility>

#include "core/base/status.h"
#include "core/view/make_gather_steps.h"

namespace tensord::server {
namespace {

/// The order of a packed copy whose neighbours are neighbours in the storage,
/// too: views mostly keep the order of the modes.
core::Order OrderLike(const core::Layout& layout) {
  int64_t first = 0, last = 0;  // strides of the outer modes
  for (int i = 0; i < layout.mode_count(); ++i) {
    if (layout.extents[i] <= 1) continue;
    if (first == 0) first = layout.strides[i];
    last = layout.strides[i];
  }
  return first < last ? core::Order::kFirstModeFastest
                      : core::Order::kLastModeFastest;
}

/// Positions of the modes in the order of their steps through the storage, the
/// least first; `order` decides between those that have none.
std::vector<size_t> FastestFirst(const core::StridedView& box,
                                 core::Order order) {
  std::vector<size_t> modes(box.extents.size());
  std::iota(modes.begin(), modes.end(), size_t{0});
  if (order == core::Order::kLastModeFastest) {
    std::reverse(modes.begin(), modes.end());
  }
  const auto step = [&](size_t mode) {
    const int64_t stride = std::abs(box.strides[mode]);
    return box.extents[mode] <= 1 || stride == 0
               ? std::numeric_limits<int64_t>::max()
               : stride;
  };
  std::stable_sort(modes.begin(), modes.end(),
                   [&](size_t x, size_t y) { return step(x) < step(y); });
  return modes;
}

/// The layout without gaps whose modes follow each other so.
core::Layout PackedLayout(const core::ModeVector& extents,
                          const std::vector<size_t>& fastest_first) {
  core::Layout layout{extents, core::ModeVector(extents.size(), 1)};
  int64_t stride = 1;
  for (const size_t mode : fastest_first) {
    layout.strides[mode] = stride;
    stride *= extents[mode];
  }
  return layout;
}

absl::StatusOr<core::View> Apply(core::View view,
                                 absl::Span<const ViewStage> stages) {
  for (const ViewStage& stage : stages) {
    if (const auto* items = std::get_if<std::vector<core::IndexItem>>(&stage)) {
      TENSORD_ASSIGN_OR_RETURN(const core::Stage indexing,
                               core::IndexStage(*items, view.extents()));
      TENSORD_ASSIGN_OR_RETURN(view, view.Then(indexing));
    } else {
      TENSORD_ASSIGN_OR_RETURN(view, view.Then(std::get<core::Stage>(stage)));
    }
  }
  return view;
}

}  // namespace

absl::StatusOr<TensorView> TensorView::Create(
    std::string viewed, const core::TensorDesc& storage,
    const TensorView* below, absl::Span<const ViewStage> stages,
    std::optional<core::Scalar> padding) {
  if (std::ssize(stages) > kMaxViewStages) {
    return core::InvalidArgument("TOO_MANY_STAGES", "the view has ",
                                 stages.size(), " stages, wanted at most ",
                                 kMaxViewStages);
  }
  absl::StatusOr<core::View> view =
      below != nullptr ? below->view()
                       : core::View::Create(storage.layout, storage.offset);
  TENSORD_RETURN_IF_ERROR(view.status());
  TENSORD_ASSIGN_OR_RETURN(view, Apply(*std::move(view), stages));

  TensorView result(*std::move(view));
  result.viewed_ = std::move(viewed);
  TENSORD_RETURN_IF_ERROR(
      result.TakePadding(storage.element_type, below, padding));
  TENSORD_RETURN_IF_ERROR(result.TakeAccess(storage));
  return result;
}

absl::Status TensorView::TakePadding(
    core::ElementType type, const TensorView* below,
    const std::optional<core::Scalar>& padding) {
  if (padding) {
    TENSORD_ASSIGN_OR_RETURN(padding_,
                             core::ElementOf(*padding, type, "padding"));
  } else if (below != nullptr) {
    padding_ = below->padding_;
  }
  if (below != nullptr && below->view().may_pad() &&
      padding_ != below->padding_) {
    return core::InvalidArgument(
        "PADDING_DIFFERS",
        "the view below is padded with another value; "
        "leave the value out, or copy that view first");
  }
  return absl::OkStatus();
}

absl::Status TensorView::TakeAccess(const core::TensorDesc& storage) {
  const core::ElementType type = storage.element_type;
  const core::Order order = OrderLike(storage.layout);
  packed_desc_ = {type, core::PackedLayout(view_.extents(), order), 0};
  TENSORD_RETURN_IF_ERROR(core::ValidateTensor(packed_desc_));
  gathered_desc_ = packed_desc_;
  if (const auto& strided = view_.strided()) {
    const auto [lowest, highest] =
        std::minmax_element(strided->strides.begin(), strided->strides.end());
    if (strided->strides.empty() || *lowest >= 0) {
      desc_ = {type, core::Layout{strided->extents, strided->strides},
               strided->offset};
      access_ = strided->strides.empty() || *lowest > 0 ? Access::kInPlace
                                                        : Access::kRepeats;
    }
  }
  if (is_in_place()) {
    TENSORD_RETURN_IF_ERROR(core::ValidateTensor(desc_));
  } else if (const auto boxed = core::BoxOf(view_)) {
    if (view_.element_count() > 0) {
      gathered_desc_.layout =
          PackedLayout(view_.extents(), FastestFirst(boxed->box, order));
    }
    TakeBox(*boxed);
  } else {
    TENSORD_ASSIGN_OR_RETURN(const core::GatherSteps steps,
                             core::MakeGatherSteps(view_, order));
    steps_ = std::make_shared<const core::GatherSteps>(steps);
  }
  if (access_ == Access::kByCopy) desc_ = gathered_desc_;
  covers_storage_ = view_.IsInjective() && !view_.may_pad() &&
                    view_.element_count() == core::ElementCount(storage.layout);
  return absl::OkStatus();
}

void TensorView::TakeBox(const core::BoxedView& boxed) {
  const core::Layout& copy = gathered_desc_.layout;
  auto box = std::make_shared<Box>();
  core::LoopModes<2> modes;
  for (int m = 0; m < copy.mode_count(); ++m) {
    modes.push_back(
        {boxed.box.extents[m], {boxed.box.strides[m], copy.strides[m]}});
  }
  box->modes = core::Canonical(std::move(modes), 1);
  box->storage_offset = boxed.box.offset;
  const core::Framed framed = core::DivideIntoFrame(copy, boxed.margins);
  box->copy_offset = framed.block.offset;
  box->margins =
      Filling(core::PartsToFill(copy, boxed.margins, framed, element_bytes()),
              gathered_desc_.element_type, padding_);
  box_ = std::move(box);
}

absl::Status TensorView::Gather(Device& device, const std::byte* storage,
                                std::byte* copy, core::Stream& stream) const {
  if (box_ == nullptr) {
    return device.Gather(*steps_,
                         {.storage = storage,
                          .d = copy,
                          .element_bytes = element_bytes(),
                          .padding = padding_},
                         stream);
  }
  TENSORD_RETURN_IF_ERROR(box_->margins.Queue(device, copy, stream));
  return device.Copy({.modes = box_->modes,
                      .a = storage + box_->storage_offset * element_bytes(),
                      .d = copy + box_->copy_offset * element_bytes(),
                      .element_bytes = element_bytes()},
                     stream);
}

absl::Status TensorView::Scatter(Device& device, const std::byte* copy,
                                 std::byte* storage,
                                 core::Stream& stream) const {
  if (box_ == nullptr) {
    return device.Scatter(
        *steps_,
        {.a = copy, .storage = storage, .element_bytes = element_bytes()},
        stream);
  }
  core::LoopModes<2> modes = box_->modes;
  for (auto& mode : modes) std::swap(mode.strides[0], mode.strides[1]);
  return device.Copy({.modes = std::move(modes),
                      .a = copy + box_->copy_offset * element_bytes(),
                      .d = storage + box_->storage_offset * element_bytes(),
                      .element_bytes = element_bytes()},
                     stream);
}

}  // namespace tensord::server
