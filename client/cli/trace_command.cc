// trace: what the server does, as a timeline.
//
// In Chrome's trace format, which Perfetto opens, as well: each device is a
// process, and one behind it has the calls that wait for it and use it. What
// overlaps goes to different rows, which are threads there.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/commands.h"
#include "client/cli/json.h"
#include "client/cli/options.h"
#include "client/cli/text.h"
#include "tensord/operator.h"

namespace tensord::cli {
namespace {

struct TraceQuestion {
  double seconds = 5;
  std::string request_id;
  std::string tenant;
  std::string output;
};

/// Microseconds, as the format has it.
double Microseconds(absl::Duration duration) {
  return absl::ToDoubleMicroseconds(duration);
}

/// Rows of one process, none of which has two things at a time.
class Rows {
 public:
  /// The first row that is free from `begin`; it is taken until `end`.
  int Take(absl::Time begin, absl::Time end) {
    size_t row = 0;
    while (row < free_from_.size() && free_from_[row] > begin) ++row;
    if (row == free_from_.size()) free_from_.emplace_back();
    free_from_[row] = end;
    return static_cast<int>(row) + 1;
  }
  int count() const { return static_cast<int>(free_from_.size()); }

 private:
  std::vector<absl::Time> free_from_;  // (row)
};

struct Phase {
  const char* name;
  std::optional<absl::Duration> Activity::*time;
};
constexpr Phase kPhases[] = {{"plan", &Activity::plan},
                             {"queue", &Activity::queue},
                             {"kernel", &Activity::kernel_time},
                             {"transfer", &Activity::transfer}};

/// Makes the file of what it is given.
class ChromeTrace {
 public:
  /// Requires  in the order in which they began.
  void Add(const Activity& activity) {
    if (first_ == absl::InfiniteFuture()) first_ = activity.begun;
    const std::string& what =
        activity.operation.empty() ? activity.rpc : activity.operation;
    const std::string where =
        activity.device.empty() ? "server" : activity.device;
    Json detail = {{"rpc", activity.rpc},
                   {"code", activity.code},
                   {"kernel", activity.kernel},
                   {"tenant", activity.tenant},
                   {"session", activity.session_number},
                   {"request_id", activity.request_id},
                   {"trace_id", activity.trace_id}};
    Process& calls = ProcessOf(where + " calls");
    const int row =
        calls.rows.Take(activity.begun, activity.begun + activity.took);
    AddSlice(calls.id, row, what, activity.begun, activity.took, detail);
    absl::Time at = activity.begun;
    for (const Phase& phase : kPhases) {
      const auto& time = activity.*(phase.time);
      if (!time) continue;
      AddSlice(calls.id, row, phase.name, at, *time, Json::object());
      if (phase.time == &Activity::kernel_time) {
        kernels_.push_back({at, *time, where, what, detail});
      }
      at += *time;
    }
  }

  Json ToJson() {
    std::ranges::stable_sort(kernels_, {}, &Kernel::begun);
    for (const Kernel& kernel : kernels_) {
      Process& device = ProcessOf(kernel.device);
      const int row =
          device.rows.Take(kernel.begun, kernel.begun + kernel.took);
      AddSlice(device.id, row, kernel.what, kernel.begun, kernel.took,
               kernel.detail);
    }
    for (const auto& [name, process] : processes_) {
      AddName("process_name", process.id, 0, name);
      for (int row = 1; row <= process.rows.count(); ++row) {
        AddName("thread_name", process.id, row, absl::StrCat("row ", row));
      }
    }
    return {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events_)}};
  }

 private:
  struct Process {
    int id = 0;
    Rows rows;
  };
  /// What a device worked on.
  struct Kernel {
    absl::Time begun;
    absl::Duration took;
    std::string device;
    std::string what;
    Json detail;
  };

  Process& ProcessOf(const std::string& name) {
    const auto [entry, is_new] = processes_.try_emplace(name);
    if (is_new) entry->second.id = static_cast<int>(processes_.size());
    return entry->second;
  }
  void AddSlice(int process, int row, const std::string& name, absl::Time begun,
                absl::Duration took, const Json& detail) {
    events_.push_back({{"ph", "X"},
                       {"pid", process},
                       {"tid", row},
                       {"name", name},
                       {"ts", Microseconds(begun - first_)},
                       {"dur", Microseconds(took)},
                       {"args", detail}});
  }
  void AddName(const char* kind, int process, int row,
               const std::string& name) {
    events_.push_back({{"ph", "M"},
                       {"pid", process},
                       {"tid", row},
                       {"name", kind},
                       {"args", {{"name", name}}}});
  }

  absl::Time first_ = absl::InfiniteFuture();
  std::map<std::string, Process> processes_;
  std::vector<Kernel> kernels_;
  Json events_ = Json::array();
};

int Trace(const Timeline& timeline, const TraceQuestion& question) {
  std::ofstream file(question.output);
  if (!file) {
    return Fail(absl::UnknownError(absl::StrCat(
        "cannot write ", question.output, ": ", std::strerror(errno))));
  }
  std::vector<Activity> activities;
  const auto dropped = timeline.Record(
      {.duration = absl::Seconds(question.seconds),
       .request_id = question.request_id,
       .tenant = question.tenant},
      [] { absl::FPrintF(stderr, "recording\n"); },
      [&](const Activity& activity) { activities.push_back(activity); });
  if (!dropped.ok()) return Fail(dropped.status());
  std::ranges::stable_sort(activities, {}, &Activity::begun);
  ChromeTrace trace;
  for (const Activity& activity : activities) trace.Add(activity);
  file << trace.ToJson().dump() << "\n";
  file.close();
  if (!file) {
    return Fail(absl::UnknownError(
        absl::StrCat("cannot write all of ", question.output)));
  }
  absl::PrintF("%d calls and operations in %s, %d lost\n", activities.size(),
               question.output, *dropped);
  if (!activities.empty() || question.request_id.empty()) return kOk;
  return Fail(absl::NotFoundError(
      absl::StrCat("no call with the id ", question.request_id, " ended in ",
                   DurationText(absl::Seconds(question.seconds)))));
}

}  // namespace

void AddTraceCommand(CLI::App& app, CommandLine& line) {
  const auto question = std::make_shared<TraceQuestion>();
  CLI::App* command =
      app.add_subcommand("trace",
                         "Record what the server does, for operators; Perfetto "
                         "(https://ui.perfetto.dev) shows the file");
  command->add_option("--seconds", question->seconds, "How long to record")
      ->check(CLI::Range(0.001, 600.0))
      ->capture_default_str();
  command->add_option("--request", question->request_id,
                      "Record the call that has this x-request-id, and stop "
                      "when it has ended");
  command->add_option("--tenant", question->tenant,
                      "Record only what this tenant does");
  AddOutput(*command, question->output, "File for the timeline, as JSON")
      ->required();
  command->callback([&line, question] {
    line.exit_code = Trace(Timeline(line.address, line.credentials), *question);
  });
}

}  // namespace tensord::cli
