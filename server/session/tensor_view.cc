#include "server/session/tensor_view.h"

#include <algorithm>
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
  const core::ElementType type = storage.element_type;
  if (padding) {
    TENSORD_ASSIGN_OR_RETURN(result.padding_,
                             core::ElementOf(*padding, type, "padding"));
  } else if (below != nullptr) {
    result.padding_ = below->padding_;
  }
  if (below != nullptr && below->view().may_pad() &&
      result.padding_ != below->padding_) {
    return core::InvalidArgument(
        "PADDING_DIFFERS",
        "the view below is padded with another value; "
        "leave the value out, or copy that view first");
  }

  const core::Order order = OrderLike(storage.layout);
  result.packed_desc_ = {type,
                         core::PackedLayout(result.view_.extents(), order), 0};
  TENSORD_RETURN_IF_ERROR(core::ValidateTensor(result.packed_desc_));
  result.desc_ = result.packed_desc_;
  if (const auto& strided = result.view_.strided()) {
    const auto [lowest, highest] =
        std::minmax_element(strided->strides.begin(), strided->strides.end());
    if (strided->strides.empty() || *lowest >= 0) {
      result.desc_ = {type, core::Layout{strided->extents, strided->strides},
                      strided->offset};
      result.access_ = strided->strides.empty() || *lowest > 0
                           ? Access::kInPlace
                           : Access::kRepeats;
    }
  }
  if (result.is_in_place()) {
    TENSORD_RETURN_IF_ERROR(core::ValidateTensor(result.desc_));
  } else {
    TENSORD_ASSIGN_OR_RETURN(const core::GatherSteps steps,
                             core::MakeGatherSteps(result.view_, order));
    result.steps_ = std::make_shared<const core::GatherSteps>(steps);
  }
  result.covers_storage_ =
      result.view_.IsInjective() && !result.view_.may_pad() &&
      result.view_.element_count() == core::ElementCount(storage.layout);
  return result;
}

}  // namespace tensord::server
