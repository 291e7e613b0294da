// An open session, shared by its Session and its RemoteTensors.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/cpp/src/channels.h"
#include "client/cpp/src/memory/shared_memory.h"
#include "client/cpp/src/transfer.h"
#include "tensord/session.h"

namespace tensord::internal {

/// Starts a session's lease anew three times in its length, on a thread of its
/// own, until the session is gone or this is destroyed.
class LeaseKeeper {
 public:
  /// Lifetime  `channels` outlives this.
  LeaseKeeper(const Channels& channels, std::string session,
              absl::Duration lease);
  ~LeaseKeeper();

 private:
  void Run();

  const Channels& channels_;
  const std::string session_;
  const absl::Duration interval_;
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ClientContext* running_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::thread thread_;
};

/// Threads  safe for concurrent use.
/// Owner    closes the session with its own end, or by Close().
class Connection {
 public:
  static absl::StatusOr<std::shared_ptr<Connection>> Open(
      std::string_view address, const SessionOptions& options);
  ~Connection();

  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Channels& channels() { return channels_; }
  const SessionInfo& session() const { return session_; }
  const Limits& limits() const { return limits_; }
  Order order() const { return order_; }

  const std::string& address() const { return address_; }

  /// What the session shares with a server on this host, which is looked for at
  /// the first question.
  /// Errors  FAILED_PRECONDITION, UNAVAILABLE and others: why there is none.
  absl::StatusOr<SharedMemory*> memory();
  /// Whether so many bytes go by it.
  SharedMemory* MemoryFor(int64_t bytes);

  /// When a call that begins now must have ended.
  absl::Time Deadline(std::optional<absl::Duration> asked) const;

  /// What a transfer of `bytes` that begins now needs to know.
  TransferOptions Transfer(int64_t bytes, std::optional<absl::Duration> asked,
                           const Progress& progress) const;

  absl::Status Close();

  /// Deletes a tensor, plan or program whose handle has gone.
  void Discard(const std::string& name);

 private:
  Connection(std::string_view address, const SessionOptions& options);
  absl::StatusOr<std::unique_ptr<SharedMemory>> OpenMemory() const;

  Channels channels_;
  const std::string address_;
  const Transport transport_;
  const Order order_;
  SessionInfo session_;
  Limits limits_;
  std::atomic<bool> closed_{true};  // until opened
  std::unique_ptr<LeaseKeeper> lease_keeper_;
  absl::Mutex memory_mutex_;
  std::optional<absl::StatusOr<std::unique_ptr<SharedMemory>>> memory_
      ABSL_GUARDED_BY(memory_mutex_);  // none: nobody has asked
};

}  // namespace tensord::internal
