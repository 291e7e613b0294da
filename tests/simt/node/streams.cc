#include "tests/simt/node/streams.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "tests/simt/node/capture.h"
#include "tests/simt/sanitizers.h"

namespace tensord::simt {
namespace {

/// Device memory that one thread keeps exposed from operation to operation.
class Exposure {
 public:
  explicit Exposure(NodeMemory& memory) : memory_(memory) {}
  ~Exposure() { Become(0); }
  Exposure(const Exposure&) = delete;
  Exposure& operator=(const Exposure&) = delete;

  void Become(DeviceSet devices) {
    if (devices == devices_) return;
    memory_.Expose(devices);
    memory_.Hide(devices_);
    devices_ = devices;
  }

 private:
  NodeMemory& memory_;
  DeviceSet devices_ = 0;
};

std::shared_ptr<const Mark> ImpliedMark(const StreamPtr& stream) {
  return std::make_shared<const Mark>(Mark{
      .stream = stream, .number = stream->queued_count, .is_implied = true});
}

}  // namespace

Stream::Stream(cudaStream_t stream_handle, int device_number,
               Kind kind_of_stream)
    : handle(stream_handle),
      device(device_number),
      kind(kind_of_stream),
      tsan_fiber(tsan::CreateFiber()) {}

Stream::~Stream() { tsan::DestroyFiber(tsan_fiber); }

bool Mark::is_passed() const { return stream->done_count >= number; }

const void* Mark::sync() const {
  return is_implied ? static_cast<const void*>(stream.get()) : this;
}

void Streams::Reset(int device_count) {
  while (std::ranges::any_of(streams_, [](const StreamPtr& stream) {
    return stream->running != nullptr;
  })) {
    lock_.WaitForChange();
  }
  // What is queued refers to streams and these to what is queued.
  for (const StreamPtr& stream : streams_) {
    stream->queue.clear();
    stream->capture = nullptr;
  }
  streams_.clear();
  null_streams_.clear();
  errors_.assign(static_cast<size_t>(device_count), cudaSuccess);
  for (int device = 0; device < device_count; ++device) {
    null_streams_.push_back(Create(nullptr, device, Stream::Kind::kNull));
  }
}

void Streams::SetOrder(Order order, uint64_t seed) {
  order_ = order;
  random_ = Random(seed);
}

StreamPtr Streams::Create(cudaStream_t handle, int device, Stream::Kind kind) {
  streams_.push_back(std::make_shared<Stream>(handle, device, kind));
  return streams_.back();
}

StreamPtr Streams::Find(cudaStream_t handle, int current_device) const {
  if (handle == nullptr) return null_streams_[current_device];
  for (const StreamPtr& stream : streams_) {
    if (stream->handle == handle && !stream->is_destroyed) return stream;
  }
  return nullptr;
}

void Streams::Destroy(const StreamPtr& stream) { stream->is_destroyed = true; }

void Streams::Push(const StreamPtr& stream,
                   std::unique_ptr<Operation> operation) {
  using Kind = Stream::Kind;
  if (stream->capture != nullptr) {
    Record(*stream, *operation);
    return;
  }
  for (const StreamPtr& other : streams_) {
    const bool waits =
        (stream->kind == Kind::kNull && other->kind == Kind::kBlocking) ||
        (stream->kind == Kind::kBlocking && other->kind == Kind::kNull);
    if (waits && other->device == stream->device) {
      operation->after.push_back(ImpliedMark(other));
    }
  }
  if (operation->is_host_function && !has_driver_thread_) {
    has_driver_thread_ = true;
    std::thread([this] { RunHostFunctions(); }).detach();
  }
  tsan::Release(operation.get());
  stream->queue.push_back(std::move(operation));
  ++stream->queued_count;
  lock_.NotifyOfChange();
}

std::shared_ptr<Mark> Streams::PushMark(const StreamPtr& stream) {
  if (stream->capture != nullptr) {
    return std::make_shared<Mark>(Mark{.stream = stream,
                                       .number = UINT64_MAX,
                                       .capture = stream->capture,
                                       .captured = stream->captured});
  }
  auto mark = std::make_shared<Mark>(
      Mark{.stream = stream, .number = stream->queued_count + 1});
  auto operation = std::make_unique<Operation>();
  operation->marks = mark;
  Push(stream, std::move(operation));
  return mark;
}

std::shared_ptr<Mark> Streams::CreateHold() {
  constexpr int kNoDevice = -1;
  return std::make_shared<Mark>(
      Mark{.stream = std::make_shared<Stream>(nullptr, kNoDevice,
                                              Stream::Kind::kNonBlocking),
           .number = 1,
           .is_hold = true});
}

void Streams::Release(const Mark& hold) {
  hold.stream->done_count = hold.number;
  lock_.NotifyOfChange();
}

void Streams::WaitFor(const Mark& mark) {
  MoveUntil([&mark] { return mark.is_passed(); }, Mover::kHost);
  tsan::Acquire(mark.sync());
}

bool Streams::HasPassed(const Mark& mark) {
  if (!mark.is_passed()) return false;
  tsan::Acquire(mark.sync());
  return true;
}

bool Streams::IsIdle(const StreamPtr& stream) const {
  if (stream->done_count != stream->queued_count) return false;
  tsan::Acquire(stream.get());
  return true;
}

void Streams::Drain(const StreamPtr& stream) { WaitFor(*ImpliedMark(stream)); }

void Streams::DrainDevice(int device) {
  std::vector<std::shared_ptr<const Mark>> marks;
  for (const StreamPtr& stream : streams_) {
    if (stream->device == device) marks.push_back(ImpliedMark(stream));
  }
  for (const std::shared_ptr<const Mark>& mark : marks) WaitFor(*mark);
}

void Streams::LoseDevice(int device, cudaError_t error) {
  if (errors_[device] == cudaSuccess) errors_[device] = error;
  for (const StreamPtr& stream : streams_) {
    if (stream->device != device) continue;
    stream->queue.clear();
    stream->done_count = stream->queued_count - (stream->running != nullptr);
  }
  lock_.NotifyOfChange();
}

bool Streams::IsHostMemoryInUse(const void* memory, size_t bytes) const {
  const auto* const begin = static_cast<const char*>(memory);
  const auto uses = [&](const Operation& operation) {
    return std::ranges::any_of(
        operation.host_ranges, [&](const HostRange& range) {
          const auto* const other = static_cast<const char*>(range.memory);
          return begin < other + range.bytes && other < begin + bytes;
        });
  };
  return std::ranges::any_of(streams_, [&](const StreamPtr& stream) {
    return (stream->running != nullptr && uses(*stream->running)) ||
           std::ranges::any_of(stream->queue, [&](const auto& operation) {
             return uses(*operation);
           });
  });
}

bool Streams::CanRun(const Stream& stream) const {
  return stream.running == nullptr && !stream.queue.empty() &&
         std::ranges::all_of(stream.queue.front()->after, [](const auto& mark) {
           return mark->is_passed();
         });
}

bool Streams::IsHeld(const Stream& stream) {
  return !stream.queue.empty() &&
         std::ranges::any_of(stream.queue.front()->after, [](const auto& mark) {
           return mark->is_hold && !mark->is_passed();
         });
}

StreamPtr Streams::Choose(Mover mover) {
  std::erase_if(streams_, [](const StreamPtr& stream) {
    return stream->is_destroyed && stream->queue.empty() &&
           stream->running == nullptr;
  });
  std::vector<StreamPtr> candidates;
  for (const StreamPtr& stream : streams_) {
    if (CanRun(*stream) &&
        (mover == Mover::kDriver || !stream->queue.front()->is_host_function)) {
      candidates.push_back(stream);
    }
  }
  if (candidates.empty()) return nullptr;
  switch (order_) {
    case Order::kInOrder: return candidates.front();
    case Order::kReverse: return candidates.back();
    case Order::kRandom: break;
  }
  return candidates[random_.Below(candidates.size())];
}

void Streams::RunFirst(const StreamPtr& stream) {
  std::unique_ptr<Operation> operation = std::move(stream->queue.front());
  stream->queue.pop_front();
  stream->running = operation.get();
  const std::shared_ptr<Mark> mark = operation->marks;
  lock_.unlock();

  void* const self = tsan::CurrentFiber();
  tsan::SwitchTo(stream->tsan_fiber);
  tsan::Acquire(operation.get());
  for (const auto& before : operation->after) tsan::Acquire(before->sync());
  const cudaError_t error = operation->run ? operation->run() : cudaSuccess;
  tsan::Release(stream.get());
  tsan::Release(mark.get());
  tsan::SwitchTo(self);

  lock_.lock();
  stream->running = nullptr;
  operation.reset();
  ++stream->done_count;
  if (mark != nullptr) mark->passed_at = std::chrono::steady_clock::now();
  if (error != cudaSuccess) LoseDevice(stream->device, error);
  lock_.NotifyOfChange();
}

void Streams::MoveUntil(const std::function<bool()>& is_reached, Mover mover) {
  Exposure exposure(memory_);
  while (!is_reached()) {
    const StreamPtr stream = Choose(mover);
    if (stream != nullptr) {
      exposure.Become(stream->queue.front()->devices);
      RunFirst(stream);
      continue;
    }
    exposure.Become(0);
    const bool others_move =
        std::ranges::any_of(streams_, [this](const StreamPtr& other) {
          return other->running != nullptr || CanRun(*other) || IsHeld(*other);
        });
    if (mover == Mover::kHost && !others_move) {
      std::fprintf(stderr, "simt: the streams wait for each other\n");
      std::abort();
    }
    lock_.WaitForChange();
  }
}

void Streams::MoveOnce() {
  const StreamPtr stream = Choose(Mover::kHost);
  if (stream == nullptr) return;
  Exposure exposure(memory_);
  exposure.Become(stream->queue.front()->devices);
  RunFirst(stream);
}

void Streams::RunHostFunctions() {
  tsan::ReleaseOsThread();
  const tsan::Ignore ignore;
  lock_.lock();
  while (true) {
    const bool is_wanted =
        std::ranges::any_of(streams_, [](const StreamPtr& stream) {
          return std::ranges::any_of(stream->queue, [](const auto& operation) {
            return operation->is_host_function;
          });
        });
    const StreamPtr stream = is_wanted ? Choose(Mover::kDriver) : nullptr;
    if (stream == nullptr) {
      lock_.WaitForChange();
      continue;
    }
    Exposure exposure(memory_);
    exposure.Become(stream->queue.front()->devices);
    RunFirst(stream);
  }
}

}  // namespace tensord::simt
