// info, stats, health, list and describe.
#pragma once

#include <string>

#include "tensord/server.h"

namespace tensord::cli {

// Each prints to stdout, as JSON when asked to, and returns an exit code.

int PrintInfo(const Server& server, bool json);
int PrintStats(const Server& server, bool json);
int PrintHealth(const Server& server);
int PrintTensors(const Server& server, const std::string& session, bool json);
int PrintPlans(const Server& server, const std::string& session, bool json);
/// "" is the server's first device.
int PrintKernels(const Server& server, const std::string& device, bool json);
int PrintTensor(const Server& server, const std::string& tensor, bool json);

}  // namespace tensord::cli
