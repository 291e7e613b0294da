#include "server/engine/plan_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status.h"
#include "core/ops/permutation.h"
#include "core/problem/permutation_problem.h"
#include "server/engine/engine.h"
#include "server/engine/redis_connection.h"
#include "tests/testing/soon.h"

namespace tensord::server {
namespace {

using test::Soon;
using ::testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(20);

std::string NewFolder() {
  std::string path = ::testing::TempDir() + "plan_exchange_XXXXXX";
  return mkdtemp(path.data());
}

/// A Redis of its own, on a Unix socket.
class Redis {
 public:
  Redis() { Start(); }
  ~Redis() {
    Stop(SIGKILL);
    std::filesystem::remove_all(folder_);
  }

  void Start() {
    process_ = fork();
    if (process_ == 0) {
      execlp("redis-server", "redis-server", "--port", "0", "--unixsocket",
             (folder_ + "/socket").c_str(), "--save", "", "--dir",
             folder_.c_str(), "--logfile", "/dev/null", nullptr);
      _exit(127);
    }
    const absl::Time end = absl::Now() + kPatience;
    while (!Connect().ok()) {
      ASSERT_LT(absl::Now(), end) << "redis-server does not start";
      absl::SleepFor(absl::Milliseconds(10));
    }
  }
  void Stop(int signal) {
    if (process_ < 0) return;
    kill(process_, signal);
    waitpid(process_, nullptr, 0);
    process_ = -1;
  }
  void Signal(int signal) const { kill(process_, signal); }

  std::string address() const { return "unix:" + folder_ + "/socket"; }
  absl::StatusOr<std::unique_ptr<RedisConnection>> Connect() const {
    return RedisConnection::Open(address(), "", absl::Seconds(5));
  }
  RedisReply Command(std::vector<absl::string_view> words) const {
    return Connect().value()->Command(words).value();
  }

 private:
  const std::string folder_ = NewFolder();
  pid_t process_ = -1;
};

/// A server's engine, with what it exchanges.
struct Node {
  explicit Node(const std::string& address,
                absl::Duration timeout = kPatience) {
    exchange.emplace(
        PlanExchange::Options{
            .address = address, .interval = absl::Hours(1), .timeout = timeout},
        engine->plans(), [this](const absl::Status&) { ++report_count; });
  }

  static std::unique_ptr<Engine> NewEngine() {
    EngineOptions options{.cpu_threads = 1};
    options.devices = *ParseDevices("cpu");
    return Engine::Create(options).value();
  }
  /// Of the transpose of a matrix.
  core::PlanKey KeyOf(int64_t extent, core::Selection selection) {
    core::PermutationDesc desc{
        .a = {.layout = core::PackedLayout({extent, 3},
                                           core::Order::kLastModeFastest),
              .modes = {0, 1}},
        .d = {.layout = core::PackedLayout({3, extent},
                                           core::Order::kLastModeFastest),
              .modes = {1, 0}}};
    return {.problem = core::Canonicalize(desc),
            .device = device().plan_device(),
            .selection = selection};
  }
  /// Plans it, or finds the plan.
  core::PlanCache::Lookup Ask(
      int64_t extent, core::Selection selection = core::Selection::kHeuristic) {
    return engine->PlanFor(device(), KeyOf(extent, selection), "test").value();
  }
  bool IsHit(int64_t extent) { return Ask(extent).hit; }
  /// Exchanges until Redis has answered in time.
  bool HasExchanged() {
    const absl::Time end = absl::Now() + kPatience;
    while (!exchange->Exchange().ok()) {
      if (absl::Now() > end) return false;
    }
    return true;
  }
  /// Takes one time of a kernel that is to be tried; false when there is none.
  bool TryNext(int64_t extent) {
    const core::PlanKey key = KeyOf(extent, core::Selection::kIncremental);
    const auto plan = engine->NextPlanToTry(device(), key);
    if (plan == nullptr) return false;
    engine->plans().AddSample(key, plan->kernel_name(), 1000);
    return true;
  }
  Device& device() { return *engine->devices().front(); }

  std::atomic<int> report_count = 0;
  std::unique_ptr<Engine> engine = NewEngine();
  std::optional<PlanExchange> exchange;
};

TEST(PlanExchangeTest, WhatIsStillBeingTriedIsNotSent) {
  constexpr auto kIncremental = core::Selection::kIncremental;
  const Redis redis;
  Node first(redis.address()), untried(redis.address()), busy(redis.address());
  for (Node* const node : {&first, &untried, &busy}) {
    EXPECT_FALSE(node->Ask(7, kIncremental).hit);
  }
  ASSERT_TRUE(first.TryNext(7));
  ASSERT_TRUE(busy.TryNext(7));
  for (Node* const node : {&first, &untried, &busy}) {
    ASSERT_TRUE(node->exchange->Exchange().ok());
    EXPECT_EQ(node->exchange->statistics().sent_count, 0);
  }
  int tries = 0;
  while (first.TryNext(7)) ASSERT_LT(++tries, 1000);
  ASSERT_TRUE(first.exchange->Exchange().ok());
  EXPECT_EQ(first.exchange->statistics().sent_count, 1);
  // Whoever takes it over leaves it as it is for the next.
  for (Node* const node : {&untried, &busy}) {
    ASSERT_TRUE(node->exchange->Exchange().ok());
    EXPECT_EQ(node->exchange->statistics().received_count, 1);
    const core::PlanCache::Lookup found = node->Ask(7, kIncremental);
    EXPECT_TRUE(found.hit);
    EXPECT_EQ(found.plan->selection, kIncremental);
    EXPECT_FALSE(node->TryNext(7));
  }
}

TEST(PlanExchangeTest, WhatOneServerLearnsOthersHave) {
  const Redis redis;
  Node first(redis.address()), second(redis.address());
  EXPECT_FALSE(first.IsHit(7));
  ASSERT_TRUE(first.exchange->Exchange().ok());
  EXPECT_EQ(first.exchange->statistics().sent_count, 1);
  ASSERT_TRUE(second.exchange->Exchange().ok());
  EXPECT_EQ(second.exchange->statistics().received_count, 1);
  EXPECT_TRUE(second.IsHit(7));
  // And the other way round; what has not changed is not sent again.
  EXPECT_FALSE(second.IsHit(8));
  ASSERT_TRUE(second.exchange->Exchange().ok());
  EXPECT_EQ(second.exchange->statistics().sent_count, 1);
  ASSERT_TRUE(first.exchange->Exchange().ok());
  EXPECT_TRUE(first.IsHit(8));
  ASSERT_TRUE(first.exchange->Exchange().ok());
  EXPECT_EQ(first.exchange->statistics().sent_count, 1);
  EXPECT_TRUE(first.exchange->statistics().is_connected);
  EXPECT_EQ(first.exchange->statistics().error, "");
  EXPECT_GT(
      redis
          .Command(
              {"TTL", redis.Command({"KEYS", "tensord:1:plan:*"}).list.front()})
          .number,
      24 * 3600);
}

TEST(PlanExchangeTest, WithoutRedisTheServerIsAsUsefulAndTriesAgain) {
  Redis redis;
  Node node(redis.address());
  EXPECT_FALSE(node.IsHit(7));
  ASSERT_TRUE(node.exchange->Exchange().ok());
  redis.Stop(SIGKILL);
  const absl::Status failed = node.exchange->Exchange();
  EXPECT_EQ(core::ReasonOf(failed), "PLAN_EXCHANGE_FAILED");
  EXPECT_THAT(node.exchange->statistics().error, HasSubstr("unix:"));
  EXPECT_FALSE(node.exchange->statistics().is_connected);
  EXPECT_GE(node.exchange->statistics().error_count, 1);
  EXPECT_TRUE(node.IsHit(7));
  // It comes back empty: what it had is sent once more.
  redis.Start();
  ASSERT_TRUE(node.exchange->Exchange().ok());
  EXPECT_EQ(node.exchange->statistics().error, "");
  Node other(redis.address());
  ASSERT_TRUE(other.exchange->Exchange().ok());
  EXPECT_TRUE(other.IsHit(7)) << "what Redis lost was not sent again";
}

TEST(PlanExchangeTest, ARedisThatHangsIsWaitedForNoLongerThanSaid) {
  Redis redis;
  Node node(redis.address(), absl::Milliseconds(50));
  EXPECT_FALSE(node.IsHit(7));
  ASSERT_TRUE(node.HasExchanged());
  redis.Signal(SIGSTOP);
  EXPECT_FALSE(node.IsHit(8));
  EXPECT_EQ(core::ReasonOf(node.exchange->Exchange()), "PLAN_EXCHANGE_FAILED");
  EXPECT_TRUE(node.IsHit(8));
  redis.Signal(SIGCONT);
  ASSERT_TRUE(node.HasExchanged());
}

TEST(PlanExchangeTest, ARedisThatLiesIsNotBelieved) {
  const Redis redis;
  Node first(redis.address());
  EXPECT_FALSE(first.IsHit(7));
  ASSERT_TRUE(first.exchange->Exchange().ok());
  const std::string key =
      redis.Command({"KEYS", "tensord:1:plan:*"}).list.front();
  std::string record = redis.Command({"GET", key}).text;
  // Its kernel's name, which is behind the key.
  record[record.find("cpu.permute.") + 4] = 'X';
  redis.Command({"SET", key, record});
  redis.Command({"ZADD", "tensord:1:index", "2", "nonsense"});
  redis.Command({"SET", "tensord:1:plan:nonsense", "nonsense"});
  redis.Command({"ZADD", "tensord:1:index", "3", "large"});
  redis.Command({"SET", "tensord:1:plan:large", std::string(1 << 20, 'x')});
  redis.Command({"ZADD", "tensord:1:index", "4", "gone"});
  redis.Command({"SET", "tensord:1:changes", "4"});
  Node second(redis.address());
  ASSERT_TRUE(second.exchange->Exchange().ok());
  EXPECT_EQ(second.exchange->statistics().refused_count, 2);
  EXPECT_FALSE(second.IsHit(7)) << "a plan with a kernel that is not there";
  EXPECT_EQ(second.engine->plans().statistics().load_errors.size(), 1u);

  redis.Command({"SET", "tensord:1:changes", "many"});
  EXPECT_THAT(std::string(second.exchange->Exchange().message()),
              HasSubstr("is not a number"));
  // In one step: the servers' own threads may write it meanwhile.
  redis.Command({"EVAL",
                 "redis.call('DEL', KEYS[1]) "
                 "return redis.call('RPUSH', KEYS[1], '1')",
                 "1", "tensord:1:changes"});
  EXPECT_THAT(std::string(second.exchange->Exchange().message()),
              HasSubstr("WRONGTYPE"));
  EXPECT_TRUE(second.IsHit(7));
}

TEST(PlanExchangeTest, ServersWithVersionsOfTheirOwnDoNotGoOnCorrecting) {
  const Redis redis;
  Node first(redis.address()), second(redis.address());
  // By themselves they exchange once in the beginning.
  for (const Node* node : {&first, &second}) {
    EXPECT_TRUE(Soon([&] {
      return node->exchange->statistics().exchanged_at > absl::InfinitePast();
    }));
  }
  EXPECT_FALSE(first.IsHit(7));
  EXPECT_FALSE(second.IsHit(7));
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(first.exchange->Exchange().ok());
    ASSERT_TRUE(second.exchange->Exchange().ok());
  }
  EXPECT_EQ(first.exchange->statistics().sent_count, 1);
  EXPECT_EQ(second.exchange->statistics().sent_count, 1);
}

TEST(PlanExchangeTest, ARedisThatIsFullStillGives) {
  const Redis redis;
  Node first(redis.address()), second(redis.address());
  EXPECT_FALSE(first.IsHit(7));
  ASSERT_TRUE(first.exchange->Exchange().ok());
  redis.Command({"CONFIG", "SET", "maxmemory", "1"});
  EXPECT_FALSE(second.IsHit(8));
  EXPECT_THAT(std::string(second.exchange->Exchange().message()),
              HasSubstr("OOM"));
  EXPECT_TRUE(second.exchange->statistics().is_connected);
  EXPECT_TRUE(second.IsHit(7));
  redis.Command({"CONFIG", "SET", "maxmemory", "0"});
  ASSERT_TRUE(second.exchange->Exchange().ok());
  EXPECT_EQ(second.exchange->statistics().sent_count, 1);
}

TEST(PlanExchangeTest, ASomethingThatIsNoRedisIsLeftAlone) {
  const std::string folder = NewFolder();
  const std::string path = folder + "/socket";
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
  path.copy(name.sun_path, sizeof(name.sun_path) - 1);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&name), sizeof(name)),
            0);
  ASSERT_EQ(listen(listener, 8), 0);
  std::thread server([listener] {
    while (true) {
      const int client = accept(listener, nullptr, nullptr);
      if (client < 0) return;
      const absl::string_view answer = "HTTP/1.1 400 Bad Request\r\n\r\n";
      (void)!send(client, answer.data(), answer.size(), MSG_NOSIGNAL);
      close(client);
    }
  });
  {
    Node node("unix:" + path);
    EXPECT_EQ(core::ReasonOf(node.exchange->Exchange()),
              "PLAN_EXCHANGE_FAILED");
    EXPECT_FALSE(node.IsHit(7));
  }
  shutdown(listener, SHUT_RDWR);
  server.join();
  close(listener);
  std::filesystem::remove_all(folder);
}

TEST(PlanExchangeTest, MalformedAddressesAreNamed) {
  for (const std::string address : {"nowhere", "host:", "host:99999"}) {
    Node node(address);
    EXPECT_THAT(std::string(node.exchange->Exchange().message()),
                HasSubstr("wanted as HOST:PORT or unix:/PATH"));
  }
}

}  // namespace
}  // namespace tensord::server
