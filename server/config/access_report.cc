#include "server/config/access_report.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tensord::server {
namespace {

/// What tokens, JWTs or both are called; "": none are taken.
std::string Bearers(const Options& options) {
  std::vector<std::string> kinds;
  if (!options.identity.tokens.empty()) kinds.emplace_back("tokens");
  if (!options.identity.jwt_keys.empty()) kinds.emplace_back("JWTs");
  return absl::StrJoin(kinds, " and ");
}

std::string FirstOf(std::vector<std::string> names) {
  constexpr size_t kMost = 10;
  if (names.size() > kMost) {
    const size_t others = names.size() - kMost;
    names.resize(kMost);
    names.push_back(absl::StrCat("and ", others, " more"));
  }
  return absl::StrJoin(names, ", ");
}

/// Whose calls are taken.
std::string Users(const Options& options, const Authenticator& authenticator) {
  if (!authenticator.asks()) {
    return absl::StrCat("everybody who reaches ",
                        absl::StrJoin(options.listen, " or "));
  }
  std::vector<std::string> who;
  if (options.identity.takes_certificates) {
    who.emplace_back(options.tenants.empty()
                         ? "certificates of --tls-client-ca"
                         : "certificates that --tenants names");
  }
  if (authenticator.takes_users()) {
    who.emplace_back("users of this machine that --tenants names");
  }
  if (const std::string bearers = Bearers(options); !bearers.empty()) {
    who.push_back(bearers);
  }
  return absl::StrJoin(who, " or ");
}

}  // namespace

OperatorsReport ReportOperators(const Options& options,
                                Authenticator& authenticator) {
  const bool serves_others = options.identity.serves_others;
  if (!authenticator.asks()) {
    return {.who = serves_others ? "everybody on this machine" : "everybody",
            .why = serves_others ? "nobody is asked who they are; "
                                   "whoever comes from elsewhere is a user"
                                 : "nobody is asked who they are; this machine "
                                   "alone is served"};
  }
  std::vector<std::string> who;
  std::vector<std::string> sources;  // that say so
  const bool are_all = authenticator.all_certificates_are_operators();
  if (are_all) {
    who.emplace_back("every certificate of --tls-client-ca");
  } else if (std::string named = FirstOf(authenticator.operators());
             !named.empty()) {
    who.push_back(std::move(named));
    if (!options.identity.operators.empty())
      sources.emplace_back("--operators");
    if (!options.tenants.empty()) sources.emplace_back("--tenants");
  }
  if (const std::string bearers = Bearers(options); !bearers.empty()) {
    who.push_back(absl::StrCat(bearers, " of that role"));
    sources.push_back(bearers);
  }
  if (who.empty()) {
    return {.who = "nobody",
            .why = "neither --operators nor --tenants names any"};
  }
  if (are_all) {
    return {.who = absl::StrJoin(who, ", "),
            .why = "this machine alone is served, and no certificate is named"};
  }
  return {.who = absl::StrJoin(who, ", "),
          .why = absl::StrCat("as said by ", absl::StrJoin(sources, " and "))};
}

AccessReport ReportAccess(const Options& options,
                          const Authenticator& authenticator) {
  AccessReport report{.anybody = "health checks",
                      .users = Users(options, authenticator),
                      .operators = "calls of operators"};
  const MonitoringOptions& monitoring = options.monitoring;
  const auto at = [](const std::string& what, const std::string& address) {
    return address.empty() ? "" : absl::StrCat(", ", what, " at ", address);
  };
  absl::StrAppend(&report.anybody, at("probes", monitoring.probes));
  absl::StrAppend(
      monitoring.token_file.empty() ? &report.anybody : &report.operators,
      at("metrics", monitoring.metrics));
  if (!options.admin_listen.empty()) {
    absl::StrAppend(&report.operators, " at ",
                    absl::StrJoin(options.admin_listen, " and "), " alone");
  }
  return report;
}

}  // namespace tensord::server
