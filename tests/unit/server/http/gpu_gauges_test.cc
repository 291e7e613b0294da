#include "server/http/gpu_gauges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/testing/places.h"

namespace tensord::http {
namespace {

/// Values by name and GPU.
std::map<std::string, double> Shown(const GpuGauges& gauges) {
  std::map<std::string, double> shown;
  for (const auto& family : gauges.Collect()) {
    for (const auto& metric : family.metric) {
      shown[absl::StrCat(family.name, " ", metric.label.at(0).value)] =
          family.type == prometheus::MetricType::Counter ? metric.counter.value
                                                         : metric.gauge.value;
    }
  }
  return shown;
}

TEST(GpuGaugesTest, WhatTheDriverSaysOfEachGpuIsShown) {
  using ::testing::Pair;
  EXPECT_THAT(Shown(GpuGauges(testing::Built("libfake_nvml.so"))),
              ::testing::UnorderedElementsAre(
                  Pair("tensord_gpu_utilization_ratio A", 0.25),
                  Pair("tensord_gpu_memory_used_bytes A", 1e9),
                  Pair("tensord_gpu_memory_used_bytes B", 1e9 + 1),
                  Pair("tensord_gpu_power_watts A", 350.5),
                  Pair("tensord_gpu_temperature_celsius A", 54),
                  Pair("tensord_gpu_ecc_errors_total A", 3)));
}

TEST(GpuGaugesTest, WithoutADriverThereIsNothingToShow) {
  EXPECT_TRUE(GpuGauges("libno-such-library.so.1").Collect().empty());
  EXPECT_TRUE(GpuGauges("libc.so.6").Collect().empty());
}

}  // namespace
}  // namespace tensord::http
