// What a server tells of itself, in JSON.
#pragma once

#include "client/cli/json.h"
#include "tensord/operator.h"
#include "tensord/server.h"

namespace tensord::cli {

Json StatsJson(const ServerStats& stats);
Json SessionJson(const SessionState& session);

}  // namespace tensord::cli
