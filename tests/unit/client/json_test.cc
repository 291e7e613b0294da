#include "client/cli/json.h"

#include <gtest/gtest.h>

#include <limits>

namespace tensord::cli {
namespace {

TEST(JsonWriterTest, WritesNestedValues) {
  JsonWriter json;
  json.BeginObject();
  json.Field("name", "a \"b\"\n\\");
  json.Field("count", int64_t{3});
  json.Key("extents");
  json.Numbers({2, 3});
  json.Key("none");
  json.BeginArray();
  json.EndArray();
  json.Key("devices");
  json.BeginArray();
  json.BeginObject();
  json.Field("busy", 0.5);
  json.Field("rate", std::numeric_limits<double>::infinity());
  json.EndObject();
  json.String("cpu:0");
  json.EndArray();
  json.EndObject();
  EXPECT_EQ(json.text(), R"({
  "name": "a \"b\"\u000a\\",
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

}  // namespace
}  // namespace tensord::cli
