// The plans of a run's steps, and what carrying them out takes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/device/device.h"
#include "core/executor/executor.h"
#include "core/memory/memory_resource.h"
#include "core/ops/any_desc.h"
#include "core/plan/plan.h"
#include "server/engine/engine.h"
#include "server/session/session.h"

namespace tensord::server {

/// Carries out steps by their plans, in the scratch memory that they share.
/// Where kernels are chosen by time, it measures them before the step, or tries
/// one more of them in its place.
///
/// Threads   one after the other, as its run's.
/// Lifetime  engine, session and keys outlive it.
class StepRunner {
 public:
  StepRunner(Engine& engine, Session& session)
      : engine_(engine), session_(session) {}

  /// Takes the plan of `key`, the next in plans(). `result_bytes` is what each
  /// result of its steps takes. With `is_whole` false a factor of 0 spares
  /// kernels some of the work that plans are kept for: they are not timed.
  ///
  /// Errors  as Engine::PlanFor(), and, of what is to be measured, as
  ///         SearchBudget::Check().
  absl::Status Add(const core::PlanKey& key,
                   const std::array<int64_t, core::kMostResults>& result_bytes,
                   bool is_whole);

  absl::Span<const std::shared_ptr<const core::Plan>> plans() const {
    return plans_;
  }
  int64_t hit_count() const { return hit_count_; }  // in the plan cache
  /// Of the plan that needs most.
  int64_t workspace_bytes() const { return workspace_bytes_; }
  /// The kernel that ran the last step, or is to run the only one.
  absl::string_view kernel() const { return kernel_; }
  /// Whether kernels are to be timed.
  bool takes_times() const { return timed_count_ > 0; }
  /// None of them is.
  void TakeNoTimes();

  /// Takes the memory that steps need; may be called again.
  /// Errors  RESOURCE_EXHAUSTED.
  absl::Status Allocate();
  /// Requires  Allocate().ok().
  const core::Buffer& scratch() const;

  /// Queues a step that plan number `i` is for.
  /// Errors  as core::Execute().
  absl::Status Execute(size_t i, const core::AnyOperands& operands,
                       core::Stream& stream);

  /// Tells how long the kernels took that were tried. All has ended well.
  void AddTimes();
  /// Returns the memory. Nothing may be under way.
  void Release();

 private:
  /// A plan whose kernel is chosen by time, until that is done.
  struct Timed {
    const core::PlanKey* key;
    std::array<int64_t, core::kMostResults> result_bytes = {};  // (result)
    bool was_hit = false;  // the plan to begin with
  };

  /// A run of a kernel for its time.
  struct Tried {
    const core::PlanKey* key;
    absl::string_view kernel;
    std::unique_ptr<core::TimedPoint> begin = nullptr, end = nullptr;
  };

  /// Scratch memory of so many bytes, when there is as much.
  absl::Status Lend(int64_t bytes);
  void EndTiming(size_t i);
  /// Replaces plan number `i` by one that has been measured.
  absl::Status Measure(size_t i, core::AnyOperands operands,
                       core::Stream& stream);
  /// Runs a kernel that is to be tried, if there is one, for its time.
  absl::Status Try(size_t i, const core::AnyOperands& operands,
                   core::Stream& stream);

  Engine& engine_;
  Session& session_;
  // One plan, that of an operation, is the most frequent case.
  absl::InlinedVector<std::shared_ptr<const core::Plan>, 1> plans_;
  absl::InlinedVector<std::optional<Timed>, 1> timed_;  // (plan)
  int timed_count_ = 0;
  int64_t hit_count_ = 0;
  int64_t workspace_bytes_ = 0;
  absl::string_view kernel_;
  // The last one is in use; what is queued may use those before.
  absl::InlinedVector<std::shared_ptr<const core::Buffer>, 1> scratch_;
  core::Buffer results_;  // of measurements
  std::vector<Tried> tried_;
};

}  // namespace tensord::server
