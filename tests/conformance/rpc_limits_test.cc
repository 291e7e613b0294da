// What one client may take from others: time, connections, host memory.
#include <grpcpp/generic/generic_stub.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "tensord/v1/plan_cache.grpc.pb.h"
#include "tests/conformance/rpc_conformance.h"

namespace tensord {
namespace {

using server::HostUse;
using ::testing::HasSubstr;

int64_t UnderWay(testing::InProcessServer& server) {
  return server.sessions().host_memory()->used(HostUse::kRequests).count;
}

class RpcIdleTest : public RpcConformance {
 protected:
  static constexpr absl::Duration kIdle = absl::Seconds(1);

  RpcIdleTest() : RpcConformance({.transfer_idle = kIdle}) {}

  /// Makes a session with a short lease the one in use.
  void UseShortLease() {
    v1::OpenSessionRequest request;
    request.mutable_lease()->set_seconds(3);
    v1::OpenSessionResponse response;
    ASSERT_THAT(Open(request, &response), IsOk());
    session_ = response.session().name();
  }
};

TEST_F(RpcIdleTest, UploadThatBringsNothingEndsAndCanBeResumed) {
  v1::Tensor tensor;
  ASSERT_THAT(Create(CreateRequest({8}), &tensor), IsOk());
  const std::vector<float> v = {0, 1, 2, 3, 4, 5, 6, 7};
  grpc::ClientContext context;
  context.set_deadline(LongEnough());
  v1::UploadTensorResponse response;
  const auto writer = tensors_->UploadTensor(&context, &response);
  ASSERT_TRUE(writer->Write(Chunk(tensor.name(), 0, std::span(v).first(4))));
  const grpc::Status status = writer->Finish();
  const Outcome outcome = OutcomeOf(status, context);
  EXPECT_THAT(outcome, FailsWith(grpc::ABORTED, "TRANSFER_STALLED"));
  EXPECT_THAT(outcome.status.error_message(),
              HasSubstr("for 1s the client has sent no data"));
  EXPECT_EQ(Describe(tensor.name()).committed_bytes(), 16);
  EXPECT_THAT(Upload({Chunk(tensor.name(), 16, std::span(v).last(4))}), IsOk());
  EXPECT_EQ(Values(tensor.name()), v);
}

TEST_F(RpcIdleTest, UploadWithoutAnyMessageEnds) {
  grpc::ClientContext context;
  context.set_deadline(LongEnough());
  v1::UploadTensorResponse response;
  const grpc::Status status =
      tensors_->UploadTensor(&context, &response)->Finish();
  EXPECT_THAT(OutcomeOf(status, context),
              FailsWith(grpc::ABORTED, "TRANSFER_STALLED"));
}

TEST_F(RpcIdleTest, MessagesWithoutDataAreNoProgress) {
  v1::Tensor tensor;
  ASSERT_THAT(Create(CreateRequest({8}), &tensor), IsOk());
  grpc::ClientContext context;
  context.set_deadline(LongEnough());
  v1::UploadTensorResponse response;
  const auto writer = tensors_->UploadTensor(&context, &response);
  ASSERT_TRUE(writer->Write(Chunk(tensor.name(), 0, {})));
  while (writer->Write(Chunk("", 0, {}))) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  const grpc::Status status = writer->Finish();
  EXPECT_THAT(OutcomeOf(status, context),
              FailsWith(grpc::ABORTED, "TRANSFER_STALLED"));
}

TEST_F(RpcIdleTest, StalledUploadGivesItsHoldOnTheLeaseBack) {
  UseShortLease();
  v1::Tensor tensor;
  ASSERT_THAT(Create(CreateRequest({8}), &tensor), IsOk());
  grpc::ClientContext context;
  context.set_deadline(LongEnough());
  v1::UploadTensorResponse response;
  const auto writer = tensors_->UploadTensor(&context, &response);
  const std::vector<float> v(4);
  ASSERT_TRUE(writer->Write(Chunk(tensor.name(), 0, v)));
  // Nobody asks for the end of the call.
  EXPECT_TRUE(Soon([&] { return server_.used_bytes() == 0; }));
  EXPECT_EQ(writer->Finish().error_code(), grpc::ABORTED);
}

TEST_F(RpcIdleTest, UploadMayWaitForTheDeviceAsLongAsItTakes) {
  const std::string name = Filled({2, 2});
  Blocker blocker(server_.device().worker());
  std::thread user([&] { EXPECT_THAT(Permute(Permutation(name)), IsOk()); });
  const auto waiting = [&] {
    return server_.device().worker().statistics().queued_count;
  };
  EXPECT_TRUE(Soon([&] { return waiting() == 1; }));
  const std::vector<float> v = {3, 2, 1, 0};
  std::thread uploader(
      [&] { EXPECT_THAT(Upload({Chunk(name, 0, v)}), IsOk()); });
  EXPECT_TRUE(Soon([&] { return waiting() == 2; }));
  absl::SleepFor(2 * kIdle);
  blocker.Release();
  user.join();
  uploader.join();
  EXPECT_EQ(Values(name), v);
}

TEST_F(RpcIdleTest, DownloadThatNobodyReadsEndsAndGivesItsHoldBack) {
  // Larger than what connections buffer: the server is still sending.
  v1::DownloadTensorRequest request;
  request.set_tensor(Filled({6 << 20}));
  EXPECT_TRUE(Soon([&] { return UnderWay(server_) == 0; }));
  grpc::ClientContext context;
  context.set_deadline(LongEnough());
  const auto reader = tensors_->DownloadTensor(&context, request);
  v1::DownloadTensorResponse chunk;
  ASSERT_TRUE(reader->Read(&chunk));
  EXPECT_TRUE(Soon([&] { return UnderWay(server_) == 0; }));
  while (reader->Read(&chunk)) {
  }
  const grpc::Status status = reader->Finish();
  EXPECT_EQ(status.error_code(), grpc::ABORTED);
  EXPECT_THAT(status.error_message(),
              HasSubstr("for 1s the client has taken no data"));
}

TEST_F(RpcIdleTest, ResponseThatNobodyReadsIsGivenUp) {
  // The client's own way of making the call would read it.
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // and takes 64 KiB unread
  grpc::GenericStub stub(grpc::CreateCustomChannel(
      server_.address(), grpc::InsecureChannelCredentials(), arguments));
  v1::PermuteRequest request = Permutation(Filled({512, 512}));
  request.mutable_d()->set_inline_(true);
  const grpc::Slice slice(request.SerializeAsString());
  EXPECT_TRUE(Soon([&] { return UnderWay(server_) == 0; }));
  const auto executed = [&] {
    return server_.device().worker().statistics().executed_count;
  };
  const int64_t before = executed();

  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  context.set_deadline(LongEnough());
  const auto call =
      stub.PrepareCall(&context, "/tensord.v1.ComputeService/Permute", &queue);
  const auto done = [&] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  call->StartCall(nullptr);
  EXPECT_TRUE(done());
  call->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
  EXPECT_TRUE(done());
  // It counts from before it is executed until it is given up.
  EXPECT_TRUE(Soon([&] { return executed() > before; }));
  EXPECT_TRUE(Soon([&] { return UnderWay(server_) == 0; }));
  grpc::ByteBuffer response;
  do {
    call->Read(&response, nullptr);
  } while (done());
  grpc::Status status;
  call->Finish(&status, nullptr);
  EXPECT_TRUE(done());
  EXPECT_EQ(status.error_code(), grpc::ABORTED) << status.error_message();
  queue.Shutdown();
  while (done()) {
  }
}

TEST_F(RpcIdleTest, SnapshotThatBringsNothingEnds) {
  const auto cache = v1::PlanCacheService::NewStub(channel_);
  grpc::ClientContext context;
  v1::LoadPlanCacheResponse response;
  const auto writer = cache->LoadPlanCache(&context, &response);
  writer->Write(v1::LoadPlanCacheRequest());
  const grpc::Status status = writer->Finish();
  EXPECT_THAT(OutcomeOf(status, context),
              FailsWith(grpc::ABORTED, "TRANSFER_STALLED"));
}

/// Speaks just enough HTTP/2 to open a connection, and answers nothing.
/// Returns all that comes until the server closes it, or for 20 s.
std::string SilentClient(const std::string& address) {
  sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string path = address.substr(std::strlen("unix:"));
  path.copy(name.sun_path, sizeof(name.sun_path) - 1);
  const int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(
      connect(client, reinterpret_cast<const sockaddr*>(&name), sizeof(name)),
      0);
  const timeval wait{.tv_sec = 20, .tv_usec = 0};
  setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
  std::string hello = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  hello += std::string("\0\0\0\4\0\0\0\0\0", 9);  // SETTINGS, all defaults
  EXPECT_EQ(write(client, hello.data(), hello.size()), std::ssize(hello));
  std::string received;
  char buffer[4096];
  ssize_t count;
  // It is interrupted where its process was stopped.
  while ((count = read(client, buffer, sizeof(buffer))) > 0 ||
         (count < 0 && errno == EINTR)) {
    received.append(buffer, static_cast<size_t>(std::max<ssize_t>(count, 0)));
  }
  EXPECT_EQ(count, 0) << "the server keeps the connection";
  close(client);
  return received;
}

TEST(RpcConnectionTest, HalfOpenConnectionsAreFoundAndStreamsAreLimited) {
  testing::InProcessServer server(
      {.rpc = {.keepalive_interval = absl::Milliseconds(100),
               .keepalive_timeout = absl::Milliseconds(200),
               .max_streams = 77}});
  const std::string received = SilentClient(server.address());
  // The first frame, SETTINGS, has MAX_CONCURRENT_STREAMS, 3, and
  // INITIAL_WINDOW_SIZE, 4. That would be 4 MiB at first, were it not fixed.
  ASSERT_GT(received.size(), 9u);
  ASSERT_EQ(received[3], 4);
  const size_t bytes = static_cast<unsigned char>(received[2]);
  const std::string settings = received.substr(9, bytes);
  EXPECT_THAT(settings, HasSubstr(std::string("\0\3\0\0\0\x4d", 6)));
  EXPECT_THAT(settings, HasSubstr(std::string("\0\4\0\x10\0\0", 6)));
}

TEST(RpcConnectionTest, ConnectionsWithoutCallsEndAndClientsConnectAgain) {
  testing::InProcessServer server(
      {.rpc = {.connection_idle = absl::Seconds(1)}});
  const auto channel = server.NewChannel();
  const auto stub = v1::SessionService::NewStub(channel);
  for (int i = 0; i < 2; ++i) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    v1::OpenSessionResponse response;
    EXPECT_TRUE(stub->OpenSession(&context, {}, &response).ok());
    EXPECT_TRUE(Soon([&] {
      return channel->GetState(/*try_to_connect=*/false) == GRPC_CHANNEL_IDLE;
    }));
  }
}

class RpcPeerTest : public RpcConformance {
 protected:
  RpcPeerTest()
      : RpcConformance(
            {.sessions = {.max_sessions = 8, .max_sessions_per_peer = 2},
             .rpc = {.listen = {"127.0.0.1:0"}}}) {}

  Outcome OpenFrom(const std::shared_ptr<grpc::Channel>& channel) {
    const auto stub = v1::SessionService::NewStub(channel);
    v1::OpenSessionResponse response;
    return Unary(&v1::SessionService::Stub::OpenSession, *stub,
                 v1::OpenSessionRequest(), &response);
  }
  /// Has a port of its own.
  std::shared_ptr<grpc::Channel> NewTcpChannel() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(server_.rpc().addresses()[1],
                                     grpc::InsecureChannelCredentials(),
                                     arguments);
  }
};

TEST_F(RpcPeerTest, OnePeerCannotOpenAllSessions) {
  EXPECT_THAT(OpenFrom(server_.NewChannel()), IsOk());
  const Outcome refused = OpenFrom(server_.NewChannel());
  EXPECT_THAT(refused,
              FailsWith(grpc::RESOURCE_EXHAUSTED, "TOO_MANY_SESSIONS_OF_PEER"));
  EXPECT_THAT(refused.status.error_message(),
              HasSubstr(absl::StrCat("peer user ", getuid(),
                                     " has 2 sessions, its limit is 2")));
  // An address is another peer, and one whatever the port.
  EXPECT_THAT(OpenFrom(NewTcpChannel()), IsOk());
  EXPECT_THAT(OpenFrom(NewTcpChannel()), IsOk());
  EXPECT_THAT(OpenFrom(NewTcpChannel()),
              FailsWith(grpc::RESOURCE_EXHAUSTED, "TOO_MANY_SESSIONS_OF_PEER"));
  EXPECT_THAT(Close(session_), IsOk());
  EXPECT_THAT(OpenFrom(server_.NewChannel()), IsOk());
}

server::SessionLimits Limited(HostUse use, int64_t of_session,
                              int64_t of_server) {
  server::SessionLimits limits;
  limits.session_host[static_cast<int>(use)].count = of_session;
  limits.server_host[static_cast<int>(use)].count = of_server;
  return limits;
}

class RpcTensorLimitTest : public RpcConformance {
 protected:
  RpcTensorLimitTest()
      : RpcConformance({.sessions = Limited(HostUse::kTensors, 3, 5)}) {}
};

TEST_F(RpcTensorLimitTest, EmptyTensorsAreLimitedToo) {
  const v1::CreateTensorRequest empty = CreateRequest({0});
  v1::Tensor tensor;
  for (int i = 0; i < 3; ++i) EXPECT_THAT(Create(empty, &tensor), IsOk());
  const Outcome refused = Create(empty);
  EXPECT_THAT(refused, FailsWith(grpc::RESOURCE_EXHAUSTED, "TOO_MANY_TENSORS"));
  EXPECT_THAT(refused.status.error_message(),
              HasSubstr("the session has 3 tensors, its limit is 3"));
  EXPECT_THAT(Delete(tensor.name()), IsOk());
  EXPECT_THAT(Create(empty), IsOk());

  v1::OpenSessionResponse other;
  ASSERT_THAT(Open({}, &other), IsOk());
  session_ = other.session().name();
  const v1::CreateTensorRequest others = CreateRequest({0});
  EXPECT_THAT(Create(others), IsOk());
  EXPECT_THAT(Create(others), IsOk());
  const Outcome full = Create(others);
  EXPECT_THAT(full, FailsWith(grpc::RESOURCE_EXHAUSTED, "TOO_MANY_TENSORS"));
  EXPECT_THAT(full.status.error_message(), HasSubstr("the server has 5"));
  const v1::GetServerStatsResponse stats = ServerStats();
  EXPECT_EQ(stats.host_memory(0).count(), 5);
  EXPECT_EQ(stats.host_memory(0).count_limit(), 5);
  EXPECT_THAT(Close(session_), IsOk());
  EXPECT_EQ(ServerStats().host_memory(0).count(), 3);
}

class RpcHostMemoryTest : public RpcConformance {
 protected:
  static constexpr int64_t kBytes = 32'768;

  RpcHostMemoryTest() : RpcConformance({.sessions = {.host_bytes = kBytes}}) {}
};

TEST_F(RpcHostMemoryTest, WhatIsKnownOfTensorsIsBounded) {
  int count = 0;
  Outcome outcome;
  do {
    outcome = Create(CreateRequest({0}));
  } while (outcome.status.ok() && ++count < kBytes);
  EXPECT_THAT(outcome,
              FailsWith(grpc::RESOURCE_EXHAUSTED, "HOST_MEMORY_LIMIT"));
  EXPECT_GE(count, 10);
  const v1::GetServerStatsResponse stats = ServerStats();
  EXPECT_EQ(stats.host_memory_limit_bytes(), kBytes);
  EXPECT_EQ(stats.host_memory(0).count(), count);
  EXPECT_LE(stats.host_memory(0).used_bytes(), kBytes);
  // Plans are refused by the same limit, and taken again when there is room.
  v1::CreatePlanRequest plan;
  v1::ContractRequest& contract = *plan.mutable_contract();
  contract.set_session(session_);
  for (v1::Operand* operand : {contract.mutable_a(), contract.mutable_b()}) {
    operand->mutable_inline_()->set_element_type(v1::ELEMENT_TYPE_FLOAT32);
    operand->mutable_inline_()->mutable_layout()->add_extents(2);
    operand->add_modes(1);
  }
  v1::CreatePlanResponse planned;
  const auto make_plan = [&] {
    return Unary(&v1::PlanService::Stub::CreatePlan, *plans_, plan, &planned);
  };
  EXPECT_THAT(make_plan(),
              FailsWith(grpc::RESOURCE_EXHAUSTED, "HOST_MEMORY_LIMIT"));
  for (const auto& tensor : server_.sessions()
                                .Find(session_, server::kDefaultTenant)
                                .value()
                                ->List("", count / 2)) {
    EXPECT_THAT(Delete(tensor->name()), IsOk());
  }
  EXPECT_THAT(make_plan(), IsOk());
  EXPECT_EQ(ServerStats().host_memory(1).use(), "plans");
  EXPECT_EQ(ServerStats().host_memory(1).count(), 1);
}

TEST_F(RpcHostMemoryTest, SnapshotsAreCountedAsTheyCome) {
  const auto cache = v1::PlanCacheService::NewStub(channel_);
  grpc::ClientContext dump;
  const auto reader = cache->DumpPlanCache(&dump, v1::DumpPlanCacheRequest());
  v1::DumpPlanCacheResponse empty;
  ASSERT_TRUE(reader->Read(&empty));
  ASSERT_TRUE(reader->Finish().ok());

  grpc::ClientContext context;
  v1::LoadPlanCacheResponse response;
  const auto writer = cache->LoadPlanCache(&context, &response);
  v1::LoadPlanCacheRequest part;
  part.set_data(empty.data());
  part.mutable_data()->resize(kBytes);
  writer->Write(part);
  writer->Write(part);
  const grpc::Status status = writer->Finish();
  EXPECT_THAT(OutcomeOf(status, context),
              FailsWith(grpc::RESOURCE_EXHAUSTED, "HOST_MEMORY_LIMIT"));
  EXPECT_TRUE(Soon([&] {
    return server_.sessions().host_memory()->used(HostUse::kSnapshots).count ==
           0;
  }));
}

class RpcSnapshotLimitTest : public RpcConformance {
 protected:
  RpcSnapshotLimitTest()
      : RpcConformance({.sessions = Limited(HostUse::kSnapshots, 0, 1)}) {}
};

TEST_F(RpcSnapshotLimitTest, SnapshotsUnderWayAreLimitedInNumber) {
  const auto cache = v1::PlanCacheService::NewStub(channel_);
  grpc::ClientContext context;
  v1::LoadPlanCacheResponse response;
  const auto idle = cache->LoadPlanCache(&context, &response);
  idle->Write(v1::LoadPlanCacheRequest());
  EXPECT_TRUE(Soon([&] { return ServerStats().host_memory(4).count() == 1; }));
  EXPECT_EQ(ServerStats().host_memory(4).use(), "snapshots");

  grpc::ClientContext dump;
  const auto reader = cache->DumpPlanCache(&dump, v1::DumpPlanCacheRequest());
  v1::DumpPlanCacheResponse part;
  EXPECT_FALSE(reader->Read(&part));
  const grpc::Status status = reader->Finish();
  EXPECT_THAT(OutcomeOf(status, dump),
              FailsWith(grpc::RESOURCE_EXHAUSTED, "TOO_MANY_SNAPSHOTS"));
  context.TryCancel();
  idle->Finish();
}

class RpcRequestLimitTest : public RpcConformance {
 protected:
  RpcRequestLimitTest()
      : RpcConformance({.sessions = Limited(HostUse::kRequests, 2, 3)}) {}
};

TEST_F(RpcRequestLimitTest, RequestsThatWaitAreLimited) {
  const std::string a = Filled({2, 2});
  EXPECT_TRUE(Soon([&] { return UnderWay(server_) == 0; }));
  Blocker blocker(server_.device().worker());
  std::vector<std::thread> callers;
  for (int i = 0; i < 2; ++i) {
    callers.emplace_back([&] { EXPECT_THAT(Permute(Permutation(a)), IsOk()); });
  }
  EXPECT_TRUE(Soon([&] { return UnderWay(server_) == 2; }));
  EXPECT_EQ(ServerStats().host_memory(3).use(), "requests");
  EXPECT_EQ(ServerStats().host_memory(3).count(), 2);
  EXPECT_GT(ServerStats().host_memory(3).used_bytes(), 0);
  const Outcome refused = Permute(Permutation(a));
  EXPECT_THAT(refused,
              FailsWith(grpc::RESOURCE_EXHAUSTED, "TOO_MANY_REQUESTS"));
  EXPECT_THAT(refused.status.error_message(),
              HasSubstr("the session has 2 requests, its limit is 2"));
  // Also when a stream brings it.
  grpc::ClientContext context;
  const auto stream = compute_->ExecuteStream(&context);
  v1::ExecuteStreamRequest request;
  *request.mutable_permute() = Permutation(a);
  v1::ExecuteStreamResponse response;
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.error().detail().reason(), "TOO_MANY_REQUESTS");
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  // What gives back is let in.
  v1::DeleteTensorsResponse deleted;
  EXPECT_THAT(DeleteAll({a}, &deleted), IsOk());
  v1::KeepSessionAliveRequest keep;
  keep.set_session(session_);
  v1::KeepSessionAliveResponse kept;
  EXPECT_THAT(Unary(&v1::SessionService::Stub::KeepSessionAlive, *sessions_,
                    keep, &kept),
              IsOk());
  blocker.Release();
  for (std::thread& caller : callers) caller.join();
  EXPECT_TRUE(Soon([&] { return UnderWay(server_) == 0; }));
}

class RpcLogTest : public RpcConformance {
 protected:
  RpcLogTest() : RpcConformance({.log_level = server::LogLevel::kDebug}) {}
};

TEST_F(RpcLogTest, NamesOfSessionsAreNotInTheLog) {
  ::testing::internal::CaptureStderr();
  v1::OpenSessionResponse opened;
  EXPECT_THAT(Open({}, &opened), IsOk());
  const std::string secret =
      opened.session().name().substr(std::strlen("sessions/"));
  session_ = opened.session().name();
  v1::Tensor tensor;
  EXPECT_THAT(Create(CreateRequest({4}), &tensor), IsOk());
  EXPECT_EQ(Permute(Permutation(tensor.name())).reason, "MODE_COUNT_MISMATCH");
  EXPECT_EQ(Delete(session_ + "/tensors/none").reason, "TENSOR_NOT_FOUND");
  EXPECT_EQ(Delete(secret + "/none").reason, "TENSOR_NAME_MALFORMED");
  EXPECT_THAT(Close(session_), IsOk());
  EXPECT_EQ(Close(session_).reason, "SESSION_NOT_FOUND");
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, ::testing::Not(HasSubstr(secret)));
  EXPECT_THAT(log, HasSubstr("session_opened session=2"));
  EXPECT_THAT(log, HasSubstr("session_closed session=2"));
  EXPECT_THAT(log, HasSubstr("sessions/***/tensors/none"));
}

}  // namespace
}  // namespace tensord
