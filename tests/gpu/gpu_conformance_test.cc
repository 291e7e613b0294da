// The CUDA backend's kernels on a GPU. Where there is none, one test is skipped
// and says why.
#include <cuda_runtime_api.h>

#include <string>
#include <utility>
#include <vector>

#include "core/backend/cuda/cuda_backend.h"
#include "tests/conformance/kernel_conformance.h"
#include "tests/conformance/matrix/cuda_matrix_target.h"

namespace tensord {
namespace core {
namespace {

std::vector<MatrixTarget> MatrixTargets() {
  if (!CountCudaDevices().ok()) return {};
  MatrixTarget target = CudaMatrixTarget();
  target.name = "Full";
  return {target};
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FactorizationConformance);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DecompositionConformance);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SampledSvdConformance);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LinearSolveConformance);
INSTANTIATE_TEST_SUITE_P(Gpu, FactorizationConformance,
                         ::testing::ValuesIn(MatrixTargets()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Gpu, DecompositionConformance,
                         ::testing::ValuesIn(MatrixTargets()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Gpu, SampledSvdConformance,
                         ::testing::ValuesIn(MatrixTargets()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Gpu, LinearSolveConformance,
                         ::testing::ValuesIn(MatrixTargets()), NameOfTarget);

}  // namespace
}  // namespace core

namespace test {
namespace {

ConformanceTarget Target(std::string name, uint32_t random_case_count) {
  return {.name = std::move(name),
          .create = [](int) { return core::CreateCudaBackend(0).value(); },
          .has_tensor_cores = true,
          .random_case_count = random_case_count,
          .random_contraction_count = random_case_count,
          .copy =
              [](void* to, const void* from, size_t bytes) {
                ASSERT_EQ(cudaMemcpy(to, from, bytes, cudaMemcpyDefault),
                          cudaSuccess);
                // A copy from pageable memory may return before the last bytes
                // have reached the device, and the backend's streams do not
                // wait for the default stream.
                ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
              }};
}

/// `Brief` is for tools under which everything takes a hundred times as long.
std::vector<ConformanceTarget> Targets() {
  if (!core::CountCudaDevices().ok()) return {};
  return {Target("Full", 1500), Target("Brief", 25)};
}

TEST(GpuDeviceTest, CanBeUsed) {
  const auto count = core::CountCudaDevices();
  if (!count.ok()) GTEST_SKIP() << "no CUDA device: " << count.status();
  const auto backend = core::CreateCudaBackend(0);
  ASSERT_TRUE(backend.ok()) << backend.status();
  EXPECT_EQ((*backend)->health(), absl::OkStatus());
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(KernelConformance);
INSTANTIATE_TEST_SUITE_P(Gpu, KernelConformance, ::testing::ValuesIn(Targets()),
                         NameOf);

}  // namespace
}  // namespace test
}  // namespace tensord
