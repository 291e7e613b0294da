// A call with many messages, whose traffic needs no thread of Python.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <string>

#include "client/python/native/src/channel.h"

namespace tensord::native {

/// What is written waits in a queue that a thread sends in batches; what is
/// received waits in another one until it is asked for.
///
/// Threads  safe for concurrent use.
class Stream {
 public:
  /// Begins the call. If it `packs`, messages that wait together go as one
  /// batch, and those that come as one are taken apart, see batch.h.
  Stream(Channel& channel, const std::string& method,
         std::optional<double> timeout_seconds, nanobind::handle metadata,
         bool packs);
  /// Cancels it unless it has ended; does not wait.
  ~Stream();

  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Sends a message soon. Waits, without the GIL, while many bytes are unsent.
  /// Returns false when the call has ended.
  bool Write(nanobind::bytes message);

  /// Says that nothing will follow.
  void EndWrites();

  /// Waits, without the GIL, for messages, and takes all that are there. An
  /// empty list: the call has ended, and all is taken.
  ///
  /// While nobody is in a Hurry(), they come many at a time: this waits for
  /// more, for as long as `gather_seconds` after the first, unless as many are
  /// there as were sent.
  ///
  /// Errors  what Python makes of a signal meanwhile.
  nanobind::list Read(double gather_seconds);

  /// Sends what waits.
  void Flush();

  /// The same; and the Read() that is under way, or else the next one, does not
  /// wait for more than one message.
  void Hurry();

  void Cancel();

  /// Waits for the end of the call.
  /// Errors  CallError: it did not end with OK.
  void Finish();

  struct State;

 private:
  const std::shared_ptr<State> state_;
};

}  // namespace tensord::native
