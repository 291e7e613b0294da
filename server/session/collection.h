// What a session keeps by name besides tensors, and the names themselves.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "core/base/status.h"
#include "server/engine/host_memory.h"

namespace tensord::server {

/// What the things of a collection are called: `plan` makes the names
/// `sessions/{session}/plans/{plan}`.
struct CollectionKind {
  absl::string_view word;    // "plan"
  absl::string_view reason;  // "PLAN", with which reasons of errors begin
  HostUse use;               // what they count as
};
inline constexpr CollectionKind kTensors{"tensor", "TENSOR", HostUse::kTensors};
inline constexpr CollectionKind kPlans{"plan", "PLAN", HostUse::kPlans};
inline constexpr CollectionKind kPrograms{"program", "PROGRAM",
                                          HostUse::kPrograms};

/// OK for "" and what may be the last part of a name.
/// Errors  INVALID_ARGUMENT, reason {KIND}_ID_MALFORMED.
absl::Status ValidateId(absl::string_view id, const CollectionKind& kind);

/// `sessions/{session}` of `sessions/{session}/{kind}s/{id}`, or "" when `name`
/// is not of that form.
absl::string_view SessionOf(absl::string_view name, const CollectionKind& kind);

/// INVALID_ARGUMENT, reason {KIND}_NAME_MALFORMED.
absl::Status NameMalformed(absl::string_view name, const CollectionKind& kind);
/// NOT_FOUND, reason {KIND}_NOT_FOUND.
absl::Status NoSuch(absl::string_view name, const CollectionKind& kind);
/// ALREADY_EXISTS, reason {KIND}_ALREADY_EXISTS.
absl::Status ExistsAlready(absl::string_view name, const CollectionKind& kind);
/// NOT_FOUND, reason SESSION_NOT_FOUND.
absl::Status SessionClosed(absl::string_view session);

/// `{session}/{kind}s/{id}`.
std::string NameIn(absl::string_view session, const CollectionKind& kind,
                   absl::string_view id);

/// Immutable things of one kind, by name.
///
/// Threads  safe for concurrent use.
template <typename T>
class Collection {
 public:
  using Ref = std::shared_ptr<const T>;

  /// Counts what it keeps in `host`.
  Collection(std::string session, const CollectionKind& kind,
             std::shared_ptr<HostLedger> host)
      : session_(std::move(session)), kind_(kind), host_(std::move(host)) {}

  /// Keeps what `make` makes of its full name, which ends with `id` or, for "",
  /// is the server's choice.
  ///
  /// Errors  INVALID_ARGUMENT: a malformed id. ALREADY_EXISTS.
  ///         RESOURCE_EXHAUSTED, reason TOO_MANY_{KIND}S or
  ///         HOST_MEMORY_LIMIT. NOT_FOUND: the session was closed meanwhile.
  absl::StatusOr<Ref> Add(absl::string_view id,
                          absl::FunctionRef<Ref(std::string name)> make) {
    TENSORD_RETURN_IF_ERROR(ValidateId(id, kind_));
    absl::MutexLock lock(&mutex_);
    if (closed_) return SessionClosed(session_);
    std::string name;
    do {
      name = NameIn(session_, kind_,
                    id.empty() ? absl::StrCat("p", next_id_++) : id);
    } while (id.empty() && things_.contains(name));
    if (things_.contains(name)) return ExistsAlready(name, kind_);
    Ref made = make(name);
    HostHold hold;
    TENSORD_RETURN_IF_ERROR(hold.Take(host_, kind_.use, made->size_bytes()));
    things_.emplace(std::move(name), Kept{made, std::move(hold)});
    return made;
  }

  /// Errors  NOT_FOUND, also for things of other sessions.
  ///         INVALID_ARGUMENT: `name` is malformed.
  absl::StatusOr<Ref> Find(absl::string_view name) const {
    const absl::string_view session = SessionOf(name, kind_);
    if (session.empty()) return NameMalformed(name, kind_);
    if (session != session_) return NoSuch(name, kind_);
    absl::MutexLock lock(&mutex_);
    const auto found = things_.find(std::string(name));
    if (found == things_.end()) return NoSuch(name, kind_);
    return found->second.thing;
  }

  /// Errors  as Find.
  absl::Status Remove(absl::string_view name) {
    TENSORD_RETURN_IF_ERROR(Find(name).status());
    absl::MutexLock lock(&mutex_);
    return things_.erase(std::string(name)) > 0 ? absl::OkStatus()
                                                : NoSuch(name, kind_);
  }

  /// Up to `count` things whose names follow `after`, by name.
  std::vector<Ref> List(absl::string_view after, int count) const {
    std::vector<Ref> list;
    absl::MutexLock lock(&mutex_);
    for (auto at = things_.upper_bound(std::string(after));
         at != things_.end() && std::ssize(list) < count; ++at) {
      list.push_back(at->second.thing);
    }
    return list;
  }

  /// Forgets all, and takes no new ones.
  void Close() {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    things_.clear();
  }

 private:
  struct Kept {
    Ref thing;
    HostHold hold;
  };

  const std::string session_;
  const CollectionKind kind_;
  const std::shared_ptr<HostLedger> host_;
  mutable absl::Mutex mutex_;
  std::map<std::string, Kept> things_ ABSL_GUARDED_BY(mutex_);  // by full name
  int64_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tensord::server
