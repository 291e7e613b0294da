#include "server/engine/plan_exchange.h"

#include <sys/socket.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status.h"
#include "core/plan/plan_key_codec.h"
#include "core/plan/plan_record.h"
#include "server/engine/redis_connection.h"

namespace tensord::server {
namespace {

// Ids that are asked for at a time.
constexpr int64_t kIdsAtATime = 1000;

// Keeps a record under the next number; as one step, so that whoever has seen a
// number has seen all before it.
constexpr absl::string_view kKeep =
    "local change = redis.call('INCR', KEYS[1]) "
    "redis.call('SET', KEYS[2], ARGV[1], 'EX', ARGV[2]) "
    "redis.call('ZADD', KEYS[3], change, ARGV[3]) "
    "return change";

/// True when the connection is of no use any more.
bool IsBroken(const absl::Status& status) {
  return core::ReasonOf(status) != "REDIS_REFUSED";
}

}  // namespace

PlanExchange::PlanExchange(Options options, core::PlanCache& cache,
                           Report report)
    : options_(std::move(options)), cache_(cache), report_(std::move(report)) {
  thread_ = std::thread([this] { Run(); });
}

PlanExchange::~PlanExchange() {
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
    // An answer that comes byte by byte would keep the thread waiting.
    if (socket_ >= 0) shutdown(socket_, SHUT_RDWR);
  }
  thread_.join();
}

void PlanExchange::Run() {
  absl::Duration pause = options_.interval;
  while (true) {
    pause = Exchange().ok() ? options_.interval
                            : std::min(2 * pause, options_.longest_pause);
    absl::MutexLock lock(&mutex_);
    if (mutex_.AwaitWithTimeout(absl::Condition(&closing_), pause)) return;
  }
}

absl::Status PlanExchange::Exchange() {
  absl::MutexLock one_at_a_time(&exchange_mutex_);
  absl::Status status;
  if (redis_ == nullptr) {
    auto opened = RedisConnection::Open(options_.address, options_.password,
                                        options_.timeout);
    status = opened.status();
    if (opened.ok()) {
      redis_ = *std::move(opened);
      absl::MutexLock lock(&mutex_);
      socket_ = redis_->descriptor();
    }
  }
  if (status.ok()) status = ExchangeOver(*redis_);
  if (!status.ok() && IsBroken(status)) {
    absl::MutexLock lock(&mutex_);
    socket_ = -1;
    redis_.reset();
  }
  if (!status.ok()) {
    status =
        core::Error(absl::StatusCode::kUnavailable, "PLAN_EXCHANGE_FAILED",
                    absl::StrCat("plans are not exchanged through ",
                                 options_.address, ": ", status.message()));
  }
  bool was_ok;
  {
    absl::MutexLock lock(&mutex_);
    was_ok = statistics_.error.empty();
    statistics_.is_connected = redis_ != nullptr;
    statistics_.error = std::string(status.message());
    statistics_.error_count += status.ok() ? 0 : 1;
    if (status.ok()) statistics_.exchanged_at = absl::Now();
  }
  if (was_ok != status.ok()) report_(status);
  return status;
}

absl::Status PlanExchange::ExchangeOver(RedisConnection& redis) {
  absl::Status received = CheckEpoch(redis);
  if (received.ok()) received = Receive(redis);
  if (!received.ok() && IsBroken(received)) return received;
  const absl::Status sent = Send(redis);
  return received.ok() ? sent : received;
}

absl::Status PlanExchange::CheckEpoch(RedisConnection& redis) {
  const std::string key = absl::StrCat(options_.prefix, ":epoch");
  std::random_device random;
  const std::string mine =
      core::PlanIdText(uint64_t{random()} << 32 | random());
  // A full Redis refuses, and still gives what it has.
  const absl::Status set = redis.Command({"SET", key, mine, "NX"}).status();
  if (!set.ok() && IsBroken(set)) return set;
  TENSORD_ASSIGN_OR_RETURN(RedisReply epoch, redis.Command({"GET", key}));
  if (epoch.text == epoch_) return absl::OkStatus();
  epoch_ = std::move(epoch.text);
  seen_change_ = 0;
  known_.clear();
  return absl::OkStatus();
}

absl::Status PlanExchange::Receive(RedisConnection& redis) {
  const std::string changes = absl::StrCat(options_.prefix, ":changes");
  const std::string index = absl::StrCat(options_.prefix, ":index");
  TENSORD_ASSIGN_OR_RETURN(const RedisReply latest,
                           redis.Command({"GET", changes}));
  int64_t change = 0;
  if (latest.kind == RedisReply::Kind::kText &&
      !absl::SimpleAtoi(latest.text, &change)) {
    return core::Error(absl::StatusCode::kUnavailable, "REDIS_REFUSED",
                       absl::StrCat(changes, " is not a number"));
  }
  for (int64_t offset = 0; change > seen_change_; offset += kIdsAtATime) {
    TENSORD_ASSIGN_OR_RETURN(
        const RedisReply ids,
        redis.Command({"ZRANGEBYSCORE", index, absl::StrCat("(", seen_change_),
                       absl::StrCat(change), "LIMIT", absl::StrCat(offset),
                       absl::StrCat(kIdsAtATime)}));
    for (const std::string& id : ids.list) {
      TENSORD_RETURN_IF_ERROR(ReceiveRecord(redis, id));
    }
    if (std::ssize(ids.list) < kIdsAtATime) break;
  }
  seen_change_ = change;
  return absl::OkStatus();
}

absl::Status PlanExchange::ReceiveRecord(RedisConnection& redis,
                                         absl::string_view id) {
  // No more of a value than a record may have: it may be anything.
  TENSORD_ASSIGN_OR_RETURN(
      RedisReply record,
      redis.Command({"GETRANGE",
                     absl::StrCat(options_.prefix, ":plan:",
                                  id.substr(0, core::kMaxRecordBytes)),
                     "0", absl::StrCat(core::kMaxRecordBytes)}));
  if (record.kind == RedisReply::Kind::kText && record.text.empty()) {
    // Its time was over.
    const std::string index = absl::StrCat(options_.prefix, ":index");
    return redis.Command({"ZREM", index, id}).status();
  }
  const absl::string_view key = core::KeyOfRecord(record.text);
  const bool is_record = record.kind == RedisReply::Kind::kText &&
                         record.text.size() <= core::kMaxRecordBytes &&
                         !key.empty();
  bool is_taken = false;
  if (is_record) {
    // Of what is not taken, the cache has a version of its own, which is not
    // sent again for that: two servers would go on correcting each other.
    const uint64_t plan = core::PlanIdOf(key),
                   hash = core::PlanIdOf(record.text);
    is_taken = cache_.AddRecord(std::move(record.text));
    if (is_taken) known_[plan] = hash;
  }
  absl::MutexLock lock(&mutex_);
  statistics_.received_count += is_taken ? 1 : 0;
  statistics_.refused_count += is_record ? 0 : 1;
  return absl::OkStatus();
}

absl::Status PlanExchange::Send(RedisConnection& redis) {
  struct Changed {
    uint64_t id;
    uint64_t hash;
    std::string record;
  };
  std::vector<Changed> changed;
  absl::flat_hash_map<uint64_t, uint64_t> kept;
  cache_.Export([&](absl::string_view record) {
    const uint64_t id = core::PlanIdOf(core::KeyOfRecord(record));
    const uint64_t hash = core::PlanIdOf(record);
    const auto known = known_.find(id);
    if (known != known_.end() && known->second == hash) {
      kept.emplace(id, hash);
      return;
    }
    // One that is still being measured would replace what another server has
    // found out.
    const absl::StatusOr<core::PlanRecord> decoded =
        core::DecodePlanRecord(record);
    if (decoded.ok() && core::IsSettled(*decoded)) {
      changed.push_back({id, hash, std::string(record)});
    }
  });
  const std::string changes = absl::StrCat(options_.prefix, ":changes");
  const std::string index = absl::StrCat(options_.prefix, ":index");
  const std::string seconds =
      absl::StrCat(absl::ToInt64Seconds(options_.time_to_live));
  absl::Status status;
  for (const Changed& each : changed) {
    const std::string id = core::PlanIdText(each.id);
    status = redis
                 .Command({"EVAL", kKeep, "3", changes,
                           absl::StrCat(options_.prefix, ":plan:", id), index,
                           each.record, seconds, id})
                 .status();
    if (!status.ok()) break;
    kept.emplace(each.id, each.hash);
    absl::MutexLock lock(&mutex_);
    ++statistics_.sent_count;
  }
  // What the cache has forgotten need not be known any more.
  known_ = std::move(kept);
  return status;
}

PlanExchange::Statistics PlanExchange::statistics() const {
  absl::MutexLock lock(&mutex_);
  return statistics_;
}

}  // namespace tensord::server
