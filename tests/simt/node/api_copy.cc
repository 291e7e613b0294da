// cudaMemcpy..., cudaMemset...
#include <cstring>
#include <memory>
#include <utility>

#include "tests/simt/node/node.h"

using tensord::simt::CallKind;
using tensord::simt::DeviceSet;
using tensord::simt::Node;
using tensord::simt::NodeMemory;
using tensord::simt::Operation;
using tensord::simt::SetOf;
using tensord::simt::StreamCall;
using tensord::simt::StreamPtr;

namespace {

/// Rows of bytes; a plain copy is one row.
struct Rows {
  size_t bytes;  // of a row
  size_t count = 1;
  size_t to_pitch = 0;
  size_t from_pitch = 0;
};

size_t SpannedBytes(const Rows& rows, size_t pitch) {
  return (rows.count - 1) * pitch + rows.bytes;
}

bool Fits(cudaMemcpyKind kind, NodeMemory::Range to, NodeMemory::Range from) {
  using Place = NodeMemory::Place;
  if (to.place == Place::kNowhere || from.place == Place::kNowhere) {
    return false;
  }
  const bool to_device = to.place == Place::kDevice;
  const bool from_device = from.place == Place::kDevice;
  switch (kind) {
    case cudaMemcpyHostToHost: return !to_device && !from_device;
    case cudaMemcpyHostToDevice: return to_device && !from_device;
    case cudaMemcpyDeviceToHost: return !to_device && from_device;
    case cudaMemcpyDeviceToDevice: return to_device && from_device;
    case cudaMemcpyDefault: return true;
  }
  return false;
}

cudaError_t QueueCopy(Node& node, const StreamPtr& stream, void* to,
                      const void* from, const Rows& rows, cudaMemcpyKind kind) {
  if (rows.bytes == 0 || rows.count == 0) return cudaSuccess;
  if (to == nullptr || from == nullptr) return cudaErrorInvalidValue;
  const size_t to_bytes = SpannedBytes(rows, rows.to_pitch);
  const size_t from_bytes = SpannedBytes(rows, rows.from_pitch);
  const NodeMemory::Range to_range = node.memory.Locate(to, to_bytes);
  const NodeMemory::Range from_range = node.memory.Locate(from, from_bytes);
  if (!Fits(kind, to_range, from_range)) return cudaErrorInvalidValue;
  for (const NodeMemory::Range& range : {to_range, from_range}) {
    if (range.place != NodeMemory::Place::kDevice) continue;
    const cudaError_t lost = node.streams.DeviceError(range.device);
    if (lost != cudaSuccess) return lost;
  }

  auto operation = std::make_unique<Operation>();
  if (to_range.place == NodeMemory::Place::kDevice) {
    operation->devices |= SetOf(to_range.device);
  } else {
    operation->host_ranges.push_back({to, to_bytes});
  }
  if (from_range.place == NodeMemory::Place::kDevice) {
    operation->devices |= SetOf(from_range.device);
  } else {
    operation->host_ranges.push_back({from, from_bytes});
  }
  operation->run = [to, from, rows] {
    auto* row_to = static_cast<char*>(to);
    const auto* row_from = static_cast<const char*>(from);
    for (size_t row = 0; row < rows.count; ++row) {
      std::memcpy(row_to, row_from, rows.bytes);
      row_to += rows.to_pitch;
      row_from += rows.from_pitch;
    }
    return cudaSuccess;
  };
  const cudaError_t error =
      node.Queue(CallKind::kCopy, stream, std::move(operation));
  if (error == cudaSuccess) {
    node.faults.CountBytes(static_cast<int64_t>(rows.bytes * rows.count));
  }
  return error;
}

}  // namespace

extern "C" {

cudaError_t cudaMemcpy(void* dst, const void* src, size_t count,
                       cudaMemcpyKind kind) {
  return StreamCall(nullptr, [=](Node& node, const StreamPtr& stream) {
    const cudaError_t error =
        QueueCopy(node, stream, dst, src, {.bytes = count}, kind);
    if (error != cudaSuccess) return error;
    // The host does not wait for copies between devices.
    if (kind == cudaMemcpyDeviceToDevice) return cudaSuccess;
    node.streams.Drain(stream);
    return node.streams.DeviceError(stream->device);
  });
}

cudaError_t cudaMemcpyAsync(void* dst, const void* src, size_t count,
                            cudaMemcpyKind kind, cudaStream_t stream) {
  return StreamCall(stream, [=](Node& node, const StreamPtr& on) {
    return QueueCopy(node, on, dst, src, {.bytes = count}, kind);
  });
}

cudaError_t cudaMemcpy2DAsync(void* dst, size_t dpitch, const void* src,
                              size_t spitch, size_t width, size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream) {
  return StreamCall(stream, [=](Node& node, const StreamPtr& on) {
    if (width > dpitch || width > spitch) return cudaErrorInvalidPitchValue;
    return QueueCopy(node, on, dst, src, {width, height, dpitch, spitch}, kind);
  });
}

cudaError_t cudaMemcpyPeerAsync(void* dst, int dstDevice, const void* src,
                                int srcDevice, size_t count,
                                cudaStream_t stream) {
  return StreamCall(stream, [=](Node& node, const StreamPtr& on) {
    if (!node.IsDevice(dstDevice) || !node.IsDevice(srcDevice)) {
      return cudaErrorInvalidDevice;
    }
    const auto lies_on = [&](const void* memory, int device) {
      const NodeMemory::Range range = node.memory.Locate(memory, count);
      return range.place == NodeMemory::Place::kDevice &&
             range.device == device;
    };
    if (!lies_on(dst, dstDevice) || !lies_on(src, srcDevice)) {
      return cudaErrorInvalidValue;
    }
    return QueueCopy(node, on, dst, src, {.bytes = count},
                     cudaMemcpyDeviceToDevice);
  });
}

cudaError_t cudaMemset(void* devPtr, int value, size_t count) {
  return cudaMemsetAsync(devPtr, value, count, nullptr);
}

cudaError_t cudaMemsetAsync(void* devPtr, int value, size_t count,
                            cudaStream_t stream) {
  return StreamCall(stream, [=](Node& node, const StreamPtr& on) {
    if (count == 0) return cudaSuccess;
    const NodeMemory::Range range = node.memory.Locate(devPtr, count);
    if (range.place != NodeMemory::Place::kDevice) return cudaErrorInvalidValue;
    auto operation = std::make_unique<Operation>();
    operation->devices = SetOf(range.device);
    operation->run = [=] {
      std::memset(devPtr, value, count);
      return cudaSuccess;
    };
    return node.Queue(CallKind::kCopy, on, std::move(operation));
  });
}

}  // extern "C"
