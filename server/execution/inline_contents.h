// Tensors that come with a request, and results that go with its response.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/memory/memory_resource.h"
#include "core/tensor/tensor.h"
#include "server/execution/inline_tensor.h"
#include "server/session/session.h"
#include "server/session/stored_tensor.h"

namespace tensord::server {

/// What an inline tensor is, called `name` in messages. Where only the
/// description counts, `has_data` is false and there may be none.
///
/// Errors  INVALID_ARGUMENT, reason INLINE_SIZE_MISMATCH; an invalid layout.
absl::StatusOr<core::TensorDesc> DescOf(const InlineTensor& tensor,
                                        absl::string_view name, bool has_data);

/// OK when `bytes`, of what `what` says, are within `limit`.
/// Errors  INVALID_ARGUMENT, reason INLINE_TOO_LARGE.
absl::Status CheckInlineBytes(int64_t bytes, int64_t limit,
                              absl::string_view what);

/// Inline tensors on their way to a device.
class InlineInputs {
 public:
  /// A tensor like `desc` with the contents that were sent, once what Queue()
  /// queues is done.
  /// Errors  RESOURCE_EXHAUSTED: no memory.
  absl::StatusOr<std::shared_ptr<StoredTensor>> Add(
      Session& session, const core::TensorDesc& desc, const InlineTensor& sent);

  /// Queues copies to a device whose memory is not the host's.
  absl::Status Queue(core::Stream& stream) const;

  /// Returns the staging memory. No copy may be under way.
  void Clear() { staged_.clear(); }

 private:
  struct Staged {
    std::shared_ptr<StoredTensor> tensor;
    core::Buffer contents;  // staging memory
  };
  std::vector<Staged> staged_;
};

/// The bytes of a result that the response brings.
class InlineOutput {
 public:
  /// Takes the memory that Queue() needs; may be called again.
  /// Errors  RESOURCE_EXHAUSTED.
  absl::Status Allocate(Session& session, const StoredTensor& result);
  /// Queues the copy from a device whose memory is not the host's.
  absl::Status Queue(const StoredTensor& result, core::Stream& stream);
  /// Requires  what was queued is done.
  std::string Bytes(const StoredTensor& result) const;

 private:
  core::Buffer staging_;  // empty where the result is in the host's memory
};

}  // namespace tensord::server
