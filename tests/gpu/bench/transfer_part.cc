// Rows
//   direction, path = "server" (by gRPC), "shared" (by memory that the server
//   sees, too), "pinned" or "pageable" (without a server), bytes, ns
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tests/gpu/bench/server_parts.h"

namespace tensord::test {
namespace {

absl::Status CheckCuda(cudaError_t error) {
  if (error == cudaSuccess) return absl::OkStatus();
  return absl::InternalError(cudaGetErrorString(error));
}

/// The median of some runs of `transfer`, after one that does not count.
absl::Status PrintTransfer(const char* direction, const char* path,
                           int64_t bytes, const Effort& effort,
                           absl::FunctionRef<absl::Status()> transfer) {
  std::vector<double> durations_ns;
  for (int i = 0; i <= effort.repetitions(); ++i) {
    const auto start = std::chrono::steady_clock::now();
    const absl::Status status = transfer();
    if (!status.ok()) {
      return absl::Status(status.code(), absl::StrCat(direction, " by ", path,
                                                      ": ", status.message()));
    }
    if (i == 0) continue;
    durations_ns.push_back(std::chrono::duration<double, std::nano>(
                               std::chrono::steady_clock::now() - start)
                               .count());
  }
  std::sort(durations_ns.begin(), durations_ns.end());
  Print({{"part", "transfer"},
         {"direction", direction},
         {"path", path},
         {"bytes", bytes},
         {"ns", durations_ns[durations_ns.size() / 2]}});
  return absl::OkStatus();
}

/// Memory that cudaFree() or cudaFreeHost() takes back.
using CudaBlock = std::unique_ptr<void, cudaError_t (*)(void*)>;

/// Copies between the GPU and this process, without a server.
absl::Status RunCopies(int64_t bytes, std::vector<std::byte>& pageable,
                       const Effort& effort) {
  const auto size = static_cast<size_t>(bytes);
  void* pointer = nullptr;
  if (auto status = CheckCuda(cudaMalloc(&pointer, size)); !status.ok()) {
    return status;
  }
  const CudaBlock device(pointer, &cudaFree);
  if (auto status = CheckCuda(cudaMallocHost(&pointer, size)); !status.ok()) {
    return status;
  }
  const CudaBlock pinned(pointer, &cudaFreeHost);
  std::copy_n(pageable.data(), size, static_cast<std::byte*>(pinned.get()));
  struct Path {
    const char* name;
    void* host;
  };
  for (const Path& path :
       {Path{"pinned", pinned.get()}, Path{"pageable", pageable.data()}}) {
    const auto copy = [&](void* to, const void* from, cudaMemcpyKind kind) {
      const absl::Status status = CheckCuda(cudaMemcpy(to, from, size, kind));
      return status.ok() ? CheckCuda(cudaDeviceSynchronize()) : status;
    };
    absl::Status status = PrintTransfer(
        "upload", path.name, bytes, effort,
        [&] { return copy(device.get(), path.host, cudaMemcpyHostToDevice); });
    if (!status.ok()) return status;
    status = PrintTransfer("download", path.name, bytes, effort, [&] {
      return copy(path.host, device.get(), cudaMemcpyDeviceToHost);
    });
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status RunServer(Session& session, const char* path, int64_t bytes,
                       const std::vector<std::byte>& source,
                       const Effort& effort) {
  const std::span<const std::byte> from(source.data(),
                                        static_cast<size_t>(bytes));
  absl::StatusOr<RemoteTensor> tensor = absl::UnknownError("not uploaded");
  absl::Status status = PrintTransfer("upload", path, bytes, effort, [&] {
    const auto* const elements = reinterpret_cast<const int8_t*>(from.data());
    tensor = session.Upload(HostView<int8_t>{elements, {bytes}});
    return tensor.status();
  });
  if (!status.ok()) return status;
  std::vector<std::byte> to(from.size());
  status = PrintTransfer("download", path, bytes, effort, [&] {
    return tensor->DownloadTo(ElementType::kInt8, to);
  });
  if (!status.ok()) return status;
  if (!std::equal(from.begin(), from.end(), to.begin())) {
    return absl::DataLossError("other bytes came back than were sent");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunTransfer(const std::string& address, const std::string& device,
                         const Effort& effort) {
  auto streamed = Session::Connect(
      address, {.device = device, .transport = Transport::kGrpc});
  if (!streamed.ok()) return streamed.status();
  auto shared = Session::Connect(
      address, {.device = device, .transport = Transport::kSharedMemory});
  if (!shared.ok()) return shared.status();
  const int64_t most = effort.tiny ? 1 << 20 : int64_t{1} << 30;
  std::vector<std::byte> source(static_cast<size_t>(most));
  for (size_t i = 0; i < source.size(); ++i) {
    source[i] = static_cast<std::byte>(i * 37 >> 4);
  }
  CaseCounter counter("transfer", effort);
  for (int64_t bytes = most >> 8; bytes <= most; bytes *= 16) {
    if (!counter.Next()) continue;
    if (auto status = RunCopies(bytes, source, effort); !status.ok()) {
      return status;
    }
    for (const auto& [path, session] :
         {std::pair("server", &*streamed), std::pair("shared", &*shared)}) {
      const absl::Status status =
          RunServer(*session, path, bytes, source, effort);
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace tensord::test
