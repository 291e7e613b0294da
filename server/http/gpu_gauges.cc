#include "server/http/gpu_gauges.h"

#include <dlfcn.h>

#include <array>
#include <optional>
#include <utility>

#include "server/http/families.h"

namespace tensord::http {
namespace {

// As nvml.h has them, which building does not need.
using Gpu = void*;
struct Utilization {
  unsigned int gpu;  // percent of the last second or less; so is this
  unsigned int memory;
};
struct Memory {
  unsigned long long total, free, used;  // NOLINT(google-runtime-int)
};
constexpr int kGpuSensor = 0;
constexpr int kUncorrected = 1;
constexpr int kSinceDriverStart = 0;
constexpr size_t kUuidBytes = 96;

struct Reading {
  std::string uuid;
  std::optional<double> utilization, memory_used, power, temperature, errors;
};

}  // namespace

/// Those functions that it has; each returns 0 when all is well.
struct GpuGauges::Nvml {
  ~Nvml() {
    if (shutdown != nullptr) shutdown();
    dlclose(library);
  }

  /// False: it does not have it.
  template <typename F>
  bool Find(const char* name, F*& function) {
    function = reinterpret_cast<F*>(dlsym(library, name));
    return function != nullptr;
  }

  Reading Read(Gpu gpu) const {
    Reading reading;
    std::array<char, kUuidBytes> uuid = {};
    if (get_uuid(gpu, uuid.data(), uuid.size()) == 0)
      reading.uuid = uuid.data();
    Utilization utilization = {};
    if (get_utilization(gpu, &utilization) == 0) {
      reading.utilization = utilization.gpu / 100.0;
    }
    Memory memory = {};
    if (get_memory(gpu, &memory) == 0) {
      reading.memory_used = static_cast<double>(memory.used);
    }
    unsigned int milliwatts = 0;
    if (get_power(gpu, &milliwatts) == 0) reading.power = milliwatts / 1000.0;
    unsigned int celsius = 0;
    if (get_temperature(gpu, kGpuSensor, &celsius) == 0) {
      reading.temperature = celsius;
    }
    unsigned long long errors = 0;  // NOLINT(google-runtime-int)
    if (get_errors(gpu, kUncorrected, kSinceDriverStart, &errors) == 0) {
      reading.errors = static_cast<double>(errors);
    }
    return reading;
  }

  void* library = nullptr;
  int (*shutdown)() = nullptr;  // null: it does not run
  int (*get_count)(unsigned int*) = nullptr;
  int (*get_gpu)(unsigned int, Gpu*) = nullptr;
  int (*get_uuid)(Gpu, char*, unsigned int) = nullptr;
  int (*get_utilization)(Gpu, Utilization*) = nullptr;
  int (*get_memory)(Gpu, Memory*) = nullptr;
  int (*get_power)(Gpu, unsigned int*) = nullptr;
  int (*get_temperature)(Gpu, int, unsigned int*) = nullptr;
  // NOLINTNEXTLINE(google-runtime-int)
  int (*get_errors)(Gpu, int, int, unsigned long long*) = nullptr;
};

GpuGauges::GpuGauges(const std::string& library) {
  void* const opened = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) return;
  auto nvml = std::make_unique<Nvml>();
  nvml->library = opened;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const bool has_all =
      nvml->Find("nvmlInit_v2", init) && nvml->Find("nvmlShutdown", shutdown) &&
      nvml->Find("nvmlDeviceGetCount_v2", nvml->get_count) &&
      nvml->Find("nvmlDeviceGetHandleByIndex_v2", nvml->get_gpu) &&
      nvml->Find("nvmlDeviceGetUUID", nvml->get_uuid) &&
      nvml->Find("nvmlDeviceGetUtilizationRates", nvml->get_utilization) &&
      nvml->Find("nvmlDeviceGetMemoryInfo", nvml->get_memory) &&
      nvml->Find("nvmlDeviceGetPowerUsage", nvml->get_power) &&
      nvml->Find("nvmlDeviceGetTemperature", nvml->get_temperature) &&
      nvml->Find("nvmlDeviceGetTotalEccErrors", nvml->get_errors);
  if (!has_all || init() != 0) return;
  nvml->shutdown = shutdown;
  nvml_ = std::move(nvml);
}

GpuGauges::~GpuGauges() = default;

std::vector<prometheus::MetricFamily> GpuGauges::Collect() const {
  struct Shown {
    const char* name;
    const char* help;
    std::optional<double> Reading::*value;
    prometheus::MetricType type = prometheus::MetricType::Gauge;
  };
  static constexpr Shown kShown[] = {
      {"tensord_gpu_utilization_ratio",
       "Of a GPU's time, how much it has computed anything lately, whoever "
       "asked for it.",
       &Reading::utilization},
      {"tensord_gpu_memory_used_bytes",
       "Bytes of a GPU's memory that are in use, by whomever.",
       &Reading::memory_used},
      {"tensord_gpu_power_watts", "What a GPU draws.", &Reading::power},
      {"tensord_gpu_temperature_celsius", "How warm a GPU is.",
       &Reading::temperature},
      {"tensord_gpu_ecc_errors_total",
       "Errors of a GPU's memory that were not corrected, since its driver "
       "started.",
       &Reading::errors, prometheus::MetricType::Counter}};
  Families families;
  unsigned int count = 0;
  if (nvml_ == nullptr || nvml_->get_count(&count) != 0) return {};
  std::vector<Reading> readings;
  for (unsigned int i = 0; i < count; ++i) {
    Gpu gpu = nullptr;
    if (nvml_->get_gpu(i, &gpu) == 0) readings.push_back(nvml_->Read(gpu));
  }
  for (const Shown& shown : kShown) {
    families.Begin(shown.name, shown.help, shown.type);
    for (const Reading& reading : readings) {
      if (const auto& value = reading.*shown.value) {
        families.Add(*value, {{"gpu", reading.uuid}});
      }
    }
  }
  return families.Take();
}

}  // namespace tensord::http
