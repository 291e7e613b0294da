#include "server/rpc/service_context.h"

#include "core/base/status.h"
#include "server/session/collection.h"

namespace tensord::rpc {
namespace {

/// The session that `name`, of something of that kind, begins with.
absl::StatusOr<std::shared_ptr<server::Session>> FindSession(
    server::SessionManager& sessions, absl::string_view name,
    const server::CollectionKind& kind) {
  const absl::string_view session = server::SessionOf(name, kind);
  if (session.empty()) return server::NameMalformed(name, kind);
  return sessions.Find(session);
}

}  // namespace

absl::StatusOr<FoundTensor> ServiceContext::FindTensor(
    absl::string_view tensor_name) const {
  FoundTensor found;
  TENSORD_ASSIGN_OR_RETURN(
      found.session, FindSession(sessions, tensor_name, server::kTensors));
  TENSORD_ASSIGN_OR_RETURN(found.tensor, found.session->Find(tensor_name));
  return found;
}

absl::StatusOr<FoundPlan> ServiceContext::FindPlan(
    absl::string_view plan_name) const {
  FoundPlan found;
  TENSORD_ASSIGN_OR_RETURN(found.session,
                           FindSession(sessions, plan_name, server::kPlans));
  TENSORD_ASSIGN_OR_RETURN(found.plan, found.session->plans().Find(plan_name));
  return found;
}

absl::StatusOr<FoundProgram> ServiceContext::FindProgram(
    absl::string_view program_name) const {
  FoundProgram found;
  TENSORD_ASSIGN_OR_RETURN(
      found.session, FindSession(sessions, program_name, server::kPrograms));
  TENSORD_ASSIGN_OR_RETURN(found.program,
                           found.session->programs().Find(program_name));
  return found;
}

}  // namespace tensord::rpc
