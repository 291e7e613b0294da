// Every rpc through the generated stubs: success, each documented error,
// deadline, cancellation, and no byte lost.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "server/rpc/chunk_wire.h"
#include "tensord/v1/admin.grpc.pb.h"
#include "tensord/v1/compute.grpc.pb.h"
#include "tensord/v1/error.pb.h"
#include "tensord/v1/plan.grpc.pb.h"
#include "tensord/v1/session.grpc.pb.h"
#include "tensord/v1/tensor.grpc.pb.h"
#include "tests/testing/in_process_server.h"

namespace tensord {
namespace {

using ::testing::HasSubstr;

/// What a call ended with.
struct Outcome {
  grpc::Status status;
  std::string reason;
};

std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  return out << outcome.status.error_code() << " " << outcome.reason << ": "
             << outcome.status.error_message();
}

Outcome OutcomeOf(const grpc::Status& status,
                  const grpc::ClientContext& context) {
  Outcome outcome{status, ""};
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto detail = trailers.find("tensord-error-bin");
  if (detail != trailers.end()) {
    v1::ErrorDetail message;
    message.ParseFromArray(detail->second.data(),
                           static_cast<int>(detail->second.size()));
    outcome.reason = message.reason();
  }
  return outcome;
}

MATCHER(IsOk, "is OK") { return arg.status.ok(); }
MATCHER_P2(FailsWith, code, reason, "") {
  return arg.status.error_code() == code && arg.reason == reason;
}

class RpcConformance : public ::testing::Test {
 protected:
  void SetUp() override {
    v1::OpenSessionResponse opened;
    ASSERT_THAT(Open({}, &opened), IsOk());
    session_ = opened.session().name();
  }

  template <typename Stub, typename Q, typename R>
  Outcome Unary(grpc::Status (Stub::*method)(grpc::ClientContext*, const Q&,
                                             R*),
                Stub& stub, const Q& request, R* response) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(20));
    const grpc::Status status = (stub.*method)(&context, request, response);
    return OutcomeOf(status, context);
  }

  Outcome Open(const v1::OpenSessionRequest& request,
               v1::OpenSessionResponse* response) {
    return Unary(&v1::SessionService::Stub::OpenSession, *sessions_, request,
                 response);
  }
  Outcome Close(const std::string& session) {
    v1::CloseSessionRequest request;
    request.set_session(session);
    v1::CloseSessionResponse response;
    return Unary(&v1::SessionService::Stub::CloseSession, *sessions_, request,
                 &response);
  }

  v1::CreateTensorRequest CreateRequest(std::vector<int64_t> extents,
                                        std::vector<int64_t> strides = {}) {
    v1::CreateTensorRequest request;
    request.set_session(session_);
    request.set_element_type(v1::ELEMENT_TYPE_FLOAT32);
    request.mutable_layout()->mutable_extents()->Add(extents.begin(),
                                                     extents.end());
    request.mutable_layout()->mutable_strides()->Add(strides.begin(),
                                                     strides.end());
    return request;
  }
  Outcome Create(const v1::CreateTensorRequest& request,
                 v1::Tensor* tensor = nullptr) {
    v1::CreateTensorResponse response;
    const Outcome outcome = Unary(&v1::TensorService::Stub::CreateTensor,
                                  *tensors_, request, &response);
    if (tensor != nullptr) *tensor = response.tensor();
    return outcome;
  }

  static v1::UploadTensorRequest Chunk(const std::string& tensor,
                                       int64_t offset,
                                       std::span<const float> data) {
    v1::UploadTensorRequest chunk;
    chunk.set_tensor(tensor);
    chunk.set_offset_bytes(offset);
    chunk.set_crc32c(rpc::Crc32c(std::as_bytes(data)));
    chunk.set_data(data.data(), data.size_bytes());
    return chunk;
  }
  Outcome Upload(const std::vector<v1::UploadTensorRequest>& chunks,
                 v1::UploadTensorResponse* response = nullptr) {
    grpc::ClientContext context;
    v1::UploadTensorResponse unused;
    const auto writer = tensors_->UploadTensor(
        &context, response == nullptr ? &unused : response);
    for (const auto& chunk : chunks) {
      if (!writer->Write(chunk)) break;
    }
    writer->WritesDone();
    const grpc::Status status = writer->Finish();
    return OutcomeOf(status, context);
  }
  Outcome Download(const v1::DownloadTensorRequest& request,
                   std::string* data) {
    grpc::ClientContext context;
    const auto reader = tensors_->DownloadTensor(&context, request);
    v1::DownloadTensorResponse chunk;
    while (reader->Read(&chunk)) {
      EXPECT_EQ(chunk.offset_bytes(),
                request.offset_bytes() + std::ssize(*data));
      EXPECT_EQ(chunk.crc32c(),
                rpc::Crc32c(std::as_bytes(std::span(chunk.data()))));
      data->append(chunk.data());
    }
    const grpc::Status status = reader->Finish();
    return OutcomeOf(status, context);
  }
  v1::Tensor Describe(const std::string& name) {
    v1::DescribeTensorRequest request;
    request.set_tensor(name);
    v1::DescribeTensorResponse response;
    EXPECT_THAT(Unary(&v1::TensorService::Stub::DescribeTensor, *tensors_,
                      request, &response),
                IsOk());
    return response.tensor();
  }
  Outcome Delete(const std::string& name) {
    v1::DeleteTensorRequest request;
    request.set_tensor(name);
    v1::DeleteTensorResponse response;
    return Unary(&v1::TensorService::Stub::DeleteTensor, *tensors_, request,
                 &response);
  }

  /// A float32 tensor of these extents, READY with 0, 1, 2, ...
  std::string Filled(std::vector<int64_t> extents) {
    v1::Tensor tensor;
    EXPECT_THAT(Create(CreateRequest(extents), &tensor), IsOk());
    std::vector<float> values(static_cast<size_t>(tensor.span_bytes()) / 4);
    std::iota(values.begin(), values.end(), 0.0f);
    std::vector<v1::UploadTensorRequest> chunks;
    constexpr size_t kValuesPerChunk = 1 << 18;
    for (size_t at = 0; at < values.size(); at += kValuesPerChunk) {
      const size_t count = std::min(kValuesPerChunk, values.size() - at);
      chunks.push_back(Chunk(at == 0 ? tensor.name() : "",
                             static_cast<int64_t>(at) * 4,
                             std::span(values).subspan(at, count)));
    }
    EXPECT_THAT(Upload(chunks), IsOk());
    return tensor.name();
  }
  std::vector<float> Values(const std::string& name) {
    v1::DownloadTensorRequest request;
    request.set_tensor(name);
    std::string data;
    EXPECT_THAT(Download(request, &data), IsOk());
    std::vector<float> values(data.size() / sizeof(float));
    std::memcpy(values.data(), data.data(), data.size());
    return values;
  }

  static v1::Operand Named(const std::string& tensor, std::vector<int> modes) {
    v1::Operand operand;
    operand.set_tensor(tensor);
    operand.mutable_modes()->Add(modes.begin(), modes.end());
    return operand;
  }
  static v1::Output New(std::vector<int> modes) {
    v1::Output output;
    output.mutable_modes()->Add(modes.begin(), modes.end());
    return output;
  }
  v1::ContractRequest Contraction(const std::string& a, const std::string& b) {
    v1::ContractRequest request;
    request.set_session(session_);
    *request.mutable_a() = Named(a, {'i', 'k'});
    *request.mutable_b() = Named(b, {'k', 'j'});
    *request.mutable_d() = New({'i', 'j'});
    return request;
  }
  Outcome Contract(const v1::ContractRequest& request,
                   v1::Result* result = nullptr) {
    v1::ContractResponse response;
    const Outcome outcome = Unary(&v1::ComputeService::Stub::Contract,
                                  *compute_, request, &response);
    if (result != nullptr) *result = response.result();
    return outcome;
  }
  Outcome Permute(const v1::PermuteRequest& request,
                  v1::Result* result = nullptr) {
    v1::PermuteResponse response;
    const Outcome outcome = Unary(&v1::ComputeService::Stub::Permute, *compute_,
                                  request, &response);
    if (result != nullptr) *result = response.result();
    return outcome;
  }
  v1::PermuteRequest Permutation(const std::string& a) {
    v1::PermuteRequest request;
    request.set_session(session_);
    *request.mutable_a() = Named(a, {1, 2});
    *request.mutable_d() = New({2, 1});
    return request;
  }

  testing::InProcessServer server_{
      {.engine = {.cpu_threads = 2,
                  .memory_limit_bytes = int64_t{64} << 20,
                  .queue_limit = 4},
       .sessions = {.max_sessions = 4}}};
  std::shared_ptr<grpc::Channel> channel_ = server_.NewChannel();
  std::unique_ptr<v1::SessionService::Stub> sessions_ =
      v1::SessionService::NewStub(channel_);
  std::unique_ptr<v1::TensorService::Stub> tensors_ =
      v1::TensorService::NewStub(channel_);
  std::unique_ptr<v1::ComputeService::Stub> compute_ =
      v1::ComputeService::NewStub(channel_);
  std::unique_ptr<v1::PlanService::Stub> plans_ =
      v1::PlanService::NewStub(channel_);
  std::unique_ptr<v1::AdminService::Stub> admin_ =
      v1::AdminService::NewStub(channel_);
  std::string session_;
};

/// Holds the device's thread until Release().
class Blocker final : public server::DeviceWorker::Job {
 public:
  explicit Blocker(server::DeviceWorker& worker) {
    EXPECT_TRUE(worker.Add(~uint64_t{0}, this).ok());
    started_.WaitForNotification();
  }
  void Release() {
    release_.Notify();
    done_.WaitForNotification();
  }

 private:
  void Run(core::Stream&) override {
    started_.Notify();
    release_.WaitForNotification();
    done_.Notify();
  }
  absl::Notification started_, release_, done_;
};

// ---- SessionService ---------------------------------------------------------

TEST_F(RpcConformance, OpenSessionFillsInTheDefaults) {
  v1::OpenSessionRequest request;
  request.set_job("a job");
  v1::OpenSessionResponse response;
  ASSERT_THAT(Open(request, &response), IsOk());
  EXPECT_THAT(response.session().name(),
              ::testing::MatchesRegex("sessions/[0-9a-f]{32}"));
  EXPECT_EQ(response.session().job(), "a job");
  EXPECT_EQ(response.session().device(), "cpu:0");
  EXPECT_EQ(response.session().lease().seconds(), 60);
  EXPECT_EQ(response.session().memory_quota_bytes(), int64_t{64} << 20);
}

TEST_F(RpcConformance, OpenSessionRefusesWhatItCannotGive) {
  v1::OpenSessionResponse response;
  v1::OpenSessionRequest request;
  request.mutable_lease()->set_nanos(1);
  EXPECT_THAT(Open(request, &response),
              FailsWith(grpc::INVALID_ARGUMENT, "LEASE_OUT_OF_RANGE"));
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
  request.mutable_lease()->set_seconds(1);
  v1::OpenSessionResponse response;
  ASSERT_THAT(Open(request, &response), IsOk());
  session_ = response.session().name();
  Filled({64, 64});
  const absl::Time deadline = absl::Now() + absl::Seconds(10);
  while (server_.used_bytes() > 0 && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(50));
  }
  EXPECT_EQ(server_.used_bytes(), 0);
  EXPECT_THAT(Close(session_), FailsWith(grpc::NOT_FOUND, "SESSION_NOT_FOUND"));
}

// ---- TensorService ----------------------------------------------------------

TEST_F(RpcConformance, CreateTensorDescribesWhatItMade) {
  v1::CreateTensorRequest request = CreateRequest({4, 8, 12});  // A0.4
  request.set_tensor_id("x");
  v1::Tensor tensor;
  ASSERT_THAT(Create(request, &tensor), IsOk());
  EXPECT_EQ(tensor.name(), session_ + "/tensors/x");
  EXPECT_THAT(tensor.layout().strides(), ::testing::ElementsAre(1, 4, 32));
  EXPECT_EQ(tensor.state(), v1::TENSOR_STATE_EMPTY);
  EXPECT_EQ(tensor.span_bytes(), 4 * 8 * 12 * 4);
  request.mutable_layout()->set_order(v1::ORDER_LAST_MODE_FASTEST);
  request.set_tensor_id("y");
  ASSERT_THAT(Create(request, &tensor), IsOk());
  EXPECT_THAT(tensor.layout().strides(), ::testing::ElementsAre(96, 12, 1));
}

TEST_F(RpcConformance, CreateTensorRefusesMalformedRequests) {
  using Edit = std::function<void(v1::CreateTensorRequest&)>;
  struct Case {
    grpc::StatusCode code;
    std::string reason;
    Edit edit;
  };
  const std::vector<Case> cases = {
      {grpc::NOT_FOUND, "SESSION_NOT_FOUND",
       [](auto& q) { q.set_session("sessions/none"); }},
      {grpc::INVALID_ARGUMENT, "ENUM_UNKNOWN",
       [](auto& q) { q.set_element_type(v1::ELEMENT_TYPE_UNSPECIFIED); }},
      {grpc::INVALID_ARGUMENT, "ENUM_UNKNOWN",
       [](auto& q) { q.set_element_type(static_cast<v1::ElementType>(77)); }},
      {grpc::INVALID_ARGUMENT, "TENSOR_ID_MALFORMED",
       [](auto& q) { q.set_tensor_id("a/b"); }},
      {grpc::INVALID_ARGUMENT, "NEGATIVE_EXTENT",
       [](auto& q) { q.mutable_layout()->set_extents(0, -2); }},
      {grpc::INVALID_ARGUMENT, "STRIDE_COUNT_MISMATCH",
       [](auto& q) { q.mutable_layout()->add_strides(1); }},
      {grpc::INVALID_ARGUMENT, "STRIDE_NOT_POSITIVE",  // A0.6
       [](auto& q) {
         q.mutable_layout()->add_strides(0);
         q.mutable_layout()->add_strides(1);
       }},
      {grpc::INVALID_ARGUMENT, "STRIDE_NOT_POSITIVE",
       [](auto& q) {
         q.mutable_layout()->add_strides(-1);
         q.mutable_layout()->add_strides(1);
       }},
      {grpc::INVALID_ARGUMENT, "NEGATIVE_OFFSET",
       [](auto& q) { q.mutable_layout()->set_offset(-1); }},
      {grpc::INVALID_ARGUMENT, "SIZE_OVERFLOW",
       [](auto& q) { q.mutable_layout()->set_extents(0, int64_t{1} << 61); }},
      {grpc::INVALID_ARGUMENT, "SIZE_OVERFLOW",
       [](auto& q) { q.mutable_layout()->set_offset(INT64_MAX); }},
      {grpc::INVALID_ARGUMENT, "TOO_MANY_MODES",
       [](auto& q) {
         for (int i = 0; i < 64; ++i) q.mutable_layout()->add_extents(1);
       }},
      {grpc::RESOURCE_EXHAUSTED, "MEMORY_LIMIT",
       [](auto& q) { q.mutable_layout()->set_extents(0, 1 << 30); }},
  };
  for (const Case& c : cases) {
    v1::CreateTensorRequest request = CreateRequest({8, 8});
    c.edit(request);
    EXPECT_THAT(Create(request), FailsWith(c.code, c.reason))
        << request.ShortDebugString();
  }
  v1::CreateTensorRequest request = CreateRequest({8, 8});
  request.set_tensor_id("twice");
  EXPECT_THAT(Create(request), IsOk());
  EXPECT_THAT(Create(request),
              FailsWith(grpc::ALREADY_EXISTS, "TENSOR_ALREADY_EXISTS"));
  EXPECT_EQ(server_.used_bytes(), 256);
}

TEST_F(RpcConformance, OutOfMemorySaysAskedAndLeftAndTheNextRequestWorks) {
  const Outcome outcome = Create(CreateRequest({1 << 28}));
  EXPECT_THAT(outcome, FailsWith(grpc::RESOURCE_EXHAUSTED, "MEMORY_LIMIT"));
  EXPECT_THAT(outcome.status.error_message(), HasSubstr("1073741824"));
  EXPECT_THAT(outcome.status.error_message(), HasSubstr("67108864"));
  EXPECT_THAT(Create(CreateRequest({1 << 20})), IsOk());
}

TEST_F(RpcConformance, GapsOfALayoutReadAsZeros) {
  v1::Tensor tensor;
  ASSERT_THAT(Create(CreateRequest({2, 2}, {1, 4}), &tensor), IsOk());
  EXPECT_EQ(tensor.span_bytes(), 24);
  v1::PermuteRequest request = Permutation(Filled({2, 2}));
  *request.mutable_d() = v1::Output();
  request.mutable_d()->set_tensor(tensor.name());
  request.mutable_d()->add_modes(1);
  request.mutable_d()->add_modes(2);
  ASSERT_THAT(Permute(request), IsOk());
  EXPECT_EQ(Values(tensor.name()), (std::vector<float>{0, 1, 0, 0, 2, 3}));
}

TEST_F(RpcConformance, UploadInChunksArrivesWhole) {
  const std::string name = Filled({1000, 1000});
  EXPECT_EQ(Describe(name).state(), v1::TENSOR_STATE_READY);
  const std::vector<float> values = Values(name);
  ASSERT_EQ(values.size(), 1000u * 1000u);
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(values[i], static_cast<float>(i));
  }
}

TEST_F(RpcConformance, WrongChunksAreRefusedAndTheUploadResumes) {
  v1::Tensor tensor;
  ASSERT_THAT(Create(CreateRequest({8}), &tensor), IsOk());
  const std::string& name = tensor.name();
  const std::vector<float> v = {0, 1, 2, 3, 4, 5, 6, 7};
  const std::span<const float> all(v);
  const auto chunk = [&](bool first, int from, int count) {
    return Chunk(first ? name : "", from * 4, all.subspan(from, count));
  };
  v1::UploadTensorRequest corrupt = chunk(false, 2, 2);
  corrupt.mutable_data()->at(3) ^= 1;
  v1::UploadTensorRequest renamed = chunk(false, 2, 2);
  renamed.set_tensor(name);
  v1::UploadTensorRequest negative = chunk(false, 2, 2);
  negative.set_offset_bytes(-8);
  v1::UploadTensorRequest big = chunk(false, 2, 2);
  big.set_data(std::string(3 << 20, 'x'));
  struct Case {
    v1::UploadTensorRequest second;
    grpc::StatusCode code;
    std::string reason;
  };
  const std::vector<Case> cases = {
      {chunk(false, 0, 2), grpc::INVALID_ARGUMENT, "CHUNK_OUT_OF_ORDER"},
      {chunk(false, 4, 2), grpc::INVALID_ARGUMENT, "CHUNK_OUT_OF_ORDER"},
      {corrupt, grpc::DATA_LOSS, "CHUNK_CORRUPT"},
      {renamed, grpc::INVALID_ARGUMENT, "CHUNK_MALFORMED"},
      {negative, grpc::INVALID_ARGUMENT, "CHUNK_MALFORMED"},
      {big, grpc::INVALID_ARGUMENT, "CHUNK_MALFORMED"},
      {Chunk("", 8, std::vector<float>(7)), grpc::INVALID_ARGUMENT,
       "CHUNK_OUT_OF_RANGE"},
  };
  for (const Case& c : cases) {
    EXPECT_THAT(Upload({chunk(true, 0, 2), c.second}),
                FailsWith(c.code, c.reason));
    EXPECT_EQ(Describe(name).state(), v1::TENSOR_STATE_PARTIAL);
    EXPECT_EQ(Describe(name).committed_bytes(), 8) << c.reason;
  }
  EXPECT_THAT(Upload({chunk(true, 4, 2)}),
              FailsWith(grpc::INVALID_ARGUMENT, "CHUNK_OUT_OF_ORDER"));
  EXPECT_THAT(Permute(Permutation(name)),
              FailsWith(grpc::INVALID_ARGUMENT, "MODE_COUNT_MISMATCH"));
  v1::UploadTensorResponse response;
  EXPECT_THAT(Upload({chunk(true, 2, 3), chunk(false, 5, 3)}, &response),
              IsOk());
  EXPECT_EQ(response.tensor().state(), v1::TENSOR_STATE_READY);
  EXPECT_EQ(Values(name), v);
}

TEST_F(RpcConformance, UploadRightBehindACreationThatStillRunsArrives) {
  Blocker blocker(server_.device().worker());
  v1::CreateTensorRequest create = CreateRequest({2, 2}, {1, 4});
  create.set_tensor_id("slow");
  std::thread creator([&] { EXPECT_THAT(Create(create), IsOk()); });
  while (server_.device().worker().statistics().queued_count < 1) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  const std::vector<float> v = {0, 1, 0, 0, 2, 3};
  const std::string name = session_ + "/tensors/slow";
  EXPECT_THAT(Upload({Chunk(name, 0, v)}), IsOk());
  blocker.Release();
  creator.join();
  EXPECT_EQ(Values(name), v);
}

TEST_F(RpcConformance, UploadNeedsATensor) {
  EXPECT_THAT(Upload({}), FailsWith(grpc::INVALID_ARGUMENT, "CHUNK_MALFORMED"));
  EXPECT_THAT(Upload({Chunk("", 0, {})}),
              FailsWith(grpc::INVALID_ARGUMENT, "TENSOR_NAME_MALFORMED"));
  EXPECT_THAT(Upload({Chunk(session_ + "/tensors/none", 0, {})}),
              FailsWith(grpc::NOT_FOUND, "TENSOR_NOT_FOUND"));
  EXPECT_THAT(Upload({Chunk("sessions/none/tensors/t", 0, {})}),
              FailsWith(grpc::NOT_FOUND, "SESSION_NOT_FOUND"));
}

TEST_F(RpcConformance, SecondUploadToATensorIsRefusedWhileOneRuns) {
  v1::Tensor tensor;
  ASSERT_THAT(Create(CreateRequest({8}), &tensor), IsOk());
  const std::vector<float> v(8, 1.0f);
  grpc::ClientContext context;
  v1::UploadTensorResponse response;
  const auto first = tensors_->UploadTensor(&context, &response);
  ASSERT_TRUE(first->Write(Chunk(tensor.name(), 0, std::span(v).first(4))));
  while (Describe(tensor.name()).committed_bytes() < 16) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_THAT(Upload({Chunk(tensor.name(), 0, v)}),
              FailsWith(grpc::FAILED_PRECONDITION, "TENSOR_BUSY"));
  ASSERT_TRUE(first->Write(Chunk("", 16, std::span(v).last(4))));
  first->WritesDone();
  EXPECT_TRUE(first->Finish().ok());
  EXPECT_EQ(Values(tensor.name()), v);
}

TEST_F(RpcConformance, UploadThatIsCancelledLeavesWhatCameAndCanResume) {
  v1::Tensor tensor;
  ASSERT_THAT(Create(CreateRequest({8}), &tensor), IsOk());
  const std::vector<float> v = {0, 1, 2, 3, 4, 5, 6, 7};
  {
    grpc::ClientContext context;
    v1::UploadTensorResponse response;
    const auto writer = tensors_->UploadTensor(&context, &response);
    ASSERT_TRUE(writer->Write(Chunk(tensor.name(), 0, std::span(v).first(4))));
    while (Describe(tensor.name()).committed_bytes() < 16) {
      absl::SleepFor(absl::Milliseconds(5));
    }
    context.TryCancel();
    EXPECT_EQ(writer->Finish().error_code(), grpc::CANCELLED);
  }
  Outcome resumed;
  for (int tries = 0; tries < 100; ++tries) {
    resumed = Upload({Chunk(tensor.name(), 16, std::span(v).last(4))});
    if (resumed.reason != "TENSOR_BUSY") break;
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_THAT(resumed, IsOk());
  EXPECT_EQ(Values(tensor.name()), v);
}

TEST_F(RpcConformance, DownloadSendsTheRangeAskedFor) {
  v1::DownloadTensorRequest request;
  request.set_tensor(Filled({100}));
  request.set_offset_bytes(40);
  request.set_length_bytes(80);
  request.set_chunk_bytes(24);
  std::string data;
  ASSERT_THAT(Download(request, &data), IsOk());
  ASSERT_EQ(data.size(), 80u);
  float first;
  std::memcpy(&first, data.data(), 4);
  EXPECT_EQ(first, 10.0f);
}

TEST_F(RpcConformance, DownloadRefusesWhatIsNotThere) {
  v1::Tensor empty;
  ASSERT_THAT(Create(CreateRequest({8}), &empty), IsOk());
  v1::DownloadTensorRequest request;
  request.set_tensor(empty.name());
  std::string data;
  EXPECT_THAT(Download(request, &data),
              FailsWith(grpc::FAILED_PRECONDITION, "TENSOR_NOT_READY"));
  request.set_tensor(Filled({8}));
  for (const auto& [offset, length] : std::vector<std::pair<int64_t, int64_t>>{
           {-1, 0}, {33, 0}, {0, 33}, {8, INT64_MAX}, {0, -1}}) {
    request.set_offset_bytes(offset);
    request.set_length_bytes(length);
    data.clear();
    EXPECT_THAT(Download(request, &data),
                FailsWith(grpc::INVALID_ARGUMENT, "RANGE_OUTSIDE_TENSOR"));
  }
  request.set_tensor(session_ + "/tensors/none");
  EXPECT_THAT(Download(request, &data),
              FailsWith(grpc::NOT_FOUND, "TENSOR_NOT_FOUND"));
}

TEST_F(RpcConformance, DownloadOfATensorWrittenMeanwhileIsAborted) {
  // Larger than what connections buffer: the server is still sending.
  constexpr int64_t kExtent = 6 << 20;
  const std::string name = Filled({kExtent});
  v1::DownloadTensorRequest request;
  request.set_tensor(name);
  grpc::ClientContext context;
  const auto reader = tensors_->DownloadTensor(&context, request);
  v1::DownloadTensorResponse chunk;
  ASSERT_TRUE(reader->Read(&chunk));
  v1::PermuteRequest write;
  write.set_session(session_);
  *write.mutable_a() = Named(Filled({kExtent}), {1});
  *write.mutable_d() = New({1});
  write.mutable_d()->set_tensor(name);
  ASSERT_THAT(Permute(write), IsOk());
  while (reader->Read(&chunk)) {
  }
  const grpc::Status status = reader->Finish();
  EXPECT_THAT(OutcomeOf(status, context),
              FailsWith(grpc::ABORTED, "TENSOR_CHANGED"));
}

TEST_F(RpcConformance, ListTensorsPagesByName) {
  for (const char* id : {"c", "a", "b"}) {
    v1::CreateTensorRequest request = CreateRequest({2});
    request.set_tensor_id(id);
    ASSERT_THAT(Create(request), IsOk());
  }
  v1::ListTensorsRequest request;
  request.set_session(session_);
  request.set_page_size(2);
  v1::ListTensorsResponse response;
  const auto list = [&] {
    return Unary(&v1::TensorService::Stub::ListTensors, *tensors_, request,
                 &response);
  };
  ASSERT_THAT(list(), IsOk());
  ASSERT_EQ(response.tensors_size(), 2);
  EXPECT_EQ(response.tensors(0).name(), session_ + "/tensors/a");
  request.set_page_token(response.next_page_token());
  ASSERT_THAT(list(), IsOk());
  ASSERT_EQ(response.tensors_size(), 1);
  EXPECT_EQ(response.tensors(0).name(), session_ + "/tensors/c");
  EXPECT_EQ(response.next_page_token(), "");
  request.set_page_size(-1);
  EXPECT_THAT(list(), FailsWith(grpc::INVALID_ARGUMENT, "PAGE_SIZE_NEGATIVE"));
  request.set_session("sessions/none");
  EXPECT_THAT(list(), FailsWith(grpc::NOT_FOUND, "SESSION_NOT_FOUND"));
}

TEST_F(RpcConformance, DescribeAndDeleteTensorNeedATensor) {
  const std::string name = Filled({4});
  EXPECT_THAT(Delete(name), IsOk());
  EXPECT_EQ(server_.used_bytes(), 0);
  EXPECT_THAT(Delete(name), FailsWith(grpc::NOT_FOUND, "TENSOR_NOT_FOUND"));
  EXPECT_THAT(Delete("nonsense"),
              FailsWith(grpc::INVALID_ARGUMENT, "TENSOR_NAME_MALFORMED"));
  v1::DescribeTensorRequest request;
  request.set_tensor(name);
  v1::DescribeTensorResponse response;
  EXPECT_THAT(Unary(&v1::TensorService::Stub::DescribeTensor, *tensors_,
                    request, &response),
              FailsWith(grpc::NOT_FOUND, "TENSOR_NOT_FOUND"));
}

TEST_F(RpcConformance, CopyTensorCopiesIntoTheLayoutAskedFor) {
  v1::CopyTensorRequest request;
  request.set_source(Filled({2, 3}));
  request.set_tensor_id("copy");
  request.mutable_layout()->add_extents(2);
  request.mutable_layout()->add_extents(3);
  request.mutable_layout()->set_order(v1::ORDER_LAST_MODE_FASTEST);
  v1::CopyTensorResponse response;
  const auto copy = [&] {
    return Unary(&v1::TensorService::Stub::CopyTensor, *tensors_, request,
                 &response);
  };
  ASSERT_THAT(copy(), IsOk());
  EXPECT_EQ(response.tensor().state(), v1::TENSOR_STATE_READY);
  EXPECT_EQ(Values(response.tensor().name()),
            (std::vector<float>{0, 2, 4, 1, 3, 5}));
  EXPECT_THAT(copy(), FailsWith(grpc::ALREADY_EXISTS, "TENSOR_ALREADY_EXISTS"));
  request.set_tensor_id("other");
  request.mutable_layout()->set_extents(1, 4);
  EXPECT_THAT(copy(),
              FailsWith(grpc::INVALID_ARGUMENT, "MODE_EXTENT_MISMATCH"));
  v1::Tensor empty;
  ASSERT_THAT(Create(CreateRequest({2, 3}), &empty), IsOk());
  request.clear_layout();
  request.set_source(empty.name());
  EXPECT_THAT(copy(), FailsWith(grpc::FAILED_PRECONDITION, "TENSOR_NOT_READY"));
  request.set_source("sessions/none/tensors/t");
  EXPECT_THAT(copy(), FailsWith(grpc::NOT_FOUND, "SESSION_NOT_FOUND"));
  EXPECT_EQ(server_.sessions().tensor_count(), 3);
}

// ---- ComputeService ---------------------------------------------------------

TEST_F(RpcConformance, ContractComputesOnResidentTensors) {
  v1::Result result;
  ASSERT_THAT(Contract(Contraction(Filled({2, 2}), Filled({2, 2})), &result),
              IsOk());
  EXPECT_EQ(result.tensor().state(), v1::TENSOR_STATE_READY);
  EXPECT_THAT(result.report().kernel(), HasSubstr("cpu.contract."));
  // First mode fastest: a = [0 2; 1 3], so a * a = [2 6; 3 11].
  EXPECT_EQ(Values(result.tensor().name()), (std::vector<float>{2, 3, 6, 11}));
}

TEST_F(RpcConformance, SmallJobIsOneRoundTrip) {
  const std::vector<float> v = {1, 2, 3};
  v1::ReduceRequest request;
  request.set_session(session_);
  v1::InlineTensor& sent = *request.mutable_a()->mutable_inline_();
  sent.set_element_type(v1::ELEMENT_TYPE_FLOAT32);
  sent.mutable_layout()->add_extents(3);
  sent.set_data(v.data(), 12);
  request.mutable_a()->add_modes(0);
  request.mutable_d()->set_inline_(true);
  request.set_op(v1::BINARY_OPERATOR_ADD);
  v1::ReduceResponse response;
  const auto reduce = [&] {
    return Unary(&v1::ComputeService::Stub::Reduce, *compute_, request,
                 &response);
  };
  ASSERT_THAT(reduce(), IsOk());
  float sum;
  ASSERT_EQ(response.result().data().size(), 4u);
  std::memcpy(&sum, response.result().data().data(), 4);
  EXPECT_EQ(sum, 6.0f);
  EXPECT_EQ(response.result().tensor().name(), "");
  EXPECT_EQ(server_.used_bytes(), 0);
  sent.set_data(v.data(), 8);
  EXPECT_THAT(reduce(),
              FailsWith(grpc::INVALID_ARGUMENT, "INLINE_SIZE_MISMATCH"));
  sent.mutable_layout()->set_extents(0, 1 << 19);
  sent.set_data(std::string(4 << 19, '\0'));
  EXPECT_THAT(reduce(), FailsWith(grpc::INVALID_ARGUMENT, "INLINE_TOO_LARGE"));
  request.clear_op();
  EXPECT_THAT(reduce(), FailsWith(grpc::INVALID_ARGUMENT, "OPERATOR_MISSING"));
}

TEST_F(RpcConformance, ElementwiseCombinesThreeOperands) {
  v1::ElementwiseRequest request;
  request.set_session(session_);
  const std::string x = Filled({2, 2});
  *request.mutable_a() = Named(x, {1, 2});
  *request.mutable_b() = Named(x, {2, 1});
  *request.mutable_c() = Named(x, {1, 2});
  *request.mutable_d() = New({1, 2});
  request.set_op_ab(v1::BINARY_OPERATOR_MUL);
  request.set_op_abc(v1::BINARY_OPERATOR_ADD);
  request.mutable_gamma()->set_real(10);
  v1::ElementwiseResponse response;
  const auto elementwise = [&] {
    return Unary(&v1::ComputeService::Stub::Elementwise, *compute_, request,
                 &response);
  };
  ASSERT_THAT(elementwise(), IsOk());
  EXPECT_EQ(Values(response.result().tensor().name()),
            (std::vector<float>{0, 12, 22, 39}));
  request.clear_op_abc();
  EXPECT_THAT(elementwise(),
              FailsWith(grpc::INVALID_ARGUMENT, "OPERATOR_MISSING"));
}

TEST_F(RpcConformance, OperationsRefuseWhatDoesNotFitTogether) {
  const std::string a = Filled({2, 3});
  const std::string b = Filled({3, 4});
  const std::string scalar = Filled({});
  using Edit = std::function<void(v1::ContractRequest&)>;
  struct Case {
    grpc::StatusCode code;
    std::string reason;
    Edit edit;
    std::string message;
  };
  const std::vector<Case> cases = {
      {grpc::INVALID_ARGUMENT, "MODE_EXTENT_MISMATCH",
       [&](auto& q) { q.mutable_b()->set_tensor(a); },
       "mode 'k' has extent 3 in a but 2 in b"},
      {grpc::INVALID_ARGUMENT, "MODE_REPEATED",
       [](auto& q) { q.mutable_a()->set_modes(1, 'i'); }, "'i'"},
      {grpc::INVALID_ARGUMENT, "MODE_EXTENT_UNKNOWN",
       [](auto& q) { q.mutable_d()->set_modes(0, 'z'); }, "'z'"},
      {grpc::INVALID_ARGUMENT, "MODE_COUNT_MISMATCH",
       [](auto& q) { q.mutable_a()->add_modes('x'); }, "'x'"},
      {grpc::INVALID_ARGUMENT, "INPUT_MISSING", [](auto& q) { q.clear_a(); },
       "alpha"},
      {grpc::INVALID_ARGUMENT, "INPUT_MISSING",
       [](auto& q) { q.mutable_beta()->set_real(2); }, "beta"},
      {grpc::INVALID_ARGUMENT, "OPERAND_EMPTY",
       [](auto& q) { q.mutable_a()->clear_source(); }, ""},
      {grpc::INVALID_ARGUMENT, "OPERATOR_NOT_LINEAR",
       [](auto& q) {
         q.mutable_a()->set_unary_operator(v1::UNARY_OPERATOR_SQRT);
       },
       "SQRT"},
      {grpc::INVALID_ARGUMENT, "SCALAR_NOT_REAL",
       [](auto& q) { q.mutable_alpha()->set_imaginary(1); }, "alpha"},
      {grpc::INVALID_ARGUMENT, "ENUM_UNKNOWN",
       [](auto& q) { q.set_compute_type(static_cast<v1::ComputeType>(99)); },
       "99"},
      {grpc::INVALID_ARGUMENT, "OUTPUT_OVERLAPS_INPUT",
       [&](auto& q) {
         q.clear_d();
         q.mutable_d()->set_tensor(a);
         q.mutable_d()->add_modes('i');
         q.mutable_d()->add_modes('j');
         *q.mutable_b() = Named(Filled({3, 3}), {'k', 'j'});
       },
       "a"},
      {grpc::INVALID_ARGUMENT, "OUTPUT_AMBIGUOUS",
       [&](auto& q) {
         q.mutable_d()->set_tensor(a);
         q.mutable_d()->set_tensor_id("x");
       },
       ""},
      {grpc::UNIMPLEMENTED, "TYPES_NOT_SUPPORTED",
       [](auto& q) { q.mutable_d()->set_element_type(v1::ELEMENT_TYPE_INT8); },
       "nearest: (float32, float32, float32)"},
      {grpc::UNIMPLEMENTED, "TYPES_NOT_SUPPORTED",
       [](auto& q) { q.set_compute_type(v1::COMPUTE_TYPE_FLOAT64); },
       "nearest"},
      {grpc::NOT_FOUND, "KERNEL_NOT_FOUND",
       [](auto& q) { q.mutable_options()->set_kernel("cpu.contract.magic"); },
       "cpu.contract.reference"},
      {grpc::INVALID_ARGUMENT, "WORKSPACE_LIMIT_NEGATIVE",
       [](auto& q) { q.mutable_options()->set_workspace_limit_bytes(-1); },
       "-1"},
      {grpc::NOT_FOUND, "TENSOR_NOT_FOUND",
       [&](auto& q) { q.mutable_a()->set_tensor(session_ + "/tensors/none"); },
       "none"},
      {grpc::NOT_FOUND, "TENSOR_NOT_FOUND",
       [](auto& q) { q.mutable_a()->set_tensor("sessions/other/tensors/t"); },
       "other"},
      {grpc::INVALID_ARGUMENT, "TENSOR_NAME_MALFORMED",
       [](auto& q) { q.mutable_a()->set_tensor("t"); }, "'t'"},
      {grpc::INVALID_ARGUMENT, "TOO_MANY_MODES",
       [](auto& q) {
         for (int i = 0; i < 100000; ++i) q.mutable_d()->add_modes(i);
       },
       "d has 100002 modes"},
      {grpc::INVALID_ARGUMENT, "OUTPUT_AMBIGUOUS",
       [](auto& q) {
         q.mutable_d()->set_inline_(true);
         q.mutable_d()->set_tensor_id("x");
       },
       "inline"},
      {grpc::NOT_FOUND, "SESSION_NOT_FOUND",
       [](auto& q) { q.set_session("sessions/none"); }, ""},
  };
  const int64_t before = server_.used_bytes();
  for (const Case& c : cases) {
    v1::ContractRequest request = Contraction(a, b);
    c.edit(request);
    const Outcome outcome = Contract(request);
    EXPECT_THAT(outcome, FailsWith(c.code, c.reason))
        << request.ShortDebugString();
    EXPECT_THAT(outcome.status.error_message(), HasSubstr(c.message));
  }
  // One case filled a 3 x 3 tensor; nothing else may remain.
  EXPECT_EQ(server_.used_bytes(), before + 9 * 4);
  EXPECT_THAT(Contract(Contraction(a, b)), IsOk());
}

TEST_F(RpcConformance, InputWithoutContentsIsRefused) {
  v1::Tensor empty;
  ASSERT_THAT(Create(CreateRequest({2, 2}), &empty), IsOk());
  EXPECT_THAT(Contract(Contraction(empty.name(), Filled({2, 2}))),
              FailsWith(grpc::FAILED_PRECONDITION, "TENSOR_NOT_READY"));
}

TEST_F(RpcConformance, FactorOfZeroNeedsNoInput) {  // A4.13, C25
  v1::ContractRequest request = Contraction("", "");
  request.clear_a();
  request.clear_b();
  request.mutable_alpha();
  *request.mutable_c() = Named(Filled({2, 2}), {'i', 'j'});
  request.mutable_beta()->set_real(3);
  v1::Result result;
  ASSERT_THAT(Contract(request, &result), IsOk());
  EXPECT_EQ(Values(result.tensor().name()), (std::vector<float>{0, 3, 6, 9}));
}

TEST_F(RpcConformance, RequestsOfOneSessionTakeEffectInOrder) {
  // Each step names the output of the one before, without waiting for it.
  const std::string a = Filled({300, 300});
  grpc::CompletionQueue queue;
  struct Step {
    grpc::ClientContext context;
    v1::PermuteResponse response;
    grpc::Status status;
    std::unique_ptr<grpc::ClientAsyncResponseReader<v1::PermuteResponse>> call;
  };
  std::vector<std::unique_ptr<Step>> steps;
  std::string input = a;
  for (int i = 0; i < 3; ++i) {
    v1::PermuteRequest request = Permutation(input);
    request.mutable_d()->set_tensor_id(absl::StrCat("step", i));
    input = absl::StrCat(session_, "/tensors/step", i);
    auto step = std::make_unique<Step>();
    step->call = compute_->AsyncPermute(&step->context, request, &queue);
    step->call->Finish(&step->response, &step->status, step.get());
    steps.push_back(std::move(step));
    absl::SleepFor(absl::Milliseconds(2));
  }
  void* tag = nullptr;
  bool ok = false;
  for (size_t i = 0; i < steps.size(); ++i) ASSERT_TRUE(queue.Next(&tag, &ok));
  for (const auto& step : steps) {
    EXPECT_TRUE(step->status.ok()) << step->status.error_message();
  }
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  const std::vector<float> once = Values(session_ + "/tensors/step0");
  EXPECT_EQ(Values(session_ + "/tensors/step2"), once);
}

TEST_F(RpcConformance, DeadlineIsHonouredWhileQueued) {
  const std::string a = Filled({2, 2});
  Blocker blocker(server_.device().worker());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::milliseconds(100));
  v1::ContractResponse response;
  v1::ContractRequest request = Contraction(a, a);
  request.mutable_d()->set_tensor_id("never");
  EXPECT_EQ(compute_->Contract(&context, request, &response).error_code(),
            grpc::DEADLINE_EXCEEDED);
  // The server takes the operation out of the queue, and its output goes.
  const absl::Time limit = absl::Now() + absl::Seconds(10);
  while ((server_.device().worker().statistics().queued_count > 0 ||
          server_.sessions().tensor_count() > 1) &&
         absl::Now() < limit) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_EQ(server_.device().worker().statistics().queued_count, 0);
  EXPECT_EQ(server_.sessions().tensor_count(), 1);
  blocker.Release();
  EXPECT_EQ(Describe(a).state(), v1::TENSOR_STATE_READY);
}

TEST_F(RpcConformance, CancelledOperationLeavesItsOutputAsItWas) {
  const std::string a = Filled({2, 2});
  const std::string d = Filled({2, 2});
  Blocker blocker(server_.device().worker());
  grpc::ClientContext context;
  v1::ContractRequest request = Contraction(a, a);
  request.mutable_d()->set_tensor(d);
  std::thread caller([&] {
    v1::ContractResponse response;
    EXPECT_EQ(compute_->Contract(&context, request, &response).error_code(),
              grpc::CANCELLED);
  });
  while (Describe(d).state() != v1::TENSOR_STATE_PENDING) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  context.TryCancel();
  caller.join();
  const absl::Time limit = absl::Now() + absl::Seconds(10);
  while (Describe(d).state() != v1::TENSOR_STATE_READY && absl::Now() < limit) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  blocker.Release();
  EXPECT_EQ(Values(d), (std::vector<float>{0, 1, 2, 3}));
}

TEST_F(RpcConformance, FullQueueIsRefusedAtOnce) {
  const std::string a = Filled({2, 2});
  Blocker blocker(server_.device().worker());
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back(
        [&] { EXPECT_THAT(Contract(Contraction(a, a)), IsOk()); });
  }
  while (server_.device().worker().statistics().queued_count < 4) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_THAT(Contract(Contraction(a, a)),
              FailsWith(grpc::RESOURCE_EXHAUSTED, "QUEUE_FULL"));
  blocker.Release();
  for (std::thread& caller : callers) caller.join();
}

TEST_F(RpcConformance, DeletedTensorLivesUntilItsLastUserIsDone) {
  const std::string a = Filled({2, 2});
  Blocker blocker(server_.device().worker());
  std::thread caller([&] { EXPECT_THAT(Contract(Contraction(a, a)), IsOk()); });
  while (server_.device().worker().statistics().queued_count < 1) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_THAT(Delete(a), IsOk());
  blocker.Release();
  caller.join();
}

TEST_F(RpcConformance, OperationBeyondTheQuotaLeavesNothingBehind) {
  v1::OpenSessionRequest open;
  open.set_memory_quota_bytes(1 << 20);
  v1::OpenSessionResponse opened;
  ASSERT_THAT(Open(open, &opened), IsOk());
  session_ = opened.session().name();
  const std::string a = Filled({400, 400});
  v1::ContractRequest request = Contraction(a, a);
  request.mutable_a()->set_modes(1, 'x');  // outer product: 400^4 elements
  request.mutable_d()->add_modes('x');
  request.mutable_d()->add_modes('k');
  EXPECT_THAT(Contract(request),
              FailsWith(grpc::RESOURCE_EXHAUSTED, "MEMORY_LIMIT"));
  EXPECT_EQ(server_.sessions().tensor_count(), 1);
  EXPECT_EQ(server_.used_bytes(), 400 * 400 * 4);
}

// ---- PlanService and AdminService -------------------------------------------

TEST_F(RpcConformance, ExplainPlanNamesEveryKernelAndWhyItDeclines) {
  v1::ExplainPlanRequest request;
  *request.mutable_contract() = Contraction(Filled({2, 3}), Filled({3, 4}));
  request.mutable_contract()->mutable_options()->set_kernel(
      "cpu.contract.reference");
  v1::ExplainPlanResponse response;
  const auto explain = [&] {
    return Unary(&v1::PlanService::Stub::ExplainPlan, *plans_, request,
                 &response);
  };
  ASSERT_THAT(explain(), IsOk());
  EXPECT_EQ(response.kernel(), "cpu.contract.reference");
  EXPECT_EQ(response.flops(), 2 * 2 * 3 * 4);
  EXPECT_EQ(response.moved_bytes(), (6 + 12 + 8) * 4);
  EXPECT_GE(response.candidates_size(), 2);
  for (const auto& candidate : response.candidates()) {
    EXPECT_EQ(candidate.refusal().empty(),
              candidate.kernel() == "cpu.contract.reference");
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
  ASSERT_EQ(response.devices_size(), 1);
  EXPECT_EQ(response.devices(0).name(), "cpu:0");
  EXPECT_TRUE(response.devices(0).properties().contains("blas"));
  EXPECT_EQ(response.limits().max_modes(), 64);
  EXPECT_EQ(response.limits().max_sessions(), 4);
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
  EXPECT_EQ(response.uploaded_bytes(), 16);
  ASSERT_EQ(response.operations_size(), 1);
  EXPECT_EQ(response.operations(0).operation(), "contract");
  EXPECT_EQ(response.operations(0).code(), "OK");
  EXPECT_EQ(response.devices(0).memory_used_bytes(), 32);
}

TEST_F(RpcConformance, SecondServerOnASocketIsRefusedAndTheFirstLives) {
  server::Log log(server::LogLevel::kError);
  server::Statistics statistics;
  rpc::ServiceContext context{.engine = server_.engine(),
                              .sessions = server_.sessions(),
                              .log = log,
                              .statistics = statistics,
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

TEST_F(RpcConformance, CallsDuringADrainHearUnavailable) {
  std::thread drain([this] { server_.rpc().Drain(absl::Seconds(5)); });
  std::map<int, int> codes;
  for (int i = 0; i < 200; ++i) {
    v1::OpenSessionResponse response;
    ++codes[Open({}, &response).status.error_code()];
    absl::SleepFor(absl::Milliseconds(1));
  }
  drain.join();
  EXPECT_GT(codes[grpc::UNAVAILABLE], 0);
  EXPECT_EQ(codes[grpc::CANCELLED], 0);
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
  while (server_.device().worker().statistics().queued_count < 1) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  server_.rpc().Drain(absl::Milliseconds(100));
  caller.join();
  blocker.Release();
  v1::OpenSessionResponse response;
  EXPECT_EQ(Open({}, &response).status.error_code(), grpc::UNAVAILABLE);
}

}  // namespace
}  // namespace tensord
