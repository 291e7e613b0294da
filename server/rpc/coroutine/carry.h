// Runs, from their start in a session's order to their end.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/execution/run.h"
#include "server/rpc/coroutine/loop.h"
#include "server/rpc/coroutine/on_device.h"
#include "server/rpc/coroutine/task.h"

namespace tensord::rpc {

/// Carries out the run that `start()` makes. Before its first wait, the run
/// takes its place in the session's order. Its times are in the call's record
/// then, until the handler waits again.
///
/// Errors  those of start(), Run::Admit(), the run and OnDevice.
template <typename Start>
Task<absl::StatusOr<std::unique_ptr<server::Run>>> Carry(
    Call& call, const std::shared_ptr<server::Session>& session, Start start) {
  static_assert(std::is_trivially_destructible_v<Start>,
                "GCC 12 would destroy this closure twice");
  std::unique_ptr<server::Run> run;
  OnDevice queued(call, session->device().worker(), session->client());
  {
    absl::MutexLock order(&session->order());
    absl::StatusOr<std::unique_ptr<server::Run>> made = start();
    if (!made.ok()) co_return made.status();
    run = *std::move(made);
    const absl::Status admitted =
        run->Admit(session->device().longest_operation(),
                   absl::FromChrono(call.wire().deadline()));
    if (!admitted.ok()) co_return admitted;
    queued.Queue(*run);
  }
  const absl::Status ran = co_await queued;
  call.record().times = run->times();
  if (!ran.ok()) co_return ran;
  co_return run;
}

}  // namespace tensord::rpc
