// The least that a server over gRPC can be: what calls cost without tensord.
#pragma once

#include <string>

namespace tensord::benchmarks {

/// Answers at `address`, on one completion queue and one thread, until the
/// process is told to end: KeepSessionAlive with nothing, Contract with a small
/// product that it has ready.
void ServeEchoes(const std::string& address);

}  // namespace tensord::benchmarks
