#include "server/telemetry/log.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/match.h"

namespace tensord::server {
namespace {

/// What `write` has a log of that format write.
template <typename Write>
std::string Written(LogFormat format, const Write& write) {
  ::testing::internal::CaptureStderr();
  Log log(LogLevel::kInfo, format);
  write(log);
  return ::testing::internal::GetCapturedStderr();
}

TEST(LogTest, TextQuotesWhatIsNotPlain) {
  const std::string line = Written(LogFormat::kText, [](Log& log) {
    log.Info("begun", {{"job", "a b"}, {"count", 3}, {"peer", "x\ny=\"z\""}});
  });
  EXPECT_TRUE(absl::EndsWith(
      line, " info begun job=\"a b\" count=3 peer=\"x\\ny=\\\"z\\\"\"\n"))
      << line;
}

TEST(LogTest, JsonIsOneObjectALineWhateverIsSaid) {
  const std::string line = Written(LogFormat::kJson, [](Log& log) {
    log.Event(LogLevel::kWarning, "call",
              {{"message", "a \"b\"\nc\xff"},
               {"session", uint64_t{18446744073709551615u}},
               {"seconds", 0.5},
               {"ratio", std::numeric_limits<double>::infinity()},
               {"number_as_text", "12"}});
  });
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto object = nlohmann::json::parse(line);
  EXPECT_EQ(object["level"], "warning");
  EXPECT_EQ(object["event"], "call");
  EXPECT_EQ(object["message"], "a \"b\"\nc\xEF\xBF\xBD");
  EXPECT_EQ(object["session"], 18446744073709551615u);
  EXPECT_EQ(object["seconds"], 0.5);
  EXPECT_EQ(object["ratio"], "inf");
  EXPECT_EQ(object["number_as_text"], "12");
  EXPECT_EQ(object["time"].get<std::string>().size(),
            std::string("2026-11-24T12:00:00.000+00:00").size());
}

TEST(LogTest, LevelChangesWhileItRuns) {
  const std::string lines = Written(LogFormat::kText, [](Log& log) {
    EXPECT_EQ(log.level(), LogLevel::kInfo);
    log.Event(LogLevel::kDebug, "one", {});
    log.SetLevel(LogLevel::kDebug);
    EXPECT_EQ(log.level(), LogLevel::kDebug);
    log.Event(LogLevel::kDebug, "two", {});
    log.SetLevel(LogLevel::kError);
    log.Info("three", {});
    EXPECT_TRUE(log.Audit("audit", {{"who", "four"}}).ok());
  });
  EXPECT_FALSE(absl::StrContains(lines, "one"));
  EXPECT_TRUE(absl::StrContains(lines, " debug two\n"));
  EXPECT_FALSE(absl::StrContains(lines, "three"));
  EXPECT_TRUE(absl::StrContains(lines, " info audit who=four\n"));
}

TEST(LogTest, LevelsHaveNames) {
  for (const LogLevel level : {LogLevel::kDebug, LogLevel::kInfo,
                               LogLevel::kWarning, LogLevel::kError}) {
    EXPECT_EQ(*LogLevelFromName(NameOf(level)), level);
  }
  EXPECT_EQ(LogLevelFromName("loud").status().message(),
            "log level is 'loud', wanted debug, info, warning or error");
}

}  // namespace
}  // namespace tensord::server
