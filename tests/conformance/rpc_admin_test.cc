// PlanService and AdminService, and how a server listens and drains.
#include "tests/conformance/rpc_conformance.h"

namespace tensord {
namespace {

TEST_F(RpcConformance, ExplainPlanNamesEveryKernelAndWhyItDeclines) {
  v1::ExplainPlanRequest request;
  *request.mutable_contract() = Contraction(Filled({2, 3}), Filled({3, 4}));
  const std::string kernel = KernelPrefix() + ".contract.reference";
  request.mutable_contract()->mutable_options()->set_kernel(kernel);
  v1::ExplainPlanResponse response;
  const auto explain = [&] {
    return Unary(&v1::PlanService::Stub::ExplainPlan, *plans_, request,
                 &response);
  };
  ASSERT_THAT(explain(), IsOk());
  EXPECT_EQ(response.kernel(), kernel);
  EXPECT_EQ(response.flops(), 2 * 2 * 3 * 4);
  EXPECT_EQ(response.moved_bytes(), (6 + 12 + 8) * 4);
  EXPECT_EQ(response.candidates_size(),
            server_.device().backend().kernels().contraction.size());
  for (const auto& candidate : response.candidates()) {
    EXPECT_EQ(candidate.refusal().empty(), candidate.kernel() == kernel);
  }
  request.mutable_contract()->mutable_a()->set_modes(0, 'k');
  EXPECT_THAT(explain(), FailsWith(grpc::INVALID_ARGUMENT, "MODE_REPEATED"));
  request.Clear();
  EXPECT_THAT(explain(),
              FailsWith(grpc::INVALID_ARGUMENT, "OPERATION_MISSING"));
}

TEST_F(RpcConformance, EqualRequestsHitThePlanCache) {
  const std::string a = Filled({2, 2});
  v1::Result result;
  ASSERT_THAT(Contract(Contraction(a, a), &result), IsOk());
  EXPECT_FALSE(result.report().plan_cache_hit());
  v1::ContractRequest relabelled = Contraction(a, a);
  *relabelled.mutable_a() = Named(a, {7, 8});
  *relabelled.mutable_b() = Named(a, {8, 9});
  *relabelled.mutable_d() = New({7, 9});
  ASSERT_THAT(Contract(relabelled, &result), IsOk());
  EXPECT_TRUE(result.report().plan_cache_hit());
}

TEST_F(RpcConformance, GetServerInfoTellsDevicesAndLimits) {
  v1::GetServerInfoResponse response;
  ASSERT_THAT(Unary(&v1::AdminService::Stub::GetServerInfo, *admin_,
                    v1::GetServerInfoRequest(), &response),
              IsOk());
  const core::DeviceInfo& info = server_.device().info();
  ASSERT_EQ(response.devices_size(), server_.engine().devices().size());
  EXPECT_EQ(response.devices(0).name(), info.name);
  EXPECT_EQ(response.devices(0).architecture(), info.architecture);
  EXPECT_EQ(response.devices(0).properties().size(), info.properties.size());
  EXPECT_EQ(response.limits().max_modes(), 64);
  EXPECT_EQ(response.limits().max_sessions(), 4);
  EXPECT_EQ(response.limits().max_program_bytes(), 1 << 20);
  EXPECT_EQ(response.limits().max_program_statements(), 10'000);
  EXPECT_EQ(response.limits().max_program_labels(), 64);
  EXPECT_EQ(response.limits().max_program_depth(), 64);
  EXPECT_EQ(response.limits().max_program_factors(), 4096);
  EXPECT_EQ(response.limits().max_search_seconds(), 60);
  EXPECT_EQ(response.limits().max_optimal_operands(), 16);
  EXPECT_EQ(response.limits().max_symbolic_operands(), 12);
  EXPECT_EQ(response.limits().max_programs(), 10'000);
  EXPECT_EQ(response.limits().max_tensors(), 100'000);
  EXPECT_EQ(response.limits().max_sessions_per_peer(), 4);
  EXPECT_EQ(response.limits().transfer_idle_seconds(), 30);
  EXPECT_EQ(response.limits().max_view_stages(), 32);
}

TEST_F(RpcConformance, GetServerStatsCountsWhatHappened) {
  const std::string a = Filled({2, 2});
  ASSERT_THAT(Contract(Contraction(a, a)), IsOk());
  v1::GetServerStatsResponse response;
  ASSERT_THAT(Unary(&v1::AdminService::Stub::GetServerStats, *admin_,
                    v1::GetServerStatsRequest(), &response),
              IsOk());
  EXPECT_EQ(response.session_count(), 1);
  EXPECT_EQ(response.tensor_count(), 2);
  ASSERT_EQ(response.host_memory_size(), server::kHostUseCount);
  EXPECT_EQ(response.host_memory(0).use(), "tensors");
  EXPECT_EQ(response.host_memory(0).count(), 2);
  EXPECT_EQ(response.host_memory(0).count_limit(), 1'000'000);
  EXPECT_GT(response.host_memory(0).used_bytes(), 0);
  EXPECT_GT(response.host_memory_limit_bytes(), 0);
  EXPECT_EQ(response.uploaded_bytes(), 16);
  ASSERT_EQ(response.operations_size(), 1);
  EXPECT_EQ(response.operations(0).operation(), "contract");
  EXPECT_EQ(response.operations(0).code(), "OK");
  EXPECT_EQ(response.devices(0).memory_used_bytes(), 32);
  // Where there is staging memory, what came through it is given back.
  const server::Device& device = server_.device();
  EXPECT_EQ(response.devices(0).staging_used_bytes(), 0);
  EXPECT_EQ(response.devices(0).staging_peak_bytes(),
            device.info().uses_host_memory ? 0 : 16);
  EXPECT_EQ(response.devices(0).staging_reserved_bytes(),
            device.staging_reserved_bytes());
  EXPECT_EQ(response.devices(0).staging_limit_bytes(),
            device.staging_limit_bytes());
  EXPECT_EQ(device.staging_limit_bytes() == 0, device.info().uses_host_memory);
}

TEST_F(RpcConformance, SecondServerOnASocketIsRefusedAndTheFirstLives) {
  server::Log log(server::LogLevel::kError);
  server::Metrics metrics;
  server::Health health;
  rpc::ServiceContext context{.engine = server_.engine(),
                              .sessions = server_.sessions(),
                              .log = log,
                              .metrics = metrics,
                              .health = health,
                              .limits = {}};
  const auto second =
      rpc::RpcServer::Start({.listen = {server_.address()}}, context);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  const auto channel = server_.NewChannel();
  const auto admin = v1::AdminService::NewStub(channel);
  v1::GetServerInfoResponse response;
  EXPECT_THAT(Unary(&v1::AdminService::Stub::GetServerInfo, *admin,
                    v1::GetServerInfoRequest(), &response),
              IsOk());
}

TEST_F(RpcConformance, LongNameThatIsNotAsciiIsRefusedLikeAnyOther) {
  v1::DescribeTensorRequest request;
  std::string name = "sessions/";
  for (int i = 0; i < 5000; ++i) name += "\u2603";
  request.set_tensor(name + "/tensors/x");
  v1::DescribeTensorResponse response;
  EXPECT_THAT(Unary(&v1::TensorService::Stub::DescribeTensor, *tensors_,
                    request, &response),
              FailsWith(grpc::NOT_FOUND, "SESSION_NOT_FOUND"));
}

class RpcRefusalTest : public RpcConformance {
 protected:
  // Two calls, one after the other, take milliseconds.
  RpcRefusalTest() : RpcConformance({.rpc = {.refusal = absl::Seconds(5)}}) {}
};

TEST_F(RpcRefusalTest, CallsDuringADrainHearUnavailable) {
  std::thread drain([this] { server_.rpc().Drain(absl::Seconds(5)); });
  for (int refused_count = 0; refused_count < 2;) {
    v1::OpenSessionResponse response;
    const int code = Open({}, &response).status.error_code();
    EXPECT_NE(code, grpc::CANCELLED);
    refused_count += code == grpc::UNAVAILABLE ? 1 : 0;
  }
  drain.join();
}

TEST_F(RpcConformance, DrainRefusesNewCallsAndEndsTheOnesThatWait) {
  const std::string a = Filled({2, 2});
  Blocker blocker(server_.device().worker());
  std::thread caller([&] {
    v1::ContractResponse response;
    grpc::ClientContext context;
    const grpc::Status status =
        compute_->Contract(&context, Contraction(a, a), &response);
    EXPECT_FALSE(status.ok());
  });
  AwaitQueued(1);
  server_.rpc().Drain(absl::Milliseconds(100));
  caller.join();
  blocker.Release();
  v1::OpenSessionResponse response;
  EXPECT_EQ(Open({}, &response).status.error_code(), grpc::UNAVAILABLE);
}

}  // namespace
}  // namespace tensord
