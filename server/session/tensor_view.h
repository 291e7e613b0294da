// How a tensor sees the memory of another.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/ops/scalar.h"
#include "core/tensor/tensor.h"
#include "core/view/gather_steps.h"
#include "core/view/indexing.h"
#include "core/view/stage.h"
#include "core/view/view.h"

namespace tensord::server {

/// One step of what a client asks for.
using ViewStage = std::variant<core::Stage, std::vector<core::IndexItem>>;

/// Most stages of one request.
inline constexpr int kMaxViewStages = 32;

/// A view of a storage, and how operations get at its elements: in place, or by
/// way of a packed copy.
///
/// Threads  immutable value; share freely.
class TensorView {
 public:
  /// A view of `below`, or else of all of `storage`, which the tensor `viewed`
  /// owns. `padding` is the value of all padding; absent: that of `below`, or
  /// 0.
  ///
  /// Errors  INVALID_ARGUMENT: too many stages, one that does not fit; a
  ///         padding value that the type does not have, or that is not the one
  ///         of the padding that is there already. UNIMPLEMENTED, reason
  ///         VIEW_TOO_COMPLEX.
  static absl::StatusOr<TensorView> Create(std::string viewed,
                                           const core::TensorDesc& storage,
                                           const TensorView* below,
                                           absl::Span<const ViewStage> stages,
                                           std::optional<core::Scalar> padding);

  /// Name of the tensor that owns, or owned, the storage.
  const std::string& viewed() const { return viewed_; }
  const core::View& view() const { return view_; }

  /// True when every stride is 1 or more: elements are used where they are.
  bool is_in_place() const { return access_ == Access::kInPlace; }
  /// True when the view has strides, none negative, and repeats along a mode.
  bool repeats() const { return access_ == Access::kRepeats; }
  /// True when every element of the storage's layout has one index, and no
  /// index is padding.
  bool covers_storage() const { return covers_storage_; }

  /// In place or with strides of 0: the elements in the storage. Otherwise the
  /// packed copy.
  const core::TensorDesc& desc() const { return desc_; }
  /// The packed copy, in the order that is most like the storage's.
  const core::TensorDesc& packed_desc() const { return packed_desc_; }
  /// From the packed copy to the storage.
  /// Requires  !is_in_place().
  const core::GatherSteps& steps() const { return *steps_; }
  const core::ElementBytes& padding() const { return padding_; }

 private:
  enum class Access { kInPlace, kRepeats, kByCopy };

  explicit TensorView(core::View view) : view_(std::move(view)) {}

  std::string viewed_;
  core::View view_;
  Access access_ = Access::kByCopy;
  bool covers_storage_ = false;
  core::TensorDesc desc_, packed_desc_;
  std::shared_ptr<const core::GatherSteps> steps_;
  core::ElementBytes padding_{};
};

}  // namespace tensord::server
