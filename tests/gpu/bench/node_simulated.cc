#include "core/base/status.h"
#include "tests/gpu/bench/node.h"
#include "tests/simt/fake_runtime.h"
#include "tests/simt/simt.h"

namespace tensord::test {

void PrepareNode() {
  simt::ResetNode({.device_count = 1, .memory_bytes = int64_t{1} << 28});
  simt::SetSchedule({.order = simt::Order::kRandom, .worker_count = 2});
}

absl::StatusOr<std::unique_ptr<StreamOrderedMemory>>
CreateStreamOrderedMemory() {
  return core::Unimplemented("NO_STREAM_ORDERED_MEMORY",
                             "the simulated node has no cudaMallocAsync");
}

}  // namespace tensord::test
