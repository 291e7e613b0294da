// Views, from messages of the wire.
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "server/rpc/convert.h"

namespace tensord::rpc {
namespace {

namespace transform = core::transform;

core::ModeVector ModeVectorFrom(
    const google::protobuf::RepeatedField<int64_t>& numbers) {
  return {numbers.begin(), numbers.end()};
}

absl::StatusOr<core::Transform> TransformFrom(const v1::Transform& message,
                                              absl::string_view where) {
  switch (message.kind_case()) {
    case v1::Transform::kPassThrough: return transform::PassThrough{};
    case v1::Transform::kMerge: {
      TENSORD_ASSIGN_OR_RETURN(const core::Order order,
                               FromProto(message.merge().order()));
      return transform::Merge{order};
    }
    case v1::Transform::kUnmerge: {
      const v1::Transform::Unmerge& unmerge = message.unmerge();
      TENSORD_ASSIGN_OR_RETURN(const core::Order order,
                               FromProto(unmerge.order()));
      return transform::Unmerge{ModeVectorFrom(unmerge.extents()), order};
    }
    case v1::Transform::kSlice: {
      const v1::Transform::Slice& slice = message.slice();
      return transform::Slice{slice.start(), slice.stop(),
                              slice.has_step() ? slice.step() : 1};
    }
    case v1::Transform::kPad:
      return transform::Pad{message.pad().before(), message.pad().after()};
    case v1::Transform::kFreeze:
      return transform::Freeze{message.freeze().index()};
    case v1::Transform::kInsert:
      return transform::Insert{message.insert().extent()};
    case v1::Transform::kReplicate:
      return transform::Replicate{
          ModeVectorFrom(message.replicate().extents())};
    case v1::Transform::kEmbed: {
      const v1::Transform::Embed& embed = message.embed();
      return transform::Embed{ModeVectorFrom(embed.extents()),
                              ModeVectorFrom(embed.coefficients()),
                              embed.constant()};
    }
    case v1::Transform::kModulo:
      return transform::Modulo{message.modulo().modulus(),
                               message.modulo().extent()};
    case v1::Transform::kXor: return transform::Xor{};
    case v1::Transform::kOffset:
      return transform::Offset{message.offset().offset(),
                               message.offset().extent()};
    case v1::Transform::kDiagonal: return transform::Diagonal{};
    case v1::Transform::KIND_NOT_SET: break;
  }
  return core::InvalidArgument("TRANSFORM_MISSING", where,
                               " does not say which transform it is");
}

absl::StatusOr<core::Stage> StageFrom(const v1::TransformStage& message,
                                      int number) {
  core::Stage stage;
  for (int i = 0; i < message.transforms_size(); ++i) {
    const v1::Transform& placed = message.transforms(i);
    TENSORD_ASSIGN_OR_RETURN(
        core::Transform transform,
        TransformFrom(placed,
                      absl::StrCat("stage ", number, ", transform ", i)));
    stage.transforms.push_back(
        {std::move(transform),
         core::ModePositions(placed.lower().begin(), placed.lower().end()),
         core::ModePositions(placed.upper().begin(), placed.upper().end())});
  }
  return stage;
}

absl::StatusOr<std::vector<core::IndexItem>> ItemsFrom(
    const v1::IndexStage& message, int number) {
  std::vector<core::IndexItem> items;
  for (int i = 0; i < message.items_size(); ++i) {
    const v1::IndexItem& item = message.items(i);
    switch (item.item_case()) {
      case v1::IndexItem::kIndex: items.push_back(item.index()); break;
      case v1::IndexItem::kSlice: {
        const v1::IndexSlice& from = item.slice();
        core::SliceItem slice;
        if (from.has_start()) slice.start = from.start();
        if (from.has_stop()) slice.stop = from.stop();
        if (from.has_step()) slice.step = from.step();
        items.push_back(slice);
        break;
      }
      case v1::IndexItem::kAll: items.push_back(core::AllItem{}); break;
      case v1::IndexItem::kNewMode: items.push_back(core::NewModeItem{}); break;
      case v1::IndexItem::kEllipsis:
        items.push_back(core::EllipsisItem{});
        break;
      case v1::IndexItem::ITEM_NOT_SET:
        return core::InvalidArgument("INDEX_ITEM_MISSING", "stage ", number,
                                     ", item ", i, " does not say what it is");
    }
  }
  return items;
}

}  // namespace

absl::StatusOr<std::vector<server::ViewStage>> FromProto(
    const google::protobuf::RepeatedPtrField<v1::ViewStage>& stages) {
  std::vector<server::ViewStage> result;
  for (int i = 0; i < stages.size(); ++i) {
    const v1::ViewStage& stage = stages[i];
    switch (stage.stage_case()) {
      case v1::ViewStage::kTransform: {
        TENSORD_ASSIGN_OR_RETURN(core::Stage transforms,
                                 StageFrom(stage.transform(), i));
        result.push_back(std::move(transforms));
        break;
      }
      case v1::ViewStage::kIndex: {
        TENSORD_ASSIGN_OR_RETURN(std::vector<core::IndexItem> items,
                                 ItemsFrom(stage.index(), i));
        result.push_back(std::move(items));
        break;
      }
      case v1::ViewStage::STAGE_NOT_SET:
        return core::InvalidArgument("STAGE_MISSING", "stage ", i,
                                     " has neither transforms nor an index");
    }
  }
  return result;
}

absl::StatusOr<server::ViewRequest> FromProto(const v1::ViewSpec& view,
                                              bool is_named,
                                              absl::string_view what) {
  if (!is_named) {
    return core::InvalidArgument("VIEW_WITHOUT_TENSOR", what,
                                 " is to be seen as a view, but names no "
                                 "resident tensor, wanted both");
  }
  server::ViewRequest result;
  TENSORD_ASSIGN_OR_RETURN(result.stages, FromProto(view.stages()));
  if (view.has_padding()) result.padding = FromProto(view.padding());
  return result;
}

}  // namespace tensord::rpc
