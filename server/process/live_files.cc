#include "server/process/live_files.h"

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "server/identity/tenants.h"

namespace tensord::server {
namespace {

/// What is read again when it changes.
std::vector<std::string> WatchedFiles(const Options& options) {
  std::vector<std::string> paths = {options.identity.tokens,
                                    options.identity.jwt_keys, options.tenants};
  for (const CertificateFiles* const tls :
       {&options.tls, &options.monitoring.tls}) {
    const std::vector<std::string> more = tls->paths();
    paths.insert(paths.end(), more.begin(), more.end());
  }
  return paths;
}

constexpr absl::Duration kDay = absl::Hours(24);

bool EndsSoon(const Certificates& certificates) {
  return certificates.contents()->expires - absl::Now() < 14 * kDay;
}

/// Says when a certificate ends, aloud when that is soon.
void LogCertificate(const Certificates& certificates, Log& log) {
  const absl::Time expires = certificates.contents()->expires;
  log.Event(EndsSoon(certificates) ? LogLevel::kWarning : LogLevel::kInfo,
            "certificate",
            {{"file", certificates.files().certificate},
             {"expires", absl::FormatTime(expires, absl::UTCTimeZone())}});
}

/// Null without TLS.
absl::StatusOr<std::unique_ptr<Certificates>> LoadCertificates(
    const CertificateFiles& files, Log& log) {
  if (files.certificate.empty()) return nullptr;
  auto certificates = Certificates::Load(files);
  if (certificates.ok()) LogCertificate(**certificates, log);
  return certificates;
}

}  // namespace

LiveFiles::LiveFiles(const Options& options, Metrics& metrics, Log& log)
    : options_(options),
      metrics_(metrics),
      log_(log),
      watch_(WatchedFiles(options)) {}

absl::Status LiveFiles::ReadCertificates() {
  TENSORD_ASSIGN_OR_RETURN(certificates_, LoadCertificates(options_.tls, log_));
  TENSORD_ASSIGN_OR_RETURN(metrics_certificates_,
                           LoadCertificates(options_.monitoring.tls, log_));
  return absl::OkStatus();
}

absl::Status LiveFiles::ReadIdentities() {
  TENSORD_ASSIGN_OR_RETURN(authenticator_,
                           Authenticator::Create(options_.identity));
  return absl::OkStatus();
}

absl::Status LiveFiles::Follow(SessionManager& sessions, Engine& engine) {
  TENSORD_RETURN_IF_ERROR(ApplyTenants(sessions, engine));
  FollowCertificates(certificates_.get());
  FollowCertificates(metrics_certificates_.get());
  if (!authenticator_->paths().empty()) {
    watch_.Add(authenticator_->paths(),
               [this] { Tell("tokens", authenticator_->Reload()); });
  }
  if (!options_.tenants.empty()) {
    watch_.Add({options_.tenants}, [this, &sessions, &engine] {
      Tell("tenants", ApplyTenants(sessions, engine));
    });
  }
  return absl::OkStatus();
}

absl::Status LiveFiles::ApplyTenants(SessionManager& sessions, Engine& engine) {
  const std::string& file = options_.tenants;
  if (file.empty()) return absl::OkStatus();
  TENSORD_ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  TENSORD_ASSIGN_OR_RETURN(const Tenants tenants, ParseTenants(file, text));
  TenantsLimits limits;
  std::map<std::string, double> weights = options_.engine.weights;  // of jobs
  std::vector<std::string> names;
  for (const auto& [name, shares] : tenants) {
    limits[name] = {.priority = shares.priority,
                    .sessions = shares.sessions,
                    .quotas = {.device_bytes = shares.device_bytes,
                               .reserved_bytes = shares.reserved_bytes,
                               .host_bytes = shares.host_bytes,
                               .tensors = shares.tensors,
                               .queued = shares.queued,
                               .running = shares.running,
                               .staging_bytes = shares.staging_bytes,
                               .search_seconds = shares.search_seconds}};
    weights[OwnerOfTenant(name)] = shares.weight;
    names.push_back(name);
  }
  TENSORD_RETURN_IF_ERROR(sessions.SetTenants(std::move(limits)));
  authenticator_->SetTenants(tenants);
  metrics_.SetTenants(names);
  for (const auto& device : engine.devices()) {
    device->worker().SetWeights(weights);
  }
  return absl::OkStatus();
}

void LiveFiles::WarnOfExpiry() {
  if (absl::Now() - warned_ < kDay) return;
  warned_ = absl::Now();
  for (const auto* each : {certificates(), metrics_certificates()}) {
    if (each != nullptr && EndsSoon(*each)) LogCertificate(*each, log_);
  }
}

void LiveFiles::FollowCertificates(Certificates* certificates) {
  if (certificates == nullptr) return;
  watch_.Add(certificates->files().paths(), [this, certificates] {
    const absl::Status reloaded = certificates->Reload();
    Tell("certificates", reloaded);
    if (reloaded.ok()) LogCertificate(*certificates, log_);
  });
}

void LiveFiles::Tell(absl::string_view what, const absl::Status& status) {
  metrics_.CountReload(what, status.ok());
  if (status.ok()) {
    log_.Info("reloaded", {{"what", what}});
  } else {
    log_.Event(LogLevel::kError, "kept",
               {{"what", what}, {"message", status.message()}});
  }
}

}  // namespace tensord::server
