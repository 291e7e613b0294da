#include "core/backend/cpu/cpu_backend.h"
#include "tests/conformance/kernel_conformance.h"

namespace tensord::test {
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
}  // namespace tensord::test
