// Requests for views.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tensord/v1/view.pb.h"
#include "tensord/views.h"

namespace tensord::internal {

v1::CreateViewRequest MakeViewRequest(const std::string& tensor,
                                      absl::Span<const Stage> stages,
                                      const ViewOptions& options);
v1::CreateViewRequest MakeViewRequest(const std::string& tensor,
                                      absl::Span<const IndexItem> items,
                                      const ViewOptions& options);

/// The stage whose mode i is mode axes[i] below.
///
/// Errors  INVALID_ARGUMENT, reason AXES_MALFORMED.
absl::StatusOr<Stage> TransposeStage(absl::Span<const int> axes,
                                     int mode_count);

/// The stages from `from` to `to`, which count through the same elements in
/// row-major order. One extent of `to` may be -1. Modes are taken apart and put
/// together in groups as small as they can be, so that a view keeps its
/// strides where that is possible.
///
/// Errors  INVALID_ARGUMENT, reason RESHAPE_MISMATCH.
absl::StatusOr<std::vector<Stage>> ReshapeStages(
    const std::vector<int64_t>& from, std::vector<int64_t> to);

/// NumPy's broadcast_to.
///
/// Errors  INVALID_ARGUMENT, reason BROADCAST_MISMATCH.
absl::StatusOr<std::vector<Stage>> BroadcastStages(
    const std::vector<int64_t>& from, const std::vector<int64_t>& to);

/// Errors  INVALID_ARGUMENT, reason PADDING_MALFORMED: another number of pairs
///         than of modes.
absl::StatusOr<Stage> PadStage(absl::Span<const transform::Pad> pads,
                               int mode_count);

/// Modes `first` and `second` as one, which comes last and is as long as the
/// shorter of them.
///
/// Errors  INVALID_ARGUMENT, reason AXES_MALFORMED.
absl::StatusOr<std::vector<Stage>> DiagonalStages(
    int first, int second, const std::vector<int64_t>& extents);

}  // namespace tensord::internal
