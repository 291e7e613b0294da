#include "server/http/monitoring.h"

#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "prometheus/metric_family.h"
#include "prometheus/text_serializer.h"

namespace tensord::http {
namespace {

Answer AnswerOf(const absl::Status& status, absl::string_view fine) {
  if (status.ok()) return {.body = absl::StrCat(fine, "\n")};
  return {.status = 503, .body = absl::StrCat(status.message(), "\n")};
}

}  // namespace

void Monitoring::Add(const prometheus::Collectable& source) {
  absl::MutexLock lock(&mutex_);
  sources_.push_back(&source);
}

void Monitoring::Show(const StatusSource& source) {
  absl::MutexLock lock(&mutex_);
  status_ = &source;
}

Routes Monitoring::ProbeRoutes() const {
  return {{"/livez", {[this] { return AnswerOf(health_.liveness(), "live"); }}},
          {"/readyz", {[this] {
             const std::string remark = health_.remark();
             return AnswerOf(
                 health_.readiness(),
                 absl::StrCat("ready", remark.empty() ? "" : ": ", remark));
           }}}};
}

Routes Monitoring::MetricsRoutes() const {
  Routes routes = ProbeRoutes();
  routes["/metrics"] = {
      .answer =
          [this] {
            return Answer{
                .content_type = "text/plain; version=0.0.4; charset=utf-8",
                .body = MetricsText()};
          },
      .needs_token = true};
  routes["/status\\.json"] = {.answer = [this] { return Status(); },
                              .needs_token = true};
  routes["/"] = {[] { return StatusPage(); }};
  return routes;
}

Answer Monitoring::Status() const {
  const StatusSource* source = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    source = status_;
  }
  if (source == nullptr) return {.status = 503, .body = "starting\n"};
  return {.content_type = "application/json", .body = StatusJson(*source)};
}

std::string Monitoring::MetricsText() const {
  std::vector<const prometheus::Collectable*> sources;
  {
    absl::MutexLock lock(&mutex_);
    sources = sources_;
  }
  std::vector<prometheus::MetricFamily> families;
  for (const prometheus::Collectable* const source : sources) {
    std::vector<prometheus::MetricFamily> collected = source->Collect();
    std::move(collected.begin(), collected.end(), std::back_inserter(families));
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace tensord::http
