#include "server/session/tenant_use.h"

namespace tensord::server {

std::map<std::string, TenantUse> UseByTenant(const SessionManager& sessions,
                                             const Metrics& metrics) {
  std::map<std::string, TenantUse> uses;
  for (const auto& tenant : metrics.tenants()) uses[tenant.name];
  for (const auto& session : sessions.List()) {
    const auto found = uses.find(session->options().tenant);
    TenantUse& use = found == uses.end() ? uses["other"] : found->second;
    ++use.sessions;
    use.tensors += session->tensor_count();
    use.used_bytes += session->memory()->used_bytes();
  }
  return uses;
}

}  // namespace tensord::server
