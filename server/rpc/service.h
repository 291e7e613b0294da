// What a service of the contract is to the server.
#pragma once

#include <initializer_list>

#include "absl/strings/string_view.h"
#include "server/rpc/coroutine/serve.h"
#include "server/rpc/service_context.h"
#include "server/rpc/transport/raw_service.h"

namespace tensord::rpc {

/// The handlers of one service. They return what the client hears; all else
/// that is done for a call, the door does.
class Service {
 public:
  /// Those of the methods `transfers` copy payload, where that does not hold up
  /// others.
  explicit Service(const google::protobuf::ServiceDescriptor& type,
                   std::initializer_list<absl::string_view> transfers = {})
      : raw_(type, transfers) {}
  virtual ~Service() = default;

  RawService& raw() { return raw_; }
  /// Binds the handlers.
  virtual void ServeOn(LoopGroup& loops) = 0;

 private:
  RawService raw_;
};

}  // namespace tensord::rpc
