// The tensord server.
#include <grpc/grpc.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>

#include <climits>
#include <variant>

#include "absl/synchronization/mutex.h"
#include "server/config/options.h"
#include "server/process/server_process.h"

namespace {

/// Keeps the heap from returning pages between messages: receivers would fault
/// them in again, which costs a third of the transfer rate. The process does it
/// when it has time.
void TuneHeap() {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  mallopt(M_TOP_PAD, 64 << 20);
}

}  // namespace

int main(int argc, char** argv) {
  TuneHeap();
  // Debian's Abseil looks for deadlocks in every build, under one lock for the
  // whole process: that costs more than all else in a plan cache hit.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // Before any thread starts, gRPC's too, so that all inherit the mask: one
  // that did not would end the process without a drain.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  // A file that may not grow, or a pipe whose reader has gone, is an error of
  // whoever writes it.
  signal(SIGXFSZ, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  // gRPC stays until the process ends: its last user would wait for its poller,
  // up to 10 s.
  grpc_init();
  const auto parsed = tensord::server::ParseOptions(argc, argv, environ);
  if (const int* status = std::get_if<int>(&parsed)) return *status;
  tensord::server::ServerProcess process(
      std::get<tensord::server::Options>(parsed));
  if (!process.Start()) return tensord::server::kCannotServe;
  process.End(process.AwaitEnd(signals));
}
