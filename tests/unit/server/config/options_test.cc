#include "server/config/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "core/base/status.h"
#include "tests/testing/places.h"

namespace tensord::server {
namespace {

std::variant<Options, int> Parse(std::vector<const char*> flags,
                                 std::vector<const char*> environment = {}) {
  flags.insert(flags.begin(), "tensord");
  environment.push_back(nullptr);
  return ParseOptions(static_cast<int>(flags.size()), flags.data(),
                      environment.data());
}

TEST(OptionsTest, DefaultsListenOnLoopback) {
  const auto parsed = Parse({});
  const Options* const options = std::get_if<Options>(&parsed);
  ASSERT_NE(options, nullptr);
  EXPECT_THAT(options->listen, ::testing::ElementsAre("localhost:8470"));
  EXPECT_EQ(options->engine.queue_limit, 1024);
}

TEST(OptionsTest, FlagsReachTheirPlace) {
  const auto parsed = Parse(
      {"--listen=unix:/tmp/x", "--listen=127.0.0.1:0", "--threads=3",
       "--memory-limit-bytes=1048576", "--session-quota-bytes=500",
       "--staging-limit-bytes=3MiB", "--max-sessions=7", "--lease-seconds=5",
       "--queue-limit=9", "--rpc-threads=4", "--drain-timeout-seconds=1.5",
       "--log-level=error", "--log-format=json", "--plan-cache-entries=11",
       "--max-sessions-per-peer=6", "--max-tensors-per-session=55",
       "--host-limit-bytes=2MiB", "--transfer-idle-seconds=2.5"});
  const Options* const options = std::get_if<Options>(&parsed);
  ASSERT_NE(options, nullptr);
  EXPECT_THAT(options->listen,
              ::testing::ElementsAre("unix:/tmp/x", "127.0.0.1:0"));
  EXPECT_EQ(options->engine.cpu_threads, 3);
  EXPECT_EQ(options->engine.memory_limit_bytes, 1 << 20);
  EXPECT_EQ(options->engine.staging_limit_bytes, 3 << 20);
  EXPECT_EQ(options->engine.queue_limit, 9);
  EXPECT_EQ(options->engine.plan_cache_entries, 11);
  EXPECT_EQ(options->sessions.quota_bytes, 500);
  EXPECT_EQ(options->sessions.max_sessions, 7);
  EXPECT_EQ(options->sessions.max_sessions_per_peer, 6);
  EXPECT_EQ(options->sessions.session_host[0].count, 55);
  EXPECT_EQ(options->sessions.host_bytes, 2 << 20);
  EXPECT_EQ(options->transfer_idle, absl::Milliseconds(2500));
  EXPECT_EQ(options->sessions.default_lease, absl::Seconds(5));
  EXPECT_EQ(options->loop_count, 4);
  EXPECT_EQ(options->drain_timeout, absl::Milliseconds(1500));
  EXPECT_EQ(options->log_level, LogLevel::kError);
  EXPECT_EQ(options->log_format, LogFormat::kJson);
}

std::string ErrorOf(std::vector<const char*> flags,
                    std::vector<const char*> environment = {}) {
  ::testing::internal::CaptureStderr();
  const auto parsed = Parse(std::move(flags), std::move(environment));
  const std::string error = ::testing::internal::GetCapturedStderr();
  const int* const status = std::get_if<int>(&parsed);
  EXPECT_TRUE(status != nullptr && *status == 2) << error;
  return error;
}

TEST(OptionsTest, TracesGoToACollectorAndInShares) {
  const auto parsed = Parse({"--otlp=collector:4317", "--trace-sample=0.25"});
  const Options* const options = std::get_if<Options>(&parsed);
  ASSERT_NE(options, nullptr);
  EXPECT_EQ(options->traces.collector, "collector:4317");
  EXPECT_EQ(options->traces.ratio, 0.25);
  EXPECT_EQ(TraceOptions().ratio, 0.01);
  EXPECT_THAT(ErrorOf({"--otlp=collector"}),
              ::testing::HasSubstr("--otlp is 'collector', wanted HOST:PORT or "
                                   "unix:PATH"));
  EXPECT_THAT(ErrorOf({"--trace-sample=1.5"}),
              ::testing::HasSubstr("--trace-sample"));
}

TEST(OptionsTest, SizesMayHaveUnits) {
  const auto parsed =
      Parse({"--memory-limit-bytes=3GiB", "--session-quota-bytes", "512 MiB"});
  const Options* const options = std::get_if<Options>(&parsed);
  ASSERT_NE(options, nullptr);
  EXPECT_EQ(options->engine.memory_limit_bytes, int64_t{3} << 30);
  EXPECT_EQ(options->sessions.quota_bytes, int64_t{512} << 20);
  for (const char* flag :
       {"--memory-limit-bytes=-1", "--memory-limit-bytes=1.5GiB",
        "--memory-limit-bytes=GiB and more", "--memory-limit-bytes=5XiB",
        "--memory-limit-bytes=8EiB"}) {
    EXPECT_THAT(ErrorOf({flag}),
                ::testing::HasSubstr("wanted bytes, or e.g. 512MiB"));
  }
}

TEST(OptionsTest, MemoryForNothingIsRefused) {
  EXPECT_THAT(ErrorOf({"--memory-limit-bytes=1000"}),
              ::testing::HasSubstr("--memory-limit-bytes: 1000 bytes are too "
                                   "few, wanted at least 1048576, or 0"));
  const auto parsed = Parse({"--memory-limit-bytes=0"});
  ASSERT_NE(std::get_if<Options>(&parsed), nullptr);
}

TEST(OptionsTest, CountsOutOfRangeSayWhatIsWanted) {
  for (const char* flag :
       {"--max-sessions=0", "--queue-limit=-1", "--plan-cache-entries=many"}) {
    EXPECT_THAT(ErrorOf({flag}), ::testing::HasSubstr("wanted 1 or more"));
  }
}

TEST(OptionsTest, PathsOfSocketsHaveAsManyCharactersAsTheSystemTakes) {
  const std::string longest = "unix:/" + std::string(106, 'x');
  for (const std::string flag : {"--listen", "--admin-listen"}) {
    const std::string fits = flag + "=" + longest;
    EXPECT_NE(Parse({fits.c_str()}).index(), 1u);
    const std::string is_longer = fits + std::string(93, 'x');
    EXPECT_THAT(ErrorOf({is_longer.c_str()}),
                ::testing::HasSubstr(flag + " is 'unix:/"));
    EXPECT_THAT(ErrorOf({is_longer.c_str()}),
                ::testing::HasSubstr("whose path has 200 characters, wanted 1 "
                                     "to 107 [ADDRESS_MALFORMED]"));
  }
  const absl::Status refused =
      ValidateListen("--listen", longest + "y", /*allow_remote=*/false);
  EXPECT_EQ(core::ReasonOf(refused), "ADDRESS_MALFORMED");
}

TEST(OptionsTest, HelpEndsWellAndMistakesEndWithTwo) {
  EXPECT_EQ(std::get<int>(Parse({"--help"})), 0);
  EXPECT_EQ(std::get<int>(Parse({"--version"})), 0);
  EXPECT_EQ(std::get<int>(Parse({"--unknown"})), 2);
  EXPECT_EQ(std::get<int>(Parse({"--threads=many"})), 2);
  EXPECT_EQ(std::get<int>(Parse({"--devices=gpu"})), 2);
  EXPECT_EQ(std::get<int>(Parse({"--listen=0.0.0.0:8470"})), 2);
}

TEST(OptionsTest, ListeningBeyondLoopbackNeedsTheFlag) {
  for (const char* address :
       {"localhost:1", "127.0.0.1:0", "127.9.9.9:80", "[::1]:80", "unix:a"}) {
    EXPECT_TRUE(ValidateListen("--listen", address, false).ok()) << address;
  }
  EXPECT_EQ(core::ReasonOf(ValidateListen("--listen", "0.0.0.0:8470", false)),
            "LISTEN_NEEDS_TLS");
  EXPECT_TRUE(ValidateListen("--listen", "0.0.0.0:8470", true).ok());
  for (const char* address : {"localhost", ":80", "localhost:x",
                              "localhost:70000", "localhost:-1", ""}) {
    EXPECT_EQ(core::ReasonOf(ValidateListen("--listen", address, true)),
              "ADDRESS_MALFORMED")
        << address;
  }
}

/// A TOML file, and the flag that names it.
class OptionsFileTest : public ::testing::Test {
 protected:
  std::vector<const char*> Named(const std::string& text) {
    path_ = tensord::testing::TemporaryFolder() + "/tensord.toml";
    std::ofstream(path_) << text;
    flag_ = "--config=" + path_;
    return {flag_.c_str()};
  }
  /// What is wrong with it.
  std::string Mistake(const std::string& text) { return ErrorOf(Named(text)); }

  std::string path_;
  std::string flag_;
};

TEST_F(OptionsFileTest, EveryFlagIsAKey) {
  const auto parsed =
      Parse(Named("listen = ['unix:/tmp/x', '127.0.0.1:0']\n"
                  "memory-limit-bytes = '3GiB'\n"
                  "max_sessions = 7  # either way\n"
                  "drain-timeout-seconds = 1.5\n"
                  "insecure = true\n"
                  "exit-on-device-loss = false\n"));
  const Options* const options = std::get_if<Options>(&parsed);
  ASSERT_NE(options, nullptr);
  EXPECT_THAT(options->listen,
              ::testing::ElementsAre("unix:/tmp/x", "127.0.0.1:0"));
  EXPECT_EQ(options->engine.memory_limit_bytes, int64_t{3} << 30);
  EXPECT_EQ(options->sessions.max_sessions, 7);
  EXPECT_EQ(options->drain_timeout, absl::Milliseconds(1500));
  EXPECT_TRUE(options->allow_insecure_remote);
  EXPECT_EQ(options->exit_on_device_loss, false);
}

TEST_F(OptionsFileTest, FlagsGoBeforeTheEnvironmentAndThatBeforeTheFile) {
  std::vector<const char*> flags =
      Named("threads = 1\nqueue-limit = 1\nmax-sessions = 1\n");
  flags.push_back("--threads=3");
  const auto parsed =
      Parse(flags, {"TENSORD_THREADS=2", "TENSORD_QUEUE_LIMIT=2",
                    "TENSORD_MAX_PRIORITY=", "HOME=/"});
  const Options* const options = std::get_if<Options>(&parsed);
  ASSERT_NE(options, nullptr);
  EXPECT_EQ(options->engine.cpu_threads, 3);
  EXPECT_EQ(options->engine.queue_limit, 2);
  EXPECT_EQ(options->sessions.max_sessions, 1);
  EXPECT_EQ(options->sessions.max_priority, Options().sessions.max_priority);
}

TEST_F(OptionsFileTest, ListsInTheEnvironmentHaveCommas) {
  const auto parsed = Parse({}, {"TENSORD_LISTEN=unix:a,unix:b"});
  EXPECT_THAT(std::get<Options>(parsed).listen,
              ::testing::ElementsAre("unix:a", "unix:b"));
}

TEST_F(OptionsFileTest, MistakesSayWhereTheyAre) {
  using ::testing::HasSubstr;
  EXPECT_THAT(Mistake("threads = 2\nmemory-limit = 5\n"),
              HasSubstr("tensord.toml:2: unknown key 'memory-limit', did you "
                        "mean 'memory-limit-bytes'?"));
  EXPECT_THAT(Mistake("[threads]\nred = 1\n"),
              HasSubstr("tensord.toml:1: threads is no value, wanted"));
  EXPECT_THAT(Mistake("[max-sesions]\nred = 1\n"),
              HasSubstr("tensord.toml:1: unknown key 'max-sesions', did you "
                        "mean 'max-sessions'?"));
  EXPECT_THAT(Mistake("colour = 1\n"),
              HasSubstr("tensord.toml:1: unknown key 'colour'\n"));
  EXPECT_THAT(Mistake("\nthreads = 'many'\n"), HasSubstr("tensord.toml:2: "));
  EXPECT_THAT(Mistake("max-sessions = 0\n"), HasSubstr("wanted 1 or more"));
  EXPECT_THAT(Mistake("threads = [1, 2]\n"),
              HasSubstr("tensord.toml:1: threads is a list, wanted one value"));
  EXPECT_THAT(Mistake("listen = []\n"), HasSubstr("listen is empty"));
  EXPECT_THAT(Mistake("threads = 1\nmax-sessions = 1\nmax_sessions = 2\n"),
              HasSubstr("max-sessions stands in "));
  EXPECT_THAT(Mistake("threads = 1\nthreads\n"), HasSubstr("tensord.toml:2: "));
  EXPECT_THAT(Mistake("listen = '0.0.0.0:1'\n"), HasSubstr("--insecure"));
  EXPECT_THAT(Mistake("print-config = true\n"), HasSubstr("unknown key"));
  EXPECT_THAT(ErrorOf({"--config=/nowhere/x.toml"}),
              HasSubstr("cannot read the configuration '/nowhere/x.toml'"));
  EXPECT_THAT(ErrorOf({}, {"TENSORD_THREADS=many"}),
              HasSubstr("environment, TENSORD_THREADS: "));
  EXPECT_THAT(ErrorOf({"--memory-limit=5"}),
              HasSubstr("unknown flag '--memory-limit', did you mean "
                        "'--memory-limit-bytes'?"));
}

TEST_F(OptionsFileTest, MisspeltVariablesAreRefusedAndThoseOfOthersAreNot) {
  EXPECT_THAT(
      ErrorOf({}, {"TENSORD_MAX_SESION=1"}),
      ::testing::HasSubstr("unknown variable TENSORD_MAX_SESION in the "
                           "environment, did you mean TENSORD_MAX_SESSIONS?"));
  const auto parsed = Parse({}, {"TENSORD_SERVER=x", "TENSORD_TOKEN=x",
                                 "TENSORD_KEY=x", "TENSORD_TRANSPORT=x"});
  EXPECT_NE(std::get_if<Options>(&parsed), nullptr);
  for (const char* const unknown :
       {"TENSORD_COLOUR", "TENSORD_PORTAL", "TENSORD_REPORT",
        "TENSORD_PORT_TCP", "TENSORD_PORT_8470", "TENSORD_SERVICES"}) {
    EXPECT_THAT(
        ErrorOf({}, {absl::StrCat(unknown, "=red").c_str()}),
        ::testing::HasSubstr(absl::StrCat("unknown variable ", unknown)));
  }
}

TEST_F(OptionsFileTest, OperatorsAreNamedInEveryWay) {
  using ::testing::ElementsAre;
  const char* const tls[] = {"--tls-certificate=x", "--tls-key=x",
                             "--tls-client-ca=x"};
  const auto of = [&](std::vector<const char*> flags,
                      std::vector<const char*> variables) {
    flags.insert(flags.end(), std::begin(tls), std::end(tls));
    const auto parsed = Parse(flags, variables);
    const auto* const options = std::get_if<Options>(&parsed);
    return options == nullptr ? std::vector<std::string>{"refused"}
                              : options->identity.operators;
  };
  EXPECT_THAT(of({"--operators=a,spiffe://x/b"}, {}),
              ElementsAre("a", "spiffe://x/b"));
  EXPECT_THAT(of({}, {"TENSORD_OPERATORS=a,b"}), ElementsAre("a", "b"));
  EXPECT_THAT(of(Named("operators = ['a', 'b']\n"), {}), ElementsAre("a", "b"));
  EXPECT_THAT(of({"--operators="}, {}), ElementsAre("refused"));
}

TEST_F(OptionsFileTest, WhetherOthersAreServedFollowsFromAddresses) {
  const auto serves = [](std::vector<const char*> flags) {
    flags.push_back("--insecure");
    const auto parsed = Parse(flags);
    const auto* const options = std::get_if<Options>(&parsed);
    return options != nullptr && options->identity.serves_others;
  };
  EXPECT_FALSE(serves({}));
  EXPECT_FALSE(serves({"--listen=unix:x", "--listen=127.0.0.2:1",
                       "--listen=[::1]:1", "--listen=localhost:1"}));
  EXPECT_TRUE(serves({"--listen=unix:x", "--listen=0.0.0.0:1"}));
  EXPECT_TRUE(serves({"--listen=unix:x", "--admin-listen=[::]:1"}));
  EXPECT_TRUE(serves({"--listen=127.evil.example:1"}));
  EXPECT_TRUE(serves({"--listen=systemd"}));
  const auto parsed = Parse({"--listen=systemd"});
  EXPECT_FALSE(std::get<Options>(parsed).identity.serves_others);
}

// As of services `tensord`, with a port that has a name, and `tensord-listen`.
TEST_F(OptionsFileTest, VariablesThatKubernetesSetsAreOfNoConcern) {
  const auto parsed = Parse(
      {}, {"TENSORD_SERVICE_HOST=10.0.0.1", "TENSORD_SERVICE_PORT=8470",
           "TENSORD_SERVICE_PORT_GRPC=8470", "TENSORD_PORT=tcp://10.0.0.1:8470",
           "TENSORD_PORT_8470_TCP=tcp://10.0.0.1:8470",
           "TENSORD_PORT_8470_TCP_PROTO=tcp", "TENSORD_PORT_8470_TCP_PORT=8470",
           "TENSORD_PORT_8470_TCP_ADDR=10.0.0.1",
           "TENSORD_LISTEN_SERVICE_HOST=10.0.0.2",
           "TENSORD_LISTEN_SERVICE_PORT=1", "TENSORD_LISTEN_PORT=tcp://x:1",
           "TENSORD_LISTEN_PORT_1_UDP_ADDR=10.0.0.2"});
  EXPECT_NE(std::get_if<Options>(&parsed), nullptr);
}

/// What is printed.
std::string Printed(std::vector<const char*> flags,
                    std::vector<const char*> environment = {}) {
  flags.push_back("--print-config");
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(std::get<int>(Parse(std::move(flags), std::move(environment))), 0);
  return ::testing::internal::GetCapturedStdout();
}

TEST_F(OptionsFileTest, ThePrintedConfigurationHasOrigins) {
  std::vector<const char*> flags = Named("\nplan-store = 'a \"b\"'\n");
  flags.push_back("--threads=3");
  const std::string text = Printed(flags, {"TENSORD_MEMORY_LIMIT_BYTES=16GiB"});
  for (const std::string& line :
       {std::string("threads = 3  # flag\n"),
        std::string("memory-limit-bytes = 17179869184  # environment, "
                    "TENSORD_MEMORY_LIMIT_BYTES\n"),
        "plan-store = 'a \"b\"'  # " + path_ + ":2\n",
        std::string("listen = ['localhost:8470']  # default\n"),
        std::string("queue-limit = 1024  # default\n"),
        std::string("insecure = false  # default\n"),
        std::string("# plan-exchange is not set\n")}) {
    EXPECT_THAT(text, ::testing::HasSubstr(line));
  }
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("config")));
}

TEST_F(OptionsFileTest, ThePrintedConfigurationIsOne) {
  const std::string printed =
      Printed({"--job-weights=a=3,b=1", "--insecure", "--listen=unix:x",
               "--listen=unix:y", "--drain-timeout-seconds=0.25"});
  const auto parsed = Parse(Named(printed));
  const Options* const options = std::get_if<Options>(&parsed);
  ASSERT_NE(options, nullptr) << printed;
  EXPECT_THAT(options->listen, ::testing::ElementsAre("unix:x", "unix:y"));
  EXPECT_EQ(options->engine.weights.at("a"), 3);
  EXPECT_EQ(options->drain_timeout, absl::Milliseconds(250));
}

TEST_F(OptionsFileTest, SecretsAreNotPrinted) {
  const std::string secret = tensord::testing::TemporaryFolder() + "/secret";
  std::ofstream(secret) << "hush\n";
  const std::string flag = "--plan-exchange-password-file=" + secret;
  const std::string text = Printed({flag.c_str()});
  EXPECT_THAT(text, ::testing::HasSubstr(secret));
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("hush")));
}

TEST_F(OptionsFileTest, CheckingEndsWithAStatus) {
  std::vector<const char*> flags = Named("threads = 2\n");
  flags.push_back("--check-config");
  EXPECT_EQ(std::get<int>(Parse(flags)), 0);
  EXPECT_THAT(
      ErrorOf({"--check-config", "--plan-exchange-password-file=/nowhere"}),
      ::testing::HasSubstr("'/nowhere' is no file"));
}

TEST(OptionsTest, MetricsBeyondLoopbackNeedTlsAndProbesDoNot) {
  using ::testing::HasSubstr;
  EXPECT_THAT(ErrorOf({"--metrics-listen=0.0.0.0:9090"}),
              HasSubstr("--metrics-listen=0.0.0.0:9090 would serve other"));
  EXPECT_THAT(ErrorOf({"--metrics-listen=9090"}),
              HasSubstr("--metrics-listen is '9090', wanted HOST:PORT"));
  EXPECT_THAT(ErrorOf({"--probe-listen=unix:x"}),
              HasSubstr("--probe-listen is 'unix:x', wanted HOST:PORT"));
  const std::string key = tensord::testing::TemporaryFolder() + "/key";
  std::ofstream(key) << "key\n";
  const std::string flag = "--metrics-tls-key=" + key;
  EXPECT_THAT(ErrorOf({flag.c_str()}), HasSubstr("wanted together"));
  const auto parsed =
      Parse({"--metrics-listen=127.0.0.1:0", "--probe-listen=0.0.0.0:8080"});
  const Options* const options = std::get_if<Options>(&parsed);
  ASSERT_NE(options, nullptr);
  EXPECT_EQ(options->monitoring.metrics, "127.0.0.1:0");
  EXPECT_EQ(options->monitoring.probes, "0.0.0.0:8080");
}

}  // namespace
}  // namespace tensord::server
