#include "client/python/native/src/channel.h"

#include <grpcpp/completion_queue.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/slice.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <chrono>

#include "client/python/native/src/errors.h"

namespace tensord::native {
namespace {

namespace nb = nanobind;

// How soon Ctrl-C is heard.
constexpr std::chrono::milliseconds kSlice(50);

/// Completion queues for one call at a time. They are kept, as making one takes
/// as long as much of a call.
class Queues {
 public:
  /// Those of the process; calls may outlive main().
  static Queues& Kept() {
    static Queues& kept = *new Queues();
    return kept;
  }

  std::unique_ptr<grpc::CompletionQueue> Take() {
    absl::MutexLock lock(&mutex_);
    if (free_.empty()) return std::make_unique<grpc::CompletionQueue>();
    auto queue = std::move(free_.back());
    free_.pop_back();
    return queue;
  }

  void Give(std::unique_ptr<grpc::CompletionQueue> queue) {
    absl::MutexLock lock(&mutex_);
    free_.push_back(std::move(queue));
  }

 private:
  absl::Mutex mutex_;
  std::vector<std::unique_ptr<grpc::CompletionQueue>> free_
      ABSL_GUARDED_BY(mutex_);
};

std::shared_ptr<grpc::Channel> Connect(const std::string& address,
                                       const Channel::Options& options,
                                       const std::optional<Tls>& tls) {
  grpc::ChannelArguments arguments;
  for (const auto& [key, value] : options) {
    if (const int* number = std::get_if<int>(&value)) {
      arguments.SetInt(key, *number);
    } else {
      arguments.SetString(key, std::get<std::string>(value));
    }
  }
  const auto credentials =
      tls.has_value() ? grpc::SslCredentials({tls->roots, tls->private_key,
                                              tls->certificate_chain})
                      : grpc::InsecureChannelCredentials();
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

}  // namespace

void CallOptions::Prepare(grpc::ClientContext& context) const {
  for (const auto& [key, value] : metadata) context.AddMetadata(key, value);
  if (timeout_seconds.has_value()) {
    const auto now = std::chrono::system_clock::now();
    const std::chrono::duration<double> timeout(*timeout_seconds);
    context.set_deadline(
        now + std::chrono::duration_cast<std::chrono::microseconds>(timeout));
  }
}

CallOptions OptionsOf(std::optional<double> timeout_seconds,
                      nb::handle metadata) {
  CallOptions options;
  options.timeout_seconds = timeout_seconds;
  if (metadata.is_none()) return options;
  for (const nb::handle pair : metadata) {
    const auto [key, value] =
        nb::cast<std::pair<std::string, std::string>>(pair);
    options.metadata.emplace_back(key, value);
  }
  return options;
}

grpc::ByteBuffer ToBuffer(nb::bytes message) {
  const grpc::Slice slice(message.c_str(), message.size());
  return grpc::ByteBuffer(&slice, 1);
}

nb::bytes ToBytes(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  (void)buffer.Dump(&slices);
  if (slices.size() == 1) return nb::bytes(slices[0].begin(), slices[0].size());
  nb::bytes bytes = nb::steal<nb::bytes>(PyBytes_FromStringAndSize(
      nullptr, static_cast<Py_ssize_t>(buffer.Length())));
  if (!bytes.is_valid()) throw nb::python_error();
  char* to = PyBytes_AS_STRING(bytes.ptr());
  for (const grpc::Slice& slice : slices) {
    to = std::copy(slice.begin(), slice.end(), to);
  }
  return bytes;
}

Channel::Channel(const std::string& address, const Options& options,
                 const std::optional<Tls>& tls)
    : address_(address),
      channel_(Connect(address, options, tls)),
      stub_(std::make_unique<grpc::GenericStub>(channel_)),
      running_(std::make_shared<Running>()) {}

Channel::~Channel() {
  if (!origin_.is_forked()) return;
  // Its threads are not there: nothing of it may be touched.
  new std::shared_ptr<grpc::Channel>(std::move(channel_));
  (void)stub_.release();
}

Channel::Entry::Entry(Channel& channel, grpc::ClientContext& context)
    : running_(channel.running_) {
  absl::MutexLock lock(&running_->mutex);
  place_ = running_->contexts.insert(running_->contexts.end(), &context);
  if (running_->closed) context.TryCancel();
}

Channel::Entry::~Entry() {
  absl::MutexLock lock(&running_->mutex);
  running_->contexts.erase(place_);
}

void Channel::Check() const {
  origin_.Check();
  absl::MutexLock lock(&running_->mutex);
  if (running_->closed) throw nb::value_error("the channel is closed");
}

void Channel::Close() {
  if (origin_.is_forked()) return;
  absl::MutexLock lock(&running_->mutex);
  running_->closed = true;
  for (grpc::ClientContext* context : running_->contexts) context->TryCancel();
}

nb::bytes Channel::Call(const std::string& method, nb::bytes request,
                        std::optional<double> timeout_seconds,
                        nb::handle metadata) {
  return PendingCall(*this, method, request, timeout_seconds, metadata)
      .Result();
}

struct PendingCall::State {
  State(Channel& channel, const CallOptions& options)
      : origin(channel.origin()), grpc_channel(channel.grpc_channel()) {
    options.Prepare(context);
    entry.emplace(channel, context);
  }

  /// Waits for the end, or for `most`.
  /// Post  has_ended, or so long has passed.
  void Await(std::chrono::system_clock::time_point most) {
    void* tag = nullptr;
    bool ok = false;
    has_ended = has_ended || queue->AsyncNext(&tag, &ok, most) !=
                                 grpc::CompletionQueue::TIMEOUT;
  }

  const Origin origin;
  const std::shared_ptr<grpc::Channel> grpc_channel;
  grpc::ClientContext context;
  std::optional<Channel::Entry> entry;
  std::unique_ptr<grpc::CompletionQueue> queue = Queues::Kept().Take();
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> call;
  grpc::ByteBuffer reply;
  grpc::Status status;
  bool has_ended = false;
};

PendingCall::PendingCall(Channel& channel, const std::string& method,
                         nb::bytes request,
                         std::optional<double> timeout_seconds,
                         nb::handle metadata) {
  channel.Check();
  const CallOptions options = OptionsOf(timeout_seconds, metadata);
  const grpc::ByteBuffer message = ToBuffer(request);
  const nb::gil_scoped_release released;
  state_ = std::make_unique<State>(channel, options);
  state_->call = channel.stub().PrepareUnaryCall(&state_->context, method,
                                                 message, state_->queue.get());
  state_->call->StartCall();
  state_->call->Finish(&state_->reply, &state_->status, nullptr);
}

PendingCall::~PendingCall() {
  if (state_->origin.is_forked()) {
    (void)state_.release();  // Nothing of it may be touched.
    return;
  }
  if (!state_->has_ended) {
    const nb::gil_scoped_release released;
    state_->context.TryCancel();
    state_->Await(std::chrono::system_clock::time_point::max());
  }
  Queues::Kept().Give(std::move(state_->queue));
}

nb::bytes PendingCall::Result() {
  state_->origin.Check();
  std::optional<nb::python_error> interrupt;
  {
    const nb::gil_scoped_release released;
    while (true) {
      state_->Await(std::chrono::system_clock::now() + kSlice);
      if (state_->has_ended) break;
      const nb::gil_scoped_acquire acquired;
      if (!interrupt.has_value() && PyErr_CheckSignals() != 0) {
        interrupt.emplace();
        state_->context.TryCancel();
      }
    }
  }
  if (interrupt.has_value()) throw std::move(*interrupt);
  if (!state_->status.ok()) Raise(OutcomeOf(state_->status, state_->context));
  return ToBytes(state_->reply);
}

}  // namespace tensord::native
