#include "server/config/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "core/base/status.h"

namespace tensord::server {
namespace {

std::variant<Options, int> Parse(std::vector<const char*> flags) {
  flags.insert(flags.begin(), "tensord");
  return ParseOptions(static_cast<int>(flags.size()), flags.data());
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
       "--memory-limit-bytes=1000", "--session-quota-bytes=500",
       "--staging-limit-bytes=3MiB", "--max-sessions=7", "--lease-seconds=5",
       "--queue-limit=9", "--rpc-threads=4", "--drain-timeout-seconds=1.5",
       "--log-level=error", "--plan-cache-entries=11",
       "--max-sessions-per-peer=6", "--max-tensors-per-session=55",
       "--host-limit-bytes=2MiB", "--transfer-idle-seconds=2.5"});
  const Options* const options = std::get_if<Options>(&parsed);
  ASSERT_NE(options, nullptr);
  EXPECT_THAT(options->listen,
              ::testing::ElementsAre("unix:/tmp/x", "127.0.0.1:0"));
  EXPECT_EQ(options->engine.cpu_threads, 3);
  EXPECT_EQ(options->engine.memory_limit_bytes, 1000);
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
}

std::string ErrorOf(const char* flag) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(std::get<int>(Parse({flag})), 2) << flag;
  return ::testing::internal::GetCapturedStderr();
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
    EXPECT_THAT(ErrorOf(flag),
                ::testing::HasSubstr("wanted bytes, or e.g. 512MiB"));
  }
}

TEST(OptionsTest, CountsOutOfRangeSayWhatIsWanted) {
  for (const char* flag :
       {"--max-sessions=0", "--queue-limit=-1", "--plan-cache-entries=many"}) {
    EXPECT_THAT(ErrorOf(flag), ::testing::HasSubstr("wanted 1 or more"));
  }
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
    EXPECT_TRUE(ValidateListen(address, false).ok()) << address;
  }
  EXPECT_EQ(core::ReasonOf(ValidateListen("0.0.0.0:8470", false)),
            "LISTEN_NEEDS_TLS");
  EXPECT_TRUE(ValidateListen("0.0.0.0:8470", true).ok());
  for (const char* address : {"localhost", ":80", "localhost:x",
                              "localhost:70000", "localhost:-1", ""}) {
    EXPECT_EQ(core::ReasonOf(ValidateListen(address, true)),
              "ADDRESS_MALFORMED")
        << address;
  }
}

}  // namespace
}  // namespace tensord::server
