// What clients hear when something goes wrong on a GPU, through every layer.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <vector>

#include "tests/conformance/rpc_conformance.h"
#include "tests/simt/fake_runtime.h"
#include "tests/simt/simt.h"

namespace tensord {
namespace {

using simt::CallKind;

std::string NameOfKind(const ::testing::TestParamInfo<CallKind>& info) {
  switch (info.param) {
    case CallKind::kDeviceAllocation: return "Allocation";
    case CallKind::kHostAllocation: return "HostAllocation";
    case CallKind::kCopy: return "Copy";
    case CallKind::kLaunch: return "Launch";
    case CallKind::kRecordedLaunch: return "RecordedLaunch";
    case CallKind::kGraphLaunch: return "GraphLaunch";
    case CallKind::kSynchronization: return "Synchronization";
  }
  return "";
}

class CudaRpcTest : public RpcConformance {
 protected:
  /// Has the next allocation of a pool fail: it asks for three sizes, and once
  /// more when it has given back what it does not use.
  static void FailAllocation(CallKind kind) {
    for (int n = 1; n <= 6; ++n) {
      simt::FailCall(kind, n, cudaErrorMemoryAllocation);
    }
  }
};

TEST_F(CudaRpcTest, DeviceIsAGpu) {
  EXPECT_EQ(server_.device().info().name, "cuda:0");
  EXPECT_EQ(server_.device().info().architecture, "sm_90");
  EXPECT_EQ(server_.engine().devices().size(), 3u);
}

TEST_F(CudaRpcTest, MemoryComesBackAfterEachTensor) {
  const int64_t before = server_.used_bytes();
  for (int i = 0; i < 3; ++i) {
    const std::string a = Filled({300, 50});
    v1::Result result;
    ASSERT_THAT(Permute(Permutation(a), &result), IsOk());
    ASSERT_THAT(Delete(a), IsOk());
    ASSERT_THAT(Delete(result.tensor().name()), IsOk());
  }
  EXPECT_EQ(server_.used_bytes(), before);
}

TEST_F(CudaRpcTest, CopiesReachEveryDevice) {
  // More than passes the host at a time.
  std::string tensor = Filled({5 << 20});
  const std::vector<float> values = Values(tensor);
  EXPECT_FALSE(simt::IsPeerAccessEnabled(0, 1));
  for (const char* device : {"cuda:1", "cuda:0", "cpu:0", "cuda:1", "cpu:0"}) {
    SCOPED_TRACE(device);
    v1::OpenSessionRequest open;
    open.set_device(device);
    v1::OpenSessionResponse opened;
    ASSERT_THAT(Open(open, &opened), IsOk());
    v1::CopyTensorRequest copy;
    copy.set_source(tensor);
    copy.set_session(opened.session().name());
    v1::CopyTensorResponse copied;
    ASSERT_THAT(
        Unary(&v1::TensorService::Stub::CopyTensor, *tensors_, copy, &copied),
        IsOk());
    EXPECT_EQ(copied.tensor().device(), device);
    ASSERT_THAT(Close(session_), IsOk());
    session_ = opened.session().name();
    tensor = copied.tensor().name();
    EXPECT_EQ(Values(tensor), values);
  }
  EXPECT_TRUE(simt::IsPeerAccessEnabled(0, 1));
  EXPECT_TRUE(simt::IsPeerAccessEnabled(1, 0));
}

TEST_F(CudaRpcTest, ProductsOfMatricesGoToCublasLt) {
  const std::string a = Filled({64, 64});
  v1::Result result;
  ASSERT_THAT(Contract(Contraction(a, a), &result), IsOk());
  EXPECT_EQ(result.report().kernel(), "cuda.contract.gemm");
}

// Work of other sessions is on other streams: nothing orders them.
TEST_F(CudaRpcTest, SessionsOfOneDeviceComputeSideBySide) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    v1::OpenSessionResponse opened;
    ASSERT_THAT(Open({}, &opened), IsOk());
    session_ = opened.session().name();
    const std::string a = Filled({60, 70});
    v1::PermuteRequest twice = Permutation(a);
    twice.set_session(session_);
    threads.emplace_back([this, twice, name = session_] {
      for (int i = 0; i < 20; ++i) {
        v1::PermuteResponse response;
        EXPECT_THAT(Unary(&v1::ComputeService::Stub::Permute, *compute_, twice,
                          &response),
                    IsOk());
        v1::DeleteTensorRequest remove;
        remove.set_tensor(response.result().tensor().name());
        v1::DeleteTensorResponse removed;
        EXPECT_THAT(Unary(&v1::TensorService::Stub::DeleteTensor, *tensors_,
                          remove, &removed),
                    IsOk());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(server_.device().worker().statistics().queued_count, 0);
}

TEST_F(CudaRpcTest, OthersComputeWhileAMatrixIsWaitedFor) {
  v1::FactorizeRequest svd;
  svd.set_session(session_);
  svd.set_method(v1::FACTORIZATION_METHOD_SVD);
  *svd.mutable_a() = Named(Filled({4, 3}), {'i', 'j'});
  *svd.mutable_q() = New({'i', 'k'});
  *svd.mutable_r() = New({'k', 'j'});
  *svd.mutable_values() = New({'k'});
  v1::OpenSessionResponse other;
  ASSERT_THAT(Open({}, &other), IsOk());
  session_ = other.session().name();
  const std::string b = Filled({40, 50});
  simt::LaunchHold hold;
  std::thread waiting([&] {
    v1::FactorizeResponse response;
    EXPECT_THAT(
        Unary(&v1::ComputeService::Stub::Factorize, *compute_, svd, &response),
        IsOk());
    EXPECT_EQ(response.result().report().kept_extent(), 3);
  });
  while (!hold.HasCaught()) std::this_thread::yield();
  for (int i = 0; i < 3; ++i) EXPECT_THAT(Permute(Permutation(b)), IsOk());
  hold.Release();
  waiting.join();
}

// Libraries may hold up the thread that calls them: what takes long has its
// own.
TEST_F(CudaRpcTest, OthersComputeBesideLongCallsOfLibraries) {
  v1::FactorizeRequest eigh;
  eigh.set_session(session_);
  eigh.set_method(v1::FACTORIZATION_METHOD_EIGH);
  *eigh.mutable_a() = Named(Filled({6, 40, 40}), {'n', 'i', 'j'});
  *eigh.mutable_q() = New({'n', 'i', 'k'});
  *eigh.mutable_values() = New({'n', 'k'});
  v1::OpenSessionResponse other;
  ASSERT_THAT(Open({}, &other), IsOk());
  session_ = other.session().name();
  const std::string b = Filled({40, 50});
  std::atomic<bool> has_ended = false;
  std::thread long_one([&] {
    v1::FactorizeResponse response;
    EXPECT_THAT(
        Unary(&v1::ComputeService::Stub::Factorize, *compute_, eigh, &response),
        IsOk());
    EXPECT_EQ(response.result().report().kernel(), "cuda.factorize.eigh");
    has_ended = true;
  });
  do {
    EXPECT_THAT(Permute(Permutation(b)), IsOk());
  } while (!has_ended);
  long_one.join();
}

TEST_F(CudaRpcTest, DeviceOutOfMemoryLeavesTheServerUseful) {
  const std::string a = Filled({64, 64});
  FailAllocation(CallKind::kDeviceAllocation);
  // More than any slab that is there.
  const Outcome failed = Create(CreateRequest({4 << 20}));
  EXPECT_EQ(failed.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED)
      << failed;
  EXPECT_THAT(failed.status.error_message(), ::testing::HasSubstr("16777216"));
  EXPECT_THAT(Create(CreateRequest({4 << 20})), IsOk());
  EXPECT_THAT(Permute(Permutation(a)), IsOk());
}

TEST_F(CudaRpcTest, StagingMemoryThatIsMissingFailsTheTransferAlone) {
  v1::Tensor tensor;
  ASSERT_THAT(Create(CreateRequest({4}), &tensor), IsOk());
  const std::vector<float> values = {1, 2, 3, 4};
  FailAllocation(CallKind::kHostAllocation);
  const Outcome failed = Upload({Chunk(tensor.name(), 0, values)});
  EXPECT_EQ(failed.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED)
      << failed;
  ASSERT_THAT(Upload({Chunk(tensor.name(), 0, values)}), IsOk());
  EXPECT_EQ(Values(tensor.name()), values);
}

TEST_F(CudaRpcTest, FailedLaunchIsInternalAndTheNextOneWorks) {
  const std::string a = Filled({40, 50});
  simt::FailCall(CallKind::kLaunch, 1, cudaErrorLaunchOutOfResources);
  const Outcome failed = Permute(Permutation(a));
  EXPECT_THAT(failed, FailsWith(grpc::StatusCode::INTERNAL, "CUDA_ERROR"));
  EXPECT_THAT(failed.status.error_message(),
              ::testing::HasSubstr("cuda.permute."));
  EXPECT_THAT(Permute(Permutation(a)), IsOk());
}

/// The n-th call of a kind fails, and costs one request alone.
class NthFailureTest : public RpcConformance,
                       public ::testing::WithParamInterface<CallKind> {
 protected:
  int64_t used_bytes() {
    int64_t bytes = 0;
    for (const auto& device : server_.engine().devices()) {
      bytes += device->memory_statistics().used_bytes;
    }
    return bytes;
  }
};

TEST_P(NthFailureTest, LeavesNothingBehind) {
  const cudaError_t error = GetParam() == CallKind::kDeviceAllocation ||
                                    GetParam() == CallKind::kHostAllocation
                                ? cudaErrorMemoryAllocation
                                : cudaErrorInvalidValue;
  const int64_t before = used_bytes();
  for (int i = 0; i < 24; ++i) {
    const int n = 1 + i / 2;
    SCOPED_TRACE(n);
    v1::OpenSessionRequest elsewhere;
    elsewhere.set_device(i % 2 == 0 ? "cuda:1" : "cpu:0");
    v1::OpenSessionResponse opened, target;
    ASSERT_THAT(Open({}, &opened), IsOk());
    ASSERT_THAT(Open(elsewhere, &target), IsOk());
    session_ = opened.session().name();
    const std::string a = Filled({40, 50});
    const std::vector<float> values = Values(a);
    simt::FailCall(GetParam(), n, error);
    // Many at a time, so that others are under way when one fails.
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 3; ++i) {
          Permute(Permutation(a));
          v1::CopyTensorRequest copy;
          copy.set_source(a);
          copy.set_session(target.session().name());
          v1::CopyTensorResponse copied;
          Unary(&v1::TensorService::Stub::CopyTensor, *tensors_, copy, &copied);
          v1::DownloadTensorRequest download;
          download.set_tensor(a);
          std::string data;
          Download(download, &data);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    simt::ForgetFailures();
    EXPECT_THAT(Permute(Permutation(a)), IsOk());
    EXPECT_EQ(Values(a), values);
    EXPECT_THAT(Close(opened.session().name()), IsOk());
    EXPECT_THAT(Close(target.session().name()), IsOk());
    EXPECT_EQ(used_bytes(), before);
  }
  EXPECT_TRUE(server_.engine().health().ok());
}

INSTANTIATE_TEST_SUITE_P(Calls, NthFailureTest,
                         ::testing::Values(CallKind::kDeviceAllocation,
                                           CallKind::kHostAllocation,
                                           CallKind::kCopy, CallKind::kLaunch),
                         NameOfKind);

/// Each call that a request makes may be the one with which the device is lost.
class LostDeviceTest : public RpcConformance,
                       public ::testing::WithParamInterface<CallKind> {
 protected:
  // Of grpc.health.v1.HealthCheckResponse.
  static constexpr int kServing = 1, kNotServing = 2;

  /// What the standard health service answers; -1 when it does not.
  int Health() {
    grpc::GenericStub stub(server_.NewChannel());
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    grpc::ByteBuffer response;
    grpc::Status status;
    const grpc::Slice nothing;  // asks for the server as a whole
    const grpc::ByteBuffer request(&nothing, 1);
    const auto call = stub.PrepareUnaryCall(
        &context, "/grpc.health.v1.Health/Check", request, &queue);
    call->StartCall();
    call->Finish(&response, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    std::vector<grpc::Slice> slices;
    queue.Next(&tag, &ok);
    queue.Shutdown();
    while (queue.Next(&tag, &ok)) {
    }
    if (!status.ok() || response.Length() != 2 ||
        !response.Dump(&slices).ok()) {
      return -1;
    }
    return slices[0].begin()[1];  // behind the tag of `status`
  }

  void ExpectLost(const Outcome& outcome) {
    EXPECT_THAT(outcome,
                FailsWith(grpc::StatusCode::UNAVAILABLE, "DEVICE_LOST"));
  }
};

TEST_P(LostDeviceTest, EveryRequestHearsSoAndNothingIsWrong) {
  const std::string a = Filled({64, 64});
  const std::string b = Filled({64, 64});
  simt::FailCall(GetParam(), 1, cudaErrorIllegalAddress);
  const Outcome first = GetParam() == CallKind::kDeviceAllocation
                            ? Create(CreateRequest({4 << 20}))
                            : Contract(Contraction(a, b));
  // A copy may come only with the next transfer.
  if (GetParam() != CallKind::kCopy) {
    ExpectLost(first);
    ExpectLost(Contract(Contraction(a, b)));
  }
  v1::DownloadTensorRequest request;
  request.set_tensor(a);
  std::string data;
  ExpectLost(Download(request, &data));
  EXPECT_EQ(data, "");
  ExpectLost(Permute(Permutation(a)));
  EXPECT_FALSE(server_.engine().health().ok());
  EXPECT_EQ(Health(), kServing);  // nobody has looked yet
  server_.rpc().UpdateHealth();
  EXPECT_EQ(Health(), kNotServing);
  EXPECT_THAT(Open({}, nullptr),
              FailsWith(grpc::StatusCode::UNAVAILABLE, "DEVICE_LOST"));
  // The other one goes on.
  v1::OpenSessionRequest other;
  other.set_device("cuda:1");
  v1::OpenSessionResponse opened;
  ASSERT_THAT(Open(other, &opened), IsOk());
  session_ = opened.session().name();
  const std::string c = Filled({3, 2});
  v1::Result result;
  ASSERT_THAT(Permute(Permutation(c), &result), IsOk());
  EXPECT_EQ(Values(result.tensor().name()),
            (std::vector<float>{0, 3, 1, 4, 2, 5}));
}

INSTANTIATE_TEST_SUITE_P(Calls, LostDeviceTest,
                         ::testing::Values(CallKind::kDeviceAllocation,
                                           CallKind::kCopy, CallKind::kLaunch,
                                           CallKind::kSynchronization),
                         NameOfKind);

}  // namespace
}  // namespace tensord
