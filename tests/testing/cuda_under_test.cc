// Tests that link this run on the CUDA backend, with simulated GPUs
// beside the CPU.
#include "core/backend/cuda/cuda_module.h"
#include "tests/simt/fake_runtime.h"
#include "tests/simt/simt.h"
#include "tests/testing/in_process_server.h"

namespace tensord::testing {

void SelectDevices(server::EngineOptions& options) {
  simt::ResetNode({.memory_bytes = int64_t{256} << 20});
  simt::SetSchedule({.order = simt::Order::kRandom, .worker_count = 2});
  options.devices = *server::ParseDevices("cuda,cpu");
  options.linked_cuda = tensord_backend_module();
}

}  // namespace tensord::testing
