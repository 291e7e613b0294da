#include "client/load/report.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/text.h"

namespace tensord::load {
namespace {

using cli::DurationText;
using cli::Json;

/// What the machine of the load is told by, if calls are sent so much later
/// than meant.
constexpr absl::Duration kLate = absl::Milliseconds(10);

constexpr std::pair<const char*, double> kQuantiles[] = {
    {"p50_ms", 0.5}, {"p90_ms", 0.9}, {"p99_ms", 0.99}, {"p999_ms", 0.999}};

Json Milliseconds(absl::Duration duration) {
  return cli::JsonNumber(absl::ToDoubleMilliseconds(duration));
}

void AddQuantiles(const Histogram& histogram, Json& json) {
  for (const auto& [key, quantile] : kQuantiles) {
    json[key] = Milliseconds(histogram.Quantile(quantile));
  }
  json["mean_ms"] = Milliseconds(histogram.mean());
  json["max_ms"] = Milliseconds(histogram.max());
}

Json QuantilesOf(const Histogram& histogram) {
  Json json;
  AddQuantiles(histogram, json);
  return json;
}

/// "-" without any durations.
std::string QuantileText(const Histogram& histogram, double quantile) {
  return histogram.count() == 0 ? "-"
                                : DurationText(histogram.Quantile(quantile));
}

double PerSecond(int64_t count, absl::Duration measured) {
  return measured > absl::ZeroDuration()
             ? count / absl::ToDoubleSeconds(measured)
             : 0;
}

Json ErrorsToJson(const std::map<ErrorKey, ErrorCount>& errors) {
  Json list = Json::array();
  for (const auto& [key, error] : errors) {
    list.push_back({{"code", key.first},
                    {"reason", key.second},
                    {"count", error.count},
                    {"example", error.example}});
  }
  return list;
}

Json HistogramToJson(const Histogram& histogram) {
  std::vector<Json> upper;
  std::vector<Json> counts;
  for (const Histogram::Bucket& bucket : histogram.buckets()) {
    upper.push_back(Milliseconds(bucket.upper));
    counts.push_back(bucket.count);
  }
  return {{"relative_error", Histogram::kRelativeError},
          {"upper_ms", upper},
          {"counts", counts}};
}

void AddCounts(const Counts& counts, absl::Duration measured, Json& json) {
  json["intended"] = counts.intended();
  json["sent"] = counts.sent;
  json["ok"] = counts.ok;
  json["errors"] = counts.error_count();
  json["failed"] = counts.failed;
  json["not_sent"] = counts.not_sent;
  json["unfinished"] = counts.unfinished();
  AddQuantiles(counts.latency, json);
  json["throughput_per_s"] =
      cli::JsonNumber(PerSecond(counts.in_time, measured));
  json["goodput_per_s"] = cli::JsonNumber(PerSecond(counts.good, measured));
  if (counts.transferred_bytes > 0) {
    json["transferred_bytes_per_s"] =
        cli::JsonNumber(PerSecond(counts.transferred_bytes, measured));
  }
  json["errors_by"] = ErrorsToJson(counts.errors);
  json["sent_late"] = QuantilesOf(counts.lateness);
  if (counts.queued.count() > 0) {
    json["queued"] = QuantilesOf(counts.queued);
    json["executed"] = QuantilesOf(counts.executed);
  }
  json["histogram"] = HistogramToJson(counts.latency);
}

Json JudgementToJson(const Objective& objective, const Judgement& judgement) {
  const bool is_latency = objective.metric == Objective::Metric::kLatency;
  const bool is_share = objective.metric == Objective::Metric::kErrorShare;
  const double scale = is_latency ? 1e3 : is_share ? 1e2 : 1;
  return {{"objective", objective.text},
          {is_latency ? "got_ms"
           : is_share ? "got_percent"
                      : "got",
           std::isinf(judgement.got) ? Json(nullptr)
                                     : cli::JsonNumber(judgement.got * scale)},
          {"met", judgement.met}};
}

std::string JudgementText(const Objective& objective,
                          const Judgement& judgement) {
  std::string got;
  switch (objective.metric) {
    case Objective::Metric::kLatency:
      got = std::isinf(judgement.got)
                ? "calls that failed or were not sent"
                : DurationText(absl::Seconds(judgement.got));
      break;
    case Objective::Metric::kErrors:
      got = absl::StrFormat("%.0f", judgement.got);
      break;
    case Objective::Metric::kErrorShare:
      got = absl::StrFormat("%.3g %%", judgement.got * 100);
      break;
    case Objective::Metric::kGoodput:
      got = absl::StrFormat("%.1f/s", judgement.got);
      break;
  }
  return absl::StrFormat("objective %s %s: got %s\n", objective.text,
                         judgement.met ? "met" : "MISSED", got);
}

std::string LineOf(const std::string& name, const Counts& counts,
                   absl::Duration measured) {
  const auto at = [&](double quantile) {
    return QuantileText(counts.latency, quantile);
  };
  return absl::StrFormat(
      "%-20s %9d %9d %8d %8d %10s %10s %10s %10s %10s %10.1f %10.1f\n", name,
      counts.sent, counts.ok, counts.failed, counts.not_sent, at(0.5), at(0.9),
      at(0.99), at(0.999), at(1), PerSecond(counts.in_time, measured),
      PerSecond(counts.good, measured));
}

std::string ErrorLines(const std::string& whose,
                       const std::map<ErrorKey, ErrorCount>& errors) {
  std::string text;
  for (const auto& [key, error] : errors) {
    absl::StrAppend(
        &text, whose, ": ", error.count, " x ", key.first,
        key.second.empty() ? "" : absl::StrCat(" [", key.second, "]"),
        ", e.g. ", error.example, "\n");
  }
  return text;
}

std::string LoopText(const LoadOptions& options) {
  return options.rate_per_s > 0
             ? absl::StrFormat("%g calls/s", options.rate_per_s)
             : absl::StrFormat("%d caller%s", options.closed,
                               options.closed == 1 ? "" : "s");
}

/// What the numbers do not say by themselves.
std::string Warnings(const Report& report, const Counts& total) {
  std::string text;
  if (report.result.is_interrupted) text += "interrupted\n";
  if (total.not_sent > 0) {
    absl::StrAppend(&text, total.not_sent, " calls were not sent, as ",
                    report.options.most_under_way,
                    " were under way already, all that --in-flight allows\n");
  }
  if (total.unfinished() > 0) {
    absl::StrAppend(&text, total.unfinished(), " calls were not waited for\n");
  }
  const absl::Duration late = total.lateness.Quantile(0.99);
  if (late > kLate) {
    absl::StrAppend(&text, "1 % of the calls were sent ", DurationText(late),
                    " late or more: this machine cannot keep up with them\n");
  }
  return text;
}

}  // namespace

Counts Report::total() const {
  Counts total;
  for (const Counts& each : result.counts) total.Add(each);
  return total;
}

std::vector<Judgement> Report::judgements() const {
  std::vector<Judgement> judgements;
  for (const Objective& objective : objectives) {
    const auto of = std::ranges::find(mix.operations, objective.operation,
                                      &OperationSpec::name);
    judgements.push_back(Judge(objective,
                               of == mix.operations.end()
                                   ? total()
                                   : result.counts[of - mix.operations.begin()],
                               result.measured));
  }
  return judgements;
}

Json ToJson(const Report& report) {
  const LoadOptions& options = report.options;
  const absl::Duration measured = report.result.measured;
  const std::vector<Judgement> judgements = report.judgements();
  Json json = {{"mix", report.mix.name},
               {"job", options.job},
               {"address", options.address},
               {"server_version", report.server_version},
               {"device", report.device}};
  if (options.rate_per_s > 0) {
    json["rate_per_s"] = cli::JsonNumber(options.rate_per_s);
    json["most_in_flight"] = options.most_under_way;
    json["seed"] = options.seed;
  } else {
    json["closed"] = options.closed;
  }
  json["sessions"] = options.sessions;
  json["warm_up_s"] = cli::JsonSeconds(options.warm_up);
  json["seconds"] = cli::JsonSeconds(measured);
  json["interrupted"] = report.result.is_interrupted;
  AddCounts(report.total(), measured, json);
  json["objectives"] = Json::array();
  for (size_t i = 0; i < judgements.size(); ++i) {
    json["objectives"].push_back(
        JudgementToJson(report.objectives[i], judgements[i]));
  }
  json["operations"] = Json::array();
  for (size_t i = 0; i < report.mix.operations.size(); ++i) {
    const OperationSpec& spec = report.mix.operations[i];
    Json operation = {{"name", spec.name},
                      {"weight", cli::JsonNumber(spec.weight)}};
    const absl::Duration within = GoodWithin(report.objectives, spec.name);
    if (within < absl::InfiniteDuration()) {
      operation["good_within_ms"] = Milliseconds(within);
    }
    AddCounts(report.result.counts[i], measured, operation);
    json["operations"].push_back(std::move(operation));
  }
  if (report.faults.empty()) return json;
  for (const auto& [kind, counts] : report.faults) {
    json["faults"][ToString(kind)] = {
        {"begun", counts.begun},
        {"refused", counts.refused},
        {"ended", counts.ended},
        {"errors_by", ErrorsToJson(counts.errors)}};
  }
  return json;
}

std::string ToText(const Report& report) {
  const absl::Duration measured = report.result.measured;
  const Counts total = report.total();
  std::string text = absl::StrFormat(
      "%s as %s: tensord %s at %s on %s, %s from %d session%s, measured for "
      "%s after %s\n",
      report.mix.name.empty() ? "load" : report.mix.name, report.options.job,
      report.server_version, report.options.address, report.device,
      LoopText(report.options), report.options.sessions,
      report.options.sessions == 1 ? "" : "s", DurationText(measured),
      DurationText(report.options.warm_up));
  absl::StrAppendFormat(
      &text, "%-20s %9s %9s %8s %8s %10s %10s %10s %10s %10s %10s %10s\n", "",
      "sent", "ok", "failed", "not sent", "p50", "p90", "p99", "p99.9", "max",
      "ok/s", "good/s");
  for (size_t i = 0; i < report.mix.operations.size(); ++i) {
    text += LineOf(report.mix.operations[i].name, report.result.counts[i],
                   measured);
  }
  if (report.mix.operations.size() > 1) text += LineOf("all", total, measured);
  for (size_t i = 0; i < report.mix.operations.size(); ++i) {
    text += ErrorLines(report.mix.operations[i].name,
                       report.result.counts[i].errors);
  }
  for (const auto& [kind, counts] : report.faults) {
    absl::StrAppend(&text, ToString(kind), ": ", counts.begun, " clients, ",
                    counts.refused, " refused, ", counts.ended,
                    " ended by the server\n",
                    ErrorLines(ToString(kind), counts.errors));
  }
  text += Warnings(report, total);
  const std::vector<Judgement> judgements = report.judgements();
  for (size_t i = 0; i < judgements.size(); ++i) {
    text += JudgementText(report.objectives[i], judgements[i]);
  }
  return text;
}

std::string ProgressLine(const IntervalRow& row, const LoadOptions& options) {
  const Interval& interval = row.interval;
  return absl::StrFormat(
      "%4.0f s of %.0f%s  sent %d  ok %d  failed %d  not sent %d  in flight "
      "%d  p50 %s  p99 %s  max %s",
      absl::ToDoubleSeconds(row.end), absl::ToDoubleSeconds(options.measured),
      row.end <= absl::ZeroDuration() ? " (warming up)" : "", interval.sent,
      interval.ok, interval.failed, interval.not_sent, interval.under_way,
      QuantileText(interval.latency, 0.5), QuantileText(interval.latency, 0.99),
      QuantileText(interval.latency, 1));
}

std::string CsvHeader() {
  return "end_s,sent,ok,failed,not_sent,in_flight,p50_ms,p90_ms,p99_ms,"
         "max_ms\n";
}

std::string CsvLine(const IntervalRow& row) {
  const Interval& interval = row.interval;
  const auto at = [&](double quantile) {
    return absl::ToDoubleMilliseconds(interval.latency.Quantile(quantile));
  };
  return absl::StrFormat("%.3f,%d,%d,%d,%d,%d,%.4f,%.4f,%.4f,%.4f\n",
                         absl::ToDoubleSeconds(row.end), interval.sent,
                         interval.ok, interval.failed, interval.not_sent,
                         interval.under_way, at(0.5), at(0.9), at(0.99),
                         absl::ToDoubleMilliseconds(interval.latency.max()));
}

}  // namespace tensord::load
