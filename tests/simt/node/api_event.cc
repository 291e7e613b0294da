// cudaEvent...
#include <chrono>
#include <memory>
#include <utility>

#include "tests/simt/node/node.h"

using tensord::simt::ApiCall;
using tensord::simt::CallKind;
using tensord::simt::DeviceCall;
using tensord::simt::Event;
using tensord::simt::EventCall;
using tensord::simt::Node;
using tensord::simt::StreamPtr;
using tensord::simt::Streams;

namespace {

/// Whether it stands for a point in what is recorded.
bool IsCaptured(const Event& event) {
  return event.mark != nullptr && event.mark->capture != nullptr;
}

}  // namespace

extern "C" {

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  return DeviceCall([=](Node& node, int device) {
    constexpr unsigned int kKnownFlags =
        cudaEventBlockingSync | cudaEventDisableTiming;
    if (event == nullptr || (flags & ~kKnownFlags) != 0) {
      return cudaErrorInvalidValue;
    }
    const bool keeps_time = (flags & cudaEventDisableTiming) == 0;
    *event = node.NewHandle<cudaEvent_t>();
    node.events.push_back(std::make_unique<Event>(
        Event{.handle = *event, .device = device, .keeps_time = keeps_time}));
    return cudaSuccess;
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return EventCall(event, [=](Node& node, const Event&) {
    std::erase_if(node.events, [event](const auto& known) {
      return known->handle == event;
    });
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return EventCall(event, [=](Node& node, Event& known) {
    const StreamPtr found =
        node.streams.Find(stream, tensord::simt::CurrentDevice());
    if (found == nullptr || found->device != known.device) {
      return cudaErrorInvalidResourceHandle;
    }
    known.mark = node.streams.PushMark(found);
    return cudaSuccess;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return EventCall(event, [](Node& node, const Event& known) {
    if (IsCaptured(known)) return cudaErrorCapturedEvent;
    const cudaError_t fault = node.faults.Count(CallKind::kSynchronization);
    const int device = known.device;
    if (fault != cudaSuccess) return node.Fail(device, fault);
    // Another thread may record or destroy the event meanwhile.
    const std::shared_ptr<const tensord::simt::Mark> mark = known.mark;
    if (mark != nullptr) node.streams.WaitFor(*mark);
    return node.streams.DeviceError(device);
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return EventCall(event, [](Node& node, const Event& known) {
    if (IsCaptured(known)) return cudaErrorCapturedEvent;
    const int device = known.device;
    const std::shared_ptr<const tensord::simt::Mark> mark = known.mark;
    if (mark == nullptr) return cudaSuccess;
    if (!mark->is_passed()) node.streams.MoveOnce();
    const cudaError_t error = node.streams.DeviceError(device);
    if (error != cudaSuccess) return error;
    return Streams::HasPassed(*mark) ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start,
                                 cudaEvent_t end) {
  return ApiCall([=](const Node& node) {
    const Event* const from = node.FindEvent(start);
    const Event* const to = node.FindEvent(end);
    if (ms == nullptr) return cudaErrorInvalidValue;
    for (const Event* const event : {from, to}) {
      if (event == nullptr || !event->keeps_time || event->mark == nullptr) {
        return cudaErrorInvalidResourceHandle;
      }
      if (IsCaptured(*event)) return cudaErrorCapturedEvent;
    }
    if (!from->mark->is_passed() || !to->mark->is_passed()) {
      return cudaErrorNotReady;
    }
    *ms = std::chrono::duration<float, std::milli>(to->mark->passed_at -
                                                   from->mark->passed_at)
              .count();
    return cudaSuccess;
  });
}

}  // extern "C"
