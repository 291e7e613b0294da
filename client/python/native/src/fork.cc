#include "client/python/native/src/fork.h"

#include <pthread.h>

#include <atomic>

#include "client/cpp/src/errors.h"
#include "client/python/native/src/errors.h"

namespace tensord::native {
namespace {

std::atomic<int> generation{0};

[[maybe_unused]] const int kRegistered =
    pthread_atfork(nullptr, nullptr, [] { ++generation; });

// When the first one was made; -1 before.
std::atomic<int> first{-1};

[[noreturn]] void RaiseForked(const char* what) {
  Raise(OutcomeOf(
      internal::Error(absl::StatusCode::kFailedPrecondition, "FORKED", what)));
}

}  // namespace

Origin::Origin() : generation_(generation) {
  int none = -1;
  if (!first.compare_exchange_strong(none, generation_) &&
      none != generation_) {
    RaiseForked(
        "this process was forked from one that had connections, and their "
        "threads are not here; wanted a process that was spawned "
        "(multiprocessing.get_context(\"spawn\")) or forked before, or "
        "$TENSORD_IMPLEMENTATION=grpcio");
  }
}

bool Origin::is_forked() const { return generation_ != generation; }

void Origin::Check() const {
  if (!is_forked()) return;
  RaiseForked(
      "the connection was made before this process was forked, wanted one that "
      "this process made itself");
}

}  // namespace tensord::native
