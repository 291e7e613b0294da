#include "server/http/server_gauges.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/steady_time.h"
#include "server/engine/host_memory.h"
#include "server/http/families.h"
#include "server/session/tenant_use.h"

namespace tensord::http {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

/// A device as it was when it was looked at.
struct SeenDevice {
  explicit SeenDevice(server::Device& device)
      : name(device.info().name),
        is_up(device.health().ok()),
        memory(device.memory_statistics()),
        staging(device.staging_statistics()),
        work(device.worker().statistics()),
        memory_reserved_bytes(device.memory_reserved_bytes()),
        memory_limit_bytes(device.memory_limit_bytes()),
        staging_reserved_bytes(device.staging_reserved_bytes()),
        staging_limit_bytes(device.staging_limit_bytes()) {}

  std::string name;
  bool is_up;
  core::MemoryStatistics memory;
  core::MemoryStatistics staging;
  server::DeviceWorker::Statistics work;
  int64_t memory_reserved_bytes;
  int64_t memory_limit_bytes;
  int64_t staging_reserved_bytes;
  int64_t staging_limit_bytes;
};

/// A family with one value of each device and, if it has any, each kind.
struct DeviceFamily {
  struct Value {
    const char* kind;  // null: there are none
    double (*of)(const SeenDevice&);
  };
  const char* name;
  const char* help;
  MetricType type;
  std::vector<Value> values;
};

const std::vector<DeviceFamily>& DeviceFamilies() {
  using Seen = const SeenDevice&;
  static const auto& families = *new std::vector<DeviceFamily>{
      {"tensord_device_up",
       "1 for a device that works, 0 for a lost one.",
       MetricType::Gauge,
       {{nullptr, [](Seen x) -> double { return x.is_up; }}}},
      {"tensord_device_memory_bytes",
       "Bytes of a device's memory, by kind: used by tensors and operations, "
       "their peak, reserved (taken from the device, used or kept for reuse), "
       "limit.",
       MetricType::Gauge,
       {{"used", [](Seen x) -> double { return x.memory.used_bytes; }},
        {"peak", [](Seen x) -> double { return x.memory.peak_bytes; }},
        {"reserved", [](Seen x) -> double { return x.memory_reserved_bytes; }},
        {"limit", [](Seen x) -> double { return x.memory_limit_bytes; }}}},
      {"tensord_staging_bytes",
       "Bytes of pinned host memory for copies to and from a device, by the "
       "kinds of tensord_device_memory_bytes.",
       MetricType::Gauge,
       {{"used", [](Seen x) -> double { return x.staging.used_bytes; }},
        {"peak", [](Seen x) -> double { return x.staging.peak_bytes; }},
        {"reserved", [](Seen x) -> double { return x.staging_reserved_bytes; }},
        {"limit", [](Seen x) -> double { return x.staging_limit_bytes; }}}},
      {"tensord_allocations_total",
       "Times that memory of a device was asked for.",
       MetricType::Counter,
       {{nullptr, [](Seen x) -> double { return x.memory.allocation_count; }}}},
      {"tensord_allocation_failures_total",
       "Times that it was asked for and there was none.",
       MetricType::Counter,
       {{nullptr, [](Seen x) -> double { return x.memory.failure_count; }}}},
      {"tensord_queued_jobs",
       "Operations and transfers that wait for a device.",
       MetricType::Gauge,
       {{nullptr, [](Seen x) -> double { return x.work.queued_count; }}}},
      {"tensord_device_jobs_total",
       "Operations and transfers that a device has begun.",
       MetricType::Counter,
       {{nullptr, [](Seen x) -> double { return x.work.executed_count; }}}},
      {"tensord_device_busy_seconds_total",
       "Seconds in which a device had anything to do.",
       MetricType::Counter,
       {{nullptr, [](Seen x) { return absl::ToDoubleSeconds(x.work.busy); }}}}};
  return families;
}

void AddDevices(const server::Engine& engine, Families& families) {
  std::vector<SeenDevice> devices;
  for (const auto& device : engine.devices()) devices.emplace_back(*device);
  for (const DeviceFamily& family : DeviceFamilies()) {
    families.Begin(family.name, family.help, family.type);
    for (const SeenDevice& device : devices) {
      for (const auto& [kind, value] : family.values) {
        Families::Labels labels = {{"device", device.name}};
        if (kind != nullptr) labels.push_back({"kind", kind});
        families.Add(value(device), std::move(labels));
      }
    }
  }
}

void AddSessions(const server::SessionManager& sessions, Families& families) {
  families.One("tensord_sessions", "Sessions that are open.",
               sessions.session_count());
  families.One("tensord_sessions_limit", "Most sessions at a time.",
               sessions.limits().max_sessions);
  families.One("tensord_tensors", "Tensors of all sessions, views too.",
               sessions.tensor_count());
  const server::HostLedger& host = *sessions.host_memory();
  families.Begin("tensord_host_memory_bytes",
                 "Bytes of host memory for all but contents of tensors, by "
                 "use.");
  for (int i = 0; i < server::kHostUseCount; ++i) {
    const auto use = static_cast<server::HostUse>(i);
    families.Add(host.used(use).bytes,
                 {{"use", std::string(server::NameOf(use))}});
  }
  families.Begin("tensord_host_memory_objects",
                 "Things that host memory is counted for, by use.");
  for (int i = 0; i < server::kHostUseCount; ++i) {
    const auto use = static_cast<server::HostUse>(i);
    families.Add(host.used(use).count,
                 {{"use", std::string(server::NameOf(use))}});
  }
  families.One("tensord_host_memory_limit_bytes",
               "Most bytes of host memory of all uses together but arriving.",
               host.byte_limit());
}

void AddTenants(const std::map<std::string, server::TenantUse>& uses,
                Families& families) {
  const auto add = [&](const char* name, const char* help,
                       int64_t server::TenantUse::*value) {
    families.Begin(name, help);
    for (const auto& [tenant, use] : uses) {
      families.Add(use.*value, {{"tenant", tenant}});
    }
  };
  add("tensord_tenant_sessions", "Sessions that are open, by tenant.",
      &server::TenantUse::sessions);
  add("tensord_tenant_tensors", "Tensors, views too, by tenant.",
      &server::TenantUse::tensors);
  add("tensord_tenant_memory_bytes", "Bytes of devices' memory, by tenant.",
      &server::TenantUse::used_bytes);
}

void AddQuotas(const server::SessionManager& sessions, Families& families) {
  struct Labelled {
    Families::Labels labels;
    double used, limit;
  };
  std::vector<Labelled> quotas;
  for (const auto& account : sessions.Accounts()) {
    for (const auto& use : account->uses(core::SteadyNow())) {
      quotas.push_back({{{"tenant", account->name()},
                         {"quota", std::string(use.quota)},
                         {"device", use.device}},
                        use.used,
                        static_cast<double>(use.limit)});
    }
  }
  families.Begin("tensord_tenant_quota_used",
                 "What tenants use of the quotas that the file of tenants "
                 "gives them, by tenant, quota and, if it has one, device.");
  for (const Labelled& each : quotas) families.Add(each.used, each.labels);
  families.Begin("tensord_tenant_quota_limit", "Those quotas, by the same.");
  for (const Labelled& each : quotas) families.Add(each.limit, each.labels);
}

double Seconds(int64_t nanoseconds) {
  return absl::ToDoubleSeconds(absl::Nanoseconds(nanoseconds));
}

void AddPlans(const core::PlanCache& cache, Families& families) {
  const core::PlanCacheStatistics plans = cache.statistics();
  families.One("tensord_plan_cache_entries", "Plans that are kept.",
               plans.entry_count);
  families.One("tensord_plan_cache_pinned",
               "Plans that stay until they are unpinned.", plans.pinned_count);
  families.One("tensord_plan_cache_records",
               "Plans of other runs or servers that nobody has asked for yet.",
               plans.record_count);
  families.One("tensord_plan_cache_bytes", "Bytes of plans and records.",
               plans.bytes);
  families.One("tensord_plan_cache_hits_total", "Plans found.", plans.hit_count,
               MetricType::Counter);
  families.One("tensord_plan_cache_misses_total",
               "Plans made, or waited for while others made them.",
               plans.miss_count, MetricType::Counter);
  families.One("tensord_plan_cache_evictions_total",
               "Plans dropped for others.", plans.eviction_count,
               MetricType::Counter);
  families.One("tensord_plan_cache_planning_seconds_total",
               "Seconds spent on making plans.",
               Seconds(plans.planning_nanoseconds), MetricType::Counter);
  families.One("tensord_plan_cache_saved_seconds_total",
               "Seconds of making plans that were saved by plans found.",
               Seconds(plans.saved_nanoseconds), MetricType::Counter);
  families.Begin("tensord_plan_cache_load_errors_total",
                 "Records that did not hold here, by reason.",
                 MetricType::Counter);
  for (const auto& [reason, count] : plans.load_errors) {
    families.Add(count, {{"reason", reason}});
  }
}

void AddExchange(const server::PlanExchange& exchange, Families& families) {
  const server::PlanExchange::Statistics statistics = exchange.statistics();
  families.Begin("tensord_plan_exchange_records_total",
                 "Records of plans, by what became of them: sent, received, "
                 "refused.",
                 MetricType::Counter);
  families.Add(statistics.sent_count, {{"result", "sent"}});
  families.Add(statistics.received_count, {{"result", "received"}});
  families.Add(statistics.refused_count, {{"result", "refused"}});
  families.One("tensord_plan_exchange_errors_total",
               "Exchanges over Redis that failed.", statistics.error_count,
               MetricType::Counter);
}

/// Field number `field` of /proc/self/stat, from 3 on, as proc(5) has them.
int64_t StatField(int field) {
  std::ifstream file("/proc/self/stat");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  // The name, in parentheses, may have anything in it.
  std::istringstream rest(
      text.substr(std::min(text.rfind(')') + 1, text.size())));
  std::string word;
  for (int i = 3; i <= field; ++i) rest >> word;
  return std::strtoll(word.c_str(), nullptr, 10);
}

/// Seconds since 1970 of the machine's start.
double BootTime() {
  std::ifstream file("/proc/stat");
  std::string word;
  double seconds = 0;
  while (file >> word) {
    if (word == "btime") file >> seconds;
  }
  return seconds;
}

}  // namespace

std::vector<MetricFamily> ServerGauges::Collect() const {
  Families families;
  AddDevices(engine_, families);
  AddSessions(sessions_, families);
  AddTenants(server::UseByTenant(sessions_, metrics_), families);
  AddQuotas(sessions_, families);
  AddPlans(engine_.plans(), families);
  if (exchange_ != nullptr) AddExchange(*exchange_, families);
  return families.Take();
}

std::vector<MetricFamily> CertificateGauges::Collect() const {
  Families families;
  families.Begin("tensord_tls_certificate_expiry_timestamp_seconds",
                 "When the first certificate of a chain ends, in seconds since "
                 "1970, by what serves it.");
  for (const auto& [use, certificates] : certificates_) {
    if (certificates == nullptr) continue;
    families.Add(absl::ToDoubleSeconds(certificates->contents()->expires -
                                       absl::UnixEpoch()),
                 {{"listener", use}});
  }
  return families.Take();
}

std::vector<MetricFamily> ProcessGauges::Collect() const {
  constexpr int kThreadCount = 20;
  constexpr int kStartTicks = 22;
  constexpr int kVirtualBytes = 23;
  constexpr int kResidentPages = 24;
  static const double boot_time = BootTime();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const double cpu_seconds =
      absl::ToDoubleSeconds(absl::DurationFromTimeval(usage.ru_utime) +
                            absl::DurationFromTimeval(usage.ru_stime));
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  std::error_code ignored;
  const auto open_files = std::distance(
      std::filesystem::directory_iterator("/proc/self/fd", ignored), {});

  Families families;
  families.Begin("tensord_build_info", "1, with the version as a label.");
  families.Add(1, {{"version", version_}});
  families.One("tensord_ready", "1 where readiness is told, else 0.",
               health_.readiness().ok());
  families.One("process_start_time_seconds",
               "When the process started, in seconds since 1970.",
               boot_time + static_cast<double>(StatField(kStartTicks)) /
                               static_cast<double>(sysconf(_SC_CLK_TCK)));
  families.One("process_cpu_seconds_total",
               "Seconds of processor time, of user and system.", cpu_seconds,
               MetricType::Counter);
  families.One("process_resident_memory_bytes", "Bytes of resident memory.",
               StatField(kResidentPages) * sysconf(_SC_PAGESIZE));
  families.One("process_virtual_memory_bytes", "Bytes of virtual memory.",
               StatField(kVirtualBytes));
  families.One("process_threads", "Threads.", StatField(kThreadCount));
  families.One("process_open_fds", "Open files and connections.", open_files);
  families.One("process_max_fds", "Most open files and connections.",
               static_cast<double>(files.rlim_cur));
  return families.Take();
}

}  // namespace tensord::http
