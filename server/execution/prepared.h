// What a session keeps ready to be executed: an operation or a program.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/base/status.h"
#include "core/plan/plan.h"

namespace tensord::server {

/// Something that was validated and planned before it runs, for operands that
/// are like those it was made for.
///
/// Threads   safe for concurrent use.
/// Lifetime  shared by the session and by requests under way.
class Prepared {
 public:
  /// What a session's plans and programs may take of the host's memory.
  static constexpr int64_t kMostBytes = int64_t{256} << 20;

  virtual ~Prepared() {
    if (ledger_ != nullptr) *ledger_ -= counted_bytes_;
  }
  Prepared(const Prepared&) = delete;

  /// What a session calls it; "" when it does not keep it.
  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }
  /// The different plans that it needs.
  const std::vector<core::PlanKey>& keys() const { return keys_; }

  void CountExecution() const { ++*execution_count_; }
  int64_t execution_count() const { return *execution_count_; }

  /// What it takes of the host's memory, by and large.
  virtual int64_t size_bytes() const = 0;
  /// Adds its bytes to those of what the session keeps prepared until it ends.
  /// Errors  RESOURCE_EXHAUSTED, reason PREPARED_TOO_LARGE.
  absl::Status CountAgainst(std::shared_ptr<std::atomic<int64_t>> ledger) {
    counted_bytes_ = size_bytes();
    const int64_t bytes = *ledger += counted_bytes_;
    ledger_ = std::move(ledger);
    if (bytes <= kMostBytes) return absl::OkStatus();
    return core::ResourceExhausted(
        "PREPARED_TOO_LARGE", "with this one the session's plans and programs ",
        "have ", bytes, " bytes, at most ", kMostBytes,
        " are kept; delete some");
  }

 protected:
  Prepared() = default;
  explicit Prepared(std::vector<core::PlanKey> keys) : keys_(std::move(keys)) {}

  std::vector<core::PlanKey> keys_;
  /// Shared by variants of one thing.
  std::shared_ptr<std::atomic<int64_t>> execution_count_ =
      std::make_shared<std::atomic<int64_t>>(0);

 private:
  std::string name_;
  std::shared_ptr<std::atomic<int64_t>> ledger_;  // counts it; or null
  int64_t counted_bytes_ = 0;
};

}  // namespace tensord::server
