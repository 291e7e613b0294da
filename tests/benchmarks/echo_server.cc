#include "tests/benchmarks/echo_server.h"

#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensord/v1/compute.grpc.pb.h"
#include "tensord/v1/session.grpc.pb.h"

namespace tensord::benchmarks {
namespace {

using Sessions = v1::SessionService::AsyncService;
using Compute = v1::ComputeService::AsyncService;

/// Calls of one method.
class Echo {
 public:
  virtual ~Echo() = default;
  virtual void Proceed(bool ok) = 0;
};

/// One call after the other: waits for it, answers it, and begins again.
template <typename Service, typename Request, typename Response>
class EchoOf final : public Echo {
  using Writer = grpc::ServerAsyncResponseWriter<Response>;

 public:
  using Method = void (Service::*)(grpc::ServerContext*, Request*, Writer*,
                                   grpc::CompletionQueue*,
                                   grpc::ServerCompletionQueue*, void*);

  EchoOf(Service& service, Method method, Response answer,
         grpc::ServerCompletionQueue& queue)
      : service_(service),
        method_(method),
        answer_(std::move(answer)),
        queue_(queue) {
    Await();
  }
  void Proceed(bool ok) override {
    if (!ok) std::exit(0);  // the server has ended
    if (is_answering_) {
      Await();
    } else {
      is_answering_ = true;
      call_->writer.Finish(answer_, grpc::Status::OK, this);
    }
  }

 private:
  struct Call {
    grpc::ServerContext context;
    Request request;
    Writer writer{&context};
  };

  void Await() {
    is_answering_ = false;
    call_ = std::make_unique<Call>();
    (service_.*method_)(&call_->context, &call_->request, &call_->writer,
                        &queue_, &queue_, static_cast<Echo*>(this));
  }

  Service& service_;
  const Method method_;
  const Response answer_;
  grpc::ServerCompletionQueue& queue_;
  std::unique_ptr<Call> call_;
  bool is_answering_ = false;
};

/// What a server says of the product of SmallContraction().
v1::ContractResponse SmallProduct() {
  v1::ContractResponse response;
  v1::Result& result = *response.mutable_result();
  v1::Tensor& tensor = *result.mutable_tensor();
  tensor.set_element_type(v1::ELEMENT_TYPE_FLOAT64);
  for (const int64_t stride : {1, 8}) {
    tensor.mutable_layout()->add_extents(8);
    tensor.mutable_layout()->add_strides(stride);
  }
  result.set_data(std::string(8 * 8 * sizeof(double), '\0'));
  return response;
}

}  // namespace

void ServeEchoes(const std::string& address) {
  constexpr int kAtOnce = 64;
  Sessions sessions;
  Compute compute;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.RegisterService(&sessions);
  builder.RegisterService(&compute);
  const std::unique_ptr<grpc::ServerCompletionQueue> queue =
      builder.AddCompletionQueue();
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) {
    std::fprintf(stderr, "cannot listen on %s\n", address.c_str());
    std::exit(1);
  }
  std::vector<std::unique_ptr<Echo>> echoes;
  const auto serve =
      [&]<typename Service, typename Request, typename Response>(
          Service& service,
          typename EchoOf<Service, Request, Response>::Method method,
          Response answer) {
        echoes.push_back(std::make_unique<EchoOf<Service, Request, Response>>(
            service, method, std::move(answer), *queue));
      };
  for (int i = 0; i < kAtOnce; ++i) {
    serve.operator()<Sessions, v1::KeepSessionAliveRequest>(
        sessions, &Sessions::RequestKeepSessionAlive,
        v1::KeepSessionAliveResponse());
  }
  serve.operator()<Compute, v1::ContractRequest>(
      compute, &Compute::RequestContract, SmallProduct());
  void* tag = nullptr;
  bool ok = false;
  while (queue->Next(&tag, &ok)) static_cast<Echo*>(tag)->Proceed(ok);
}

}  // namespace tensord::benchmarks
