// What every call passes: its id, its session, its place in the metrics.
#include <atomic>

#include "core/base/status.h"
#include "server/rpc/door/door.h"
#include "tensord/v1/program.grpc.pb.h"
#include "tests/conformance/rpc_conformance.h"

namespace tensord {
namespace {

class RpcDoorTest : public RpcConformance {
 protected:
  /// How a server answers DescribeSession to a client that says it is call
  /// `request_id`.
  struct Answer {
    grpc::StatusCode code;
    std::string metadata_id;  // of the reply
    std::string detail_id;    // of its error
  };
  Answer Describe(const std::string& session,
                  const std::optional<std::string>& request_id = {}) {
    grpc::ClientContext context;
    if (request_id) context.AddMetadata("x-request-id", *request_id);
    v1::DescribeSessionRequest request;
    request.set_session(session);
    v1::DescribeSessionResponse response;
    const grpc::Status status =
        sessions_->DescribeSession(&context, request, &response);
    Answer answer{status.error_code(), "", ""};
    const auto& initial = context.GetServerInitialMetadata();
    if (const auto id = initial.find("x-request-id"); id != initial.end()) {
      answer.metadata_id.assign(id->second.data(), id->second.size());
    }
    const auto& trailing = context.GetServerTrailingMetadata();
    const auto detail = trailing.find("tensord-error-bin");
    if (detail != trailing.end()) {
      v1::ErrorDetail message;
      message.ParseFromArray(detail->second.data(),
                             static_cast<int>(detail->second.size()));
      answer.detail_id = message.request_id();
    }
    return answer;
  }

  /// How many calls of `rpc` ended with `code`, as it would be scraped.
  double Requests(const std::string& rpc, const std::string& code) {
    for (const auto& family : server_.metrics().registry().Collect()) {
      if (family.name != "tensord_requests_total") continue;
      for (const auto& metric : family.metric) {
        std::map<std::string, std::string> labels;
        for (const auto& label : metric.label) {
          labels[label.name] = label.value;
        }
        if (labels.at("rpc") == rpc && labels.at("code") == code) {
          return metric.counter.value;
        }
      }
    }
    return 0;
  }
  /// How many calls of `rpc` were timed, and how long all took.
  std::pair<uint64_t, double> Seconds(const std::string& rpc) {
    for (const auto& family : server_.metrics().registry().Collect()) {
      if (family.name != "tensord_request_seconds") continue;
      for (const auto& metric : family.metric) {
        if (metric.label.at(0).value == rpc) {
          return {metric.histogram.sample_count, metric.histogram.sample_sum};
        }
      }
    }
    return {};
  }
};

TEST_F(RpcDoorTest, AClientsRequestIdComesBack) {
  const Answer answer = Describe(session_, "job-7/step-3");
  EXPECT_EQ(answer.code, grpc::StatusCode::OK);
  EXPECT_EQ(answer.metadata_id, "job-7/step-3");
  const Answer failure = Describe("sessions/none", "job-7/step-4");
  EXPECT_EQ(failure.code, grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(failure.metadata_id, "job-7/step-4");
  EXPECT_EQ(failure.detail_id, "job-7/step-4");
}

TEST_F(RpcDoorTest, TheServerNamesCallsThatHaveNoId) {
  const Answer first = Describe(session_);
  const Answer second = Describe("sessions/none");
  EXPECT_FALSE(first.metadata_id.empty());
  EXPECT_NE(first.metadata_id, second.metadata_id);
  EXPECT_EQ(second.detail_id, second.metadata_id);
}

TEST_F(RpcDoorTest, IdsThatAreLongOrNoWordAreReplaced) {
  for (const std::string& id :
       {std::string(), std::string(129, 'x'), std::string("two words")}) {
    const Answer answer = Describe(session_, id);
    EXPECT_NE(answer.metadata_id, id);
    EXPECT_FALSE(answer.metadata_id.empty());
  }
  const std::string longest(128, 'x');
  EXPECT_EQ(Describe(session_, longest).metadata_id, longest);
}

TEST_F(RpcDoorTest, CallsAreCountedAndTimedByRpcAndCode) {
  const auto [count_before, sum_before] = Seconds("DescribeSession");
  Describe(session_);
  Describe(session_);
  Describe("sessions/none");
  EXPECT_EQ(Requests("DescribeSession", "OK"), 2);
  EXPECT_EQ(Requests("DescribeSession", "NOT_FOUND"), 1);
  EXPECT_EQ(Requests("OpenSession", "OK"), 1);  // the fixture's
  const auto [count, sum] = Seconds("DescribeSession");
  EXPECT_EQ(count - count_before, 3u);
  EXPECT_GT(sum, sum_before);
}

/// The outcome of a call whose request has no name in it.
template <typename Stub, typename Q, typename R>
Outcome Nameless(Stub& stub,
                 grpc::Status (Stub::*method)(grpc::ClientContext*, const Q&,
                                              R*),
                 const Q& request = {}) {
  grpc::ClientContext context;
  R response;
  return OutcomeOf((stub.*method)(&context, request, &response), context);
}

TEST_F(RpcDoorTest, CallsOfNoSessionAreRefused) {
  const auto none = FailsWith(grpc::INVALID_ARGUMENT, "SESSION_MISSING");
  using Sessions = v1::SessionService::Stub;
  EXPECT_THAT(Nameless(*sessions_, &Sessions::DescribeSession), none);
  EXPECT_THAT(Nameless(*sessions_, &Sessions::KeepSessionAlive), none);
  EXPECT_THAT(Nameless(*sessions_, &Sessions::CloseSession), none);
  using Tensors = v1::TensorService::Stub;
  EXPECT_THAT(Nameless(*tensors_, &Tensors::CreateTensor), none);
  EXPECT_THAT(Nameless(*tensors_, &Tensors::ListTensors), none);
  const auto no_tensor =
      FailsWith(grpc::INVALID_ARGUMENT, "TENSOR_NAME_MALFORMED");
  EXPECT_THAT(Nameless(*tensors_, &Tensors::DescribeTensor), no_tensor);
  EXPECT_THAT(Nameless(*tensors_, &Tensors::DeleteTensor), no_tensor);
  EXPECT_THAT(Nameless(*tensors_, &Tensors::CopyTensor), no_tensor);
  using Compute = v1::ComputeService::Stub;
  EXPECT_THAT(Nameless(*compute_, &Compute::Permute), none);
  EXPECT_THAT(Nameless(*compute_, &Compute::Elementwise), none);
  EXPECT_THAT(Nameless(*compute_, &Compute::Reduce), none);
  EXPECT_THAT(Nameless(*compute_, &Compute::Contract), none);
  EXPECT_THAT(Nameless(*compute_, &Compute::ExecutePlan),
              FailsWith(grpc::INVALID_ARGUMENT, "PLAN_NAME_MALFORMED"));
  using Plans = v1::PlanService::Stub;
  EXPECT_THAT(Nameless(*plans_, &Plans::ListPlans), none);
  v1::ExplainPlanRequest explain;
  explain.mutable_contract();
  EXPECT_THAT(Nameless(*plans_, &Plans::ExplainPlan, explain), none);
  v1::CreatePlanRequest create;
  create.mutable_reduce();
  EXPECT_THAT(Nameless(*plans_, &Plans::CreatePlan, create), none);
  const auto programs = v1::ProgramService::NewStub(server_.NewChannel());
  using Programs = v1::ProgramService::Stub;
  EXPECT_THAT(Nameless(*programs, &Programs::CreateProgram), none);
  EXPECT_THAT(Nameless(*programs, &Programs::ExplainProgram), none);
  EXPECT_THAT(Nameless(*programs, &Programs::ListPrograms), none);
  v1::ExecuteProgramRequest execute;
  EXPECT_THAT(Nameless(*programs, &Programs::ExecuteProgram, execute),
              FailsWith(grpc::INVALID_ARGUMENT, "PROGRAM_NAME_MALFORMED"));
  execute.mutable_spec();
  EXPECT_THAT(Nameless(*programs, &Programs::ExecuteProgram, execute), none);
}

/// Answers the start of a call, and counts what it sees.
class Counted final : public rpc::Middleware {
 public:
  explicit Counted(absl::Status answer) : answer_(std::move(answer)) {}

  absl::Status StartCall(const rpc::WireCall&, rpc::CallRecord&) override {
    ++started;
    return answer_;
  }
  void CallCompleted(const rpc::WireCall&, const rpc::CallRecord&,
                     const absl::Status& status) override {
    ++completed;
    code = status.code();
  }
  void OperationCompleted(const rpc::CallRecord&,
                          const absl::Status&) override {}

  std::atomic<int> started = 0;
  std::atomic<int> completed = 0;
  std::atomic<absl::StatusCode> code = absl::StatusCode::kOk;

 private:
  const absl::Status answer_;
};

TEST(MiddlewareTest, OnlyThatWhichStartedACallSeesItsEnd) {
  Counted before(absl::OkStatus());
  Counted refusing(core::Error(absl::StatusCode::kPermissionDenied, "CLOSED",
                               "come back tomorrow"));
  Counted behind(absl::OkStatus());
  testing::InProcessServer server(
      {.middleware = {&before, &refusing, &behind}});
  const auto sessions = v1::SessionService::NewStub(server.NewChannel());
  grpc::ClientContext context;
  v1::OpenSessionResponse response;
  EXPECT_THAT(
      OutcomeOf(sessions->OpenSession(&context, {}, &response), context),
      FailsWith(grpc::PERMISSION_DENIED, "CLOSED"));
  EXPECT_EQ(before.started, 1);
  EXPECT_EQ(before.completed, 1);
  EXPECT_EQ(before.code, absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(refusing.started, 1);
  EXPECT_EQ(refusing.completed, 0);
  EXPECT_EQ(behind.started, 0);
  EXPECT_EQ(behind.completed, 0);
}

TEST_F(RpcDoorTest, OperationsOfAStreamCarryItsCallsId) {
  grpc::ClientContext context;
  context.AddMetadata("x-request-id", "stream-1");
  const auto stream = compute_->ExecuteStream(&context);
  v1::ExecuteStreamRequest request;
  *request.mutable_contract() = Contraction("sessions/x/tensors/a", "b");
  ASSERT_TRUE(stream->Write(request));
  v1::ExecuteStreamResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.error().detail().request_id(), "stream-1");
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(Requests("ExecuteStream", "OK"), 1);
}

}  // namespace
}  // namespace tensord
