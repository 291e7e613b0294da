#include "client/python/native/src/transfers.h"

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cpp/src/transfer.h"
#include "client/python/native/src/errors.h"

namespace tensord::native {
namespace {

namespace nb = nanobind;

constexpr absl::Duration kSlice = absl::Milliseconds(50);
constexpr absl::Duration kBetweenReports = absl::Milliseconds(100);
// How long who was interrupted waits for the end.
constexpr absl::Duration kFarewell = absl::Seconds(1);

/// One transfer. A thread of a pool makes it while Python's first thread waits,
/// and hears signals; other threads make it themselves.
struct Job {
  Job(Metadata metadata, std::function<absl::Status(const Progress&)> work)
      : metadata(std::move(metadata)), work(std::move(work)) {}

  void Run();

  const Metadata metadata;
  const std::function<absl::Status(const Progress&)> work;
  // Of the stream that is under way, on the thread that makes it.
  grpc::ClientContext* context = nullptr;
  std::atomic<int64_t> done_bytes{0};
  std::atomic<bool> cancelled{false};
  absl::Mutex mutex;
  absl::Status status ABSL_GUARDED_BY(mutex);
  bool ended ABSL_GUARDED_BY(mutex) = false;
};

thread_local Job* current = nullptr;

void Job::Run() {
  current = this;
  const Progress progress = [this](int64_t done, int64_t) {
    done_bytes = done;
    // It is called in the middle of a stream: its context is there.
    if (cancelled) context->TryCancel();
  };
  absl::Status outcome = work(progress);
  current = nullptr;
  absl::MutexLock lock(&mutex);
  status = std::move(outcome);
  ended = true;
}

/// Threads that wait for transfers; as many as there were at a time.
class Workers {
 public:
  void Give(std::shared_ptr<Job> job) {
    absl::MutexLock lock(&mutex_);
    jobs_.push_back(std::move(job));
    if (jobs_.size() > idle_) {
      std::thread([this] { Work(); }).detach();
      ++idle_;
    }
  }

 private:
  void Work() {
    const auto has_job = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return !jobs_.empty();
    };
    while (true) {
      std::shared_ptr<Job> job;
      {
        absl::MutexLock lock(&mutex_, absl::Condition(&has_job));
        --idle_;
        job = std::move(jobs_.front());
        jobs_.pop_front();
      }
      job->Run();
      job.reset();
      absl::MutexLock lock(&mutex_);
      ++idle_;
    }
  }

  absl::Mutex mutex_;
  std::deque<std::shared_ptr<Job>> jobs_ ABSL_GUARDED_BY(mutex_);
  size_t idle_ ABSL_GUARDED_BY(mutex_) = 0;
};

void Tell(const Job& job, const nb::object& progress, absl::Time& told) {
  if (progress.is_none() || absl::Now() - told < kBetweenReports) return;
  told = absl::Now();
  progress(job.done_bytes.load());
}

/// Waits for a job; hears signals meanwhile.
void Await(Job& job, const nb::object& progress) {
  std::optional<nb::python_error> interrupt;
  absl::Time told = absl::Now();
  absl::Time patience = absl::InfiniteFuture();
  while (true) {
    {
      nb::gil_scoped_release released;
      absl::MutexLock lock(&job.mutex);
      job.mutex.AwaitWithTimeout(absl::Condition(&job.ended), kSlice);
      if (job.ended || absl::Now() > patience) break;
    }
    try {
      if (interrupt.has_value()) continue;
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      Tell(job, progress, told);
    } catch (nb::python_error& error) {
      interrupt.emplace(std::move(error));
      job.cancelled = true;
      patience = absl::Now() + kFarewell;
    }
  }
  if (interrupt.has_value()) throw std::move(*interrupt);
  absl::Status status;
  {
    absl::MutexLock lock(&job.mutex);
    status = job.status;
  }
  if (!status.ok()) Raise(OutcomeOf(status));
}

/// The memory of an array, until nobody refers to it any more.
/// Requires  the GIL.
std::shared_ptr<Py_buffer> MemoryOf(nb::handle bytes, int flags) {
  auto buffer = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(bytes.ptr(), buffer.get(), flags) != 0) {
    throw nb::python_error();
  }
  return {buffer.release(), [](Py_buffer* held) {
            if (Py_IsInitialized()) {
              nb::gil_scoped_acquire acquired;
              PyBuffer_Release(held);
            }
            delete held;
          }};
}

void Run(const std::shared_ptr<Job>& job, const nb::object& progress) {
  static Workers& workers = *new Workers();  // Its threads never end.
  if (getpid() != gettid() && progress.is_none()) {
    // Python handles signals on the first thread alone, and nobody wants news.
    nb::gil_scoped_release released;
    job->Run();
  } else {
    workers.Give(job);
  }
  Await(*job, progress);
}

internal::TransferOptions OptionsFor(int64_t chunk_bytes, absl::Time deadline,
                                     const Progress& progress) {
  return {
      .chunk_bytes = chunk_bytes, .deadline = deadline, .progress = &progress};
}

absl::Time DeadlineOf(double timeout_seconds) {
  return absl::Now() + absl::Seconds(timeout_seconds);
}

}  // namespace

Transfers::Transfers(std::shared_ptr<Channel> channel)
    : channel_(std::move(channel)),
      channels_(std::make_shared<internal::Channels>(
          channel_->address(), channel_->grpc_channel(), absl::Seconds(60),
          [](grpc::ClientContext& context) {
            for (const auto& [key, value] : current->metadata) {
              context.AddMetadata(key, value);
            }
            current->context = &context;
          })) {}

void Transfers::Upload(const std::string& tensor, nb::handle bytes,
                       int64_t chunk_bytes, double timeout_seconds,
                       nb::handle metadata, nb::object progress) {
  channel_->Check();
  const auto memory = MemoryOf(bytes, PyBUF_SIMPLE);
  Run(std::make_shared<Job>(
          OptionsOf(std::nullopt, metadata).metadata,
          [=, channels = channels_,
           deadline = DeadlineOf(timeout_seconds)](const Progress& report) {
            const std::span from(static_cast<const std::byte*>(memory->buf),
                                 static_cast<size_t>(memory->len));
            return internal::Upload(*channels, tensor, from,
                                    OptionsFor(chunk_bytes, deadline, report))
                .status();
          }),
      progress);
}

void Transfers::Download(const std::string& tensor, nb::handle bytes,
                         int64_t chunk_bytes, double timeout_seconds,
                         nb::handle metadata, nb::object progress) {
  channel_->Check();
  const auto memory = MemoryOf(bytes, PyBUF_WRITABLE);
  Run(std::make_shared<Job>(
          OptionsOf(std::nullopt, metadata).metadata,
          [=, channels = channels_,
           deadline = DeadlineOf(timeout_seconds)](const Progress& report) {
            const std::span to(static_cast<std::byte*>(memory->buf),
                               static_cast<size_t>(memory->len));
            return internal::Download(
                *channels, tensor, to,
                OptionsFor(chunk_bytes, deadline, report));
          }),
      progress);
}

}  // namespace tensord::native
