// A handle of a tensor that lives on a server.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tensord/element_type.h"
#include "tensord/handle.h"
#include "tensord/layout.h"
#include "tensord/operations.h"
#include "tensord/views.h"

namespace tensord {

namespace internal {
class OperationStream;
class ProgramCalls;
class Results;
}  // namespace internal

/// Numbered as in the contract.
enum class TensorState {
  kUnspecified = 0,
  kEmpty = 1,    // created, without contents
  kPartial = 2,  // an upload is under way or broke off
  kPending = 3,  // an operation that writes it is queued or running
  kReady = 4,
  kInvalid = 5,  // the operation that should have written it failed
};

/// "READY" and so on.
std::string_view ToString(TensorState state);

/// What a tensor was when the server was asked last.
struct TensorInfo {
  std::string name;  // `sessions/{session}/tensors/{tensor}`
  ElementType element_type = ElementType::kUnspecified;
  /// With explicit strides, which may be 0 or negative for a view. A view
  /// without strides is read through a packed copy, and shows that copy's.
  Layout layout;
  std::string device;
  TensorState state = TensorState::kUnspecified;
  int64_t span_bytes = 0;  // from the first to the last element
  int64_t committed_bytes = 0;
  std::optional<ViewInfo> view;  // only of a view
};

/// Told how far a transfer has come, about once a chunk, on the thread that
/// called.
using Progress = std::function<void(int64_t done_bytes, int64_t total_bytes)>;

struct DownloadOptions {
  /// The order in which elements are wanted. A tensor that does not lie so is
  /// copied into that order by the server first. Absent: the session's.
  std::optional<Order> order;
  Progress progress;
  /// Absent: the session's default deadline and a second more for every 32 MiB.
  std::optional<absl::Duration> deadline;
};

/// A tensor on a server, which leaves it with this handle. Keeps the session
/// open.
///
/// Threads   const methods may be called concurrently.
/// Owner     whoever holds it; a moved-from handle holds nothing.
/// Lifetime  may outlive the Session that made it.
class RemoteTensor {
 public:
  const std::string& name() const { return info_.name; }
  ElementType element_type() const { return info_.element_type; }
  const std::vector<int64_t>& extents() const { return info_.layout.extents; }
  int mode_count() const { return static_cast<int>(extents().size()); }
  const TensorInfo& info() const { return info_; }

  /// What the operation did that made this tensor. Of a program: what all its
  /// operations did, without a kernel. Empty for other tensors.
  const ExecutionReport& report() const { return report_; }

  /// False for a handle that borrows a tensor.
  bool owns() const { return handle_.is_owned(); }

  /// Leaves the tensor on the server, until it is deleted or its session ends.
  void Release() { handle_.Release(); }

  /// All elements, in the order asked for, without gaps.
  ///
  /// Errors  INVALID_ARGUMENT: T is not the tensor's element type. Those of
  ///         DownloadTensor.
  template <Element T>
  requires(!std::same_as<T, bool>)  // std::vector<bool> has no bytes.
      absl::StatusOr<std::vector<T>> Download(
          const DownloadOptions& options = {})
  const {
    std::vector<T> elements(ElementCount(extents()));
    const absl::Status status =
        DownloadTo(kElementTypeOf<T>,
                   std::as_writable_bytes(std::span<T>(elements)), options);
    if (!status.ok()) return status;
    return elements;
  }

  /// The same into memory of the caller's.
  ///
  /// Requires  `bytes` is as long as all elements together.
  absl::Status DownloadTo(ElementType element_type, std::span<std::byte> bytes,
                          const DownloadOptions& options = {}) const;

  /// Lets tenants read it, and returns the name by which Session::OpenShared()
  /// finds it. While it is shared nobody writes it.
  /// Errors  those of ShareTensor.
  absl::StatusOr<std::string> Share(
      const std::vector<std::string>& tenants) const;
  /// They may not any more; none named: nobody may.
  absl::Status Unshare(const std::vector<std::string>& tenants = {}) const;

  // Views see this tensor's memory differently. A view takes no memory of its
  // own: what is written to it is written to this tensor. The memory stays as
  // long as there is a view, also when this tensor is deleted.
  //
  // Errors  those of ViewService.CreateView, and INVALID_ARGUMENT where a
  //         number does not fit the modes.

  /// NumPy's basic indexing, and CuTe's slicing.
  ///
  ///   t.Index({Ellipsis{}, NewMode{}, Range{1, 5}})
  absl::StatusOr<RemoteTensor> Index(const std::vector<IndexItem>& items,
                                     const ViewOptions& options = {}) const;
  /// Mode i of the view is mode axes[i]; negative numbers count from the end.
  absl::StatusOr<RemoteTensor> Transpose(const std::vector<int>& axes,
                                         const ViewOptions& options = {}) const;
  /// The elements in row-major order, with other extents, of which one may be
  /// -1.
  absl::StatusOr<RemoteTensor> Reshape(const std::vector<int64_t>& extents,
                                       const ViewOptions& options = {}) const;
  /// NumPy's broadcast_to: modes of extent 1 repeat, new ones come in front.
  absl::StatusOr<RemoteTensor> BroadcastTo(
      const std::vector<int64_t>& extents,
      const ViewOptions& options = {}) const;
  /// With padding around, one pair for each mode; `options` has its value.
  absl::StatusOr<RemoteTensor> Pad(const std::vector<transform::Pad>& pads,
                                   const ViewOptions& options = {}) const;
  /// The elements whose indices of two modes are equal, along a last mode.
  absl::StatusOr<RemoteTensor> Diagonal(int first = 0, int second = 1,
                                        const ViewOptions& options = {}) const;
  /// By any transforms, one stage after the other.
  absl::StatusOr<RemoteTensor> View(const std::vector<Stage>& stages,
                                    const ViewOptions& options = {}) const;

 private:
  friend class Session;
  friend class internal::OperationStream;
  friend class internal::ProgramCalls;
  friend class internal::Results;

  RemoteTensor(std::shared_ptr<internal::Connection> connection,
               TensorInfo info, bool owns, ExecutionReport report = {});

  template <typename Stages>
  absl::StatusOr<RemoteTensor> ViewOf(const absl::StatusOr<Stages>& stages,
                                      const ViewOptions& options) const;

  internal::Handle handle_;
  TensorInfo info_;
  ExecutionReport report_;
};

}  // namespace tensord
