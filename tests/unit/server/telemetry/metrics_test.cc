#include "server/telemetry/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "prometheus/metric_family.h"

namespace tensord::server {
namespace {

/// What is counted under `name`, by the values of its labels.
std::map<std::string, double> Counted(Metrics& metrics,
                                      const std::string& name) {
  std::map<std::string, double> counts;
  for (const auto& family : metrics.registry().Collect()) {
    if (family.name != name) continue;
    for (const auto& metric : family.metric) {
      std::string labels;
      for (const auto& label : metric.label) {
        absl::StrAppend(&labels, labels.empty() ? "" : " ", label.value);
      }
      counts[labels] = family.type == prometheus::MetricType::Histogram
                           ? static_cast<double>(metric.histogram.sample_count)
                           : metric.counter.value;
    }
  }
  return counts;
}

TEST(MetricsTest, TenantsThatNobodyNamedAreCountedTogether) {
  using ::testing::Pair;
  using ::testing::UnorderedElementsAre;
  Metrics metrics;
  metrics.CountRequest("default");
  metrics.CountRequest("chemistry");
  metrics.CountRequest("");
  metrics.SetTenants({"chemistry"});
  metrics.CountRequest("chemistry");
  metrics.CountRequest("default");
  EXPECT_THAT(Counted(metrics, "tensord_tenant_requests_total"),
              UnorderedElementsAre(Pair("chemistry", 1), Pair("default", 2),
                                   Pair("other", 2)));
  EXPECT_EQ(metrics.tenants().back().name, "other");
  EXPECT_EQ(metrics.tenants().front().requests, 1);
}

TEST(MetricsTest, TenantsThatAreGoneLeaveNothing) {
  using ::testing::Pair;
  using ::testing::UnorderedElementsAre;
  Metrics metrics;
  metrics.SetTenants({"biology", "chemistry"});
  for (const char* const tenant : {"biology", "chemistry", "chemistry"}) {
    metrics.CountRequest(tenant);
    metrics.CountDeviceTime(tenant, absl::Seconds(1), /*is_wasted=*/false);
  }
  metrics.SetTenants({"chemistry", "default"});
  metrics.CountRequest("biology");
  for (const char* const name : {"tensord_tenant_requests_total",
                                 "tensord_tenant_device_seconds_total"}) {
    const auto counts = Counted(metrics, name);
    EXPECT_EQ(counts.size(), 3) << name;
    EXPECT_EQ(counts.at("chemistry"), 2) << name;
  }
  EXPECT_THAT(Counted(metrics, "tensord_tenant_requests_total"),
              UnorderedElementsAre(Pair("chemistry", 2), Pair("default", 0),
                                   Pair("other", 1)));
}

TEST(MetricsTest, TimeOfWhatFailsIsWasted) {
  Metrics metrics;
  metrics.CountDeviceTime("default", absl::Seconds(2), /*is_wasted=*/false);
  metrics.CountDeviceTime("default", absl::Seconds(3), /*is_wasted=*/true);
  EXPECT_EQ(Counted(metrics, "tensord_wasted_device_seconds_total").at(""), 3);
  EXPECT_EQ(
      Counted(metrics, "tensord_tenant_device_seconds_total").at("default"), 5);
}

TEST(MetricsTest, ReasonsAreNotCountedWithoutBound) {
  Metrics metrics;
  for (int i = 0; i < 1000; ++i) metrics.Reject(absl::StrCat("REASON_", i));
  metrics.Reject("REASON_7");
  const auto counts = Counted(metrics, "tensord_rejected_total");
  EXPECT_LE(counts.size(), 301);
  EXPECT_EQ(counts.at("REASON_7"), 2);
  EXPECT_EQ(counts.at("OTHER"), 700);
}

TEST(MetricsTest, PhasesThatWereNotReachedAreNotCounted) {
  Metrics metrics;
  Metrics::Operation& reduce = metrics.OfOperation("reduce");
  reduce.Complete(absl::StatusCode::kOk,
                  {absl::Seconds(1), absl::Seconds(2), absl::Seconds(3),
                   absl::ZeroDuration()});
  reduce.Complete(absl::StatusCode::kInvalidArgument, {absl::Seconds(1)});
  auto counts = Counted(metrics, "tensord_operation_seconds");
  EXPECT_EQ(counts["reduce plan"], 2);
  for (const char* phase : {"queue", "kernel", "transfer"}) {
    EXPECT_EQ(counts[absl::StrCat("reduce ", phase)], 1) << phase;
  }
}

TEST(MetricsTest, CallsAreInFlightUntilTheyEnd) {
  Metrics metrics;
  const auto in_flight = [&] {
    for (const auto& family : metrics.registry().Collect()) {
      if (family.name == "tensord_requests_in_flight") {
        return family.metric.front().gauge.value;
      }
    }
    return -1.0;
  };
  EXPECT_EQ(in_flight(), 0);
  metrics.BeginCall();
  EXPECT_EQ(in_flight(), 1);
  metrics.OfRpc("Reduce").Complete(absl::StatusCode::kOk, absl::Seconds(1));
  EXPECT_EQ(in_flight(), 0);
}

}  // namespace
}  // namespace tensord::server
