// cudaLaunchKernelEx, launches of libraries and cudaFuncSetAttribute.
#include <memory>
#include <utility>

#include "cuda_runtime.h"
#include "tests/simt/device_limits.h"
#include "tests/simt/grid/grid_runner.h"
#include "tests/simt/node/node.h"
#include "tests/simt/report.h"

namespace tensord::simt {
namespace {

bool IsWithinLimits(dim3 grid, dim3 block) {
  constexpr unsigned kMaxGridX = 0x7fffffff, kMaxGridYz = 0xffff;
  constexpr unsigned kMaxBlockXy = 1024, kMaxBlockZ = 64;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return false;
  if (block.x == 0 || block.y == 0 || block.z == 0) return false;
  if (grid.x > kMaxGridX || grid.y > kMaxGridYz || grid.z > kMaxGridYz) {
    return false;
  }
  return block.x <= kMaxBlockXy && block.y <= kMaxBlockXy &&
         block.z <= kMaxBlockZ &&
         uint64_t{block.x} * block.y * block.z <= kMaxThreadsPerBlock;
}

/// What an operation does to run a grid.
std::function<cudaError_t()> RunLater(std::shared_ptr<GridLaunch> launch) {
  return [launch = std::move(launch)] {
    const std::optional<Violation> violation = RunGrid(*launch);
    if (!violation.has_value()) return cudaSuccess;
    Report(violation->text);
    return violation->error;
  };
}

cudaError_t QueueGrid(Node& node, const StreamPtr& stream, GridLaunch launch) {
  auto operation = std::make_unique<Operation>();
  operation->devices = SetOf(stream->device) | node.peers[stream->device];
  if (node.hold != nullptr && stream->capture == nullptr) {
    operation->after.push_back(std::exchange(node.hold, nullptr));
  }
  operation->run = RunLater(std::make_shared<GridLaunch>(std::move(launch)));
  return node.Queue(CallKind::kLaunch, stream, std::move(operation));
}

}  // namespace

cudaError_t QueueLaunch(const cudaLaunchConfig_t& config, const void* kernel,
                        std::function<void()> thread) {
  return StreamCall(config.stream, [&](Node& node, const StreamPtr& stream) {
    if (stream->device != CurrentDevice()) {
      return cudaErrorInvalidResourceHandle;
    }
    if (!IsWithinLimits(config.gridDim, config.blockDim)) {
      return cudaErrorInvalidConfiguration;
    }
    const size_t shared_bytes = config.dynamicSmemBytes;
    if (shared_bytes > node.SharedMemoryLimit(stream->device, kernel)) {
      return cudaErrorInvalidValue;
    }
    if (config.numAttrs != 0) return cudaErrorNotSupported;

    return QueueGrid(node, stream,
                     {.grid = config.gridDim,
                      .block = config.blockDim,
                      .shared_bytes = shared_bytes,
                      .thread = std::move(thread),
                      .schedule = node.schedule,
                      .launch_number = node.launch_count++});
  });
}

cudaError_t QueueLibraryCall(cudaStream_t handle, std::function<void()> run) {
  const cudaError_t last_error = LastError();
  const cudaError_t queued =
      StreamCall(handle, [&](Node& node, const StreamPtr& stream) {
        if (stream->device != CurrentDevice()) {
          return cudaErrorInvalidResourceHandle;
        }
        return QueueGrid(node, stream,
                         {.grid = dim3(1),
                          .block = dim3(1),
                          .shared_bytes = 0,
                          .thread = std::move(run),
                          .schedule = node.schedule,
                          .launch_number = node.launch_count++});
      });
  SetLastError(last_error);
  return queued;
}

}  // namespace tensord::simt

extern "C" cudaError_t cudaFuncSetAttribute(const void* func,
                                            cudaFuncAttribute attr, int value) {
  using tensord::simt::Node;
  return tensord::simt::DeviceCall([=](Node& node, int device) {
    if (func == nullptr) return cudaErrorInvalidDeviceFunction;
    if (attr == cudaFuncAttributePreferredSharedMemoryCarveout) {
      return value >= -1 && value <= 100 ? cudaSuccess : cudaErrorInvalidValue;
    }
    if (attr != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
        value > tensord::simt::kOptInSharedBytes) {
      return cudaErrorInvalidValue;
    }
    node.shared_memory_limits[{device, func}] = value;
    return cudaSuccess;
  });
}
