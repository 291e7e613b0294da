// A tensor that its owner lets tenants read.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"

namespace tensord::server {

class Session;
class StoredTensor;

/// Who may read a tensor, and the tensors of their sessions that are it. While
/// it is shared nobody writes it.
///
/// A tensor of another session that is it is a view, which goes when its tenant
/// may no longer read it, and when the tensor or its session goes. Operations
/// that were received before are still carried out.
///
/// Threads   safe for concurrent use.
/// Lifetime  shared by the tensor, its views elsewhere and whoever looks for
/// it.
class TensorShare : public std::enable_shared_from_this<TensorShare> {
 public:
  /// `name` is how others call it.
  TensorShare(std::string name, std::weak_ptr<StoredTensor> tensor)
      : name_(std::move(name)), tensor_(std::move(tensor)) {}

  const std::string& name() const { return name_; }

  /// They may read it, too.
  /// Errors  RESOURCE_EXHAUSTED, reason TOO_MANY_TENANTS_OF_SHARE: more than
  /// 100
  ///         might then.
  absl::Status Allow(absl::Span<const std::string> tenants);
  /// They may not any more; none: nobody. Returns whether anybody is left.
  bool Forbid(absl::Span<const std::string> tenants);
  /// By name.
  std::vector<std::string> tenants() const;

  /// Adds the tensor to a session, named `tensor_id` or by the server.
  ///
  /// Errors  NOT_FOUND, reason SHARE_NOT_FOUND: the session's tenant may not
  ///         read it. INVALID_ARGUMENT, reason DEVICE_DIFFERS. Those of
  ///         Session::AddView().
  absl::StatusOr<std::shared_ptr<StoredTensor>> Open(
      const std::shared_ptr<Session>& session, absl::string_view tensor_id);

  /// Remembers a view, of the tensor or of a view of it, so that it goes with
  /// the right to read it. False: that has gone.
  bool Keep(const std::shared_ptr<Session>& session,
            const std::shared_ptr<StoredTensor>& view);

 private:
  struct View {
    std::weak_ptr<Session> session;
    std::weak_ptr<StoredTensor> tensor;
  };

  const std::string name_;
  const std::weak_ptr<StoredTensor> tensor_;
  mutable absl::Mutex mutex_;
  // What is there of each tenant's that may read it; all of it, until twice as
  // many views are there as when those that have gone were last taken out.
  std::map<std::string, std::vector<View>> tenants_ ABSL_GUARDED_BY(mutex_);
};

/// NOT_FOUND, reason SHARE_NOT_FOUND.
absl::Status NoSuchShare(absl::string_view name);

/// Tensors that are shared, by the names that others call them.
///
/// Threads  safe for concurrent use.
class TensorShares {
 public:
  /// Lets tenants read a tensor; it has one share, however often.
  /// Errors  INVALID_ARGUMENT, reason TENSOR_IS_VIEW.
  ///         FAILED_PRECONDITION, reason TENSOR_NOT_READY: it has no contents,
  ///         or is being written. NOT_FOUND: it was deleted meanwhile.
  absl::StatusOr<std::shared_ptr<TensorShare>> Add(
      const std::shared_ptr<StoredTensor>& tensor,
      absl::Span<const std::string> tenants);
  /// Errors  NOT_FOUND, reason SHARE_NOT_FOUND.
  absl::StatusOr<std::shared_ptr<TensorShare>> Find(
      absl::string_view name) const;

 private:
  mutable absl::Mutex mutex_;
  // Those that are, and some that were: fewer than twice as many as were left
  // when they were last looked through.
  std::map<std::string, std::weak_ptr<TensorShare>, std::less<>> shares_
      ABSL_GUARDED_BY(mutex_);
  size_t kept_count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tensord::server
