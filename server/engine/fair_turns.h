// Who is next, where many share one thing.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace tensord::server {

/// How much of a device's queue one tenant has, all its clients together, and
/// may have.
///
/// Threads  counts are written by the queue alone.
struct QueueShare {
  explicit QueueShare(std::string name) : tenant(std::move(name)) {}

  const std::string tenant;
  std::atomic<int64_t> queued_limit = std::numeric_limits<int64_t>::max();
  std::atomic<int64_t> running_limit = std::numeric_limits<int64_t>::max();
  std::atomic<int64_t> queued = 0;
  std::atomic<int64_t> running = 0;  // launched and not completed
};

/// In whose name work comes.
struct ClientId {
  uint64_t number = 0;
  std::string owner;  // "": it is its own
  int priority = 0;   // higher ones of an owner go first
  std::shared_ptr<QueueShare> share = nullptr;  // null: it is no tenant's

  /// Also of one that is its own.
  std::string owner_name() const {
    return owner.empty() ? absl::StrCat("#", number) : owner;
  }
};

/// Start-time fair queueing on two levels: owners share time by their weights,
/// and the members of an owner share its time, those of higher priority first.
///
/// Each has a virtual time, what it has used over its weight; whoever's is
/// least is next. Those that come back after a pause start where the others
/// are, so that nobody saves up time. (Goyal, Vin, Cheng: Start-time Fair
/// Queueing, SIGCOMM 1996.)
///
/// Threads  none of its own: guard it.
class FairTurns {
  struct Owner {
    double weight = 1;
    double used = 0;     // virtual time
    double members = 0;  // virtual time of the member last chosen
    int member_count = 0;
    // What members had used that left with more than that: when they come back
    // soon, they go on there.
    std::map<uint64_t, double> left;
    size_t kept_count = 0;  // of those, when they were last looked through
  };

 public:
  /// Weights of owners that are not named are 1.
  explicit FairTurns(std::map<std::string, double> weights)
      : weights_(std::move(weights)) {}

  /// From now on.
  void SetWeights(std::map<std::string, double> weights) {
    weights_ = std::move(weights);
    for (auto& [name, owner] : owners_) owner.weight = WeightOf(name);
  }

  class Member {
   private:
    friend class FairTurns;

    Owner* owner = nullptr;
    uint64_t number = 0;
    int priority = 0;
    double used = 0;
    uint64_t since = 0;  // when it began to wait
  };

  void Join(Member& member, const ClientId& client) {
    const auto [entry, is_new] = owners_.try_emplace(client.owner_name());
    if (is_new) {
      entry->second.weight = WeightOf(client.owner);
    }
    ++entry->second.member_count;
    ++member_count_;
    member.owner = &entry->second;
    member.number = client.number;
    member.priority = client.priority;
    if (auto left = entry->second.left.extract(client.number)) {
      member.used = left.mapped();
    }
  }
  /// Forgets it; what it and its owner have used is kept while others remain.
  void Leave(Member& member) {
    Owner& owner = *std::exchange(member.owner, nullptr);
    --owner.member_count;
    if (member.used > owner.members) owner.left[member.number] = member.used;
    if (owner.left.size() > 2 * owner.kept_count + 16) {
      std::erase_if(owner.left, [&owner](const auto& left) {
        return left.second <= owner.members;
      });
      owner.kept_count = owner.left.size();
    }
    if (--member_count_ == 0) {
      owners_.clear();
      now_ = 0;
    } else if (owners_.size() > 2 * kept_count_ + 16) {
      std::erase_if(owners_, [this](const auto& owner) {
        return owner.second.member_count == 0 && owner.second.used <= now_;
      });
      kept_count_ = owners_.size();
    }
  }

  bool HaveOneOwner(const Member& x, const Member& y) const {
    return x.owner == y.owner;
  }

  /// Waits behind those that had no more, and have waited longer.
  void Wait(Member& member) { member.since = ++waits_; }

  /// Whether `x` is to be chosen before `y`.
  bool IsBefore(const Member& x, const Member& y) const {
    if (x.owner != y.owner) {
      const double start_x = std::max(now_, x.owner->used);
      const double start_y = std::max(now_, y.owner->used);
      return start_x != start_y ? start_x < start_y : x.since < y.since;
    }
    if (x.priority != y.priority) return x.priority > y.priority;
    const double start_x = std::max(x.owner->members, x.used);
    const double start_y = std::max(x.owner->members, y.used);
    return start_x != start_y ? start_x < start_y : x.since < y.since;
  }
  void Choose(Member& member) {
    Owner& owner = *member.owner;
    now_ = owner.used = std::max(now_, owner.used);
    owner.members = member.used = std::max(owner.members, member.used);
  }
  /// Whether `waiting` should have the turn of `member`, which has had `time`
  /// that is not counted yet.
  bool IsDue(const Member& waiting, Member member, absl::Duration time) const {
    const Owner& owner = *member.owner;
    const double seconds = absl::ToDoubleSeconds(time);
    if (waiting.owner != member.owner) {
      return std::max(now_, waiting.owner->used) <
             owner.used + seconds / owner.weight;
    }
    if (waiting.priority != member.priority) {
      return waiting.priority > member.priority;
    }
    return std::max(owner.members, waiting.used) < member.used + seconds;
  }
  /// It had `time` more, or less, than was counted before.
  void Count(Member& member, absl::Duration time) {
    const double seconds = absl::ToDoubleSeconds(time);
    member.owner->used += seconds / member.owner->weight;
    member.used += seconds;
  }

 private:
  double WeightOf(const std::string& owner) const {
    const auto named = weights_.find(owner);
    return named == weights_.end() ? 1 : named->second;
  }

  std::map<std::string, double> weights_;
  // Those who have members, and others: all, until there are twice as many as
  // had to be kept when they were last looked through.
  std::map<std::string, Owner> owners_;
  size_t kept_count_ = 0;
  int64_t member_count_ = 0;
  double now_ = 0;  // virtual time of the owner last chosen
  uint64_t waits_ = 0;
};

}  // namespace tensord::server
