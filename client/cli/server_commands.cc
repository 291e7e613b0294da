// info, stats, health, list, describe, delete, plans and kernels.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cli/commands.h"
#include "client/cli/json.h"
#include "client/cli/operator/server_json.h"
#include "client/cli/options.h"
#include "client/cli/text.h"
#include "tensord/server.h"

namespace tensord::cli {
namespace {

Json LimitsJson(const Limits& limits) {
  return {{"max_chunk_bytes", limits.max_chunk_bytes},
          {"max_inline_bytes", limits.max_inline_bytes},
          {"max_message_bytes", limits.max_message_bytes},
          {"max_modes", limits.max_modes},
          {"max_lease_seconds", absl::ToInt64Seconds(limits.max_lease)},
          {"max_sessions", limits.max_sessions},
          {"max_sessions_per_peer", limits.max_sessions_per_peer},
          {"session_quota_bytes", limits.session_quota_bytes},
          {"max_tensors", limits.max_tensors},
          {"transfer_idle_seconds", JsonSeconds(limits.transfer_idle)},
          {"max_view_stages", limits.max_view_stages},
          {"max_queued_operations", limits.max_queued_operations},
          {"max_stream_operations", limits.max_stream_operations},
          {"max_program_bytes", limits.max_program_bytes},
          {"max_program_statements", limits.max_program_statements},
          {"max_program_labels", limits.max_program_labels},
          {"max_program_depth", limits.max_program_depth},
          {"max_program_factors", limits.max_program_factors},
          {"max_search_seconds", absl::ToInt64Seconds(limits.max_search)},
          {"max_optimal_operands", limits.max_optimal_operands},
          {"max_symbolic_operands", limits.max_symbolic_operands},
          {"max_programs", limits.max_programs}};
}

Json DeviceJson(const DeviceInfo& device) {
  return {{"name", device.name},
          {"model", device.model},
          {"architecture", device.architecture},
          {"thread_count", device.thread_count},
          {"memory_bytes", device.memory_bytes},
          {"properties", device.properties},
          {"kernels", device.kernels}};
}

Json InfoJson(const ServerInfo& info) {
  return {{"version", info.version},
          {"devices", JsonList(info.devices, DeviceJson)},
          {"limits", LimitsJson(info.limits)}};
}

Json TensorJson(const TensorInfo& tensor) {
  Json json = {{"name", tensor.name},
               {"element_type", ToString(tensor.element_type)},
               {"extents", tensor.layout.extents},
               {"strides", tensor.layout.strides},
               {"device", tensor.device},
               {"state", ToString(tensor.state)},
               {"span_bytes", tensor.span_bytes},
               {"committed_bytes", tensor.committed_bytes}};
  if (tensor.view) {
    json["view"] = {{"viewed", tensor.view->viewed},
                    {"is_gathered", tensor.view->is_gathered},
                    {"is_writable", tensor.view->is_writable},
                    {"may_pad", tensor.view->may_pad},
                    {"span_elements", tensor.view->span_elements},
                    {"allocation_elements", tensor.view->allocation_elements}};
  }
  return json;
}

Json PlanJson(const PlanInfo& plan) {
  return {{"name", plan.name},
          {"operation", plan.operation},
          {"device", plan.device},
          {"kernel", plan.explanation.kernel},
          {"problem", plan.explanation.problem},
          {"workspace_bytes", plan.explanation.workspace_bytes},
          {"min_workspace_bytes", plan.min_workspace_bytes},
          {"max_workspace_bytes", plan.max_workspace_bytes},
          {"sample_count", plan.sample_count},
          {"wanted_sample_count", plan.wanted_sample_count},
          {"execution_count", plan.execution_count}};
}

Json KernelJson(const KernelInfo& kernel) {
  return {{"name", kernel.name},
          {"version", kernel.version},
          {"operation", kernel.operation}};
}

void PrintProgramLimitsText(const Limits& limits) {
  absl::PrintF("  program text   %s\n", BytesText(limits.max_program_bytes));
  absl::PrintF("  statements     %d\n", limits.max_program_statements);
  absl::PrintF("  labels         %d in a tensor\n", limits.max_program_labels);
  absl::PrintF("  parentheses    %d deep\n", limits.max_program_depth);
  absl::PrintF("  factors        %d in a term\n", limits.max_program_factors);
  absl::PrintF(
      "  path search    %s, %d operands for an optimal path, %d with "
      "symbolic costs\n",
      DurationText(limits.max_search), limits.max_optimal_operands,
      limits.max_symbolic_operands);
  absl::PrintF("  programs       %d prepared in a session\n",
               limits.max_programs);
}

void PrintInfoText(const ServerInfo& info) {
  absl::PrintF("tensord %s\n", info.version);
  for (const DeviceInfo& device : info.devices) {
    absl::PrintF("\n%s  %s\n", device.name, device.model);
    absl::PrintF("  architecture   %s\n", device.architecture);
    absl::PrintF("  threads        %d\n", device.thread_count);
    absl::PrintF("  memory         %s\n", BytesText(device.memory_bytes));
    for (const auto& [key, value] : device.properties) {
      absl::PrintF("  %-14s %s\n", key, value);
    }
    const char* label = "kernels";
    for (const std::string& kernel : device.kernels) {
      absl::PrintF("  %-14s %s\n", label, kernel);
      label = "";
    }
  }
  const Limits& limits = info.limits;
  absl::PrintF("\nlimits\n");
  absl::PrintF("  chunk          %s\n", BytesText(limits.max_chunk_bytes));
  absl::PrintF("  inline data    %s\n", BytesText(limits.max_inline_bytes));
  absl::PrintF("  message        %s\n", BytesText(limits.max_message_bytes));
  absl::PrintF("  modes          %d\n", limits.max_modes);
  absl::PrintF("  lease          %s\n", DurationText(limits.max_lease));
  absl::PrintF("  sessions       %d, of one address %d\n", limits.max_sessions,
               limits.max_sessions_per_peer);
  absl::PrintF("  session quota  %s\n", BytesText(limits.session_quota_bytes));
  absl::PrintF("  tensors        %d of a session\n", limits.max_tensors);
  absl::PrintF("  idle transfer  %s\n", DurationText(limits.transfer_idle));
  absl::PrintF("  queue          %d operations\n",
               limits.max_queued_operations);
  absl::PrintF("  stream         %d operations\n",
               limits.max_stream_operations);
  PrintProgramLimitsText(limits);
}

void PrintMemoryText(const char* label, int64_t used, int64_t limit,
                     int64_t peak, int64_t reserved) {
  absl::PrintF("  %-10s  %s of %s used, %s at most, %s reserved\n", label,
               BytesText(used), BytesText(limit), BytesText(peak),
               BytesText(reserved));
}

void PrintStatsText(const ServerStats& stats) {
  absl::PrintF("uptime      %s\n", DurationText(stats.uptime));
  absl::PrintF("sessions    %d\n", stats.session_count);
  absl::PrintF("tensors     %d\n", stats.tensor_count);
  absl::PrintF("uploaded    %s\n", BytesText(stats.uploaded_bytes));
  absl::PrintF("downloaded  %s\n", BytesText(stats.downloaded_bytes));
  absl::PrintF("plan cache  %d entries, %d hits, %d misses, %d evicted\n",
               stats.plan_cache.entry_count, stats.plan_cache.hit_count,
               stats.plan_cache.miss_count, stats.plan_cache.eviction_count);
  absl::PrintF("\nhost memory, at most %s\n",
               BytesText(stats.host_memory_limit_bytes));
  for (const HostMemoryStats& entry : stats.host_memory) {
    absl::PrintF("  %-10s  ", entry.use);
    if (entry.count_limit > 0) {
      absl::PrintF("%d of %d, ", entry.count, entry.count_limit);
    }
    absl::PrintF("%s\n", BytesText(entry.used_bytes));
  }
  for (const DeviceStats& device : stats.devices) {
    absl::PrintF("\n%s\n", device.device);
    PrintMemoryText("memory", device.memory_used_bytes,
                    device.memory_limit_bytes, device.memory_peak_bytes,
                    device.memory_reserved_bytes);
    if (device.staging_limit_bytes > 0) {
      PrintMemoryText("staging", device.staging_used_bytes,
                      device.staging_limit_bytes, device.staging_peak_bytes,
                      device.staging_reserved_bytes);
    }
    absl::PrintF("  operations  %d executed in %s, %d waiting\n",
                 device.executed_operations, DurationText(device.busy),
                 device.queued_operations);
  }
  if (!stats.operations.empty()) absl::PrintF("\n");
  for (const OperationStats& operation : stats.operations) {
    absl::PrintF("%-16s %-20s %d\n", operation.operation, operation.code,
                 operation.count);
  }
}

/// What a command asks for.
struct Question {
  std::string name;                // of a session or a tensor
  std::vector<std::string> names;  // of tensors
  std::string device;
  double wait_seconds = 0;
  bool json = false;
};

int PrintInfo(const Server& server, const Question& question) {
  return PrintAs(server.Info(), question.json, InfoJson, PrintInfoText);
}

int PrintStats(const Server& server, const Question& question) {
  return PrintAs(server.Stats(), question.json, StatsJson, PrintStatsText);
}

int PrintHealth(const Server& server, const Question&) {
  const absl::StatusOr<Health> health = server.CheckHealth();
  if (!health.ok()) return Fail(health.status());
  constexpr const char* kNames[] = {"UNKNOWN", "SERVING", "NOT_SERVING"};
  absl::PrintF("%s\n", kNames[static_cast<int>(*health)]);
  return *health == Health::kServing ? kOk : kFailed;
}

/// Waits until the server serves, or so long. Each time with a connection of
/// its own: one that has failed pauses before it tries again.
void AwaitHealth(const CommandLine& line, absl::Duration longest) {
  const absl::Time end = absl::Now() + longest;
  while (absl::Now() < end) {
    const Server server(line.address, line.timeout(), line.credentials);
    const absl::StatusOr<Health> health = server.CheckHealth();
    if (health.ok() && *health == Health::kServing) return;
    absl::SleepFor(absl::Milliseconds(50));
  }
}

int PrintTensors(const Server& server, const Question& question) {
  const auto to_json = [](const std::vector<TensorInfo>& tensors) {
    return JsonList(tensors, TensorJson);
  };
  const auto print = [](const std::vector<TensorInfo>& tensors) {
    for (const TensorInfo& tensor : tensors) {
      absl::PrintF("%-8s %-10s %-20s %10s  %s\n", ToString(tensor.state),
                   ToString(tensor.element_type),
                   ShapeText(tensor.layout.extents),
                   BytesText(tensor.span_bytes), tensor.name);
    }
  };
  return PrintAs(server.List(question.name), question.json, to_json, print);
}

int PrintPlans(const Server& server, const Question& question) {
  const auto to_json = [](const std::vector<PlanInfo>& plans) {
    return JsonList(plans, PlanJson);
  };
  const auto print = [](const std::vector<PlanInfo>& plans) {
    absl::PrintF("%-12s %10s %9s  %-28s %s\n", "operation", "executed", "tuned",
                 "kernel", "name");
    for (const PlanInfo& plan : plans) {
      const std::string tuned =
          plan.wanted_sample_count == 0
              ? "-"
              : std::to_string(plan.sample_count) + "/" +
                    std::to_string(plan.wanted_sample_count);
      absl::PrintF("%-12s %10d %9s  %-28s %s\n", plan.operation,
                   plan.execution_count, tuned, plan.explanation.kernel,
                   plan.name);
    }
  };
  return PrintAs(server.Plans(question.name), question.json, to_json, print);
}

int PrintKernels(const Server& server, const Question& question) {
  const auto to_json = [](const std::vector<KernelInfo>& kernels) {
    return JsonList(kernels, KernelJson);
  };
  const auto print = [](const std::vector<KernelInfo>& kernels) {
    for (const KernelInfo& kernel : kernels) {
      absl::PrintF("%-12s %-36s version %d\n", kernel.operation, kernel.name,
                   kernel.version);
    }
  };
  return PrintAs(server.Kernels(question.device), question.json, to_json,
                 print);
}

int PrintTensor(const Server& server, const Question& question) {
  const auto print = [](const TensorInfo& info) {
    absl::PrintF("name       %s\n", info.name);
    absl::PrintF("type       %s\n", ToString(info.element_type));
    absl::PrintF("extents    %s\n", ShapeText(info.layout.extents));
    absl::PrintF("strides    %s\n", ShapeText(info.layout.strides));
    absl::PrintF("device     %s\n", info.device);
    absl::PrintF("state      %s\n", ToString(info.state));
    absl::PrintF("size       %s, of which %s have come\n",
                 BytesText(info.span_bytes), BytesText(info.committed_bytes));
    if (!info.view) return;
    absl::PrintF("views      %s: %s, %s%s\n", info.view->viewed,
                 info.view->is_gathered ? "gathered to be read" : "in place",
                 info.view->is_writable ? "writable" : "not writable",
                 info.view->may_pad ? ", with padding" : "");
  };
  return PrintAs(server.Describe(question.name), question.json, TensorJson,
                 print);
}

int DeleteTensors(const Server& server, const Question& question) {
  const absl::StatusOr<int64_t> count = server.Delete(question.names);
  if (!count.ok()) return Fail(count.status());
  absl::PrintF("%d deleted\n", *count);
  return kOk;
}

int ShareTensor(const Server& server, const Question& question) {
  const auto to_json = [](const SharedTensor& shared) {
    return Json{{"share", shared.share}, {"tenants", shared.tenants}};
  };
  const auto print = [](const SharedTensor& shared) {
    absl::PrintF("%s\n", shared.share);
  };
  return PrintAs(server.Share(question.name, question.names), question.json,
                 to_json, print);
}

int UnshareTensor(const Server& server, const Question& question) {
  const auto to_json = [](const std::vector<std::string>& tenants) {
    return Json{{"tenants", tenants}};
  };
  const auto print = [](const std::vector<std::string>& tenants) {
    for (const std::string& tenant : tenants) absl::PrintF("%s\n", tenant);
  };
  return PrintAs(server.Unshare(question.name, question.names), question.json,
                 to_json, print);
}

/// `add(name, help, print)` adds a command and returns it.
template <typename Add>
void AddSharingCommands(const Add& add, Question& question) {
  const char* const tensor = "Name of the tensor, sessions/.../tensors/...";
  CLI::App* const share =
      add("share", "Let tenants read a tensor; prints the name to open it by",
          ShareTensor);
  share->add_option("tensor", question.name, tensor)->required();
  share->add_option("tenants", question.names, "Names of tenants")->required();
  CLI::App* const unshare = add(
      "unshare", "Let tenants read a tensor no longer; prints who still may",
      UnshareTensor);
  unshare->add_option("tensor", question.name, tensor)->required();
  unshare->add_option("tenants", question.names,
                      "Names of tenants; without any, nobody may");
}

}  // namespace

void AddServerCommands(CLI::App& app, CommandLine& line) {
  const auto question = std::make_shared<Question>();
  const auto add = [&](const char* name, const char* help, auto print) {
    CLI::App* command = app.add_subcommand(name, help);
    command->callback([&line, question, print] {
      question->device = line.device;
      AwaitHealth(line, absl::Seconds(question->wait_seconds));
      line.exit_code = print(
          Server(line.address, line.timeout(), line.credentials), *question);
    });
    return command;
  };
  const auto add_json = [&](const char* name, const char* help, auto print) {
    CLI::App* command = add(name, help, print);
    AddJsonFlag(*command, question->json);
    return command;
  };
  add_json("info", "Show the server's version, devices, kernels and limits",
           PrintInfo);
  add_json("stats", "Show what the server has done so far, and its memory",
           PrintStats);
  add("health", "Say whether the server serves; exit 1 when it does not",
      PrintHealth)
      ->add_option("--wait", question->wait_seconds,
                   "Seconds to wait for a server that does")
      ->check(CLI::Range(0.0, 1e6));
  add_json("list", "List the tensors of a session", PrintTensors)
      ->add_option("session", question->name,
                   "Name of the session, sessions/...; sessions are private, "
                   "so only who opened one knows it")
      ->required();
  add_json("describe", "Show one tensor", PrintTensor)
      ->add_option("tensor", question->name,
                   "Name of the tensor, sessions/.../tensors/...")
      ->required();
  add("delete", "Delete tensors of a session", DeleteTensors)
      ->add_option("tensors", question->names,
                   "Names of the tensors, sessions/.../tensors/...")
      ->required();
  AddSharingCommands(add_json, *question);
  add_json("plans", "List the plans of a session", PrintPlans)
      ->add_option("session", question->name, "sessions/...")
      ->required();
  add_json("kernels",
           "List the kernels of a device (--device), first asked first",
           PrintKernels);
}

}  // namespace tensord::cli
