#include "server/engine/device_selection.h"

#include <gtest/gtest.h>

namespace tensord::server {
namespace {

TEST(ParseDevicesTest, AutoLeavesTheChoiceToTheServer) {
  const auto selection = ParseDevices("auto");
  ASSERT_TRUE(selection.ok()) << selection.status();
  EXPECT_TRUE(selection->is_automatic);
}

TEST(ParseDevicesTest, NamesKeepTheirOrder) {
  const auto selection = ParseDevices("cuda:1, cpu ,cuda:0");
  ASSERT_TRUE(selection.ok()) << selection.status();
  EXPECT_FALSE(selection->is_automatic);
  EXPECT_EQ(selection->items, (std::vector<DeviceSelection::Item>{
                                  {"cuda", 1}, {"cpu", 0}, {"cuda", 0}}));
}

TEST(ParseDevicesTest, CudaAloneIsAllOfThem) {
  EXPECT_EQ(
      ParseDevices("cuda")->items,
      (std::vector<DeviceSelection::Item>{{"cuda", DeviceSelection::kAll}}));
}

TEST(ParseDevicesTest, RefusesWhatIsNoDevice) {
  for (const char* text : {"", "gpu", "cuda:", "cuda:-1", "cuda:x", "cpu:1",
                           "cpu,,cuda", "auto,cpu", "cuda:0:1"}) {
    SCOPED_TRACE(text);
    EXPECT_EQ(ParseDevices(text).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(ParseDevicesTest, RefusesADeviceNamedTwice) {
  for (const char* text : {"cpu,cpu:0", "cuda:0,cuda:0", "cuda,cuda:1"}) {
    SCOPED_TRACE(text);
    EXPECT_EQ(ParseDevices(text).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace tensord::server
