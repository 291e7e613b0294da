// SessionService: success, each documented error, leases.
#include "tests/conformance/rpc_conformance.h"

namespace tensord {
namespace {

TEST_F(RpcConformance, OpenSessionFillsInTheDefaults) {
  v1::OpenSessionRequest request;
  request.set_job("a job");
  v1::OpenSessionResponse response;
  ASSERT_THAT(Open(request, &response), IsOk());
  EXPECT_THAT(response.session().name(),
              ::testing::MatchesRegex("sessions/[0-9a-f]{32}"));
  EXPECT_EQ(response.session().job(), "a job");
  EXPECT_EQ(response.session().device(), server_.device().info().name);
  EXPECT_EQ(response.session().lease().seconds(), 60);
  EXPECT_EQ(response.session().memory_quota_bytes(), int64_t{64} << 20);
}

TEST_F(RpcConformance, OpenSessionRefusesWhatItCannotGive) {
  v1::OpenSessionResponse response;
  v1::OpenSessionRequest request;
  request.mutable_lease()->set_nanos(1);
  EXPECT_THAT(Open(request, &response),
              FailsWith(grpc::INVALID_ARGUMENT, "LEASE_OUT_OF_RANGE"));
  for (const auto& [seconds, nanos] : std::vector<std::pair<int64_t, int>>{
           {10, -1}, {-10, 1}, {0, 2'000'000'000}, {10, 1'000'000'000}}) {
    request.mutable_lease()->set_seconds(seconds);
    request.mutable_lease()->set_nanos(nanos);
    EXPECT_THAT(Open(request, &response),
                FailsWith(grpc::INVALID_ARGUMENT, "DURATION_MALFORMED"))
        << seconds << " " << nanos;
  }
  request.Clear();
  request.set_device("cuda:7");
  EXPECT_THAT(Open(request, &response),
              FailsWith(grpc::INVALID_ARGUMENT, "DEVICE_NOT_FOUND"));
  request.Clear();
  request.set_memory_quota_bytes(-1);
  EXPECT_THAT(Open(request, &response),
              FailsWith(grpc::INVALID_ARGUMENT, "QUOTA_NEGATIVE"));
  request.Clear();
  request.set_job(std::string(200, 'x'));
  EXPECT_THAT(Open(request, &response),
              FailsWith(grpc::INVALID_ARGUMENT, "JOB_MALFORMED"));
  for (int i = 0; i < 3; ++i) ASSERT_THAT(Open({}, &response), IsOk());
  EXPECT_THAT(Open({}, &response),
              FailsWith(grpc::RESOURCE_EXHAUSTED, "TOO_MANY_SESSIONS"));
}

TEST_F(RpcConformance, KeepSessionAliveAndDescribeSessionKnowTheSession) {
  v1::KeepSessionAliveRequest keep;
  keep.set_session(session_);
  v1::KeepSessionAliveResponse kept;
  EXPECT_THAT(Unary(&v1::SessionService::Stub::KeepSessionAlive, *sessions_,
                    keep, &kept),
              IsOk());
  EXPECT_EQ(kept.lease().seconds(), 60);
  Filled({8, 8});
  v1::DescribeSessionRequest describe;
  describe.set_session(session_);
  v1::DescribeSessionResponse described;
  EXPECT_THAT(Unary(&v1::SessionService::Stub::DescribeSession, *sessions_,
                    describe, &described),
              IsOk());
  EXPECT_EQ(described.session().tensor_count(), 1);
  EXPECT_EQ(described.session().memory_used_bytes(), 256);
  keep.set_session("sessions/none");
  EXPECT_THAT(Unary(&v1::SessionService::Stub::KeepSessionAlive, *sessions_,
                    keep, &kept),
              FailsWith(grpc::NOT_FOUND, "SESSION_NOT_FOUND"));
  describe.set_session("sessions/none");
  EXPECT_THAT(Unary(&v1::SessionService::Stub::DescribeSession, *sessions_,
                    describe, &described),
              FailsWith(grpc::NOT_FOUND, "SESSION_NOT_FOUND"));
}

TEST_F(RpcConformance, CloseSessionFreesAllThatItOwned) {
  Filled({256, 256});
  EXPECT_EQ(server_.used_bytes(), 256 * 256 * 4);
  EXPECT_THAT(Close(session_), IsOk());
  EXPECT_EQ(server_.used_bytes(), 0);
  EXPECT_THAT(Close(session_), FailsWith(grpc::NOT_FOUND, "SESSION_NOT_FOUND"));
}

TEST_F(RpcConformance, SessionWhoseLeaseRanOutIsClosed) {
  v1::OpenSessionRequest request;
  request.mutable_lease()->set_seconds(3);
  v1::OpenSessionResponse response;
  ASSERT_THAT(Open(request, &response), IsOk());
  session_ = response.session().name();
  Filled({64, 64});
  EXPECT_TRUE(Soon([&] { return server_.used_bytes() == 0; }));
  EXPECT_THAT(Close(session_), FailsWith(grpc::NOT_FOUND, "SESSION_NOT_FOUND"));
}

}  // namespace
}  // namespace tensord
