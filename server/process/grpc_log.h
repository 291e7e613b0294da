// What gRPC says by itself.
#pragma once

#include "server/telemetry/log.h"

namespace tensord::server {

/// Has it go to `log` as events `grpc`, some a minute: whoever makes calls can
/// have it say something of each. Where it is asked to say more, by
/// GRPC_VERBOSITY, it goes on by itself.
///
/// Lifetime  `log` is there to the process's end.
void TakeGrpcLog(Log& log);

}  // namespace tensord::server
