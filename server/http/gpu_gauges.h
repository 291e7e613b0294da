// What NVIDIA's driver says of the machine's GPUs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"

namespace tensord::http {

/// Asks NVML, where the machine has it; elsewhere there is nothing to scrape.
///
/// Threads  safe for concurrent use, as NVML is.
class GpuGauges final : public prometheus::Collectable {
 public:
  /// `library` is what the loader is asked for, another one in tests.
  explicit GpuGauges(const std::string& library = "libnvidia-ml.so.1");
  ~GpuGauges() override;

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  struct Nvml;

  std::unique_ptr<const Nvml> nvml_;  // null: there is none
};

}  // namespace tensord::http
