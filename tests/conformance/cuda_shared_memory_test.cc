// Regions of sessions on GPUs: how their bytes get there, and what fails.
#include <thread>

#include "tests/conformance/shared_memory_conformance.h"
#include "tests/simt/fake_runtime.h"
#include "tests/testing/memory_file.h"

namespace tensord {
namespace {

using shared_memory::Descriptor;
using testing::MemoryFile;

class CudaSharedMemoryTest : public SharedMemoryConformance {
 protected:
  /// Square matrices in the region: inputs, and a result.
  struct Matrices {
    v1::Tensor a, b, d;
  };
  Matrices AdoptMatrices(int64_t region) {
    Matrices made;
    int64_t offset = 0;
    for (v1::Tensor* const each : {&made.a, &made.b, &made.d}) {
      v1::AdoptTensorRequest request = AdoptRequest(region, {16, 16});
      request.set_offset_bytes(offset);
      EXPECT_THAT(Adopt(request, each), IsOk());
      offset += 16 * 16 * int64_t{sizeof(float)};
    }
    return made;
  }
  v1::ContractRequest ProductOf(const Matrices& in_place) {
    v1::ContractRequest request =
        Contraction(in_place.a.name(), in_place.b.name());
    request.mutable_d()->set_tensor(in_place.d.name());
    return request;
  }
  static int64_t CopiedBytes() { return simt::CountCalls().copied_bytes; }
};

TEST_F(CudaSharedMemoryTest, BytesAreCopiedByTheDevice) {
  constexpr int64_t kMatrix = 1024, kBytes = 4 * kMatrix;
  const auto peer = Known();
  const Descriptor file = MemoryFile({.bytes = kBytes});
  peer->Add(1, kBytes, file.get());
  ASSERT_EQ(peer->Reason(), "");
  const Matrices in_place = AdoptMatrices(1);
  int64_t before = CopiedBytes();
  const auto copied = [&] {
    return CopiedBytes() - std::exchange(before, CopiedBytes());
  };
  EXPECT_EQ(copied(), 0);
  const v1::ContractRequest product = ProductOf(in_place);
  ASSERT_THAT(Contract(product), IsOk());
  EXPECT_EQ(copied(), 3 * kMatrix);

  v1::AdoptTensorRequest upload = AdoptRequest(1, {16, 16});
  upload.set_in_place(false);
  v1::Tensor resident;
  ASSERT_THAT(Adopt(upload, &resident), IsOk());
  EXPECT_EQ(copied(), kMatrix);
  ASSERT_THAT(Store(resident.name(), 1, {16, 16}, kMatrix), IsOk());
  EXPECT_EQ(copied(), kMatrix);

  // A permutation reads or writes there itself.
  v1::PermuteRequest permute = Permutation(in_place.a.name());
  permute.mutable_d()->set_tensor(resident.name());
  ASSERT_THAT(Permute(permute), IsOk());
  EXPECT_EQ(copied(), 0);
  permute.mutable_d()->set_tensor(in_place.d.name());
  ASSERT_THAT(Permute(permute), IsOk());
  EXPECT_EQ(copied(), kMatrix);
}

TEST_F(CudaSharedMemoryTest, ARegionThatCannotBePinnedIsRefused) {
  const auto peer = Known();
  const Descriptor file = MemoryFile();
  peer->Add(1, 4096, file.get());
  ASSERT_EQ(peer->Reason(), "");
  const v1::AdoptTensorRequest request = AdoptRequest(1, {16});
  simt::FailCall(simt::CallKind::kHostAllocation, 1, cudaErrorNotSupported);
  EXPECT_THAT(Adopt(request),
              FailsWith(grpc::FAILED_PRECONDITION, "SHARED_MEMORY_NOT_PINNED"));
  simt::FailCall(simt::CallKind::kHostAllocation, 1, cudaErrorMemoryAllocation);
  EXPECT_THAT(Adopt(request),
              FailsWith(grpc::RESOURCE_EXHAUSTED, "DEVICE_MEMORY_EXHAUSTED"));
  EXPECT_THAT(Adopt(request), IsOk());
  peer->Drop(1);
  EXPECT_EQ(peer->Reason(), "");
  EXPECT_EQ(MappedFiles(), 0);
  EXPECT_EQ(QuotaUsed(), 0);
}

// Such a client writes what it uploads while the server makes the tensor.
TEST_F(CudaSharedMemoryTest, ClientsThatKnowOfNoCopiesAreRefused) {
  v1::OpenSharedMemoryRequest request;
  request.set_session(session_);
  v1::OpenSharedMemoryResponse response;
  EXPECT_THAT(
      Unary(&v1::SessionService::Stub::OpenSharedMemory, *sessions_, request,
            &response),
      FailsWith(grpc::FAILED_PRECONDITION, "SHARED_MEMORY_NEEDS_HOST_DEVICE"));
}

TEST_F(CudaSharedMemoryTest, ItGoesWithALostDevice) {
  auto peer = Known();
  const Descriptor file = MemoryFile();
  peer->Add(1, 4096, file.get());
  ASSERT_EQ(peer->Reason(), "");
  const Matrices in_place = AdoptMatrices(1);
  simt::FailCall(simt::CallKind::kCopy, 1, cudaErrorIllegalAddress);
  EXPECT_THAT(Contract(Contraction(in_place.a.name(), in_place.b.name())),
              FailsWith(grpc::UNAVAILABLE, "DEVICE_LOST"));
  peer->Add(2, 4096, file.get());
  EXPECT_EQ(peer->Reason(), "");
  EXPECT_THAT(Adopt(AdoptRequest(2, {16})),
              FailsWith(grpc::UNAVAILABLE, "DEVICE_LOST"));
  peer.reset();
  EXPECT_TRUE(Soon([&] { return MappedFiles() == 0; }));
}

TEST_F(CudaSharedMemoryTest, ACopyThatFailsCostsOneOperationAlone) {
  const auto peer = Known();
  const Descriptor file = MemoryFile();
  peer->Add(1, 4096, file.get());
  ASSERT_EQ(peer->Reason(), "");
  const Matrices in_place = AdoptMatrices(1);
  const v1::ContractRequest product = ProductOf(in_place);
  const int64_t before = server_.used_bytes();
  for (const int n : {1, 2, 3}) {
    simt::FailCall(simt::CallKind::kCopy, n, cudaErrorInvalidValue);
    EXPECT_THAT(Contract(product), FailsWith(grpc::INTERNAL, "CUDA_ERROR"));
    EXPECT_EQ(server_.used_bytes(), before);
    EXPECT_THAT(Contract(product), IsOk());
  }
  v1::AdoptTensorRequest upload = AdoptRequest(1, {16, 16});
  upload.set_in_place(false);
  upload.set_tensor_id("fails");
  simt::FailCall(simt::CallKind::kCopy, 1, cudaErrorInvalidValue);
  EXPECT_THAT(Adopt(upload), FailsWith(grpc::INTERNAL, "CUDA_ERROR"));
  EXPECT_THAT(Adopt(upload), IsOk());
}

// The simulated runtime reports what is unregistered while a copy needs it.
TEST_F(CudaSharedMemoryTest, ItIsPinnedUntilTheDeviceIsDone) {
  auto peer = Known();
  const Descriptor file = MemoryFile();
  peer->Add(1, 4096, file.get());
  ASSERT_EQ(peer->Reason(), "");
  const Matrices in_place = AdoptMatrices(1);
  const v1::ContractRequest product = ProductOf(in_place);
  // And one that reads and writes it itself.
  v1::PermuteRequest permute = Permutation(in_place.a.name());
  simt::LaunchHold hold;
  std::thread user([&] {
    EXPECT_THAT(Contract(product), IsOk());
    EXPECT_THAT(Permute(permute),
                FailsWith(grpc::FAILED_PRECONDITION, "SHARED_MEMORY_GONE"));
  });
  EXPECT_TRUE(Soon([&] { return hold.HasCaught(); }));
  peer.reset();
  EXPECT_TRUE(Soon([&] {
    return Describe(in_place.a.name()).state() == v1::TENSOR_STATE_INVALID;
  }));
  EXPECT_EQ(MappedFiles(), 1);
  hold.Release();
  user.join();
  EXPECT_TRUE(Soon([&] { return MappedFiles() == 0; }));
  EXPECT_EQ(QuotaUsed(), 0);
}

}  // namespace
}  // namespace tensord
