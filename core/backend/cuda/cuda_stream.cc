#include "core/backend/cuda/cuda_stream.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/backend/cuda/cuda_event.h"
#include "core/backend/cuda/cuda_recording.h"
#include "core/base/status.h"

namespace tensord::core {
namespace {

/// Owned by the stream from when it is queued. Streams of a lost device may
/// forget it.
struct HostCall {
  CudaDevice& device;
  void (*function)(void*);
  void* argument;

  static void Run(void* self) {
    const std::unique_ptr<const HostCall> call(static_cast<HostCall*>(self));
    call->device.CallOnHost(call->function, call->argument);
  }
};

/// The GPU whose memory that is, if it is one's.
std::optional<int> OwnerOf(const void* memory) {
  cudaPointerAttributes attributes;
  if (cudaPointerGetAttributes(&attributes, memory) != cudaSuccess) {
    cudaGetLastError();
    return std::nullopt;
  }
  if (attributes.type != cudaMemoryTypeDevice) return std::nullopt;
  return attributes.device;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Stream>> CudaStream::Create(CudaDevice& device) {
  TENSORD_RETURN_IF_ERROR(device.Select());
  cudaStream_t stream = nullptr;
  TENSORD_RETURN_IF_ERROR(
      device.Check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                   "cudaStreamCreateWithFlags"));
  return std::unique_ptr<Stream>(new CudaStream(device, stream));
}

CudaStream::~CudaStream() {
  if (!device_.Select().ok()) return;
  device_.Check(cudaStreamDestroy(stream_), "cudaStreamDestroy").IgnoreError();
}

absl::Status CudaStream::Copy(void* to, const void* from, int64_t bytes) {
  TENSORD_RETURN_IF_ERROR(device_.Select());
  // CUDA sees by the addresses where they are: what a tensor has may be pinned
  // memory of the host, too.
  return device_.Check(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes),
                                       cudaMemcpyDefault, stream_),
                       absl::StrCat("copying ", bytes, " bytes"));
}

absl::Status CudaStream::CopyToDevice(void* to, const void* from,
                                      int64_t bytes) {
  return Copy(to, from, bytes);
}

absl::Status CudaStream::CopyToHost(void* to, const void* from, int64_t bytes) {
  return Copy(to, from, bytes);
}

absl::Status CudaStream::CopyBetweenDevices(void* to, const void* from,
                                            int64_t bytes) {
  TENSORD_RETURN_IF_ERROR(device_.Select());
  for (const void* memory : {static_cast<const void*>(to), from}) {
    if (const auto owner = OwnerOf(memory)) device_.ConnectTo(*owner);
  }
  // CUDA sees by the addresses which devices they belong to.
  const cudaError_t queued = cudaMemcpyAsync(
      to, from, static_cast<size_t>(bytes), cudaMemcpyDefault, stream_);
  if (queued == cudaSuccess) return absl::OkStatus();
  cudaGetLastError();
  const std::string what =
      absl::StrCat("copying ", bytes, " bytes between devices");
  // An error of the other device's is none of this one's.
  const cudaError_t own = cudaStreamQuery(stream_);
  if (own != cudaSuccess && own != cudaErrorNotReady) {
    return device_.Check(own, what);
  }
  return Internal("CUDA_ERROR", what, " failed: ", cudaGetErrorString(queued));
}

absl::Status CudaStream::Call(void (*function)(void*), void* argument) {
  TENSORD_RETURN_IF_ERROR(device_.Select());
  auto call = std::make_unique<HostCall>(HostCall{device_, function, argument});
  const cudaError_t queued =
      cudaLaunchHostFunc(stream_, &HostCall::Run, call.get());
  if (queued == cudaSuccess) call.release();
  return device_.Check(queued, "cudaLaunchHostFunc");
}

absl::StatusOr<std::unique_ptr<Event>> CudaStream::Record() {
  return CudaEvent::Record(device_, stream_);
}

absl::StatusOr<std::unique_ptr<TimedPoint>> CudaStream::RecordTime() {
  return CudaTimedPoint::Record(device_, stream_);
}

absl::Status CudaStream::Synchronize() {
  TENSORD_RETURN_IF_ERROR(device_.Select());
  return device_.Check(cudaStreamSynchronize(stream_), "work on a stream");
}

absl::Status CudaStream::Await(void* to, const void* from, int64_t bytes) {
  TENSORD_ASSIGN_OR_RETURN(const std::shared_ptr<Event> event, Record());
  if (event != nullptr) {
    Interruption* const own = CurrentWork::interruption();
    if (own != nullptr) own->Outlast(event);
    TENSORD_RETURN_IF_ERROR(event->Wait());
  }
  TENSORD_RETURN_IF_ERROR(CopyToHost(to, from, bytes));
  return Synchronize();
}

absl::StatusOr<Stream*> CudaStream::Branch(int number) {
  while (std::ssize(branches_) <= number) {
    TENSORD_ASSIGN_OR_RETURN(std::unique_ptr<Stream> branch, Create(device_));
    branches_.push_back(std::move(branch));
  }
  return branches_[number].get();
}

absl::Status CudaStream::WaitFor(const Event* event) {
  if (event == nullptr) return absl::OkStatus();
  TENSORD_RETURN_IF_ERROR(device_.Select());
  return device_.Check(
      cudaStreamWaitEvent(stream_, static_cast<const CudaEvent*>(event)->get(),
                          0),
      "cudaStreamWaitEvent");
}

absl::StatusOr<bool> CudaStream::BeginRecording() {
  TENSORD_RETURN_IF_ERROR(device_.Select());
  // Relaxed: other threads allocate and wait meanwhile.
  TENSORD_RETURN_IF_ERROR(device_.Check(
      cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed),
      "cudaStreamBeginCapture"));
  return true;
}

absl::StatusOr<std::unique_ptr<Recording>> CudaStream::EndRecording() {
  return CudaRecording::End(device_, stream_);
}

}  // namespace tensord::core
