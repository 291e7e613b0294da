// The connection that payload takes.
#pragma once

#include <grpcpp/channel.h>

#include <memory>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace tensord::internal {

/// A channel with a connection of its own. To a Unix socket it connects by
/// itself, as gRPC leaves that the system's small buffers, with which the two
/// sides wait for each other ten times a megabyte.
///
/// Threads  safe for concurrent use.
class BulkChannel {
 public:
  /// `other` is used where no connection of its own comes about.
  BulkChannel(std::string_view address, std::shared_ptr<grpc::Channel> other);
  ~BulkChannel();

  BulkChannel(const BulkChannel&) = delete;

  /// A channel that has not ended, as far as is known; to be asked for each
  /// transfer.
  std::shared_ptr<grpc::Channel> get() const;

 private:
  void Connect() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Drop() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;  // of a Unix socket; else ""
  const std::shared_ptr<grpc::Channel> other_;
  mutable absl::Mutex mutex_;
  mutable std::shared_ptr<grpc::Channel> own_ ABSL_GUARDED_BY(mutex_);
  mutable int socket_ ABSL_GUARDED_BY(mutex_) = -1;  // that of own_
};

}  // namespace tensord::internal
