#include "client/cpp/src/connection.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "client/cpp/src/convert.h"

namespace tensord::internal {
namespace {

constexpr int64_t kPreferredChunkBytes = int64_t{1} << 20;
constexpr int64_t kBytesPerExtraSecond = int64_t{32} << 20;
// What destructors wait for at most.
constexpr absl::Duration kFarewell = absl::Seconds(5);

}  // namespace

LeaseKeeper::LeaseKeeper(const Channels& channels, std::string session,
                         absl::Duration lease)
    : channels_(channels),
      session_(std::move(session)),
      interval_(lease / 3),
      thread_([this] { Run(); }) {}

LeaseKeeper::~LeaseKeeper() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    if (running_ != nullptr) running_->TryCancel();
  }
  thread_.join();
}

void LeaseKeeper::Run() {
  v1::KeepSessionAliveRequest request;
  request.set_session(session_);
  const auto stopping = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stopping_;
  };
  while (true) {
    grpc::ClientContext context;
    {
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopping), interval_)) {
        return;
      }
      channels_.Prepare(context, absl::Now() + interval_);
      running_ = &context;
    }
    v1::KeepSessionAliveResponse response;
    const grpc::Status status =
        channels_.session->KeepSessionAlive(&context, request, &response);
    absl::MutexLock lock(&mutex_);
    running_ = nullptr;
    if (status.error_code() == grpc::StatusCode::NOT_FOUND) return;
  }
}

Connection::Connection(std::string_view address, const SessionOptions& options)
    : channels_(address, options.deadline, options.credentials,
                options.headers),
      address_(address),
      transport_(options.transport),
      order_(options.order) {}

absl::StatusOr<std::shared_ptr<Connection>> Connection::Open(
    std::string_view address, const SessionOptions& options) {
  std::shared_ptr<Connection> connection(new Connection(address, options));
  Channels& channels = connection->channels_;
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const v1::GetServerInfoResponse info,
      channels.Call(channels.admin, &v1::AdminService::Stub::GetServerInfo,
                    v1::GetServerInfoRequest()));
  connection->limits_ = FromProto(info.limits());

  v1::OpenSessionRequest request;
  request.set_job(options.job);
  *request.mutable_lease() = ToProto(options.lease);
  request.set_memory_quota_bytes(options.memory_quota_bytes);
  request.set_priority(options.priority);
  request.set_device(options.device);
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const v1::OpenSessionResponse opened,
      channels.Call(channels.session, &v1::SessionService::Stub::OpenSession,
                    request));
  connection->session_ = FromProto(opened.session());
  connection->closed_ = false;
  connection->lease_keeper_ = std::make_unique<LeaseKeeper>(
      channels, connection->session_.name, connection->session_.lease);
  if (options.transport == Transport::kSharedMemory) {
    TENSORD_CLIENT_RETURN_IF_ERROR(connection->memory().status());
  }
  return connection;
}

absl::StatusOr<SharedMemory*> Connection::memory() {
  absl::MutexLock lock(&memory_mutex_);
  if (!memory_) memory_ = OpenMemory();
  if (!memory_->ok()) return memory_->status();
  return (*memory_)->get();
}

absl::StatusOr<std::unique_ptr<SharedMemory>> Connection::OpenMemory() const {
  if (transport_ == Transport::kGrpc) {
    return Error(absl::StatusCode::kFailedPrecondition,
                 "SHARED_MEMORY_NOT_WANTED", "the session is to use gRPC");
  }
  TENSORD_CLIENT_RETURN_IF_ERROR(CheckSharedAddress(address_));
  v1::OpenSharedMemoryRequest request;
  request.set_session(session_.name);
  // Contents are there before they are adopted.
  request.set_takes_copies(true);
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const v1::OpenSharedMemoryResponse opened,
      channels_.Call(channels_.session,
                     &v1::SessionService::Stub::OpenSharedMemory, request));
  const std::vector<std::string> told(opened.sockets().begin(),
                                      opened.sockets().end());
  absl::Status failure = absl::UnavailableError("the server names no socket");
  for (const std::string& socket : SocketsFor(address_, told)) {
    absl::StatusOr<OwnedDescriptor> connected = ConnectTo(socket);
    if (connected.ok()) {
      return SharedMemory::Open(*std::move(connected), opened.ticket(),
                                session_.name);
    }
    failure = connected.status();
  }
  return failure;
}

SharedMemory* Connection::MemoryFor(int64_t bytes) {
  if (bytes < SharedMemory::kLeastBytes) return nullptr;
  return memory().value_or(nullptr);
}

Connection::~Connection() {
  if (closed_.exchange(true)) return;
  lease_keeper_.reset();
  v1::CloseSessionRequest request;
  request.set_session(session_.name);
  // Nobody is left to tell; the lease ends the session then.
  (void)channels_.Call(channels_.session,
                       &v1::SessionService::Stub::CloseSession, request,
                       absl::Now() + kFarewell);
}

absl::Time Connection::Deadline(std::optional<absl::Duration> asked) const {
  return absl::Now() + asked.value_or(channels_.default_deadline());
}

TransferOptions Connection::Transfer(int64_t bytes,
                                     std::optional<absl::Duration> asked,
                                     const Progress& progress) const {
  const absl::Time deadline =
      asked.has_value()
          ? Deadline(asked)
          : Deadline({}) + absl::Seconds(bytes / kBytesPerExtraSecond);
  const int64_t most = limits_.max_chunk_bytes > 0 ? limits_.max_chunk_bytes
                                                   : kPreferredChunkBytes;
  return {.chunk_bytes = std::min(kPreferredChunkBytes, most),
          .deadline = deadline,
          .progress = &progress};
}

absl::Status Connection::Close() {
  if (closed_.exchange(true)) return absl::OkStatus();
  v1::CloseSessionRequest request;
  request.set_session(session_.name);
  return channels_
      .Call(channels_.session, &v1::SessionService::Stub::CloseSession, request)
      .status();
}

void Connection::Discard(const std::string& name) {
  if (closed_) return;
  // It may have been deleted by name, or the server be gone.
  (void)channels_.Delete(name, absl::Now() + kFarewell);
}

}  // namespace tensord::internal
