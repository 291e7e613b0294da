// What calls have a whole server keep in memory.
#pragma once

#include <memory>

#include "tests/fuzz/service_calls.h"

namespace tensord::fuzz {

/// A server, and its clients: a stranger, a user and an operator.
class HeldMemory {
 public:
  HeldMemory();
  ~HeldMemory();

  /// One rpc, called several times at once with a request that is to take
  /// much. While the device is held, what the process has allocated is at most
  /// four times what the server's counters say; at the end nothing is left.
  void Try(Input input);

 private:
  class Clients;
  const std::unique_ptr<Clients> clients_;
};

}  // namespace tensord::fuzz
