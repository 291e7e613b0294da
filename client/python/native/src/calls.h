// Calls that an event loop awaits.
#pragma once

#include <grpcpp/completion_queue.h>
#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "client/python/native/src/channel.h"

namespace tensord::native {

/// Calls with one request and one response, whose ends make a file descriptor
/// readable: one write for all that have ended since the last Take().
///
/// Threads  safe for concurrent use.
class Calls {
 public:
  Calls();
  /// Cancels what is under way; does not wait.
  ~Calls();

  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  /// An eventfd.
  int descriptor() const;

  /// Begins a call. Returns a number that no other has.
  /// Errors  ValueError: the channel is closed.
  int64_t Begin(Channel& channel, const std::string& method,
                nanobind::bytes request, std::optional<double> timeout_seconds,
                nanobind::handle metadata);

  /// Those that have ended: pairs of number and response, or the arguments of a
  /// CallError.
  nanobind::list Take();

  /// Has a call end soon, if it has not.
  void Cancel(int64_t number);

  struct State;

 private:
  const std::shared_ptr<State> state_;
};

}  // namespace tensord::native
