#include "tests/simt/node/capture.h"

#include <algorithm>
#include <utility>

namespace tensord::simt {
namespace {

/// (step): whether it is one of `ends` or comes before one.
std::vector<bool> StepsUpTo(const Capture& capture,
                            const std::vector<size_t>& ends) {
  std::vector<bool> is_before(capture.steps.size(), false);
  for (const size_t step : ends) is_before[step] = true;
  for (size_t step = capture.steps.size(); step-- > 0;) {
    if (!is_before[step]) continue;
    for (const size_t before : capture.steps[step].after) {
      is_before[before] = true;
    }
  }
  return is_before;
}

}  // namespace

void BeginCapture(const StreamPtr& stream) {
  stream->capture = std::make_shared<Capture>();
  stream->capture->streams.push_back(stream);
  stream->captured.clear();
}

void Record(Stream& stream, Operation operation) {
  Capture& capture = *stream.capture;
  const auto lane = std::ranges::find_if(
      capture.streams,
      [&](const StreamPtr& known) { return known.get() == &stream; });
  capture.steps.push_back(
      {.operation = std::move(operation),
       .after = std::exchange(stream.captured, {capture.steps.size()}),
       .lane = static_cast<size_t>(lane - capture.streams.begin())});
}

cudaError_t WaitInCapture(const StreamPtr& stream, const Mark& mark) {
  if (mark.capture->is_over) return cudaErrorCapturedEvent;
  if (stream->capture == nullptr) {
    stream->capture = mark.capture;
    stream->captured.clear();
    mark.capture->streams.push_back(stream);
  } else if (stream->capture != mark.capture) {
    stream->capture->is_invalid = mark.capture->is_invalid = true;
    return cudaErrorStreamCaptureMerge;
  }
  for (const size_t step : mark.captured) {
    if (std::ranges::find(stream->captured, step) == stream->captured.end()) {
      stream->captured.push_back(step);
    }
  }
  return cudaSuccess;
}

cudaError_t EndCapture(const StreamPtr& stream,
                       std::shared_ptr<const Capture>& graph) {
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture == nullptr) return cudaErrorIllegalState;
  if (capture->streams[0] != stream) return cudaErrorStreamCaptureUnmatched;
  const std::vector<bool> is_joined = StepsUpTo(*capture, stream->captured);
  const bool all_joined =
      std::ranges::all_of(is_joined, [](bool joined) { return joined; });
  capture->is_over = true;
  for (const StreamPtr& other : std::exchange(capture->streams, {})) {
    // Of a lane's stream no more than a place is kept.
    other->capture = nullptr;
    other->captured.clear();
    capture->lane_count++;
  }
  if (capture->is_invalid) return cudaErrorStreamCaptureInvalidated;
  if (!all_joined) return cudaErrorStreamCaptureUnjoined;
  graph = capture;
  return cudaSuccess;
}

void LaunchGraph(Streams& streams, const GraphExec& graph,
                 const StreamPtr& stream, std::unique_ptr<Operation> first) {
  const auto push = [&](const StreamPtr& to,
                        std::unique_ptr<Operation> operation) {
    auto mark = std::make_shared<Mark>(
        Mark{.stream = to, .number = to->queued_count + 1});
    operation->marks = mark;
    streams.Push(to, std::move(operation));
    return mark;
  };
  const std::shared_ptr<const Mark> begin = push(stream, std::move(first));
  std::vector<std::shared_ptr<const Mark>> marks;
  auto last = std::make_unique<Operation>();
  for (const GraphStep& step : graph.graph->steps) {
    auto operation = std::make_unique<Operation>(step.operation);
    operation->after.push_back(begin);
    for (const size_t before : step.after) {
      operation->after.push_back(marks[before]);
    }
    marks.push_back(push(graph.lanes[step.lane], std::move(operation)));
    last->after.push_back(marks.back());
  }
  streams.Push(stream, std::move(last));
}

}  // namespace tensord::simt
