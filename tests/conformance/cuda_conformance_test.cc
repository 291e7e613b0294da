// The CUDA backend's kernels, executed on the CPU.
#include <cuda_runtime_api.h>

#include <string>
#include <vector>

#include "core/backend/cuda/cuda_backend.h"
#include "core/backend/cuda/kernel/index_space.h"
#include "tests/conformance/kernel_conformance.h"
#include "tests/conformance/matrix/cuda_matrix_target.h"
#include "tests/simt/fake_runtime.h"
#include "tests/simt/simt.h"
#include "tests/testing/case_share.h"
#include "tests/testing/operands.h"

namespace tensord {
namespace core {
namespace {

MatrixTarget SimulatedMatrixTarget() {
  MatrixTarget target = CudaMatrixTarget();
  target.large_extent = 300;
  target.set_up = [] {
    simt::ResetNode({.memory_bytes = int64_t{1} << 30});
    simt::SetSchedule({.order = simt::Order::kRandom, .worker_count = 2});
  };
  return target;
}

INSTANTIATE_TEST_SUITE_P(Cuda, FactorizationConformance,
                         ::testing::Values(SimulatedMatrixTarget()),
                         NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, DecompositionConformance,
                         ::testing::Values(SimulatedMatrixTarget()),
                         NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, SampledSvdConformance,
                         ::testing::Values(SimulatedMatrixTarget()),
                         NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cuda, LinearSolveConformance,
                         ::testing::Values(SimulatedMatrixTarget()),
                         NameOfTarget);

}  // namespace
}  // namespace core

namespace test {
namespace {

ConformanceTarget Target(std::string name, simt::Order order,
                         uint32_t random_case_count,
                         int64_t case_stride = kCaseStride,
                         const core::cuda::PartLimits& limits = {},
                         simt::NodeDesc node = {}) {
  node.memory_bytes = int64_t{1} << 30;
  return {
      .name = std::move(name),
      .create =
          [limits](int) { return core::CreateCudaBackend(0, limits).value(); },
      .set_up =
          [order, node] {
            simt::ResetNode(node);
            simt::SetSchedule({.order = order, .worker_count = 2});
          },
      .random_case_count = random_case_count,
      // Each runs over a dozen kernels.
      .random_contraction_count = random_case_count / 5,
      .case_stride = case_stride,
      .copy =
          [](void* to, const void* from, size_t bytes) {
            ASSERT_EQ(cudaMemcpy(to, from, bytes, cudaMemcpyDefault),
                      cudaSuccess);
          }};
}

/// Kernels that take all but the smallest problems in parts. Of the cases few:
/// what they compute in a part is what they compute otherwise.
[[maybe_unused]] ConformanceTarget InParts() {
  constexpr int64_t kElementLimit = 500;
  ConformanceTarget target =
      Target("InParts", simt::Order::kInOrder, 1500, 40 * kCaseStride,
             {.elements = kElementLimit});
  // So few terms are not worth splitting.
  target.idle_kernels = {"cuda.contract.direct_4x4_split_k"};
  return target;
}

/// On a GPU with so slow a memory that kernels choose what moves least: blocks
/// of two orders in contractions, for one.
ConformanceTarget WithSlowMemory(int64_t case_stride) {
  return Target("Random", simt::Order::kRandom, 300, case_stride, {},
                {.memory_clock_kilohertz = 10'000});
}

/// Each order in one build, and all of them in `tests/run --all`, but under
/// ThreadSanitizer: it finds races whatever the order, and parts follow one
/// another on a stream, as other launches do.
std::vector<ConformanceTarget> Targets() {
#ifdef __SANITIZE_THREAD__
  return {WithSlowMemory(2 * kCaseStride)};
#else
#ifdef __SANITIZE_ADDRESS__
  constexpr bool kIsSanitized = true;
#else
  constexpr bool kIsSanitized = false;
#endif
  std::vector<ConformanceTarget> targets;
  if (!kIsSanitized || TestsAll()) {
    targets.push_back(Target("InOrder", simt::Order::kInOrder, 1500, 4));
  }
  if (kIsSanitized || TestsAll()) {
    targets.push_back(
        Target("Reverse", simt::Order::kReverse, 300, 2 * kCaseStride));
    targets.push_back(InParts());
  }
  if (TestsAll()) targets.push_back(WithSlowMemory(2 * kCaseStride));
  return targets;
#endif
}

/// That a block goes on when it has done the tiles it looks ahead to: on one
/// multiprocessor, each has more of them.
TEST(PackedPermutationTest, BlocksGoThroughManyTiles) {
  const ConformanceTarget target =
      Target("OneMultiprocessor", simt::Order::kRandom, 1, 1, {},
             {.multiprocessor_count = 1});
  target.set_up();
  KernelRunner runner(target, 1);
  for (const auto type :
       {core::ElementType::kFloat16, core::ElementType::kFloat32}) {
    runner.Check(Case<core::PermutationDesc>{
        .desc = {.a = Packed(type, "ijk", {2, 3, 46'001}),
                 .d = Packed(type, "kji", {46'001, 3, 2}),
                 .compute_type = core::DefaultComputeType(type)}});
  }
  EXPECT_GT(runner.records().at("cuda.permute.packed_split").runs, 0);
}

INSTANTIATE_TEST_SUITE_P(Cuda, KernelConformance,
                         ::testing::ValuesIn(Targets()), NameOf);

}  // namespace
}  // namespace test
}  // namespace tensord
