// What streams record instead of doing it.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "cuda_runtime_api.h"
#include "tests/simt/node/streams.h"

namespace tensord::simt {

/// One operation of a graph, and those that come before it.
struct GraphStep {
  Operation operation;
  std::vector<size_t> after;  // steps before this one
  size_t lane = 0;            // which of the captured streams it is from
};

/// What is recorded between cudaStreamBeginCapture() and
/// cudaStreamEndCapture().
struct Capture {
  std::vector<StreamPtr> streams;  // (lane), the first is where it began
  size_t lane_count = 0;           // when it is over, and there are no streams
  std::vector<GraphStep> steps;
  bool is_invalid = false;  // something was asked for that cannot be recorded
  bool is_over = false;
};

/// A graph that can be launched: its steps, each lane on a stream of its own.
struct GraphExec {
  cudaGraphExec_t handle;
  std::shared_ptr<const Capture> graph;
  std::vector<StreamPtr> lanes;
};

/// `stream` records from here on.
void BeginCapture(const StreamPtr& stream);

/// Records `operation`, behind what its stream has recorded or waits for.
void Record(Stream& stream, Operation operation);

/// What stream waits for when it waits for a point in a capture; it joins the
/// capture unless it is in it.
cudaError_t WaitInCapture(const StreamPtr& stream, const Mark& mark);

/// Ends the capture that began on `stream`; null in `graph` unless it succeeds.
cudaError_t EndCapture(const StreamPtr& stream,
                       std::shared_ptr<const Capture>& graph);

/// Queues the steps of a graph, as a whole in the order of `stream`. `first` is
/// queued in front of them.
void LaunchGraph(Streams& streams, const GraphExec& graph,
                 const StreamPtr& stream, std::unique_ptr<Operation> first);

}  // namespace tensord::simt
