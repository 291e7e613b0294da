#include "core/plan/plan_jobs.h"

#include <sched.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "core/base/checked_math.h"

namespace tensord::core {
namespace {

constexpr size_t kMaxLabelBytes = 128;

}  // namespace

PlanJobStatistics& PlanJobStatistics::operator+=(
    const PlanJobStatistics& more) {
  hit_count += more.hit_count;
  miss_count += more.miss_count;
  planning_nanoseconds =
      SaturatingAdd(planning_nanoseconds, more.planning_nanoseconds);
  saved_nanoseconds = SaturatingAdd(saved_nanoseconds, more.saved_nanoseconds);
  return *this;
}

PlanJobs::Stripe& PlanJobs::OwnStripe() {
  const int processor = std::max(sched_getcpu(), 0);
  return stripes_[static_cast<size_t>(processor) % stripes_.size()];
}

bool PlanJobs::Admit(absl::string_view job) {
  absl::MutexLock lock(&labels_mutex_);
  if (labels_.contains(job)) return true;
  if (std::ssize(labels_) >= job_limit_) return false;
  labels_.emplace(job);
  return true;
}

void PlanJobs::Add(absl::string_view job, const PlanJobStatistics& counts) {
  Stripe& stripe = OwnStripe();
  std::lock_guard lock(stripe.mutex);
  const auto known = stripe.jobs.find(job);
  if (known != stripe.jobs.end()) {
    known->second.counts += counts;
    return;
  }
  const bool admitted = job.size() <= kMaxLabelBytes && Admit(job);
  stripe.jobs[admitted ? job : kOtherJobs].counts += counts;
}

PlanJobStatistics PlanJobs::Sum() const {
  PlanJobStatistics sum;
  for (const Stripe& stripe : stripes_) {
    std::lock_guard lock(stripe.mutex);
    for (const auto& [job, of_job] : stripe.jobs) sum += of_job.counts;
  }
  return sum;
}

std::vector<PlanJobStatistics> PlanJobs::List() const {
  std::map<std::string, PlanJobStatistics> sums;
  for (const Stripe& stripe : stripes_) {
    std::lock_guard lock(stripe.mutex);
    for (const auto& [job, of_job] : stripe.jobs) sums[job] += of_job.counts;
  }
  std::vector<PlanJobStatistics> jobs;
  for (auto& [job, counts] : sums) {
    counts.job = job;
    jobs.push_back(std::move(counts));
  }
  return jobs;
}

}  // namespace tensord::core
