// What one client holds: tensors, a memory quota, a lease.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/memory/limiting_resource.h"
#include "core/tensor/tensor.h"
#include "server/engine/engine.h"
#include "server/engine/host_memory.h"
#include "server/engine/tenant_account.h"
#include "server/session/answers.h"
#include "server/session/collection.h"
#include "server/session/stored_tensor.h"
#include "server/session/stream_scratch.h"

namespace tensord::server {

class PreparedPlan;
class PreparedProgram;

/// What one session keeps in host memory, at most.
inline constexpr HostLimits kSessionHostLimits = {{
    {100'000, int64_t{256} << 20},  // tensors
    {10'000, int64_t{256} << 20},   // plans
    {10'000, int64_t{256} << 20},   // programs
    {4'096, int64_t{256} << 20},    // requests
    {0, 0},                         // snapshots are no session's
    {1'000, int64_t{4} << 20},      // answers
    {0, 0},                         // what arrives is no session's yet
}};

/// Whose everything is where nobody is asked who they are.
inline constexpr absl::string_view kDefaultTenant = "default";

/// The owner, in the device's queue, of a tenant's sessions. No job has such a
/// name, as theirs are printable.
inline std::string OwnerOfTenant(absl::string_view tenant) {
  return absl::StrCat("\ntenant ", tenant);
}

struct SessionOptions {
  std::string tenant = std::string(kDefaultTenant);  // whose it is
  std::string job;
  /// With whom it shares the device's time as one: the tenant, or the job or,
  /// without one, the peer. "": with nobody.
  std::string owner;
  int priority = 0;  // among the owner's sessions, higher first
  absl::Duration lease;
  int64_t memory_quota_bytes = 0;
  std::string peer;    // who opened it: an address without port, or a user
  std::string holder;  // as OpenRequest has it
  HostLimits host_limits = kSessionHostLimits;
};

/// Threads   safe for concurrent use.
/// Lifetime  shared by the manager and by requests under way. Tensors keep the
///           quota alive on their own.
class Session : public std::enable_shared_from_this<Session> {
 public:
  using Clock = std::chrono::steady_clock;  // no change of the time moves it

  /// What it has counts as its tenant's, in `account`; null: it is all that the
  /// tenant has.
  /// Requires  `device` outlives it. `number` is unique in the server.
  Session(std::string name, uint64_t number, Device& device,
          SessionOptions options,
          std::shared_ptr<TenantAccount> account = nullptr);

  const std::string& name() const { return name_; }
  uint64_t number() const { return client_.number; }
  /// The session in the device's queue.
  const ClientId& client() const { return client_; }
  const SessionOptions& options() const { return options_; }
  Device& device() const { return device_; }
  const std::shared_ptr<core::LimitingResource>& memory() const {
    return memory_;
  }

  TenantAccount& account() const { return *account_; }

  /// Host memory for copies of its contents to and from its device: at most
  /// half of the device's, so that one session leaves others some.
  const std::shared_ptr<core::LimitingResource>& staging_memory() const {
    return staging_memory_;
  }

  /// What counts regions that its clients bring: memory() itself where the
  /// device's memory is the host's, and at most half of the device's elsewhere.
  const std::shared_ptr<core::LimitingResource>& region_memory() const {
    return region_memory_;
  }

  /// What it keeps in the host's memory.
  const std::shared_ptr<HostLedger>& host_memory() const {
    return host_memory_;
  }

  /// Of calls that are to be carried out at most once.
  Answers& answers() { return answers_; }

  /// For what runs on the session's stream of its device.
  StreamScratch& scratch() { return scratch_; }

  /// Held from an operation's preparation until it is in the device's queue, so
  /// that announced reads and writes have the order of the queue.
  absl::Mutex& order() { return order_; }

  /// Adds a tensor without memory, named `tensor_id` or, for "", by the server.
  ///
  /// Errors  INVALID_ARGUMENT: a malformed id, an invalid layout.
  ///         ALREADY_EXISTS. RESOURCE_EXHAUSTED, reason TOO_MANY_TENSORS or
  ///         HOST_MEMORY_LIMIT. NOT_FOUND: the session was closed meanwhile.
  absl::StatusOr<std::shared_ptr<StoredTensor>> Add(absl::string_view tensor_id,
                                                    core::TensorDesc desc);

  /// Adds a tensor whose storage `make` makes of its full name, named as in
  /// Add(). It is of memory that the session's device reaches.
  /// Errors  as Add(), and those of `make`.
  absl::StatusOr<std::shared_ptr<StoredTensor>> Adopt(
      absl::string_view tensor_id, const core::TensorDesc& desc,
      absl::FunctionRef<
          absl::StatusOr<std::shared_ptr<Storage>>(std::string name)>
          make);

  /// Adds a view of `viewed`, a tensor of the session, named as in Add().
  /// `stages` and `padding` as TensorView::Create() has them.
  ///
  /// Errors  those of Add() and of TensorView::Create(). RESOURCE_EXHAUSTED,
  ///         reason TOO_MANY_VIEWS.
  absl::StatusOr<std::shared_ptr<StoredTensor>> AddView(
      absl::string_view tensor_id, const StoredTensor& viewed,
      absl::Span<const ViewStage> stages, std::optional<core::Scalar> padding);

  /// Adds a view of `shared`, a tensor that another session shares by `share`.
  ///
  /// Requires  the session is shared.
  /// Errors    those of AddView(). NOT_FOUND, reason SHARE_NOT_FOUND: the
  ///           session's tenant may not read it.
  absl::StatusOr<std::shared_ptr<StoredTensor>> AddShared(
      absl::string_view tensor_id, const StoredTensor& shared,
      const std::shared_ptr<TensorShare>& share);

  /// Errors  NOT_FOUND, also for tensors of other sessions; INVALID_ARGUMENT:
  ///         not a tensor name.
  absl::StatusOr<std::shared_ptr<StoredTensor>> Find(
      absl::string_view tensor_name) const;
  /// The same tensor, seen as `view` says if it is there: by a view that only
  /// the caller has. Messages call it `what`.
  ///
  /// Errors  besides, those of TensorView::Create().
  absl::StatusOr<std::shared_ptr<StoredTensor>> Find(
      absl::string_view tensor_name, const std::optional<ViewRequest>& view,
      absl::string_view what) const;

  /// Forgets a tensor; its memory returns when its last user is done.
  /// Errors  as Find.
  absl::Status Remove(absl::string_view tensor_name);
  /// Forgets this very tensor, and not one that took its name since.
  void Remove(const StoredTensor& tensor);

  /// Up to `count` tensors whose names follow `after`, by name.
  std::vector<std::shared_ptr<StoredTensor>> List(absl::string_view after,
                                                  int count) const;
  int64_t tensor_count() const;

  /// Most views that a session keeps: each takes some kilobytes of the host's
  /// memory.
  static constexpr int64_t kMaxViews = 16'384;

  Collection<PreparedPlan>& plans() { return plans_; }
  Collection<PreparedProgram>& programs() { return programs_; }
  /// Bytes of what is in both.
  const std::shared_ptr<std::atomic<int64_t>>& prepared_bytes() {
    return prepared_bytes_;
  }

  /// Starts the lease anew.
  void Touch();
  /// Keeps the lease from running out until as many calls of EndUse(). What is
  /// no work does not make the session less idle.
  void BeginUse(bool is_work = true);
  void EndUse(bool is_work = true);
  bool IsExpired(Clock::time_point now) const;

  struct Ages {
    absl::Duration age;
    absl::Duration idle;        // since the last work; 0: there is some
    absl::Duration lease_left;  // if nobody uses it
  };
  Ages ages() const;

  bool is_closed() const;

  /// Stops what is under way, forgets all tensors, plans and programs, and
  /// takes no new ones.
  void Close();

 private:
  struct Kept {
    std::shared_ptr<StoredTensor> tensor;
    HostHold hold;
  };
  using Tensors = std::map<std::string, Kept, std::less<>>;  // by full name

  /// Adds the tensor that `make` makes of its full name, and that takes
  /// `host_bytes` beside its contents.
  absl::StatusOr<std::shared_ptr<StoredTensor>> AddNamed(
      absl::string_view tensor_id, int64_t host_bytes,
      absl::FunctionRef<
          absl::StatusOr<std::shared_ptr<StoredTensor>>(std::string name)>
          make);
  /// Has `added`, if it is another session's, go with the right to read it.
  absl::StatusOr<std::shared_ptr<StoredTensor>> KeepWithOrigin(
      std::shared_ptr<StoredTensor> added);
  /// Takes a tensor out. Its Forget() is due, and its last reference must not
  /// go under the lock.
  std::shared_ptr<StoredTensor> Take(Tensors::iterator at)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string name_;
  Device& device_;
  const SessionOptions options_;
  const std::shared_ptr<TenantAccount> account_;
  const ClientId client_;
  const std::shared_ptr<core::LimitingResource> memory_;
  const std::shared_ptr<core::LimitingResource> staging_memory_;
  const std::shared_ptr<core::LimitingResource> region_memory_;
  const std::shared_ptr<HostLedger> host_memory_;

  Answers answers_{host_memory_};
  Collection<PreparedPlan> plans_;
  const std::shared_ptr<std::atomic<int64_t>> prepared_bytes_ =
      std::make_shared<std::atomic<int64_t>>(0);
  Collection<PreparedProgram> programs_;
  StreamScratch scratch_;
  absl::Mutex order_;
  mutable absl::Mutex mutex_;
  Tensors tensors_ ABSL_GUARDED_BY(mutex_);
  int64_t view_count_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  const Clock::time_point opened_ = Clock::now();
  Clock::time_point touched_ ABSL_GUARDED_BY(mutex_);
  Clock::time_point worked_ ABSL_GUARDED_BY(mutex_) = opened_;
  int uses_ ABSL_GUARDED_BY(mutex_) = 0;
  int works_ ABSL_GUARDED_BY(mutex_) = 0;  // of those uses
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

/// Keeps a session's lease while it lives, and starts it anew at the end.
class SessionUse {
 public:
  explicit SessionUse(std::shared_ptr<Session> session, bool is_work = true)
      : session_(std::move(session)), is_work_(is_work) {
    session_->BeginUse(is_work_);
  }
  SessionUse(SessionUse&&) = default;
  SessionUse& operator=(SessionUse&&) = delete;
  ~SessionUse() {
    if (session_ != nullptr) session_->EndUse(is_work_);
  }

  Session& operator*() const { return *session_; }
  Session* operator->() const { return session_.get(); }

 private:
  std::shared_ptr<Session> session_;
  bool is_work_;
};

}  // namespace tensord::server
