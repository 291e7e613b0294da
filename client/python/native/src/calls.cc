#include "client/python/native/src/calls.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "client/python/native/src/errors.h"

namespace tensord::native {
namespace {

namespace nb = nanobind;

/// One call; its address is its tag.
struct Pending {
  Pending(int64_t number, Channel& channel)
      : number(number), grpc_channel(channel.grpc_channel()) {}

  const int64_t number;
  const std::shared_ptr<grpc::Channel> grpc_channel;
  grpc::ClientContext context;
  std::optional<Channel::Entry> entry;  // while it runs
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> call;
  grpc::ByteBuffer reply;
  grpc::Status status;
};

}  // namespace

struct Calls::State {
  State() : descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~State() { close(descriptor); }

  /// Until the queue is shut down and all have ended.
  void Pump();

  const Origin origin;
  const int descriptor;
  grpc::CompletionQueue queue;
  absl::Mutex mutex;
  int64_t count ABSL_GUARDED_BY(mutex) = 0;
  absl::flat_hash_map<int64_t, std::unique_ptr<Pending>> running
      ABSL_GUARDED_BY(mutex);
  std::vector<std::unique_ptr<Pending>> ended ABSL_GUARDED_BY(mutex);
};

void Calls::State::Pump() {
  void* tag = nullptr;
  bool ok = false;
  while (queue.Next(&tag, &ok)) {
    auto* const pending = static_cast<Pending*>(tag);
    pending->entry.reset();
    absl::MutexLock lock(&mutex);
    auto node = running.extract(pending->number);
    ended.push_back(std::move(node.mapped()));
    if (ended.size() == 1) {
      // It holds one number, which does not overflow.
      (void)eventfd_write(descriptor, 1);
    }
  }
}

Calls::Calls() : state_(std::make_shared<State>()) {
  std::thread([state = state_] { state->Pump(); }).detach();
}

Calls::~Calls() {
  if (state_->origin.is_forked()) {
    new std::shared_ptr<State>(state_);  // Nothing of it may be touched.
    return;
  }
  absl::MutexLock lock(&state_->mutex);
  for (const auto& [number, pending] : state_->running) {
    pending->context.TryCancel();
  }
  state_->queue.Shutdown();
}

int Calls::descriptor() const { return state_->descriptor; }

int64_t Calls::Begin(Channel& channel, const std::string& method,
                     nb::bytes request, std::optional<double> timeout_seconds,
                     nb::handle metadata) {
  state_->origin.Check();
  channel.Check();
  const CallOptions options = OptionsOf(timeout_seconds, metadata);
  const grpc::ByteBuffer message = ToBuffer(request);
  nb::gil_scoped_release released;
  absl::MutexLock lock(&state_->mutex);
  auto pending = std::make_unique<Pending>(state_->count++, channel);
  options.Prepare(pending->context);
  pending->entry.emplace(channel, pending->context);
  pending->call = channel.stub().PrepareUnaryCall(&pending->context, method,
                                                  message, &state_->queue);
  pending->call->StartCall();
  Pending* const place = pending.get();
  state_->running.emplace(place->number, std::move(pending));
  place->call->Finish(&place->reply, &place->status, place);
  return place->number;
}

nb::list Calls::Take() {
  std::vector<std::unique_ptr<Pending>> taken;
  {
    absl::MutexLock lock(&state_->mutex);
    taken.swap(state_->ended);
    eventfd_t unused = 0;
    (void)eventfd_read(state_->descriptor, &unused);
  }
  nb::list results;
  for (const auto& each : taken) {
    nb::object result;
    if (each->status.ok()) {
      result = ToBytes(each->reply);
    } else {
      result = ErrorArguments(OutcomeOf(each->status, each->context));
    }
    results.append(nb::make_tuple(each->number, result));
  }
  return results;
}

void Calls::Cancel(int64_t number) {
  if (state_->origin.is_forked()) return;
  absl::MutexLock lock(&state_->mutex);
  const auto place = state_->running.find(number);
  if (place != state_->running.end()) place->second->context.TryCancel();
}

}  // namespace tensord::native
