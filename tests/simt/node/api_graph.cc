// cudaStreamBeginCapture, cudaGraph...
#include <algorithm>
#include <memory>
#include <utility>

#include "tests/simt/node/capture.h"
#include "tests/simt/node/node.h"

using tensord::simt::ApiCall;
using tensord::simt::CallKind;
using tensord::simt::Capture;
using tensord::simt::DeviceCall;
using tensord::simt::GraphExec;
using tensord::simt::Node;
using tensord::simt::Operation;
using tensord::simt::Stream;
using tensord::simt::StreamCall;
using tensord::simt::StreamPtr;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream,
                                   cudaStreamCaptureMode mode) {
  return StreamCall(stream, [=](Node&, const StreamPtr& found) {
    // Other modes forbid calls to other threads or to this one.
    if (mode != cudaStreamCaptureModeRelaxed) return cudaErrorNotSupported;
    if (stream == nullptr) return cudaErrorStreamCaptureUnsupported;
    if (found->capture != nullptr) return cudaErrorIllegalState;
    tensord::simt::BeginCapture(found);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* pGraph) {
  return StreamCall(stream, [=](Node& node, const StreamPtr& found) {
    if (pGraph == nullptr) return cudaErrorInvalidValue;
    *pGraph = nullptr;
    std::shared_ptr<const Capture> graph;
    const cudaError_t error = tensord::simt::EndCapture(found, graph);
    if (error != cudaSuccess) return error;
    *pGraph = node.NewHandle<cudaGraph_t>();
    node.graphs.emplace(*pGraph, std::move(graph));
    return cudaSuccess;
  });
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* pGraphExec,
                                          cudaGraph_t graph,
                                          unsigned long long flags) {
  return DeviceCall([=](Node& node, int device) {
    const auto found = node.graphs.find(graph);
    if (pGraphExec == nullptr || flags != 0 || found == node.graphs.end()) {
      return cudaErrorInvalidValue;
    }
    *pGraphExec = node.NewHandle<cudaGraphExec_t>();
    GraphExec exec{.handle = *pGraphExec, .graph = found->second, .lanes = {}};
    for (size_t lane = 0; lane < exec.graph->lane_count; ++lane) {
      exec.lanes.push_back(node.streams.Create(
          node.NewHandle<cudaStream_t>(), device, Stream::Kind::kNonBlocking));
    }
    node.graph_execs.push_back(std::move(exec));
    return cudaSuccess;
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream) {
  return StreamCall(stream, [=](Node& node, const StreamPtr& found) {
    const GraphExec* const exec = node.FindGraphExec(graphExec);
    if (exec == nullptr) return cudaErrorInvalidValue;
    if (found->capture != nullptr) return cudaErrorStreamCaptureUnsupported;
    const cudaError_t fault = node.faults.Count(CallKind::kGraphLaunch);
    auto first = std::make_unique<Operation>();
    if (tensord::simt::LosesDevice(fault)) {
      first->run = [fault] { return fault; };
    } else if (fault != cudaSuccess) {
      return fault;
    }
    if (node.hold != nullptr) {
      first->after.push_back(std::exchange(node.hold, nullptr));
    }
    tensord::simt::LaunchGraph(node.streams, *exec, found, std::move(first));
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return ApiCall([=](Node& node) {
    return node.graphs.erase(graph) == 1 ? cudaSuccess : cudaErrorInvalidValue;
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graphExec) {
  return ApiCall([=](Node& node) {
    const GraphExec* const exec = node.FindGraphExec(graphExec);
    if (exec == nullptr) return cudaErrorInvalidValue;
    // What was launched is still done.
    for (const StreamPtr& lane : exec->lanes) node.streams.Destroy(lane);
    std::erase_if(node.graph_execs, [&](const GraphExec& known) {
      return known.handle == graphExec;
    });
    return cudaSuccess;
  });
}

}  // extern "C"
