// What a service of the contract is to the server.
#pragma once

#include <grpcpp/grpcpp.h>

#include "server/rpc/coroutine/serve.h"
#include "server/rpc/service_context.h"

namespace tensord::rpc {

/// The handlers of one service. They return what the client hears; all else
/// that is done for a call, the door does.
class Service {
 public:
  virtual ~Service() = default;

  /// Of the generated code.
  virtual grpc::Service& service() = 0;
  /// Binds the handlers.
  virtual void ServeOn(LoopGroup& loops) = 0;
};

}  // namespace tensord::rpc
