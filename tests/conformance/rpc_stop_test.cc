// Operations that would take very long: refused, or stopped where they are.
#include <atomic>
#include <functional>
#include <thread>
#include <utility>

#include "tests/conformance/rpc_conformance.h"

namespace tensord {
namespace {

using Status = grpc::Status;

// 50 ms are promised; sanitizers and busy machines take their time.
constexpr absl::Duration kSoon = absl::Seconds(10);

class RpcStopTest : public RpcConformance {
 protected:
  RpcStopTest()
      : RpcConformance(
            server::EngineOptions{.cpu_threads = 2,
                                  .memory_limit_bytes = int64_t{256} << 20,
                                  .queue_limit = 4}) {}

  // Small tensors have memory of their own before large ones take all.
  void SetUp() override {
    RpcConformance::SetUp();
    small_ = Filled({2, 2});
  }

  /// A tensor of few elements in many places: of these extents and strides.
  std::string Repeated(const std::vector<int64_t>& extents,
                       const std::vector<int64_t>& strides,
                       v1::ElementType type = v1::ELEMENT_TYPE_FLOAT32) {
    v1::CreateTensorRequest request = CreateRequest(extents, strides);
    request.set_element_type(type);
    v1::Tensor tensor;
    EXPECT_THAT(Create(request, &tensor), IsOk());
    const std::vector<float> ones(
        static_cast<size_t>(tensor.span_bytes()) / sizeof(float), 1.0f);
    EXPECT_THAT(Upload({Chunk(tensor.name(), 0, ones)}), IsOk());
    return tensor.name();
  }

  /// Sends a call of `start(context)`, ends it by `end(context)` when it is on
  /// the device, and returns its status. The device is free again soon.
  Status Stopped(const std::function<Status(grpc::ClientContext&)>& start,
                 const std::function<void(grpc::ClientContext&)>& end) {
    const int64_t before = Begun();
    grpc::ClientContext context;
    Status status;
    std::atomic<bool> has_ended = false;
    std::thread call([&] {
      status = start(context);
      has_ended = true;
    });
    EXPECT_TRUE(Soon([&] { return Begun() != before || has_ended; }));
    EXPECT_FALSE(has_ended) << status.error_message();
    end(context);
    const absl::Time ended = absl::Now();
    call.join();
    EXPECT_THAT(Contract(Contraction(small_, small_)), IsOk());
    EXPECT_LT(absl::Now() - ended, kSoon);
    return status;
  }
  int64_t Begun() {
    return server_.device().worker().statistics().executed_count;
  }
  /// A call that hears the client's cancellation.
  Status Cancelled(const std::function<Status(grpc::ClientContext&)>& start) {
    return Stopped(start,
                   [](grpc::ClientContext& context) { context.TryCancel(); });
  }

  v1::ReduceRequest Reduction(const std::string& kernel = "",
                              int64_t extent = 20'000) {
    v1::ReduceRequest request;
    request.set_session(session_);
    *request.mutable_a() =
        Named(Repeated({20'000, 20'000, extent}, {1, 1, 1}), {1, 2, 3});
    *request.mutable_d() = New({});
    request.set_op(v1::BINARY_OPERATOR_ADD);
    request.mutable_options()->set_kernel(kernel);
    return request;
  }
  Status Reduce(grpc::ClientContext& context,
                const v1::ReduceRequest& request) {
    v1::ReduceResponse response;
    return compute_->Reduce(&context, request, &response);
  }
  /// Products of matrices, very many of which are summed.
  v1::ContractRequest LongContraction(v1::ElementType type,
                                      const std::string& kernel) {
    constexpr int64_t kExtent = 512, kCount = 10'000;
    const auto matrices = [&] {
      return Repeated({kExtent, kExtent, kCount}, {1, kExtent, 1}, type);
    };
    v1::ContractRequest request;
    request.set_session(session_);
    *request.mutable_a() = Named(matrices(), {'i', 'k', 'l'});
    *request.mutable_b() = Named(matrices(), {'k', 'j', 'l'});
    *request.mutable_d() = New({'i', 'j'});
    request.mutable_options()->set_kernel(kernel);
    return request;
  }
  Status ContractFor(grpc::ClientContext& context,
                     const v1::ContractRequest& request) {
    v1::ContractResponse response;
    return compute_->Contract(&context, request, &response);
  }

  std::string small_;
};

TEST_F(RpcStopTest, ReductionsStop) {
  for (const auto& [kernel, extent] :
       {std::pair("", 20'000), {"cpu.reduce.reference", 400}}) {
    SCOPED_TRACE(kernel);
    const v1::ReduceRequest request = Reduction(kernel, extent);
    const Status status = Cancelled(
        [&](grpc::ClientContext& context) { return Reduce(context, request); });
    EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
  }
}

TEST_F(RpcStopTest, PermutationsStop) {
  v1::PermuteRequest request;
  request.set_session(session_);
  *request.mutable_a() =
      Named(Repeated({2'500, 2'500, 30}, {1, 1, 1}, v1::ELEMENT_TYPE_INT8),
            {1, 2, 3});
  *request.mutable_d() = New({3, 1, 2});
  request.mutable_options()->set_kernel("cpu.permute.reference");
  const Status status = Cancelled([&](grpc::ClientContext& context) {
    v1::PermuteResponse response;
    return compute_->Permute(&context, request, &response);
  });
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(RpcStopTest, ContractionsStop) {
  for (const auto type : {v1::ELEMENT_TYPE_FLOAT32, v1::ELEMENT_TYPE_INT32}) {
    for (const char* kernel : {"cpu.contract.gemm", "cpu.contract.direct",
                               "cpu.contract.reference"}) {
      if (type == v1::ELEMENT_TYPE_INT32 &&
          absl::string_view(kernel) == "cpu.contract.direct") {
        continue;  // It declines.
      }
      SCOPED_TRACE(kernel);
      const v1::ContractRequest request = LongContraction(type, kernel);
      const Status status = Cancelled([&](grpc::ClientContext& context) {
        return ContractFor(context, request);
      });
      EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
    }
  }
}

TEST_F(RpcStopTest, FactorizationsStop) {
  v1::FactorizeRequest request;
  request.set_session(session_);
  *request.mutable_a() = Named(Filled({2000, 3000}), {1, 2});
  *request.mutable_q() = New({1, 3});
  *request.mutable_r() = New({3, 2});
  request.set_method(v1::FACTORIZATION_METHOD_QR);
  const Status status = Cancelled([&](grpc::ClientContext& context) {
    v1::FactorizeResponse response;
    return compute_->Factorize(&context, request, &response);
  });
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(RpcStopTest, EquationsStop) {
  v1::SolveLinearRequest request;
  request.set_session(session_);
  *request.mutable_a() = Named(Filled({3000, 3000}), {1, 2});
  *request.mutable_d() = New({2, 3});
  // Whatever is in it, this is not singular.
  request.set_structure(v1::MATRIX_STRUCTURE_UPPER_TRIANGULAR);
  request.set_unit_diagonal(true);
  const Status status = Cancelled([&](grpc::ClientContext& context) {
    v1::SolveLinearResponse response;
    return compute_->SolveLinear(&context, request, &response);
  });
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(RpcStopTest, ExponentialsStop) {
  v1::SolveLinearRequest request;
  request.set_session(session_);
  *request.mutable_a() = Named(Filled({2000, 2000}), {1, 2});
  *request.mutable_d() = New({1, 3});
  request.set_function(v1::MATRIX_FUNCTION_EXPONENTIAL);
  const Status status = Cancelled([&](grpc::ClientContext& context) {
    v1::SolveLinearResponse response;
    return compute_->SolveLinear(&context, request, &response);
  });
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(RpcStopTest, SampledDecompositionsStop) {
  v1::FactorizeRequest request;
  request.set_session(session_);
  *request.mutable_a() = Named(Filled({3000, 3000}), {1, 2});
  *request.mutable_q() = New({1, 3});
  *request.mutable_values() = New({3});
  *request.mutable_r() = New({3, 2});
  request.set_method(v1::FACTORIZATION_METHOD_SVD);
  request.mutable_truncation()->set_rank(300);
  request.mutable_truncation()->mutable_sampling()->set_power_iterations(20);
  const Status status = Cancelled([&](grpc::ClientContext& context) {
    v1::FactorizeResponse response;
    return compute_->Factorize(&context, request, &response);
  });
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(RpcStopTest, OthersGoFirstWhileALibraryDecomposes) {
  v1::FactorizeRequest request;
  request.set_session(session_);
  *request.mutable_a() = Named(Filled({1600, 1600}), {1, 2});
  *request.mutable_q() = New({1, 3});
  *request.mutable_values() = New({3});
  *request.mutable_r() = New({3, 2});
  request.set_method(v1::FACTORIZATION_METHOD_SVD);
  const int64_t before = Begun();
  std::atomic<bool> has_ended = false;
  std::thread call([&] {
    grpc::ClientContext context;
    v1::FactorizeResponse response;
    const Status status = compute_->Factorize(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    has_ended = true;
  });
  EXPECT_TRUE(Soon([&] { return Begun() != before || has_ended; }));
  v1::OpenSessionResponse opened;
  ASSERT_THAT(Open({}, &opened), IsOk());
  session_ = opened.session().name();
  // Not small enough to run beside another's turn.
  const std::string b = Filled({200, 200});
  EXPECT_THAT(Contract(Contraction(b, b)), IsOk());
  EXPECT_FALSE(has_ended);
  call.join();
}

TEST_F(RpcStopTest, WhatStoppedLeavesItsOutputWithoutContents) {
  v1::Tensor d;
  ASSERT_THAT(Create(CreateRequest({512, 512}), &d), IsOk());
  v1::ContractRequest request =
      LongContraction(v1::ELEMENT_TYPE_FLOAT32, "cpu.contract.gemm");
  request.mutable_d()->set_tensor(d.name());
  Cancelled([&](grpc::ClientContext& context) {
    return ContractFor(context, request);
  });
  v1::DownloadTensorRequest download;
  download.set_tensor(d.name());
  std::string data;
  EXPECT_THAT(Download(download, &data),
              FailsWith(grpc::FAILED_PRECONDITION, "TENSOR_NOT_READY"));
}

TEST_F(RpcStopTest, ClosingTheSessionStopsWhatItRuns) {
  v1::OpenSessionResponse opened;
  ASSERT_THAT(Open({}, &opened), IsOk());
  const std::string before = std::exchange(session_, opened.session().name());
  const v1::ReduceRequest request = Reduction();
  session_ = before;
  const Status status = Stopped(
      [&](grpc::ClientContext& context) { return Reduce(context, request); },
      [&](grpc::ClientContext&) {
        EXPECT_THAT(Close(request.session()), IsOk());
      });
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(RpcStopTest, SmallOperationsRunBesideALongOne) {
  const v1::ReduceRequest request = Reduction();
  const Status status = Stopped(
      [&](grpc::ClientContext& context) { return Reduce(context, request); },
      [&](grpc::ClientContext& context) {
        const std::string session = session_;
        v1::OpenSessionResponse opened;
        ASSERT_THAT(Open({}, &opened), IsOk());
        session_ = opened.session().name();
        const std::string b = Filled({2, 2});
        EXPECT_THAT(Contract(Contraction(b, b)), IsOk());
        session_ = session;
        context.TryCancel();
      });
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(RpcStopTest, WhatCannotEndBeforeItsDeadlineIsRefused) {
  const v1::ReduceRequest request = Reduction();
  v1::ReduceResponse response;
  EXPECT_THAT(
      Unary(&v1::ComputeService::Stub::Reduce, *compute_, request, &response),
      FailsWith(grpc::DEADLINE_EXCEEDED, "DEADLINE_TOO_SHORT"));
}

TEST_F(RpcStopTest, WhatTakesLongerThanTheServerAllowsIsRefused) {
  v1::ReduceRequest request = Reduction("cpu.reduce.reference");
  request.mutable_a()->set_tensor(
      Repeated({30'000, 30'000, 30'000}, {1, 1, 1}));
  grpc::ClientContext context;
  const Status status = Reduce(context, request);
  EXPECT_THAT(OutcomeOf(status, context),
              FailsWith(grpc::RESOURCE_EXHAUSTED, "OPERATION_TOO_LONG"));
}

TEST_F(RpcStopTest, PrioritiesAreBounded) {
  v1::OpenSessionRequest request;
  v1::OpenSessionResponse response;
  request.set_priority(9);
  ASSERT_THAT(Open(request, &response), IsOk());
  EXPECT_EQ(response.session().priority(), 9);
  for (const int priority : {-1, 10}) {
    request.set_priority(priority);
    EXPECT_THAT(Open(request, &response),
                FailsWith(grpc::INVALID_ARGUMENT, "PRIORITY_OUT_OF_BOUNDS"));
  }
}

}  // namespace
}  // namespace tensord
