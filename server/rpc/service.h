// What a service of the contract is to the server.
#pragma once

#include "server/rpc/coroutine/raw_service.h"
#include "server/rpc/coroutine/serve.h"
#include "server/rpc/service_context.h"

namespace tensord::rpc {

/// The handlers of one service. They return what the client hears; all else
/// that is done for a call, the door does.
class Service {
 public:
  explicit Service(const google::protobuf::ServiceDescriptor& type)
      : raw_(type) {}
  virtual ~Service() = default;

  RawService& raw() { return raw_; }
  /// Binds the handlers.
  virtual void ServeOn(LoopGroup& loops) = 0;

 private:
  RawService raw_;
};

}  // namespace tensord::rpc
