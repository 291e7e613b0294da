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
#include "core/problem/loop_modes.h"
#include "core/tensor/tensor.h"
#include "core/view/boxed_view.h"
#include "core/view/gather_steps.h"
#include "core/view/indexing.h"
#include "core/view/stage.h"
#include "core/view/view.h"
#include "server/engine/engine.h"
#include "server/session/filling.h"

namespace tensord::server {

/// One step of what a client asks for.
using ViewStage = std::variant<core::Stage, std::vector<core::IndexItem>>;

/// Most stages of one request.
inline constexpr int kMaxViewStages = 32;

/// How a client asks for a tensor to be seen.
struct ViewRequest {
  std::vector<ViewStage> stages;
  std::optional<core::Scalar> padding;
};

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

  /// In place or with strides of 0: the elements in the storage. Otherwise
  /// gathered_desc().
  const core::TensorDesc& desc() const { return desc_; }
  /// The elements without gaps, in the order of the storage's layout.
  const core::TensorDesc& packed_desc() const { return packed_desc_; }
  /// The packed copy that operations work on: its modes are ordered as their
  /// steps through the storage are.
  const core::TensorDesc& gathered_desc() const { return gathered_desc_; }

  /// Queues copying the elements, and padding, to `copy`, which is as
  /// gathered_desc() says.
  /// Requires  !is_in_place().
  /// Errors  those of core::Backend::Gather().
  absl::Status Gather(Device& device, const std::byte* storage, std::byte* copy,
                      core::Stream& stream) const;
  /// The other way round. What belongs to padding is dropped.
  absl::Status Scatter(Device& device, const std::byte* copy,
                       std::byte* storage, core::Stream& stream) const;

 private:
  enum class Access { kInPlace, kRepeats, kByCopy };

  /// Elements at strides of storage and copy, and padding around them.
  struct Box {
    core::LoopModes<2> modes;    // strides of the storage and of the copy
    int64_t storage_offset = 0;  // elements
    int64_t copy_offset = 0;     // elements
    Filling margins;             // of the copy, before
  };

  explicit TensorView(core::View view) : view_(std::move(view)) {}
  /// Takes the value of padding, given or that of `below`.
  absl::Status TakePadding(core::ElementType type, const TensorView* below,
                           const std::optional<core::Scalar>& padding);
  /// Finds out how operations get at the elements in a storage like that.
  absl::Status TakeAccess(const core::TensorDesc& storage);
  void TakeBox(const core::BoxedView& boxed);
  int element_bytes() const {
    return static_cast<int>(core::SizeOf(gathered_desc_.element_type));
  }

  std::string viewed_;
  core::View view_;
  Access access_ = Access::kByCopy;
  bool covers_storage_ = false;
  core::TensorDesc desc_, packed_desc_, gathered_desc_;
  // How to copy; both null: in place.
  std::shared_ptr<const Box> box_;
  std::shared_ptr<const core::GatherSteps> steps_;
  core::ElementBytes padding_{};
};

}  // namespace tensord::server
