#include "server/execution/step_runner.h"

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/base/checked_math.h"
#include "core/base/status.h"
#include "core/base/steady_time.h"
#include "core/executor/operands.h"

namespace tensord::server {
namespace {

/// Bytes of `result_bytes` one behind the other.
int64_t BytesTogether(absl::Span<const int64_t> result_bytes) {
  int64_t sum = 0;
  for (const int64_t bytes : result_bytes) {
    sum += core::RoundUp(bytes, core::kBufferAlignment);
  }
  return sum;
}

}  // namespace

absl::Status StepRunner::Add(
    const core::PlanKey& key,
    const std::array<int64_t, core::kMostResults>& result_bytes,
    bool is_whole) {
  TENSORD_ASSIGN_OR_RETURN(
      core::PlanCache::Lookup lookup,
      engine_.PlanFor(session_.device(), key, session_.options().job));
  const core::Plan& plan = *lookup.plan;
  hit_count_ += lookup.hit;
  workspace_bytes_ = std::max(workspace_bytes_, plan.workspace_bytes());
  kernel_ = plan.kernel_name();
  const bool is_timed =
      is_whole && plan.selection != key.selection && !kernel_.empty();
  if (is_timed && key.selection == core::Selection::kMeasure) {
    TENSORD_RETURN_IF_ERROR(
        session_.account().searches().Check(core::SteadyNow()));
  }
  timed_count_ += is_timed;
  timed_.emplace_back();
  if (is_timed) {
    timed_.back() = {&key, result_bytes, lookup.hit};
  }
  plans_.push_back(std::move(lookup.plan));
  return absl::OkStatus();
}

const core::Buffer& StepRunner::scratch() const {
  static const core::Buffer* const kNone = new core::Buffer;
  return scratch_.empty() ? *kNone : *scratch_.back();
}

absl::Status StepRunner::Lend(int64_t bytes) {
  if (bytes <= scratch().bytes()) return absl::OkStatus();
  TENSORD_ASSIGN_OR_RETURN(auto lent,
                           session_.scratch().Lend(*session_.memory(), bytes));
  scratch_.push_back(std::move(lent));
  return absl::OkStatus();
}

absl::Status StepRunner::Allocate() {
  TENSORD_RETURN_IF_ERROR(Lend(workspace_bytes_));
  int64_t result_bytes = 0;
  for (const std::optional<Timed>& timed : timed_) {
    if (!timed || timed->key->selection != core::Selection::kMeasure) continue;
    result_bytes = std::max(result_bytes, BytesTogether(timed->result_bytes));
  }
  if (results_.bytes() >= result_bytes) return absl::OkStatus();
  TENSORD_ASSIGN_OR_RETURN(
      results_, core::Buffer::Allocate(*session_.memory(), result_bytes));
  return absl::OkStatus();
}

absl::Status StepRunner::Execute(size_t i, const core::AnyOperands& operands,
                                 core::Stream& stream) {
  if (timed_[i] && timed_[i]->key->selection == core::Selection::kMeasure) {
    TENSORD_RETURN_IF_ERROR(Measure(i, operands, stream));
  }
  if (timed_[i]) return Try(i, operands, stream);
  kernel_ = plans_[i]->kernel_name();
  return core::Execute(*plans_[i], operands, scratch(), stream);
}

void StepRunner::Release() {
  scratch_.clear();
  results_ = core::Buffer();
  tried_.clear();
}

void StepRunner::TakeNoTimes() {
  for (std::optional<Timed>& timed : timed_) timed.reset();
  timed_count_ = 0;
}

void StepRunner::EndTiming(size_t i) {
  timed_[i].reset();
  --timed_count_;
}

absl::Status StepRunner::Measure(size_t i, core::AnyOperands operands,
                                 core::Stream& stream) {
  const core::PlanKey& key = *timed_[i]->key;
  std::array<void*, core::kMostResults> results;
  std::byte* place = results_.data();
  for (size_t r = 0; r < results.size(); ++r) {
    results[r] = place;
    place += core::RoundUp(timed_[i]->result_bytes[r], core::kBufferAlignment);
  }
  const bool was_hit = timed_[i]->was_hit;
  EndTiming(i);
  core::RedirectOutputs(results, operands);
  const absl::Time begun = core::SteadyNow();
  auto measured =
      engine_.MeasuredPlanFor(session_.device(), key, session_.options().job,
                              operands, *session_.memory(), stream);
  session_.account().searches().Count(core::SteadyNow(),
                                      core::SteadyNow() - begun);
  // What the prediction took has its memory.
  if (absl::IsResourceExhausted(measured.status())) return absl::OkStatus();
  TENSORD_RETURN_IF_ERROR(measured.status());
  if (measured->plan == nullptr) return absl::OkStatus();
  const int64_t bytes = measured->plan->workspace_bytes();
  const absl::Status lent = Lend(bytes);
  if (absl::IsResourceExhausted(lent)) return absl::OkStatus();
  TENSORD_RETURN_IF_ERROR(lent);
  hit_count_ += measured->hit - was_hit;
  workspace_bytes_ =
      plans_.size() == 1 ? bytes : std::max(workspace_bytes_, bytes);
  plans_[i] = std::move(measured->plan);
  return absl::OkStatus();
}

absl::Status StepRunner::Try(size_t i, const core::AnyOperands& operands,
                             core::Stream& stream) {
  const core::PlanKey& key = *timed_[i]->key;
  std::shared_ptr<const core::Plan> plan =
      engine_.NextPlanToTry(session_.device(), key);
  // A session with too little memory for a kernel says nothing about it: others
  // try it.
  if (plan == nullptr || !Lend(plan->workspace_bytes()).ok()) {
    EndTiming(i);
    return Execute(i, operands, stream);
  }
  kernel_ = plan->kernel_name();
  if (plans_.size() == 1) workspace_bytes_ = plan->workspace_bytes();
  Tried tried{.key = &key, .kernel = kernel_};
  TENSORD_ASSIGN_OR_RETURN(tried.begin, stream.RecordTime());
  const absl::Status status = core::Execute(*plan, operands, scratch(), stream);
  if (!status.ok()) {
    // What is wrong with the operands says nothing about the kernel.
    const bool is_kernels =
        !absl::IsCancelled(status) && !absl::IsInvalidArgument(status);
    if (is_kernels) engine_.plans().AddFailure(key, kernel_);
    return status;
  }
  TENSORD_ASSIGN_OR_RETURN(tried.end, stream.RecordTime());
  tried_.push_back(std::move(tried));
  return absl::OkStatus();
}

void StepRunner::AddTimes() {
  for (const Tried& tried : tried_) {
    const absl::StatusOr<double> time =
        tried.end->NanosecondsSince(*tried.begin);
    if (time.ok()) engine_.plans().AddSample(*tried.key, tried.kernel, *time);
  }
}

}  // namespace tensord::server
