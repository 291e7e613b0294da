#include "server/http/http_listener.h"

#include <httplib.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <fstream>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/status.h"
#include "server/http/timed_stream.h"

namespace tensord::http {
namespace {

// That one connection may send.
constexpr int64_t kMostBytes = 16 << 10;
constexpr int kThreads = 4;
constexpr absl::Duration kHurry = absl::Seconds(1);  // of who has others wait
constexpr int kMostWaiting = 64;  // connections that none of them has taken

/// The first line of a file; nothing: it has none.
std::optional<std::string> TokenIn(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  absl::StripAsciiWhitespace(&line);
  if (line.empty()) return std::nullopt;
  return line;
}

std::array<uint8_t, SHA256_DIGEST_LENGTH> HashOf(absl::string_view text) {
  std::array<uint8_t, SHA256_DIGEST_LENGTH> hash;
  SHA256(reinterpret_cast<const uint8_t*>(text.data()), text.size(),
         hash.data());
  return hash;
}

/// Whether a request has the token that is in the file. Takes as long for any
/// wrong one.
bool HasToken(const httplib::Request& request, const std::string& path) {
  const std::string header = request.get_header_value("Authorization");
  absl::string_view given = header;
  if (!absl::ConsumePrefix(&given, "Bearer ")) return false;
  const std::optional<std::string> wanted = TokenIn(path);
  return wanted && CRYPTO_memcmp(HashOf(given).data(), HashOf(*wanted).data(),
                                 SHA256_DIGEST_LENGTH) == 0;
}

void Fill(const Answer& answer, httplib::Response& response) {
  response.status = answer.status;
  response.set_content(answer.body, answer.content_type);
  response.set_header("Cache-Control", "no-store");
  response.set_header("X-Content-Type-Options", "nosniff");
  response.set_header("Content-Security-Policy",
                      "default-src 'none'; style-src 'unsafe-inline'; "
                      "script-src 'unsafe-inline'; connect-src 'self'");
}

httplib::Server::Handler HandlerOf(const Route& route,
                                   const std::string& token_file) {
  return [route, token_file](const httplib::Request& request,
                             httplib::Response& response) {
    if (route.needs_token && !token_file.empty() &&
        !HasToken(request, token_file)) {
      Fill({.status = 401, .body = "a token is needed\n"}, response);
      response.set_header("WWW-Authenticate", "Bearer");
      return;
    }
    Fill(route.answer(), response);
  };
}

}  // namespace

class HttpListener::Server final : public httplib::Server {
 public:
  Server(TlsSessions* tls, absl::Duration longest)
      : tls_(tls), longest_(longest) {
    new_task_queue = [this] { return new Workers(*this); };
    set_tcp_nodelay(true);
    set_socket_options([](socket_t socket) {
      const int yes = 1;  // but no port with another server
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    });
    set_payload_max_length(kMostBytes);
  }
  ~Server() override {
    stop();
    if (thread_.joinable()) thread_.join();
  }

  /// Requires  it is bound.
  void Start() {
    thread_ = std::thread([this] { listen_after_bind(); });
    while (!is_running()) std::this_thread::yield();
  }

 private:
  /// The threads that answer.
  class Workers final : public httplib::TaskQueue {
   public:
    explicit Workers(Server& server) : server_(server) {
      for (int i = 0; i < kThreads; ++i) {
        threads_.emplace_back([this] { Work(); });
      }
    }
    void enqueue(std::function<void()> task) override {
      absl::MutexLock lock(&mutex_);
      waiting_.push_back(std::move(task));
      if (std::ssize(waiting_) > idle_count_) server_.CutOldest();
    }
    void shutdown() override {
      {
        absl::MutexLock lock(&mutex_);
        is_closing_ = true;
      }
      server_.CutAll();
      for (std::thread& thread : threads_) thread.join();
    }

   private:
    void Work() {
      const auto has_news = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
        return is_closing_ || !waiting_.empty();
      };
      absl::MutexLock lock(&mutex_);
      while (true) {
        ++idle_count_;
        mutex_.Await(absl::Condition(&has_news));
        --idle_count_;
        if (waiting_.empty()) return;
        // Whoever came last waits least: a crowd that says nothing is in
        // nobody's way. Of a large one, the oldest are sent away.
        drops_ = std::ssize(waiting_) > kMostWaiting;
        const std::function<void()> task =
            std::move(drops_ ? waiting_.front() : waiting_.back());
        if (drops_) {
          waiting_.pop_front();
        } else {
          waiting_.pop_back();
        }
        hurries_ = !waiting_.empty();
        mutex_.Unlock();
        task();
        mutex_.Lock();
      }
    }

    Server& server_;
    absl::Mutex mutex_;
    std::deque<std::function<void()>> waiting_ ABSL_GUARDED_BY(mutex_);
    int idle_count_ ABSL_GUARDED_BY(mutex_) = 0;
    bool is_closing_ ABSL_GUARDED_BY(mutex_) = false;
    std::vector<std::thread> threads_;
  };

  bool process_and_close_socket(socket_t socket) override {
    SslSession session;
    if (!drops_ && tls_ != nullptr) session = tls_->New();
    if (drops_ || (tls_ != nullptr && session == nullptr)) {
      close(socket);
      return false;
    }
    uint64_t number = 0;
    {
      absl::MutexLock lock(&mutex_);
      number = next_number_++;
      sockets_.emplace(number, socket);
      if (is_closing_) ::shutdown(socket, SHUT_RDWR);
    }
    bool is_answered = false;
    {
      TimedStream stream(
          socket, std::move(session),
          absl::Now() + (hurries_ ? std::min(longest_, kHurry) : longest_),
          kMostBytes);
      bool is_closed = false;
      is_answered = process_request(stream, /*close_connection=*/true,
                                    is_closed, nullptr);
    }
    absl::MutexLock lock(&mutex_);
    sockets_.erase(number);
    close(socket);
    return is_answered;
  }

  void CutOldest() {
    absl::MutexLock lock(&mutex_);
    if (sockets_.empty()) return;
    ::shutdown(sockets_.begin()->second, SHUT_RDWR);
    sockets_.erase(sockets_.begin());
  }
  void CutAll() {
    absl::MutexLock lock(&mutex_);
    is_closing_ = true;
    for (const auto& [number, socket] : sockets_) {
      ::shutdown(socket, SHUT_RDWR);
    }
  }

  // What the thread has taken is closed at once.
  static inline thread_local bool drops_ = false;
  static inline thread_local bool hurries_ = false;  // as others wait

  TlsSessions* const tls_;  // null: none
  const absl::Duration longest_;
  std::thread thread_;
  absl::Mutex mutex_;
  uint64_t next_number_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_closing_ ABSL_GUARDED_BY(mutex_) = false;
  // Those being answered that nobody has cut, oldest first.
  std::map<uint64_t, int> sockets_ ABSL_GUARDED_BY(mutex_);
};

HttpListener::HttpListener() = default;
HttpListener::~HttpListener() = default;

absl::StatusOr<std::unique_ptr<HttpListener>> HttpListener::Start(
    const HttpOptions& options, const Routes& routes) {
  std::unique_ptr<HttpListener> listener(new HttpListener);
  if (options.certificates != nullptr) {
    listener->tls_ = std::make_unique<TlsSessions>(*options.certificates);
  }
  if (!options.token_file.empty() && !TokenIn(options.token_file)) {
    return core::InvalidArgument("TOKEN_FILE_WRONG", "the file '",
                                 options.token_file,
                                 "' has no token in its first line");
  }
  listener->server_ =
      std::make_unique<Server>(listener->tls_.get(), options.longest);
  for (const auto& [path, route] : routes) {
    listener->server_->Get(path, HandlerOf(route, options.token_file));
  }
  const size_t colon = options.address.rfind(':');
  const std::string named = options.address.substr(0, colon);
  absl::string_view host = named;
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  int port = 0;
  if (!absl::SimpleAtoi(options.address.substr(colon + 1), &port)) port = -1;
  if (port == 0) {
    port = listener->server_->bind_to_any_port(std::string(host));
  } else if (!listener->server_->bind_to_port(std::string(host), port)) {
    port = -1;
  }
  if (port < 0) {
    return core::Error(absl::StatusCode::kUnavailable, "CANNOT_LISTEN",
                       absl::StrCat("cannot listen on ", options.address,
                                    "; is another server there?"));
  }
  listener->address_ = absl::StrCat(named, ":", port);
  listener->server_->Start();
  return listener;
}

}  // namespace tensord::http
