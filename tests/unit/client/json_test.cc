#include "client/cli/json.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace tensord::cli {
namespace {

TEST(JsonTest, ValuesHaveLinesOfTheirOwnButListsOfNumbersOne) {
  const Json devices = {
      {{"busy", 0.5}, {"rate", std::numeric_limits<double>::infinity()}},
      "cpu:0"};
  const Json json = {{"name", "a \"b\"\n\\"},
                     {"count", 3},
                     {"extents", std::vector<int64_t>{2, 3}},
                     {"none", Json::array()},
                     {"devices", devices}};
  EXPECT_EQ(JsonText(json), R"({
  "name": "a \"b\"\n\\",
  "count": 3,
  "extents": [2, 3],
  "none": [],
  "devices": [
    {
      "busy": 0.5,
      "rate": null
    },
    "cpu:0"
  ]
})");
}

TEST(JsonTest, IntegersHaveNoPointAndAllDigits) {
  EXPECT_EQ(JsonText(JsonNumber(16)), "16");
  EXPECT_EQ(JsonText(JsonNumber(-0.25)), "-0.25");
  EXPECT_EQ(JsonText(JsonNumber(1e20)), "1e+20");
  EXPECT_EQ(JsonText(JsonNumber(std::numeric_limits<double>::quiet_NaN())),
            "null");
  EXPECT_EQ(JsonText(JsonSeconds(absl::Milliseconds(1500))), "1.5");
}

TEST(JsonTest, BytesThatAreNotUtf8AreReplaced) {
  EXPECT_EQ(JsonText("a\xff"), "\"a\xef\xbf\xbd\"");
}

}  // namespace
}  // namespace tensord::cli
