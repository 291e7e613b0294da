// One call of ComputeService.ExecuteStream, and the fixture of its tests.
#pragma once

#include "tests/conformance/rpc_conformance.h"

namespace tensord {

using Request = v1::ExecuteStreamRequest;
using Response = v1::ExecuteStreamResponse;

inline Outcome OutcomeOf(const Response& response) {
  if (response.has_result()) return {grpc::Status::OK, ""};
  const v1::Error& error = response.error();
  EXPECT_EQ(error.detail().domain(), "tensord");
  EXPECT_FALSE(error.detail().cutensor_status().empty());
  return {{static_cast<grpc::StatusCode>(error.code()), error.message()},
          error.detail().reason()};
}

/// One call of ExecuteStream, and what came back.
class Stream {
 public:
  explicit Stream(v1::ComputeService::Stub& stub,
                  absl::Duration deadline = absl::Seconds(60)) {
    context_.set_deadline(absl::ToChronoTime(absl::Now() + deadline));
    io_ = stub.ExecuteStream(&context_);
  }
  bool Write(const Request& request) { return io_->Write(request); }
  void WritesDone() { io_->WritesDone(); }
  /// The next response, which must be the next in order.
  bool Read(Response* response) {
    if (!io_->Read(response)) return false;
    EXPECT_EQ(response->index(), next_index_++);
    return true;
  }
  /// Reads whatever is left.
  std::vector<Response> ReadAll() {
    std::vector<Response> responses;
    for (Response response; Read(&response);) responses.push_back(response);
    return responses;
  }
  Outcome Finish() {
    const grpc::Status status = io_->Finish();
    return tensord::OutcomeOf(status, context_);
  }
  void Cancel() { context_.TryCancel(); }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<Request, Response>> io_;
  int64_t next_index_ = 0;
};

/// The queue of the device takes a whole window, and more.
class ExecuteStream : public RpcConformance {
 protected:
  static constexpr int kWindow = 64;

  explicit ExecuteStream(int64_t queue_limit = 256)
      : RpcConformance(queue_limit) {}
  explicit ExecuteStream(const testing::InProcessOptions& options)
      : RpcConformance(options) {}

  void SetUp() override {
    RpcConformance::SetUp();
    one_ = Filled({2});
    x_ = Filled({2});
    ASSERT_THAT(Upload({Chunk(one_, 0, std::vector<float>{1, 1})}), IsOk());
    before_ = server_.used_bytes();
  }

  /// Of requests and responses.
  int64_t RequestBytes() {
    return server_.sessions()
        .host_memory()
        ->used(server::HostUse::kRequests)
        .bytes;
  }

  /// d = a + c.
  Request Sum(const std::string& a, const std::string& c,
              const std::string& d) {
    Request request;
    v1::ElementwiseRequest& sum = *request.mutable_elementwise();
    sum.set_session(session_);
    *sum.mutable_a() = Named(a, {'i'});
    *sum.mutable_c() = Named(c, {'i'});
    sum.mutable_d()->set_tensor(d);
    sum.mutable_d()->add_modes('i');
    sum.set_op_abc(v1::BINARY_OPERATOR_ADD);
    return request;
  }
  Request Increment() { return Sum(x_, one_, x_); }
  /// By turns x = x + x and x = x + 1: another order gives another x.
  Request Step(int number) {
    return number % 2 == 0 ? Sum(x_, x_, x_) : Increment();
  }
  /// The elements of `tensor`, inline.
  Request FetchOf(const std::string& tensor) {
    Request request;
    v1::PermuteRequest& fetch = *request.mutable_permute();
    fetch.set_session(session_);
    *fetch.mutable_a() = Named(tensor, {'i'});
    *fetch.mutable_d() = New({'i'});
    fetch.mutable_d()->set_inline_(true);
    return request;
  }
  static Request Of(const v1::ContractRequest& contract) {
    Request request;
    *request.mutable_contract() = contract;
    return request;
  }
  int64_t queued() {
    return server_.device().worker().statistics().queued_count;
  }
  /// Sends all, and what comes back.
  std::vector<Response> Run(const std::vector<Request>& requests) {
    Stream stream(*compute_);
    std::thread sender([&] {
      for (const Request& request : requests) {
        if (!stream.Write(request)) break;
      }
      stream.WritesDone();
    });
    std::vector<Response> responses = stream.ReadAll();
    sender.join();
    EXPECT_THAT(stream.Finish(), IsOk());
    EXPECT_EQ(responses.size(), requests.size());
    responses.resize(requests.size());
    return responses;
  }

  std::string one_, x_;
  int64_t before_ = 0;  // bytes in use
};

}  // namespace tensord
