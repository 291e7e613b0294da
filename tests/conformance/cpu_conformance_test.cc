#include "core/backend/cpu/cpu_backend.h"
#include "tests/conformance/kernel_conformance.h"
#include "tests/conformance/matrix/matrix_conformance.h"

namespace tensord {
namespace core {
namespace {

MatrixTarget Target() {
  using enum FactorizationMethod;
  const std::vector<std::string> decompositions = {
      "cpu.factorize.decomposition", "cpu.factorize.reference"};
  return {
      .name = "Cpu",
      .create = [] { return CreateCpuBackend({.thread_count = 2}); },
      .kernels = {{kQr, {"cpu.factorize.lapack", "cpu.factorize.reference"}},
                  {kSvd, decompositions},
                  {kEigh, decompositions},
                  {kCholesky, decompositions}},
      .sampling = {"cpu.factorize.sampled_svd", "cpu.factorize.decomposition",
                   "cpu.factorize.reference"},
      .solving = {"cpu.solve.lapack", "cpu.solve.reference"}};
}

INSTANTIATE_TEST_SUITE_P(Cpu, FactorizationConformance,
                         ::testing::Values(Target()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cpu, DecompositionConformance,
                         ::testing::Values(Target()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cpu, SampledSvdConformance,
                         ::testing::Values(Target()), NameOfTarget);
INSTANTIATE_TEST_SUITE_P(Cpu, LinearSolveConformance,
                         ::testing::Values(Target()), NameOfTarget);

}  // namespace
}  // namespace core

namespace test {
namespace {

INSTANTIATE_TEST_SUITE_P(Cpu, KernelConformance,
                         ::testing::Values(ConformanceTarget{
                             .name = "Cpu",
                             .create =
                                 [](int thread_count) {
                                   return core::CreateCpuBackend(
                                       {.thread_count = thread_count});
                                 },
                             .uses_host_memory = true}),
                         NameOf);

}  // namespace
}  // namespace test
}  // namespace tensord
