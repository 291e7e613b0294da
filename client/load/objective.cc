#include "client/load/objective.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace tensord::load {
namespace {

using Metric = Objective::Metric;

absl::Status Malformed(absl::string_view text, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(
      "the objective '", text, "' ", problem,
      ", wanted e.g. p99<10ms, errors<1%, goodput>100 or small:p50<2ms"));
}

/// 0.999 for "p99.9".
std::optional<double> ParseQuantile(absl::string_view text) {
  double percent = 0;
  if (!absl::ConsumePrefix(&text, "p") || !absl::SimpleAtod(text, &percent) ||
      !(percent > 0 && percent < 100)) {
    return std::nullopt;
  }
  return percent / 100;
}

std::optional<double> ParseCount(absl::string_view text) {
  double count = 0;
  if (!absl::SimpleAtod(text, &count) || !(count >= 0) || std::isinf(count)) {
    return std::nullopt;
  }
  return count;
}

}  // namespace

absl::StatusOr<Objective> ParseObjective(const std::string& text) {
  Objective objective{.text = text};
  absl::string_view metric = text;
  const size_t relation = text.find_first_of("<>");
  if (relation == std::string::npos) {
    return Malformed(text, "compares nothing");
  }
  objective.is_upper = text[relation] == '<';
  absl::string_view bound = metric.substr(relation + 1);
  objective.is_strict = !absl::ConsumePrefix(&bound, "=");
  metric = metric.substr(0, relation);
  const size_t colon = metric.rfind(':');
  if (colon != absl::string_view::npos) {
    objective.operation = std::string(metric.substr(0, colon));
    metric.remove_prefix(colon + 1);
  }

  std::optional<double> value;
  if (metric == "errors") {
    const bool is_share = absl::ConsumeSuffix(&bound, "%");
    objective.metric = is_share ? Metric::kErrorShare : Metric::kErrors;
    value = ParseCount(bound);
    if (is_share && value.has_value()) *value /= 100;
  } else if (metric == "goodput") {
    objective.metric = Metric::kGoodput;
    absl::ConsumeSuffix(&bound, "/s");
    value = ParseCount(bound);
  } else if (const std::optional<double> quantile = ParseQuantile(metric)) {
    objective.quantile = *quantile;
    absl::Duration duration;
    if (absl::ParseDuration(bound, &duration) &&
        duration >= absl::ZeroDuration()) {
      value = absl::ToDoubleSeconds(duration);
    }
  } else {
    return Malformed(text, absl::StrCat("is about '", metric, "'"));
  }
  if (!value.has_value()) {
    return Malformed(text, absl::StrCat("has the bound '", bound, "'"));
  }
  objective.bound = *value;
  return objective;
}

Judgement Judge(const Objective& objective, const Counts& counts,
                absl::Duration measured) {
  const int64_t intended = counts.intended();
  double got = 0;
  switch (objective.metric) {
    case Metric::kLatency:
      got = absl::ToDoubleSeconds(
          counts.latency.AtRank(RankOf(objective.quantile, intended)));
      break;
    case Metric::kErrors: got = counts.error_count(); break;
    case Metric::kErrorShare:
      got = static_cast<double>(counts.error_count()) /
            std::max<int64_t>(intended, 1);
      break;
    case Metric::kGoodput:
      got = counts.good / absl::ToDoubleSeconds(measured);
      break;
  }
  const double bound = objective.bound;
  const bool met = objective.is_upper ? got < bound : got > bound;
  return {.got = got, .met = met || (!objective.is_strict && got == bound)};
}

absl::Duration GoodWithin(const std::vector<Objective>& objectives,
                          const std::string& operation) {
  for (const std::string& whose : {operation, std::string()}) {
    double most = -1;
    for (const Objective& each : objectives) {
      if (each.metric == Metric::kLatency && each.is_upper &&
          each.operation == whose) {
        most = std::max(most, each.bound);
      }
    }
    if (most >= 0) return absl::Seconds(most);
  }
  return absl::InfiniteDuration();
}

}  // namespace tensord::load
