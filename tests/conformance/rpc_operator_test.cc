// What operators see of sessions, and have a server do.
#include <google/protobuf/util/time_util.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/conformance/rpc_conformance.h"

namespace tensord {
namespace {

using ::google::protobuf::util::TimeUtil;
using Stub = v1::AdminService::Stub;

class RpcOperatorTest : public RpcConformance {
 protected:
  /// The number of the session that tests have.
  int64_t Number() {
    return static_cast<int64_t>(
        server_.sessions().Find(session_, "default").value()->number());
  }
  v1::ListSessionsResponse ListSessions(
      const v1::ListSessionsRequest& request = {}) {
    v1::ListSessionsResponse response;
    EXPECT_THAT(Unary(&Stub::ListSessions, *admin_, request, &response),
                IsOk());
    return response;
  }
  v1::ListOperationsResponse ListOperations() {
    v1::ListOperationsResponse response;
    EXPECT_THAT(Unary(&Stub::ListOperations, *admin_,
                      v1::ListOperationsRequest(), &response),
                IsOk());
    return response;
  }
  Outcome ListTensors(const v1::ListLargestTensorsRequest& request,
                      v1::ListLargestTensorsResponse* response) {
    return Unary(&Stub::ListLargestTensors, *admin_, request, response);
  }
  Outcome Cancel(const v1::CancelOperationsRequest& request,
                 v1::CancelOperationsResponse* response) {
    return Unary(&Stub::CancelOperations, *admin_, request, response);
  }
  Outcome Evict(const v1::EvictSessionsRequest& request,
                v1::EvictSessionsResponse* response) {
    return Unary(&Stub::EvictSessions, *admin_, request, response);
  }

  /// A contraction of that request id, under way until it ends.
  class Underway {
   public:
    Underway(RpcOperatorTest& test, const std::string& tensor,
             const std::string& request_id)
        : request_(test.Contraction(tensor, tensor)),
          thread_([this, &test, request_id] {
            grpc::ClientContext context;
            context.AddMetadata("x-request-id", request_id);
            v1::ContractResponse response;
            const grpc::Status status =
                test.compute_->Contract(&context, request_, &response);
            outcome_ = OutcomeOf(status, context);
          }) {}
    Outcome End() {
      thread_.join();
      return outcome_;
    }

   private:
    const v1::ContractRequest request_;
    Outcome outcome_;
    std::thread thread_;  // begins last
  };
};

TEST_F(RpcOperatorTest, SessionsAreShownByNumberAndNeverByName) {
  const std::string a = Filled({16, 16});
  const v1::ListSessionsResponse response = ListSessions();
  ASSERT_EQ(response.sessions_size(), 1);
  const v1::SessionState& session = response.sessions(0);
  EXPECT_EQ(session.number(), Number());
  EXPECT_EQ(session.tenant(), "default");
  EXPECT_EQ(session.peer(), absl::StrCat("user ", getuid()));
  EXPECT_EQ(session.tensor_count(), 1);
  EXPECT_EQ(session.memory_used_bytes(), 1024);
  EXPECT_GT(session.lease_left().seconds(), 50);
  EXPECT_LE(session.lease_left().seconds(), session.lease().seconds());
  EXPECT_EQ(response.DebugString().find(
                session_.substr(std::string("sessions/").size())),
            std::string::npos);
}

TEST_F(RpcOperatorTest, SessionsComeInPages) {
  v1::OpenSessionResponse opened;
  ASSERT_THAT(Open({}, &opened), IsOk());
  v1::ListSessionsRequest request;
  request.set_page_size(1);
  const v1::ListSessionsResponse first = ListSessions(request);
  ASSERT_EQ(first.sessions_size(), 1);
  request.set_page_token(first.next_page_token());
  const v1::ListSessionsResponse second = ListSessions(request);
  ASSERT_EQ(second.sessions_size(), 1);
  EXPECT_LT(first.sessions(0).number(), second.sessions(0).number());
  EXPECT_EQ(second.next_page_token(), "");
  request.Clear();
  request.set_tenant("nobody");
  EXPECT_EQ(ListSessions(request).sessions_size(), 0);
  request.set_page_token("x");
  v1::ListSessionsResponse unused;
  EXPECT_THAT(Unary(&Stub::ListSessions, *admin_, request, &unused),
              FailsWith(grpc::INVALID_ARGUMENT, "PAGE_TOKEN_MALFORMED"));
}

TEST_F(RpcOperatorTest, StayingAliveIsIdle) {
  absl::SleepFor(absl::Milliseconds(20));
  v1::KeepSessionAliveRequest request;
  request.set_session(session_);
  v1::KeepSessionAliveResponse response;
  ASSERT_THAT(Unary(&v1::SessionService::Stub::KeepSessionAlive, *sessions_,
                    request, &response),
              IsOk());
  EXPECT_GE(ListSessions().sessions(0).idle(),
            TimeUtil::MillisecondsToDuration(20));
  Filled({2, 2});
  const v1::SessionState used = ListSessions().sessions(0);
  EXPECT_LT(used.idle(), used.age());
}

TEST_F(RpcOperatorTest, LargestTensorsComeFirst) {
  Filled({2, 2});
  Filled({8, 8});
  Filled({4, 4});
  v1::ListLargestTensorsRequest request;
  v1::ListLargestTensorsResponse all;
  ASSERT_THAT(ListTensors(request, &all), IsOk());
  ASSERT_EQ(all.tensors_size(), 3);
  EXPECT_EQ(all.tensors(0).bytes(), 256);
  EXPECT_EQ(all.tensors(0).extents(0), 8);
  EXPECT_EQ(all.tensors(0).state(), v1::TENSOR_STATE_READY);
  EXPECT_EQ(all.tensors(2).bytes(), 16);

  // The same by pages of one.
  std::vector<std::string> ids;
  request.set_page_size(1);
  request.set_session_number(Number());
  do {
    v1::ListLargestTensorsResponse page;
    ASSERT_THAT(ListTensors(request, &page), IsOk());
    ASSERT_EQ(page.tensors_size(), 1);
    ids.push_back(page.tensors(0).id());
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  ASSERT_EQ(ids.size(), 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ids[i], all.tensors(i).id());

  request.set_session_number(999);
  v1::ListLargestTensorsResponse unused;
  EXPECT_THAT(ListTensors(request, &unused),
              FailsWith(grpc::NOT_FOUND, "SESSION_NOT_FOUND"));
  request.set_session_number(0);
  request.set_page_token("1/x/t");
  EXPECT_THAT(ListTensors(request, &unused),
              FailsWith(grpc::INVALID_ARGUMENT, "PAGE_TOKEN_MALFORMED"));
}

TEST_F(RpcOperatorTest, CallsThatWaitAreShownAndCancelled) {
  const std::string a = Filled({2, 2});
  Blocker blocker(server_.device().worker());
  Underway first(*this, a, "first");
  AwaitQueued(1);
  Underway second(*this, a, "second");
  AwaitQueued(2);
  const v1::ListOperationsResponse running = ListOperations();
  ASSERT_EQ(running.operation_count(), 2);
  EXPECT_EQ(running.operations(0).request_id(), "first");
  EXPECT_EQ(running.operations(0).rpc(), "Contract");
  EXPECT_EQ(running.operations(1).session_number(), Number());
  EXPECT_EQ(ListSessions().sessions(0).queued_operations(), 2);

  v1::CancelOperationsRequest request;
  request.set_request_id("first");
  v1::CancelOperationsResponse response;
  ASSERT_THAT(Cancel(request, &response), IsOk());
  EXPECT_EQ(response.cancelled_count(), 1);
  EXPECT_THAT(first.End(), FailsWith(grpc::CANCELLED, "CANCELLED_BY_OPERATOR"));
  EXPECT_THAT(Cancel(request, &response),
              FailsWith(grpc::NOT_FOUND, "REQUEST_NOT_FOUND"));
  blocker.Release();
  EXPECT_THAT(second.End(), IsOk());
}

TEST_F(RpcOperatorTest, AllCallsOfASessionAreCancelled) {
  const std::string a = Filled({2, 2});
  Blocker blocker(server_.device().worker());
  Underway first(*this, a, "first");
  Underway second(*this, a, "second");
  AwaitQueued(2);
  v1::CancelOperationsRequest request;
  request.set_session_number(Number());
  v1::CancelOperationsResponse response;
  ASSERT_THAT(Cancel(request, &response), IsOk());
  EXPECT_EQ(response.cancelled_count(), 2);
  EXPECT_THAT(first.End(), FailsWith(grpc::CANCELLED, "CANCELLED_BY_OPERATOR"));
  EXPECT_THAT(second.End(),
              FailsWith(grpc::CANCELLED, "CANCELLED_BY_OPERATOR"));
  blocker.Release();
  // The session is as good as before.
  EXPECT_THAT(Contract(Contraction(a, a)), IsOk());
  request.set_session_number(999);
  EXPECT_THAT(Cancel(request, &response),
              FailsWith(grpc::NOT_FOUND, "SESSION_NOT_FOUND"));
}

TEST_F(RpcOperatorTest, AStreamIsCancelledAsAWhole) {
  const std::string a = Filled({2, 2});
  grpc::ClientContext context;
  context.AddMetadata("x-request-id", "stream");
  const auto stream = compute_->ExecuteStream(&context);
  v1::ExecuteStreamRequest request;
  *request.mutable_contract() = Contraction(a, a);
  v1::ExecuteStreamResponse response;
  ASSERT_TRUE(stream->Write(request) && stream->Read(&response));
  v1::CancelOperationsRequest cancel;
  cancel.set_request_id("stream");
  v1::CancelOperationsResponse cancelled;
  ASSERT_THAT(Cancel(cancel, &cancelled), IsOk());
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::CANCELLED);
}

TEST_F(RpcOperatorTest, CancelAndEvictWantOneSubject) {
  v1::CancelOperationsResponse cancelled;
  EXPECT_THAT(Cancel({}, &cancelled),
              FailsWith(grpc::INVALID_ARGUMENT, "SUBJECT_MISSING"));
  v1::CancelOperationsRequest both;
  both.set_request_id("x");
  both.set_session_number(1);
  EXPECT_THAT(Cancel(both, &cancelled),
              FailsWith(grpc::INVALID_ARGUMENT, "SUBJECT_MISSING"));
  v1::EvictSessionsResponse evicted;
  v1::EvictSessionsRequest request;
  EXPECT_THAT(Evict(request, &evicted),
              FailsWith(grpc::INVALID_ARGUMENT, "SUBJECT_MISSING"));
  request.set_tenant("default");
  request.mutable_idle()->set_seconds(-1);
  EXPECT_THAT(Evict(request, &evicted),
              FailsWith(grpc::INVALID_ARGUMENT, "IDLE_OUT_OF_RANGE"));
  request.Clear();
  request.set_session_number(999);
  EXPECT_THAT(Evict(request, &evicted),
              FailsWith(grpc::NOT_FOUND, "SESSION_NOT_FOUND"));
}

TEST_F(RpcOperatorTest, EvictingASessionEndsItsCallsAndFreesItsMemory) {
  const std::string a = Filled({16, 16});
  EXPECT_EQ(server_.used_bytes(), 1024);
  Blocker blocker(server_.device().worker());
  Underway call(*this, a, "call");
  AwaitQueued(1);
  v1::EvictSessionsRequest request;
  request.set_session_number(Number());
  v1::EvictSessionsResponse response;
  ASSERT_THAT(Evict(request, &response), IsOk());
  ASSERT_EQ(response.session_numbers_size(), 1);
  EXPECT_GE(response.memory_bytes(), 1024);
  EXPECT_THAT(call.End(), FailsWith(grpc::CANCELLED, "SESSION_EVICTED"));
  blocker.Release();
  EXPECT_EQ(server_.used_bytes(), 0);
  EXPECT_EQ(ListSessions().sessions_size(), 0);
  EXPECT_THAT(Close(session_), FailsWith(grpc::NOT_FOUND, "SESSION_NOT_FOUND"));
}

TEST_F(RpcOperatorTest, IdleSessionsOfATenantAreEvictedAndBusyOnesStay) {
  const std::string a = Filled({2, 2});
  v1::OpenSessionResponse other;
  ASSERT_THAT(Open({}, &other), IsOk());
  Blocker blocker(server_.device().worker());
  Underway call(*this, a, "call");
  AwaitQueued(1);
  v1::EvictSessionsRequest request;
  request.set_tenant("default");
  v1::EvictSessionsResponse response;
  request.mutable_idle()->set_seconds(60);
  ASSERT_THAT(Evict(request, &response), IsOk());
  EXPECT_EQ(response.session_numbers_size(), 0);
  request.clear_idle();
  ASSERT_THAT(Evict(request, &response), IsOk());
  EXPECT_EQ(response.session_numbers_size(), 1);
  blocker.Release();
  EXPECT_THAT(call.End(), IsOk());
  EXPECT_THAT(Close(other.session().name()),
              FailsWith(grpc::NOT_FOUND, "SESSION_NOT_FOUND"));
}

TEST_F(RpcOperatorTest, TrimGivesBackWhatNobodyUses) {
  ASSERT_THAT(Delete(Filled({512, 512})), IsOk());
  const int64_t reserved = server_.device().memory_reserved_bytes();
  ASSERT_GT(reserved, 0);
  v1::TrimMemoryResponse response;
  ASSERT_THAT(
      Unary(&Stub::TrimMemory, *admin_, v1::TrimMemoryRequest(), &response),
      IsOk());
  ASSERT_EQ(response.devices_size(), server_.engine().devices().size());
  EXPECT_EQ(response.devices(0).memory_bytes(),
            reserved - server_.device().memory_reserved_bytes());
  EXPECT_GT(response.devices(0).memory_bytes(), 0);
  EXPECT_GE(response.heap_bytes(), 0);
}

TEST_F(RpcOperatorTest, TheLogsLevelIsShownAndSet) {
  v1::GetLogLevelResponse level;
  const auto get = [&] {
    EXPECT_THAT(
        Unary(&Stub::GetLogLevel, *admin_, v1::GetLogLevelRequest(), &level),
        IsOk());
    return level.level();
  };
  EXPECT_EQ(get(), "error");
  v1::SetLogLevelRequest request;
  request.set_level("warning");
  v1::SetLogLevelResponse response;
  ASSERT_THAT(Unary(&Stub::SetLogLevel, *admin_, request, &response), IsOk());
  EXPECT_EQ(response.previous_level(), "error");
  EXPECT_EQ(get(), "warning");
  request.set_level("warn");
  const Outcome refused =
      Unary(&Stub::SetLogLevel, *admin_, request, &response);
  EXPECT_THAT(refused, FailsWith(grpc::INVALID_ARGUMENT, "LOG_LEVEL_UNKNOWN"));
  EXPECT_THAT(refused.status.error_message(),
              ::testing::HasSubstr("did you mean 'warning'?"));
  EXPECT_EQ(get(), "warning");
}

TEST_F(RpcOperatorTest, DrainWantsATimeWithinAnHour) {
  v1::DrainServerRequest request;
  request.mutable_timeout()->set_seconds(3601);
  v1::DrainServerResponse response;
  EXPECT_THAT(Unary(&Stub::DrainServer, *admin_, request, &response),
              FailsWith(grpc::INVALID_ARGUMENT, "DRAIN_TIMEOUT_OUT_OF_RANGE"));
}

}  // namespace
}  // namespace tensord
