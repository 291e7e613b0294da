// A server and every rpc's stub, for tests that speak to it as a client does.
#pragma once

#include <gmock/gmock.h>
#include <grpc/grpc.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/crc32c.h"
#include "tensord/v1/admin.grpc.pb.h"
#include "tensord/v1/compute.grpc.pb.h"
#include "tensord/v1/error.pb.h"
#include "tensord/v1/plan.grpc.pb.h"
#include "tensord/v1/session.grpc.pb.h"
#include "tensord/v1/tensor.grpc.pb.h"
#include "tensord/v1/view.grpc.pb.h"
#include "tests/testing/blocker.h"
#include "tests/testing/in_process_server.h"
#include "tests/testing/soon.h"

namespace tensord {

/// gRPC stays until the process ends: its last user would wait for its poller,
/// up to 10 s.
inline const bool kGrpcStays = (grpc_init(), true);

/// What a call ended with.
struct Outcome {
  grpc::Status status;
  std::string reason;
};

inline std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  return out << outcome.status.error_code() << " " << outcome.reason << ": "
             << outcome.status.error_message();
}

inline Outcome OutcomeOf(const grpc::Status& status,
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

using test::Soon;
using testing::Blocker;

/// When a call is given up that should have ended by itself.
inline std::chrono::system_clock::time_point LongEnough() {
  return std::chrono::system_clock::now() + std::chrono::seconds(20);
}

class RpcConformance : public ::testing::Test {
 protected:
  explicit RpcConformance(int64_t queue_limit = 4)
      : RpcConformance(
            server::EngineOptions{.cpu_threads = 2,
                                  .memory_limit_bytes = int64_t{64} << 20,
                                  .queue_limit = queue_limit}) {}
  explicit RpcConformance(const server::EngineOptions& engine)
      : RpcConformance(testing::InProcessOptions{
            .engine = engine,
            .sessions = {.max_sessions = 4, .max_sessions_per_peer = 4}}) {}
  explicit RpcConformance(const testing::InProcessOptions& options)
      : server_(options) {}

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
    context.set_deadline(LongEnough());
    const grpc::Status status = (stub.*method)(&context, request, response);
    return OutcomeOf(status, context);
  }

  /// Returns when so many operations wait for the device.
  void AwaitQueued(int64_t count) {
    EXPECT_TRUE(Soon([&] {
      return server_.device().worker().statistics().queued_count >= count;
    }));
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
    chunk.set_crc32c(core::Crc32c(std::as_bytes(data)));
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
      EXPECT_EQ(chunk.crc32c(), core::Crc32c(chunk.data()));
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

  Outcome DeleteAll(const std::vector<std::string>& names,
                    v1::DeleteTensorsResponse* response) {
    v1::DeleteTensorsRequest request;
    request.set_session(session_);
    request.mutable_tensors()->Add(names.begin(), names.end());
    return Unary(&v1::TensorService::Stub::DeleteTensors, *tensors_, request,
                 response);
  }
  v1::GetServerStatsResponse ServerStats() {
    v1::GetServerStatsResponse response;
    EXPECT_THAT(Unary(&v1::AdminService::Stub::GetServerStats, *admin_,
                      v1::GetServerStatsRequest(), &response),
                IsOk());
    return response;
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
    if (!data.empty()) std::memcpy(values.data(), data.data(), data.size());
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

  /// What kernels' names begin with on the device under test.
  std::string KernelPrefix() {
    const std::string& name = server_.device().info().name;
    return name.substr(0, name.find(':'));
  }

  testing::InProcessServer server_;
  std::shared_ptr<grpc::Channel> channel_ = server_.NewChannel();
  std::unique_ptr<v1::SessionService::Stub> sessions_ =
      v1::SessionService::NewStub(channel_);
  std::unique_ptr<v1::TensorService::Stub> tensors_ =
      v1::TensorService::NewStub(channel_);
  std::unique_ptr<v1::ComputeService::Stub> compute_ =
      v1::ComputeService::NewStub(channel_);
  std::unique_ptr<v1::PlanService::Stub> plans_ =
      v1::PlanService::NewStub(channel_);
  std::unique_ptr<v1::ViewService::Stub> views_ =
      v1::ViewService::NewStub(channel_);
  std::unique_ptr<v1::AdminService::Stub> admin_ =
      v1::AdminService::NewStub(channel_);
  std::string session_;
};

}  // namespace tensord
