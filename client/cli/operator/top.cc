#include "client/cli/operator/top.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "client/cli/json.h"
#include "client/cli/operator/server_json.h"
#include "client/cli/operator/terminal.h"
#include "client/cli/text.h"

namespace tensord::cli {
namespace {

constexpr int kMostSessions = 100;

/// What changes between two glances, a second.
class Rates {
 public:
  Rates(const Glance& now, const Glance& before)
      : seconds_(absl::ToDoubleSeconds(now.at - before.at)) {}

  double operator()(double now, double before) const {
    return seconds_ > 0 ? std::max(0.0, now - before) / seconds_ : 0;
  }

 private:
  const double seconds_;
};

std::string NumberText(double value) {
  return absl::StrFormat(value >= 100 ? "%.0f" : "%.1f", value);
}

std::string ShareText(double part, double whole) {
  return whole > 0 ? absl::StrFormat("%.0f %%", 100 * part / whole) : "-";
}

std::string BytesRate(double bytes) {
  return absl::StrCat(BytesText(static_cast<int64_t>(bytes)), "/s");
}

std::string BarText(int64_t used, int64_t limit) {
  constexpr int64_t kWidth = 20;
  const int64_t filled =
      limit > 0
          ? std::clamp<int64_t>((kWidth * used + limit - 1) / limit, 0, kWidth)
          : 0;
  return absl::StrCat("[", std::string(filled, '#'),
                      std::string(kWidth - filled, '.'), "]");
}

/// "2 d 3 h", "5 min", "7 s".
std::string AgeText(absl::Duration age) {
  const int64_t seconds = absl::ToInt64Seconds(age);
  if (seconds < 60) return absl::StrCat(seconds, " s");
  if (seconds < 3600) return absl::StrCat(seconds / 60, " min");
  if (seconds < 86400) return absl::StrCat(seconds / 3600, " h");
  return absl::StrCat(seconds / 86400, " d ", seconds / 3600 % 24, " h");
}

/// Of something that both glances have by the same name.
template <typename Entry>
const Entry& Before(const std::vector<Entry>& before, const Entry& now,
                    std::string Entry::*name) {
  const auto found = std::ranges::find(before, now.*name, name);
  return found == before.end() ? now : *found;
}

int64_t OperationCount(const ServerStats& stats) {
  return std::accumulate(stats.operations.begin(), stats.operations.end(),
                         int64_t{0},
                         [](int64_t sum, const OperationStats& operation) {
                           return sum + operation.count;
                         });
}

double OperationRate(const Glance& now, const Glance& before) {
  return Rates(now, before)(OperationCount(now.stats),
                            OperationCount(before.stats));
}

void AddSummary(const Glance& now, const Glance& before,
                std::vector<std::string>& lines) {
  const ServerStats& stats = now.stats;
  const Rates rate(now, before);
  lines.push_back(absl::StrFormat("tensord %s  %s  up %s", stats.version,
                                  stats.state, AgeText(stats.uptime)));
  lines.push_back(absl::StrFormat(
      "%s operations/s  uploads %s  downloads %s  %d sessions  %d tensors",
      NumberText(OperationRate(now, before)),
      BytesRate(rate(stats.uploaded_bytes, before.stats.uploaded_bytes)),
      BytesRate(rate(stats.downloaded_bytes, before.stats.downloaded_bytes)),
      stats.session_count, stats.tensor_count));
  const PlanCacheStats& plans = stats.plan_cache;
  int64_t host_bytes = 0;
  for (const HostMemoryStats& use : stats.host_memory) {
    host_bytes += use.used_bytes;
  }
  lines.push_back(absl::StrFormat(
      "plan cache %d, %s found, %d evicted  host memory %s of %s",
      plans.entry_count,
      ShareText(plans.hit_count, plans.hit_count + plans.miss_count),
      plans.eviction_count, BytesText(host_bytes),
      BytesText(stats.host_memory_limit_bytes)));
}

void AddDevices(const Glance& now, const Glance& before,
                std::vector<std::string>& lines) {
  const Rates rate(now, before);
  lines.push_back("");
  lines.push_back(absl::StrFormat(
      "%-10s %-22s %10s %10s %10s %7s %8s %6s  %s", "DEVICE", "MEMORY", "USED",
      "LIMIT", "RESERVED", "QUEUE", "JOBS/S", "BUSY", "MODEL"));
  for (const DeviceStats& device : now.stats.devices) {
    const DeviceStats& was =
        Before(before.stats.devices, device, &DeviceStats::device);
    lines.push_back(absl::StrFormat(
        "%-10s %-22s %10s %10s %10s %7d %8s %6s  %s", device.device,
        BarText(device.memory_used_bytes, device.memory_limit_bytes),
        BytesText(device.memory_used_bytes),
        BytesText(device.memory_limit_bytes),
        BytesText(device.memory_reserved_bytes), device.queued_operations,
        NumberText(rate(device.executed_operations, was.executed_operations)),
        ShareText(rate(absl::ToDoubleSeconds(device.busy),
                       absl::ToDoubleSeconds(was.busy)),
                  1),
        device.is_up ? device.model : "lost"));
  }
}

void AddTenants(const Glance& now, const Glance& before,
                std::vector<std::string>& lines) {
  const Rates rate(now, before);
  lines.push_back("");
  lines.push_back(absl::StrFormat("%-20s %9s %9s %10s %10s %8s", "TENANT",
                                  "SESSIONS", "TENSORS", "MEMORY", "CALLS/S",
                                  "DEVICE"));
  for (const TenantStats& tenant : now.stats.tenants) {
    if (tenant.request_count == 0) continue;
    const TenantStats& was =
        Before(before.stats.tenants, tenant, &TenantStats::tenant);
    lines.push_back(absl::StrFormat(
        "%-20s %9d %9d %10s %10s %8s", tenant.tenant, tenant.session_count,
        tenant.tensor_count, BytesText(tenant.memory_used_bytes),
        NumberText(rate(tenant.request_count, was.request_count)),
        ShareText(rate(absl::ToDoubleSeconds(tenant.device_time),
                       absl::ToDoubleSeconds(was.device_time)),
                  1)));
  }
}

void AddSessions(const Glance& now, std::vector<std::string>& lines) {
  lines.push_back("");
  lines.push_back(
      absl::StrFormat("%7s %-12s %-16s %-8s %8s %10s %7s %8s %8s %8s",
                      "SESSION", "TENANT", "JOB", "DEVICE", "TENSORS", "MEMORY",
                      "QUEUED", "RUNNING", "IDLE", "AGE"));
  for (const SessionState& session : now.sessions) {
    lines.push_back(absl::StrFormat(
        "%7d %-12.12s %-16.16s %-8s %8d %10s %7d %8d %8s %8s", session.number,
        session.tenant, session.job.empty() ? "-" : session.job, session.device,
        session.tensor_count, BytesText(session.memory_used_bytes),
        session.queued_operations, session.running_operations,
        AgeText(session.idle), AgeText(session.age)));
  }
}

absl::StatusOr<Glance> Look(const Operator& server) {
  absl::StatusOr<ServerStats> stats = server.Stats();
  if (!stats.ok()) return stats.status();
  auto sessions = server.LargestSessions(kMostSessions);
  if (!sessions.ok()) return sessions.status();
  return Glance{.at = absl::Now(),
                .stats = *std::move(stats),
                .sessions = *std::move(sessions)};
}

Json GlanceJson(const Glance& now, const Glance& before) {
  return {{"operations_per_second", JsonNumber(OperationRate(now, before))},
          {"stats", StatsJson(now.stats)},
          {"sessions", JsonList(now.sessions, SessionJson)}};
}

/// On a terminal. What the server does not answer is shown and asked again.
int DrawTop(const Operator& server, absl::Duration interval, Glance before) {
  Terminal terminal;
  Glance now = before;
  std::string trouble;
  while (true) {
    std::vector<std::string> lines = TopLines(now, before);
    lines.front() += trouble;
    terminal.Draw(lines);
    const absl::Time next = absl::Now() + interval;
    while (absl::Now() < next) {
      if (terminal.AwaitsEnd(next - absl::Now())) return kOk;
      terminal.Draw(lines);
    }
    auto look = Look(server);
    trouble =
        look.ok() ? "" : absl::StrCat("  NO ANSWER: ", look.status().message());
    if (!look.ok()) continue;
    before = std::exchange(now, *std::move(look));
  }
}

}  // namespace

std::vector<std::string> TopLines(const Glance& now, const Glance& before) {
  std::vector<std::string> lines;
  AddSummary(now, before, lines);
  AddDevices(now, before, lines);
  AddTenants(now, before, lines);
  AddSessions(now, lines);
  return lines;
}

int Top(const Operator& server, const TopOptions& options) {
  absl::StatusOr<Glance> look = Look(server);
  if (!look.ok()) return Fail(look.status());
  Glance before = *std::move(look);
  if (!options.is_json && !options.is_once && Terminal::IsThere()) {
    return DrawTop(server, options.interval, std::move(before));
  }
  while (true) {
    absl::SleepFor(options.interval);
    look = Look(server);
    if (!look.ok()) return Fail(look.status());
    if (options.is_json) {
      absl::PrintF("%s\n", JsonText(GlanceJson(*look, before)));
    } else {
      absl::PrintF("%s\n\n", absl::StrJoin(TopLines(*look, before), "\n"));
    }
    std::fflush(stdout);
    if (options.is_once) return kOk;
    before = *std::move(look);
  }
}

}  // namespace tensord::cli
