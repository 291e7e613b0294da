#include "server/engine/redis_connection.h"

#include <hiredis/hiredis.h>
#include <signal.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/status.h"

namespace tensord::server {
namespace {

struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};

/// While it lives, writing to a connection that the other side has closed is an
/// error and no signal, which would end the process.
class NoPipeSignal {
 public:
  NoPipeSignal() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoPipeSignal() {
    constexpr timespec kNow = {.tv_sec = 0, .tv_nsec = 0};
    while (sigtimedwait(&pipe_, nullptr, &kNow) == SIGPIPE) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t pipe_, before_;
};

absl::Status Unreachable(absl::string_view what) {
  return core::Error(absl::StatusCode::kUnavailable, "REDIS_UNREACHABLE",
                     absl::StrCat("Redis does not answer: ", what));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RedisConnection>> RedisConnection::Open(
    const std::string& address, const std::string& password,
    absl::Duration timeout) {
  const timeval wait = absl::ToTimeval(timeout);
  redisContext* context = nullptr;
  absl::string_view path = address;
  if (absl::ConsumePrefix(&path, "unix:")) {
    context = redisConnectUnixWithTimeout(std::string(path).c_str(), wait);
  } else {
    const size_t colon = address.rfind(':');
    int port = 0;
    if (colon == std::string::npos ||
        !absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 1 ||
        port > 65535) {
      return core::InvalidArgument("ADDRESS_MALFORMED", "Redis at '", address,
                                   "' wanted as HOST:PORT or unix:/PATH");
    }
    context =
        redisConnectWithTimeout(address.substr(0, colon).c_str(), port, wait);
  }
  if (context == nullptr) return Unreachable("no memory");
  std::unique_ptr<RedisConnection> connection(new RedisConnection(context));
  if (context->err != 0) return Unreachable(context->errstr);
  if (redisSetTimeout(context, wait) != REDIS_OK) {
    return Unreachable("its socket takes no timeout");
  }
  if (!password.empty()) {
    TENSORD_RETURN_IF_ERROR(connection->Command({"AUTH", password}).status());
  }
  return connection;
}

RedisConnection::~RedisConnection() { redisFree(context_); }

int RedisConnection::descriptor() const { return context_->fd; }

absl::StatusOr<RedisReply> RedisConnection::Command(
    absl::Span<const absl::string_view> words) {
  std::vector<const char*> starts;
  std::vector<size_t> sizes;
  for (const absl::string_view word : words) {
    starts.push_back(word.data());
    sizes.push_back(word.size());
  }
  const NoPipeSignal no_signal;
  const std::unique_ptr<redisReply, FreeReply> reply(static_cast<redisReply*>(
      redisCommandArgv(context_, static_cast<int>(words.size()), starts.data(),
                       sizes.data())));
  if (reply == nullptr) return Unreachable(context_->errstr);
  RedisReply result;
  switch (reply->type) {
    case REDIS_REPLY_ERROR:
      return core::Error(
          absl::StatusCode::kUnavailable, "REDIS_REFUSED",
          absl::StrCat("Redis refuses ", words[0], ": ",
                       absl::string_view(reply->str, reply->len)));
    case REDIS_REPLY_INTEGER:
      result.kind = RedisReply::Kind::kNumber;
      result.number = reply->integer;
      break;
    case REDIS_REPLY_STATUS:
    case REDIS_REPLY_STRING:
      result.kind = RedisReply::Kind::kText;
      result.text.assign(reply->str, reply->len);
      break;
    case REDIS_REPLY_ARRAY:
      result.kind = RedisReply::Kind::kList;
      for (size_t i = 0; i < reply->elements; ++i) {
        const redisReply& element = *reply->element[i];
        if (element.type == REDIS_REPLY_STRING) {
          result.list.emplace_back(element.str, element.len);
        }
      }
      break;
    default: break;
  }
  return result;
}

}  // namespace tensord::server
