#include "server/process/grpc_log.h"

#include <grpc/support/log.h>

#include <chrono>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace tensord::server {
namespace {

/// Its messages, one at a time.
///
/// Threads  safe for concurrent use.
class GrpcLog {
 public:
  explicit GrpcLog(Log& log) : log_(log) {}

  void Write(const gpr_log_func_args& message) {
    const auto now = std::chrono::steady_clock::now();
    absl::MutexLock lock(&mutex_);
    if (now - begun_ >= std::chrono::minutes(1)) {
      begun_ = now;
      count_ = 0;
    }
    if (++count_ > kMostAMinute) {
      ++left_out_;
      return;
    }
    log_.Event(LogLevel::kWarning, "grpc",
               {{"message", message.message}, {"left_out", left_out_}});
    left_out_ = 0;
  }

 private:
  static constexpr int64_t kMostAMinute = 10;

  Log& log_;
  absl::Mutex mutex_;
  std::chrono::steady_clock::time_point begun_ ABSL_GUARDED_BY(mutex_);
  int64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

void TakeGrpcLog(Log& log) {
  if (gpr_should_log(GPR_LOG_SEVERITY_INFO) != 0) return;
  static GrpcLog grpc_log(log);
  gpr_set_log_function(
      [](gpr_log_func_args* message) { grpc_log.Write(*message); });
}

}  // namespace tensord::server
