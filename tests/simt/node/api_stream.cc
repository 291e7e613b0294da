// cudaStream..., cudaLaunchHostFunc.
#include <memory>
#include <utility>

#include "tests/simt/node/node.h"

using tensord::simt::CallKind;
using tensord::simt::DeviceCall;
using tensord::simt::Node;
using tensord::simt::Operation;
using tensord::simt::Stream;
using tensord::simt::StreamCall;
using tensord::simt::StreamPtr;

namespace {

/// Whether it records; what is recorded is void then.
bool IsCapturing(const Stream& stream) {
  if (stream.capture == nullptr) return false;
  stream.capture->is_invalid = true;
  return true;
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* pStream,
                                      unsigned int flags) {
  return DeviceCall([=](Node& node, int device) {
    if (pStream == nullptr ||
        (flags != cudaStreamDefault && flags != cudaStreamNonBlocking)) {
      return cudaErrorInvalidValue;
    }
    const auto kind = flags == cudaStreamNonBlocking
                          ? Stream::Kind::kNonBlocking
                          : Stream::Kind::kBlocking;
    *pStream = node.NewHandle<cudaStream_t>();
    node.streams.Create(*pStream, device, kind);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return StreamCall(stream, [=](Node& node, const StreamPtr& found) {
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    node.streams.Destroy(found);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return StreamCall(stream, [=](Node& node, const StreamPtr& found) {
    if (IsCapturing(*found)) return cudaErrorStreamCaptureUnsupported;
    const cudaError_t fault = node.faults.Count(CallKind::kSynchronization);
    if (fault != cudaSuccess) return node.Fail(found->device, fault);
    node.streams.Drain(found);
    return node.streams.DeviceError(found->device);
  });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return StreamCall(stream, [=](Node& node, const StreamPtr& found) {
    if (IsCapturing(*found)) return cudaErrorStreamCaptureUnsupported;
    if (!node.streams.IsIdle(found)) node.streams.MoveOnce();
    const cudaError_t error = node.streams.DeviceError(found->device);
    if (error != cudaSuccess) return error;
    return node.streams.IsIdle(found) ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned int flags) {
  return StreamCall(stream, [=](Node& node, const StreamPtr& found) {
    const tensord::simt::Event* const known = node.FindEvent(event);
    if (known == nullptr) return cudaErrorInvalidResourceHandle;
    if (flags != 0) return cudaErrorInvalidValue;
    if (known->mark == nullptr) return cudaSuccess;  // never recorded
    if (known->mark->capture != nullptr) {
      return tensord::simt::WaitInCapture(found, *known->mark);
    }
    if (found->capture != nullptr) {
      found->capture->is_invalid = true;
      return cudaErrorStreamCaptureIsolation;
    }
    auto operation = std::make_unique<Operation>();
    operation->after.push_back(known->mark);
    node.faults.CountEventWait();
    node.streams.Push(found, std::move(operation));
    return cudaSuccess;
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn,
                               void* userData) {
  return StreamCall(stream, [=](Node& node, const StreamPtr& found) {
    if (fn == nullptr) return cudaErrorInvalidValue;
    auto operation = std::make_unique<Operation>();
    operation->is_host_function = true;
    operation->run = [fn, userData] {
      tensord::simt::SetInHostFunction(true);
      fn(userData);
      tensord::simt::SetInHostFunction(false);
      return cudaSuccess;
    };
    node.streams.Push(found, std::move(operation));
    return cudaSuccess;
  });
}

}  // extern "C"
