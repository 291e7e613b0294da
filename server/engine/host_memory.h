// How much of the host's memory the process may have, and what it counts of it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tensord::server {

/// Bytes of memory that the process may use: the machine's, or the least limit
/// of its control groups, of version 1 or 2, if that is less.
///
/// `root` is the root of the file system, another one in tests.
int64_t HostMemoryBytes(const std::string& root = "");

/// OK when that is enough for a server.
/// Errors  UNAVAILABLE, reason HOST_MEMORY_TOO_SMALL: what there is, and the
///         least that is wanted.
absl::Status CheckHostMemory(const std::string& root = "");

/// How much of `memory_bytes` goes to tensors and workspace unless the operator
/// says otherwise: three quarters. Of host memory so much less that a gibibyte,
/// or half of it, is left for all else that the process keeps there.
int64_t DefaultMemoryLimit(int64_t memory_bytes, bool is_host_memory);

/// What is kept in the host's memory beside the contents of tensors.
enum class HostUse {
  kTensors,    // what is known of each, empty ones and views too
  kPlans,      // prepared operations
  kPrograms,   // prepared ones
  kRequests,   // of calls and streams, until they are answered
  kSnapshots,  // of the plan cache, on their way in or out
  kAnswers,    // of calls that are carried out at most once
  kArriving,   // of messages, until they are whole; measured, without limit
};
inline constexpr int kHostUseCount = 7;

/// "tensors".
absl::string_view NameOf(HostUse use);

struct HostAmount {
  int64_t count = 0;
  int64_t bytes = 0;
};
/// (HostUse).
using HostLimits = std::array<HostAmount, kHostUseCount>;

/// Counts what a session, a tenant or the server keeps in the host's memory,
/// and refuses what goes beyond a limit. What a session takes is its tenant's,
/// and its server's, too.
///
/// Threads  safe for concurrent use.
class HostLedger {
 public:
  /// `owner` is "session" or "server", for messages. `byte_limit` bounds all
  /// uses together.
  HostLedger(absl::string_view owner, const HostLimits& limits,
             int64_t byte_limit, std::shared_ptr<HostLedger> server = nullptr)
      : owner_(owner),
        limits_(limits),
        byte_limit_(byte_limit),
        server_(std::move(server)) {}
  /// What the sessions of a tenant have together; without limits yet.
  static std::shared_ptr<HostLedger> OfTenant(
      const std::string& name, std::shared_ptr<HostLedger> server);

  /// Most tensors, and bytes of all uses together, from now on.
  void SetQuotas(int64_t tensors, int64_t bytes) {
    tensor_limit_ = tensors;
    byte_limit_ = bytes;
  }

  /// Counts one more, or, with a `count` of 0, more bytes of one.
  /// Errors  RESOURCE_EXHAUSTED, reason TOO_MANY_{USE} or HOST_MEMORY_LIMIT:
  ///         limit and use; reason TENANT_QUOTA_EXCEEDED of a tenant's.
  ///         Nothing is counted then.
  absl::Status Take(HostUse use, int64_t bytes, int64_t count = 1);
  /// Counts what is there already, whatever the limits.
  void Add(HostUse use, HostAmount amount);
  void Return(HostUse use, HostAmount amount);

  HostAmount used(HostUse use) const;
  /// Of all uses together but kArriving.
  int64_t used_bytes() const;
  const HostLimits& limits() const { return limits_; }
  int64_t byte_limit() const { return byte_limit_; }

 private:
  struct Used {
    std::atomic<int64_t> count = 0;
    std::atomic<int64_t> bytes = 0;
  };

  /// OK when no limit is passed, the last `bytes` and `count` included.
  absl::Status Check(HostUse use, int64_t bytes, int64_t count) const;

  /// The same of a tenant.
  absl::Status CheckQuotas(HostUse use, int64_t bytes, int64_t count) const;

  const absl::string_view owner_;
  const HostLimits limits_;
  std::string tenant_;  // "": it is no tenant's
  std::atomic<int64_t> tensor_limit_ = std::numeric_limits<int64_t>::max();
  std::atomic<int64_t> byte_limit_;
  const std::shared_ptr<HostLedger> server_;  // null: it is the server's
  std::array<Used, kHostUseCount> used_;
};

/// One thing that a ledger counts as long as this lives.
class HostHold {
 public:
  HostHold() = default;
  HostHold(HostHold&& other) noexcept { *this = std::move(other); }
  HostHold& operator=(HostHold&& other) noexcept {
    std::swap(ledger_, other.ledger_);
    std::swap(use_, other.use_);
    std::swap(amount_, other.amount_);
    return *this;
  }
  ~HostHold() {
    if (ledger_ != nullptr) ledger_->Return(use_, amount_);
  }

  /// Takes that instead of what it had, which goes only when this is counted.
  /// With a `count` of 0, it is bytes alone that count.
  /// Errors  as HostLedger::Take(); it has what it had then.
  absl::Status Take(std::shared_ptr<HostLedger> ledger, HostUse use,
                    int64_t bytes, int64_t count = 1);
  /// The same of bytes alone, as HostLedger::Add().
  void TakeAnyway(std::shared_ptr<HostLedger> ledger, HostUse use,
                  int64_t bytes);
  /// Errors    as HostLedger::Take().
  /// Requires  Take().ok().
  absl::Status Grow(int64_t bytes);
  /// As HostLedger::Add(), if anything was taken.
  void Add(int64_t bytes);

 private:
  HostHold(std::shared_ptr<HostLedger> ledger, HostUse use, HostAmount amount)
      : ledger_(std::move(ledger)), use_(use), amount_(amount) {}

  std::shared_ptr<HostLedger> ledger_;  // null: it holds nothing
  HostUse use_ = HostUse::kTensors;
  HostAmount amount_;
};

}  // namespace tensord::server
