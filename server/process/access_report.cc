#include "server/process/access_report.h"

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

}  // namespace

OperatorsReport ReportOperators(const Options& options,
                                Authenticator& authenticator) {
  const bool serves_others = options.identity.serves_others;
  if (!authenticator.asks()) {
    return {.who = serves_others ? "everybody on this machine" : "everybody",
            .why = serves_others ? "nobody is asked who they are; other "
                                   "machines' are users"
                                 : "nobody is asked who they are; this machine "
                                   "alone is served"};
  }
  std::vector<std::string> who;
  const bool are_all = authenticator.all_certificates_are_operators();
  if (are_all) {
    who.emplace_back("every certificate of --tls-client-ca");
  } else if (std::string named = FirstOf(authenticator.operators());
             !named.empty()) {
    who.push_back(std::move(named));
  }
  if (const std::string bearers = Bearers(options); !bearers.empty()) {
    who.push_back(absl::StrCat(bearers, " of that role"));
  }
  return {.who = who.empty() ? "nobody" : absl::StrJoin(who, ", "),
          .why = are_all
                     ? "this machine alone is served, and no certificate is "
                       "named"
                 : who.empty()
                     ? "neither --operators nor the file of tenants names any"
                     : "named so"};
}

AccessReport ReportAccess(const Options& options,
                          const Authenticator& authenticator) {
  AccessReport report{.anybody = "health checks",
                      .users = "all but operators' calls",
                      .operators = "their calls"};
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
                    absl::StrJoin(options.admin_listen, " and "));
  }
  if (!authenticator.asks()) {
    report.users += ", to everybody who reaches ";
    report.users += absl::StrJoin(options.listen, " or ");
  }
  return report;
}

}  // namespace tensord::server
