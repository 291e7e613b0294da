#include "client/cli/server_commands.h"

#include <cstdio>

#include "client/cli/json.h"
#include "client/cli/text.h"

namespace tensord::cli {
namespace {

void PutLimits(const Limits& limits, JsonWriter& json) {
  json.Key("limits");
  json.BeginObject();
  json.Field("max_chunk_bytes", limits.max_chunk_bytes);
  json.Field("max_inline_bytes", limits.max_inline_bytes);
  json.Field("max_message_bytes", limits.max_message_bytes);
  json.Field("max_modes", int64_t{limits.max_modes});
  json.Field("max_lease_seconds", absl::ToInt64Seconds(limits.max_lease));
  json.Field("max_sessions", limits.max_sessions);
  json.Field("session_quota_bytes", limits.session_quota_bytes);
  json.Field("max_queued_operations", limits.max_queued_operations);
  json.Field("max_stream_operations", limits.max_stream_operations);
  json.Field("max_program_bytes", limits.max_program_bytes);
  json.Field("max_program_statements", limits.max_program_statements);
  json.Field("max_program_labels", int64_t{limits.max_program_labels});
  json.Field("max_program_depth", int64_t{limits.max_program_depth});
  json.Field("max_program_factors", limits.max_program_factors);
  json.Field("max_search_seconds", absl::ToInt64Seconds(limits.max_search));
  json.Field("max_optimal_operands", int64_t{limits.max_optimal_operands});
  json.Field("max_symbolic_operands", int64_t{limits.max_symbolic_operands});
  json.Field("max_programs", limits.max_programs);
  json.EndObject();
}

void PutInfo(const ServerInfo& info, JsonWriter& json) {
  json.BeginObject();
  json.Field("version", info.version);
  json.Key("devices");
  json.BeginArray();
  for (const DeviceInfo& device : info.devices) {
    json.BeginObject();
    json.Field("name", device.name);
    json.Field("model", device.model);
    json.Field("architecture", device.architecture);
    json.Field("thread_count", int64_t{device.thread_count});
    json.Field("memory_bytes", device.memory_bytes);
    json.Key("properties");
    json.BeginObject();
    for (const auto& [key, value] : device.properties) json.Field(key, value);
    json.EndObject();
    json.Key("kernels");
    json.BeginArray();
    for (const std::string& kernel : device.kernels) json.String(kernel);
    json.EndArray();
    json.EndObject();
  }
  json.EndArray();
  PutLimits(info.limits, json);
  json.EndObject();
}

void PutStats(const ServerStats& stats, JsonWriter& json) {
  json.BeginObject();
  json.Field("uptime_seconds", absl::ToInt64Seconds(stats.uptime));
  json.Field("session_count", stats.session_count);
  json.Field("tensor_count", stats.tensor_count);
  json.Field("uploaded_bytes", stats.uploaded_bytes);
  json.Field("downloaded_bytes", stats.downloaded_bytes);
  json.Key("devices");
  json.BeginArray();
  for (const DeviceStats& device : stats.devices) {
    json.BeginObject();
    json.Field("device", device.device);
    json.Field("memory_used_bytes", device.memory_used_bytes);
    json.Field("memory_peak_bytes", device.memory_peak_bytes);
    json.Field("memory_reserved_bytes", device.memory_reserved_bytes);
    json.Field("memory_limit_bytes", device.memory_limit_bytes);
    json.Field("staging_used_bytes", device.staging_used_bytes);
    json.Field("staging_peak_bytes", device.staging_peak_bytes);
    json.Field("staging_reserved_bytes", device.staging_reserved_bytes);
    json.Field("staging_limit_bytes", device.staging_limit_bytes);
    json.Field("queued_operations", device.queued_operations);
    json.Field("executed_operations", device.executed_operations);
    json.Field("busy_seconds", absl::ToDoubleSeconds(device.busy));
    json.EndObject();
  }
  json.EndArray();
  json.Key("operations");
  json.BeginArray();
  for (const OperationStats& operation : stats.operations) {
    json.BeginObject();
    json.Field("operation", operation.operation);
    json.Field("code", operation.code);
    json.Field("count", operation.count);
    json.EndObject();
  }
  json.EndArray();
  json.Key("plan_cache");
  json.BeginObject();
  json.Field("entry_count", stats.plan_cache.entry_count);
  json.Field("hit_count", stats.plan_cache.hit_count);
  json.Field("miss_count", stats.plan_cache.miss_count);
  json.Field("eviction_count", stats.plan_cache.eviction_count);
  json.EndObject();
  json.EndObject();
}

void PutTensor(const TensorInfo& tensor, JsonWriter& json) {
  json.BeginObject();
  json.Field("name", tensor.name);
  json.Field("element_type", ToString(tensor.element_type));
  json.Key("extents");
  json.Numbers(tensor.layout.extents);
  json.Key("strides");
  json.Numbers(tensor.layout.strides);
  json.Field("device", tensor.device);
  json.Field("state", ToString(tensor.state));
  json.Field("span_bytes", tensor.span_bytes);
  json.Field("committed_bytes", tensor.committed_bytes);
  if (tensor.view) {
    json.Key("view");
    json.BeginObject();
    json.Field("viewed", tensor.view->viewed);
    json.Flag("is_gathered", tensor.view->is_gathered);
    json.Flag("is_writable", tensor.view->is_writable);
    json.Flag("may_pad", tensor.view->may_pad);
    json.Field("span_elements", tensor.view->span_elements);
    json.Field("allocation_elements", tensor.view->allocation_elements);
    json.EndObject();
  }
  json.EndObject();
}

void PrintProgramLimitsText(const Limits& limits) {
  const auto count = [](int64_t number) {
    return static_cast<long long>(number);
  };
  std::printf("  program text   %s\n",
              BytesText(limits.max_program_bytes).c_str());
  std::printf("  statements     %lld\n", count(limits.max_program_statements));
  std::printf("  labels         %d in a tensor\n", limits.max_program_labels);
  std::printf("  parentheses    %d deep\n", limits.max_program_depth);
  std::printf("  factors        %lld in a term\n",
              count(limits.max_program_factors));
  std::printf(
      "  path search    %s, %d operands for an optimal path, %d with "
      "symbolic costs\n",
      DurationText(limits.max_search).c_str(), limits.max_optimal_operands,
      limits.max_symbolic_operands);
  std::printf("  programs       %lld prepared in a session\n",
              count(limits.max_programs));
}

void PrintInfoText(const ServerInfo& info) {
  std::printf("tensord %s\n", info.version.c_str());
  for (const DeviceInfo& device : info.devices) {
    std::printf("\n%s  %s\n", device.name.c_str(), device.model.c_str());
    std::printf("  architecture   %s\n", device.architecture.c_str());
    std::printf("  threads        %d\n", device.thread_count);
    std::printf("  memory         %s\n",
                BytesText(device.memory_bytes).c_str());
    for (const auto& [key, value] : device.properties) {
      std::printf("  %-14s %s\n", key.c_str(), value.c_str());
    }
    const char* label = "kernels";
    for (const std::string& kernel : device.kernels) {
      std::printf("  %-14s %s\n", label, kernel.c_str());
      label = "";
    }
  }
  const Limits& limits = info.limits;
  std::printf("\nlimits\n");
  std::printf("  chunk          %s\n",
              BytesText(limits.max_chunk_bytes).c_str());
  std::printf("  inline data    %s\n",
              BytesText(limits.max_inline_bytes).c_str());
  std::printf("  message        %s\n",
              BytesText(limits.max_message_bytes).c_str());
  std::printf("  modes          %d\n", limits.max_modes);
  std::printf("  lease          %s\n", DurationText(limits.max_lease).c_str());
  std::printf("  sessions       %lld\n",
              static_cast<long long>(limits.max_sessions));
  std::printf("  session quota  %s\n",
              BytesText(limits.session_quota_bytes).c_str());
  std::printf("  queue          %lld operations\n",
              static_cast<long long>(limits.max_queued_operations));
  std::printf("  stream         %lld operations\n",
              static_cast<long long>(limits.max_stream_operations));
  PrintProgramLimitsText(limits);
}

void PrintMemoryText(const char* label, int64_t used, int64_t limit,
                     int64_t peak, int64_t reserved) {
  std::printf("  %-10s  %s of %s used, %s at most, %s reserved\n", label,
              BytesText(used).c_str(), BytesText(limit).c_str(),
              BytesText(peak).c_str(), BytesText(reserved).c_str());
}

void PrintStatsText(const ServerStats& stats) {
  std::printf("uptime      %s\n", DurationText(stats.uptime).c_str());
  std::printf("sessions    %lld\n",
              static_cast<long long>(stats.session_count));
  std::printf("tensors     %lld\n", static_cast<long long>(stats.tensor_count));
  std::printf("uploaded    %s\n", BytesText(stats.uploaded_bytes).c_str());
  std::printf("downloaded  %s\n", BytesText(stats.downloaded_bytes).c_str());
  std::printf(
      "plan cache  %lld entries, %lld hits, %lld misses, %lld evicted\n",
      static_cast<long long>(stats.plan_cache.entry_count),
      static_cast<long long>(stats.plan_cache.hit_count),
      static_cast<long long>(stats.plan_cache.miss_count),
      static_cast<long long>(stats.plan_cache.eviction_count));
  for (const DeviceStats& device : stats.devices) {
    std::printf("\n%s\n", device.device.c_str());
    PrintMemoryText("memory", device.memory_used_bytes,
                    device.memory_limit_bytes, device.memory_peak_bytes,
                    device.memory_reserved_bytes);
    if (device.staging_limit_bytes > 0) {
      PrintMemoryText("staging", device.staging_used_bytes,
                      device.staging_limit_bytes, device.staging_peak_bytes,
                      device.staging_reserved_bytes);
    }
    std::printf("  operations  %lld executed in %s, %lld waiting\n",
                static_cast<long long>(device.executed_operations),
                DurationText(device.busy).c_str(),
                static_cast<long long>(device.queued_operations));
  }
  if (!stats.operations.empty()) std::printf("\n");
  for (const OperationStats& operation : stats.operations) {
    std::printf("%-12s %-20s %lld\n", operation.operation.c_str(),
                operation.code.c_str(),
                static_cast<long long>(operation.count));
  }
}

/// Prints with `put` as JSON or with `print` for people.
template <typename Value, typename Put, typename Print>
int PrintAs(const absl::StatusOr<Value>& value, bool as_json, Put put,
            Print print) {
  if (!value.ok()) return Fail(value.status());
  if (as_json) {
    JsonWriter json;
    put(*value, json);
    std::printf("%s\n", json.text().c_str());
  } else {
    print(*value);
  }
  return kOk;
}

}  // namespace

int PrintInfo(const Server& server, bool json) {
  return PrintAs(server.Info(), json, PutInfo, PrintInfoText);
}

int PrintStats(const Server& server, bool json) {
  return PrintAs(server.Stats(), json, PutStats, PrintStatsText);
}

int PrintHealth(const Server& server) {
  const absl::StatusOr<Health> health = server.CheckHealth();
  if (!health.ok()) return Fail(health.status());
  constexpr const char* kNames[] = {"UNKNOWN", "SERVING", "NOT_SERVING"};
  std::printf("%s\n", kNames[static_cast<int>(*health)]);
  return *health == Health::kServing ? kOk : kFailed;
}

int PrintTensors(const Server& server, const std::string& session, bool json) {
  const auto put = [](const std::vector<TensorInfo>& tensors,
                      JsonWriter& writer) {
    writer.BeginArray();
    for (const TensorInfo& tensor : tensors) PutTensor(tensor, writer);
    writer.EndArray();
  };
  const auto print = [](const std::vector<TensorInfo>& tensors) {
    for (const TensorInfo& tensor : tensors) {
      std::printf("%-8s %-10s %-20s %10s  %s\n",
                  std::string(ToString(tensor.state)).c_str(),
                  std::string(ToString(tensor.element_type)).c_str(),
                  ShapeText(tensor.layout.extents).c_str(),
                  BytesText(tensor.span_bytes).c_str(), tensor.name.c_str());
    }
  };
  return PrintAs(server.List(session), json, put, print);
}

int PrintPlans(const Server& server, const std::string& session, bool json) {
  const auto put = [](const std::vector<PlanInfo>& plans, JsonWriter& writer) {
    writer.BeginArray();
    for (const PlanInfo& plan : plans) {
      writer.BeginObject();
      writer.Field("name", plan.name);
      writer.Field("operation", plan.operation);
      writer.Field("device", plan.device);
      writer.Field("kernel", plan.explanation.kernel);
      writer.Field("problem", plan.explanation.problem);
      writer.Field("workspace_bytes", plan.explanation.workspace_bytes);
      writer.Field("min_workspace_bytes", plan.min_workspace_bytes);
      writer.Field("max_workspace_bytes", plan.max_workspace_bytes);
      writer.Field("sample_count", int64_t{plan.sample_count});
      writer.Field("wanted_sample_count", int64_t{plan.wanted_sample_count});
      writer.Field("execution_count", plan.execution_count);
      writer.EndObject();
    }
    writer.EndArray();
  };
  const auto print = [](const std::vector<PlanInfo>& plans) {
    std::printf("%-12s %10s %9s  %-28s %s\n", "operation", "executed", "tuned",
                "kernel", "name");
    for (const PlanInfo& plan : plans) {
      const std::string tuned =
          plan.wanted_sample_count == 0
              ? "-"
              : std::to_string(plan.sample_count) + "/" +
                    std::to_string(plan.wanted_sample_count);
      std::printf("%-12s %10lld %9s  %-28s %s\n", plan.operation.c_str(),
                  static_cast<long long>(plan.execution_count), tuned.c_str(),
                  plan.explanation.kernel.c_str(), plan.name.c_str());
    }
  };
  return PrintAs(server.Plans(session), json, put, print);
}

int PrintKernels(const Server& server, const std::string& device, bool json) {
  const auto put = [](const std::vector<KernelInfo>& kernels,
                      JsonWriter& writer) {
    writer.BeginArray();
    for (const KernelInfo& kernel : kernels) {
      writer.BeginObject();
      writer.Field("name", kernel.name);
      writer.Field("version", int64_t{kernel.version});
      writer.Field("operation", kernel.operation);
      writer.EndObject();
    }
    writer.EndArray();
  };
  const auto print = [](const std::vector<KernelInfo>& kernels) {
    for (const KernelInfo& kernel : kernels) {
      std::printf("%-12s %-36s version %d\n", kernel.operation.c_str(),
                  kernel.name.c_str(), kernel.version);
    }
  };
  return PrintAs(server.Kernels(device), json, put, print);
}

int PrintTensor(const Server& server, const std::string& tensor, bool json) {
  const auto print = [](const TensorInfo& info) {
    std::printf("name       %s\n", info.name.c_str());
    std::printf("type       %s\n",
                std::string(ToString(info.element_type)).c_str());
    std::printf("extents    %s\n", ShapeText(info.layout.extents).c_str());
    std::printf("strides    %s\n", ShapeText(info.layout.strides).c_str());
    std::printf("device     %s\n", info.device.c_str());
    std::printf("state      %s\n", std::string(ToString(info.state)).c_str());
    std::printf("size       %s, of which %s have come\n",
                BytesText(info.span_bytes).c_str(),
                BytesText(info.committed_bytes).c_str());
    if (!info.view) return;
    std::printf("views      %s: %s, %s%s\n", info.view->viewed.c_str(),
                info.view->is_gathered ? "gathered to be read" : "in place",
                info.view->is_writable ? "writable" : "not writable",
                info.view->may_pad ? ", with padding" : "");
  };
  return PrintAs(server.Describe(tensor), json, PutTensor, print);
}

}  // namespace tensord::cli
