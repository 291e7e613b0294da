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

absl::StatusOr<TenantsFile> ReadTenants(const std::string& path) {
  TENSORD_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return ParseTenants(path, text);
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

absl::Status LiveFiles::OpenAudit() {
  if (options_.audit_log.empty()) return absl::OkStatus();
  return log_.OpenAudit(options_.audit_log);
}

absl::Status LiveFiles::ReadCertificates() {
  TENSORD_ASSIGN_OR_RETURN(certificates_, LoadCertificates(options_.tls, log_));
  TENSORD_ASSIGN_OR_RETURN(metrics_certificates_,
                           LoadCertificates(options_.monitoring.tls, log_));
  return absl::OkStatus();
}

absl::Status LiveFiles::ReadIdentities() {
  Authenticator::Options identity = options_.identity;
  if (!options_.tenants.empty()) {
    const auto tenants = ReadTenants(options_.tenants);
    // What is wrong with it, Follow() says.
    identity.takes_users = tenants.ok() && tenants->NamesUsers();
  }
  TENSORD_ASSIGN_OR_RETURN(authenticator_,
                           Authenticator::Create(std::move(identity)));
  return absl::OkStatus();
}

absl::Status LiveFiles::Follow(SessionManager& sessions, Engine& engine) {
  TENSORD_RETURN_IF_ERROR(ApplyTenants(sessions, engine));
  for (Certificates* const certificates :
       {certificates_.get(), metrics_certificates_.get()}) {
    if (certificates == nullptr) continue;
    Follow("certificates", certificates->files().paths(),
           [this, certificates] { return ReloadCertificates(*certificates); });
  }
  Follow("tokens", authenticator_->paths(),
         [this] { return authenticator_->Reload(); });
  if (!options_.tenants.empty()) {
    Follow("tenants", {options_.tenants}, [this, &sessions, &engine] {
      return ApplyTenants(sessions, engine);
    });
  }
  if (!options_.audit_log.empty()) {
    // Not when it changes, as each line does that.
    Follow(
        "audit_log", {options_.audit_log},
        [this] { return log_.ReopenAudit(); },
        /*is_watched=*/false);
  }
  return absl::OkStatus();
}

void LiveFiles::Follow(std::string what, std::vector<std::string> paths,
                       std::function<absl::Status()> reload, bool is_watched) {
  if (paths.empty()) return;
  metrics_.ExpectReloads(what);
  const Followed& followed = followed_.emplace_back(
      Followed{std::move(what), paths, std::move(reload)});
  if (!is_watched) paths.clear();
  watch_.Add(std::move(paths), [this, &followed] {
    absl::MutexLock lock(&reloading_);
    Tell(followed.what, followed.reload());
  });
}

std::vector<ReloadedFiles> LiveFiles::Reload() {
  std::vector<ReloadedFiles> reloaded;
  absl::MutexLock lock(&reloading_);
  for (const Followed& followed : followed_) {
    reloaded.push_back({followed.what, followed.paths, followed.reload()});
    Tell(followed.what, reloaded.back().status);
  }
  return reloaded;
}

absl::Status LiveFiles::ApplyTenants(SessionManager& sessions, Engine& engine) {
  if (options_.tenants.empty()) return absl::OkStatus();
  TENSORD_ASSIGN_OR_RETURN(const TenantsFile file,
                           ReadTenants(options_.tenants));
  if (file.NamesUsers() && !authenticator_->takes_users()) {
    return core::InvalidArgument(
        "TENANTS_MALFORMED", options_.tenants,
        ": names users for the first time since the server's start, which "
        "takes a start");
  }
  TenantsLimits limits;
  std::map<std::string, double> weights = options_.engine.weights;  // of jobs
  std::vector<std::string> names;
  for (const auto& [name, shares] : file.tenants) {
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
  const absl::Status set = sessions.SetTenants(std::move(limits));
  if (!set.ok()) {
    return core::InvalidArgument(core::ReasonOf(set), options_.tenants, ": ",
                                 set.message());
  }
  authenticator_->SetTenants(file);
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

absl::Status LiveFiles::ReloadCertificates(Certificates& certificates) {
  TENSORD_RETURN_IF_ERROR(certificates.Reload());
  LogCertificate(certificates, log_);
  return absl::OkStatus();
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
