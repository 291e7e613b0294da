// What the server has done since its start.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace tensord::server {

/// Threads  safe for concurrent use.
class Statistics {
 public:
  /// An operation, e.g. "contract", ended with the status code `code`.
  void CountOperation(absl::string_view operation, absl::string_view code) {
    absl::MutexLock lock(&mutex_);
    ++operations_[{std::string(operation), std::string(code)}];
  }
  void AddUploadedBytes(int64_t bytes) { uploaded_bytes_ += bytes; }
  void AddDownloadedBytes(int64_t bytes) { downloaded_bytes_ += bytes; }

  /// Count by operation and code.
  std::map<std::pair<std::string, std::string>, int64_t> operations() const {
    absl::MutexLock lock(&mutex_);
    return operations_;
  }
  int64_t uploaded_bytes() const { return uploaded_bytes_; }
  int64_t downloaded_bytes() const { return downloaded_bytes_; }

 private:
  mutable absl::Mutex mutex_;
  std::map<std::pair<std::string, std::string>, int64_t> operations_
      ABSL_GUARDED_BY(mutex_);
  std::atomic<int64_t> uploaded_bytes_ = 0;
  std::atomic<int64_t> downloaded_bytes_ = 0;
};

}  // namespace tensord::server
