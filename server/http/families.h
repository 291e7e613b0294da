// What a scrape shows, as it is put together.
#pragma once

#include <utility>
#include <vector>

#include "prometheus/client_metric.h"
#include "prometheus/metric_family.h"
#include "prometheus/metric_type.h"

namespace tensord::http {

/// Families as they are scraped, each with what it has of each set of labels.
class Families {
 public:
  using Labels = std::vector<prometheus::ClientMetric::Label>;

  /// What follows is of this family.
  void Begin(const char* name, const char* help,
             prometheus::MetricType type = prometheus::MetricType::Gauge) {
    families_.push_back({.name = name, .help = help, .type = type});
  }
  void Add(double value, Labels labels = {}) {
    prometheus::ClientMetric metric;
    metric.label = std::move(labels);
    if (families_.back().type == prometheus::MetricType::Counter) {
      metric.counter.value = value;
    } else {
      metric.gauge.value = value;
    }
    families_.back().metric.push_back(std::move(metric));
  }
  /// A family with one value and no labels.
  void One(const char* name, const char* help, double value,
           prometheus::MetricType type = prometheus::MetricType::Gauge) {
    Begin(name, help, type);
    Add(value);
  }

  std::vector<prometheus::MetricFamily> Take() { return std::move(families_); }

 private:
  std::vector<prometheus::MetricFamily> families_;
};

}  // namespace tensord::http
