// cuBLASLt as it is found and called, by the one that stands in for it.
#include "core/backend/cuda/gemm/gemm_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "core/backend/cuda/cuda_backend.h"
#include "core/backend/cuda/gemm/gemm_kernels.h"
#include "core/backend/cuda/gemm/planned_gemm.h"
#include "core/base/status.h"
#include "tests/conformance/simulated_cublaslt.h"
#include "tests/simt/fake_runtime.h"

namespace tensord::core::cuda {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::SizeIs;

TEST(CublasLtTest, LibraryThatIsNotThereIsNamed) {
  const auto library = LoadCublasLt("libcublasLt.so.0");
  EXPECT_EQ(ReasonOf(library.status()), "CUBLASLT_UNAVAILABLE");
  EXPECT_THAT(library.status().message(), HasSubstr("libcublasLt.so.0"));
}

TEST(CublasLtTest, LibraryWithoutTheFunctionsIsRefused) {
  const auto library = LoadCublasLt("libm.so.6");
  EXPECT_EQ(ReasonOf(library.status()), "CUBLASLT_UNAVAILABLE");
  EXPECT_THAT(std::string(library.status().message()),
              HasSubstr("libm.so.6 has no function cublasLt"));
}

ContractionProblem SquareProblem() {
  ContractionProblem problem;
  problem.alignment_bytes = ContractionProblem::kWidestAccess;
  problem.m = {{8, {1, 1, 1}}};
  problem.n = {{8, {8, 8, 8}}};
  problem.k = {{8, {8, 1}}};
  return problem;
}

bool IsGemm(const ContractionKernel& kernel) {
  return absl::StrContains(kernel.name(), "gemm");
}

TEST(CublasLtTest, WithoutItKernelsSayWhyAndOthersDoTheWork) {
  simt::ResetNode({});
  tensord::test::HideCublasLt(true);
  const auto backend = CreateCudaBackend(0).value();
  tensord::test::HideCublasLt(false);
  EXPECT_THAT(backend->info().properties,
              Contains(Pair("cublaslt", HasSubstr("cannot be loaded"))));
  int refusals = 0, others = 0;
  for (const auto& kernel : backend->kernels().contraction) {
    const absl::Status status = kernel->Solve(SquareProblem()).status();
    if (IsGemm(*kernel)) {
      ++refusals;
      EXPECT_EQ(ReasonOf(status), "CUBLASLT_UNAVAILABLE") << kernel->name();
      EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
    } else {
      others += status.ok() ? 1 : 0;
    }
  }
  EXPECT_GE(refusals, GemmLibrary::kMostAlgorithms);
  EXPECT_GE(others, 2);
}

class GemmLibraryTest : public ::testing::Test {
 protected:
  GemmLibraryTest() {
    simt::ResetNode({.memory_bytes = int64_t{1} << 20});
    device_.emplace(0);
    library_ = GemmLibrary::Create(*device_, FindCublasLt().value()).value();
    stream_ = CudaStream::Create(*device_).value();
  }

  /// A product of 8 x 8 matrices of ones whose addresses are `shift` elements
  /// from well aligned ones; d is 5 before. The first element of d.
  float Multiply(const PlannedGemm& gemm, int shift, const Scalar& beta) {
    constexpr int kElements = 64 + 4;
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, 3 * kElements * sizeof(float) + (1 << 16)),
              cudaSuccess);
    auto* const a = static_cast<float*>(memory) + (1 << 14);
    {
      const simt::HostAccess access;
      std::fill(a, a + 2 * kElements, 1.0f);
      std::fill(a + 2 * kElements, a + 3 * kElements, 5.0f);
    }
    float* const d = a + 2 * kElements + shift;
    Workspace workspace({static_cast<std::byte*>(memory), size_t{1} << 16});
    const GemmOperands operands{.a = a + shift,
                                .b = a + kElements + shift,
                                .c = beta.IsZero() ? nullptr : d,
                                .d = d,
                                .alpha = {2, 0},
                                .beta = beta};
    EXPECT_TRUE(
        gemm.Launch(*library_, operands, workspace, AsCuda(*stream_)).ok());
    EXPECT_TRUE(stream_->Synchronize().ok());
    float result = 0;
    {
      const simt::HostAccess access;
      result = *d;
    }
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
    return result;
  }

  const GemmCall call_ = GemmCallOf(SquareProblem()).value();
  std::optional<CudaDevice> device_;
  std::unique_ptr<GemmLibrary> library_;
  std::unique_ptr<Stream> stream_;
};

TEST_F(GemmLibraryTest, ProposesWhatFitsTheLimits) {
  const GemmLimits wide{.workspace_bytes = 1 << 20,
                        .alignment_bytes = {16, 16, 16, 16}};
  EXPECT_THAT(library_->Propose(call_, wide).value()->algorithms, SizeIs(4));
  GemmLimits without_workspace = wide;
  without_workspace.workspace_bytes = 0;
  EXPECT_THAT(library_->Propose(call_, without_workspace).value()->algorithms,
              SizeIs(2));
  GemmLimits badly_aligned = wide;
  badly_aligned.alignment_bytes[2] = 2;
  EXPECT_THAT(library_->Propose(call_, badly_aligned).value()->algorithms,
              SizeIs(2));
}

int asked_count = 0;
decltype(CublasLt::MatmulAlgoGetHeuristic) ask = nullptr;

// With and without workspace; where c lies otherwise than d, for products with
// and without c.
TEST_F(GemmLibraryTest, PlanningAsksEveryQuestionOnce) {
  CublasLt counting = FindCublasLt().value();
  ask = counting.MatmulAlgoGetHeuristic;
  asked_count = 0;
  counting.MatmulAlgoGetHeuristic = [](auto... arguments) {
    ++asked_count;
    return ask(arguments...);
  };
  const MaybeGemmLibrary library = GemmLibrary::Create(*device_, counting);
  ContractionProblem problem = SquareProblem();
  std::vector<std::unique_ptr<const ContractionKernel>> kernels;
  for (int rank = 0; rank < GemmLibrary::kMostAlgorithms; ++rank) {
    kernels.push_back(CreateGemmContraction({}, library, rank));
  }
  kernels.push_back(CreateGemmWithoutWorkspace({}, library));
  for (const auto& kernel : kernels) {
    EXPECT_TRUE(kernel->Solve(problem).ok()) << kernel->name();
  }
  EXPECT_EQ(asked_count, 2);
  problem.n = {{8, {8, 16, 24}}};
  for (const auto& kernel : kernels) {
    EXPECT_TRUE(kernel->Solve(problem).ok()) << kernel->name();
  }
  EXPECT_EQ(asked_count, 2 + 4);
}

TEST_F(GemmLibraryTest, EveryAlgorithmCanBeForcedAndNoneMore) {
  for (int rank = 0; rank < GemmLibrary::kMostAlgorithms; ++rank) {
    const auto gemm = PlannedGemm::Make(
        *library_, call_, LimitsOf(kGemmWorkspaceBytes, 16), rank);
    ASSERT_TRUE(gemm.ok()) << gemm.status();
    EXPECT_EQ(Multiply(*gemm, 0, kZero), 16);
  }
  EXPECT_EQ(ReasonOf(PlannedGemm::Make(*library_, call_,
                                       LimitsOf(kGemmWorkspaceBytes, 16),
                                       GemmLibrary::kMostAlgorithms)
                         .status()),
            "NO_GEMM_ALGORITHM");
}

TEST_F(GemmLibraryTest, AddressesAlignedWorseThanPlannedGetAnotherAlgorithm) {
  const auto gemm =
      PlannedGemm::Make(*library_, call_, LimitsOf(kGemmWorkspaceBytes, 16), 0);
  ASSERT_TRUE(gemm.ok()) << gemm.status();
  for (int shift = 0; shift < 4; ++shift) {
    EXPECT_EQ(Multiply(*gemm, shift, {3, 0}), 16 + 15) << shift;
  }
}

// Single numbers, two calls of 32 769 and 32 768.
TEST_F(GemmLibraryTest, MoreBatchesThanACallTakesTakeSeveral) {
  constexpr int kBatches = GemmLibrary::kMostBatches + 2;
  const GemmCall call{.batch_count = kBatches,
                      .a = {.batch_stride = 1},
                      .b = {.batch_stride = 1},
                      .c = {.batch_stride = 1},
                      .d = {.batch_stride = 1}};
  void* memory = nullptr;
  constexpr size_t kWorkspaceBytes = 1 << 14;
  ASSERT_EQ(cudaMalloc(&memory, kWorkspaceBytes + 3 * kBatches * sizeof(float)),
            cudaSuccess);
  auto* const a = static_cast<float*>(memory) + kWorkspaceBytes / sizeof(float);
  float* const b = a + kBatches;
  float* const d = b + kBatches;
  for (int rank = 0; rank < GemmLibrary::kMostAlgorithms; ++rank) {
    const auto gemm = PlannedGemm::Make(*library_, call,
                                        LimitsOf(kGemmWorkspaceBytes, 4), rank);
    if (absl::IsUnimplemented(gemm.status())) continue;
    ASSERT_TRUE(gemm.ok()) << gemm.status();
    {
      const simt::HostAccess access;
      for (int i = 0; i < kBatches; ++i) {
        a[i] = static_cast<float>(i % 7);
        b[i] = static_cast<float>(i % 5);
        d[i] = static_cast<float>(i);
      }
    }
    Workspace workspace({static_cast<std::byte*>(memory),
                         static_cast<size_t>(gemm->workspace_bytes())});
    ASSERT_EQ(
        gemm->Launch(
            *library_,
            {.a = a, .b = b, .c = d, .d = d, .alpha = {3, 0}, .beta = {2, 0}},
            workspace, AsCuda(*stream_)),
        absl::OkStatus());
    ASSERT_TRUE(stream_->Synchronize().ok());
    const simt::HostAccess access;
    for (int i = 0; i < kBatches; ++i) {
      ASSERT_EQ(d[i], static_cast<float>(3 * (i % 7) * (i % 5) + 2 * i)) << i;
    }
  }
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(GemmLibraryTest, LostDeviceIsTold) {
  const auto gemm =
      PlannedGemm::Make(*library_, call_, LimitsOf(kGemmWorkspaceBytes, 16), 1);
  ASSERT_TRUE(gemm.ok()) << gemm.status();
  simt::FailCall(simt::CallKind::kSynchronization, 1, cudaErrorIllegalAddress);
  EXPECT_EQ(ReasonOf(stream_->Synchronize()), "DEVICE_LOST");
  Workspace none({});
  float x = 0;
  EXPECT_EQ(ReasonOf(gemm->Launch(*library_, {.a = &x, .b = &x, .d = &x}, none,
                                  AsCuda(*stream_))),
            "DEVICE_LOST");
}

TEST_F(GemmLibraryTest, LossThatOnlyTheLibraryHasMetIsTold) {
  const auto gemm =
      PlannedGemm::Make(*library_, call_, LimitsOf(kGemmWorkspaceBytes, 16), 1);
  ASSERT_TRUE(gemm.ok()) << gemm.status();
  // Nobody has told our device.
  simt::FailCall(simt::CallKind::kSynchronization, 1, cudaErrorIllegalAddress);
  ASSERT_EQ(cudaStreamSynchronize(AsCuda(*stream_).get()),
            cudaErrorIllegalAddress);
  Workspace none({});
  alignas(16) float x = 0;
  EXPECT_EQ(ReasonOf(gemm->Launch(*library_, {.a = &x, .b = &x, .d = &x}, none,
                                  AsCuda(*stream_))),
            "DEVICE_LOST");
}

TEST_F(GemmLibraryTest, WorkspaceThatIsShorterThanPlannedIsNotExceeded) {
  const auto gemm =
      PlannedGemm::Make(*library_, call_, LimitsOf(kGemmWorkspaceBytes, 16), 0);
  ASSERT_TRUE(gemm.ok()) << gemm.status();
  ASSERT_GT(gemm->workspace_bytes(), 0);
  Workspace none({});
  alignas(16) float x[64] = {};
  // Another algorithm takes it on.
  EXPECT_TRUE(
      gemm->Launch(*library_, {.a = x, .b = x, .d = x}, none, AsCuda(*stream_))
          .ok());
}

TEST_F(GemmLibraryTest, FailedLaunchIsTold) {
  const auto gemm =
      PlannedGemm::Make(*library_, call_, LimitsOf(kGemmWorkspaceBytes, 4), 0);
  ASSERT_TRUE(gemm.ok()) << gemm.status();
  simt::FailCall(simt::CallKind::kLaunch, 1, cudaErrorLaunchOutOfResources);
  Workspace none({});
  alignas(16) float x = 0;
  const absl::Status status = gemm->Launch(
      *library_, {.a = &x, .b = &x, .d = &x}, none, AsCuda(*stream_));
  EXPECT_EQ(ReasonOf(status), "CUBLASLT_ERROR") << status;
}

}  // namespace
}  // namespace tensord::core::cuda
