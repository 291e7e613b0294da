#include "core/backend/cuda/cuda_backend.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/backend/cuda/along/along_kernels.h"
#include "core/backend/cuda/contraction/contraction_kernels.h"
#include "core/backend/cuda/cuda_device.h"
#include "core/backend/cuda/cuda_memory.h"
#include "core/backend/cuda/cuda_stream.h"
#include "core/backend/cuda/elementwise/elementwise_kernels.h"
#include "core/backend/cuda/gemm/gemm_kernels.h"
#include "core/backend/cuda/gpu_model.h"
#include "core/backend/cuda/kernel/gather/gather_task.h"
#include "core/backend/cuda/matrix/factorization_kernels.h"
#include "core/backend/cuda/matrix/linear_solve.h"
#include "core/backend/cuda/nests.h"
#include "core/backend/cuda/parts/kernels_in_parts.h"
#include "core/backend/cuda/permutation_kernels.h"
#include "core/backend/cuda/reduction_kernels.h"
#include "core/base/status.h"

namespace tensord::core {
namespace {

// Kernels are built for this architecture and later ones.
constexpr int kLeastMajor = 8;

absl::Status Unavailable(absl::string_view reason, absl::string_view message) {
  return Error(absl::StatusCode::kUnavailable, reason, message);
}

std::string Version(int number) {
  return absl::StrCat(number / 1000, ".", number % 1000 / 10);
}

int Attribute(int ordinal, cudaDeviceAttr attribute) {
  int value = 0;
  // Attributes that a driver does not know stay 0.
  if (cudaDeviceGetAttribute(&value, attribute, ordinal) != cudaSuccess) {
    cudaGetLastError();
  }
  return value;
}

/// Architectures 8.0, 9.0 and 10.0 are those of data centres: the CUDA
/// programming guide's table of arithmetic throughput.
bool IsDataCenter(const cudaDeviceProp& properties) {
  return properties.minor == 0 && properties.major <= 10;
}

/// The GPUs whose memory this one can access, e.g. "cuda:1 cuda:2".
std::string PeersOf(int ordinal, int device_count) {
  std::vector<std::string> peers;
  for (int other = 0; other < device_count; ++other) {
    int can_access = 0;
    if (other == ordinal) continue;
    if (cudaDeviceCanAccessPeer(&can_access, ordinal, other) != cudaSuccess) {
      cudaGetLastError();
    }
    if (can_access != 0) peers.push_back(absl::StrCat("cuda:", other));
  }
  return peers.empty() ? "none" : absl::StrJoin(peers, " ");
}

cuda::MaybeGemmLibrary FindGemmLibrary(CudaDevice& device) {
  TENSORD_ASSIGN_OR_RETURN(const cuda::CublasLt library, cuda::FindCublasLt());
  return cuda::GemmLibrary::Create(device, library);
}

/// The same; why there is none is said as kernels refuse.
cuda::MaybeGemmLibrary OpenGemmLibrary(CudaDevice& device) {
  cuda::MaybeGemmLibrary library = FindGemmLibrary(device);
  if (library.ok()) return library;
  return Unimplemented(ReasonOf(library.status()), library.status().message());
}

cuda::MaybeSolverLibrary OpenSolverLibrary(CudaDevice& device) {
  const absl::StatusOr<cuda::Cusolver> cusolver = cuda::FindCusolver();
  const absl::StatusOr<cuda::Cublas> cublas = cuda::FindCublas();
  if (cusolver.ok() && cublas.ok()) {
    return std::make_unique<cuda::SolverLibrary>(device, *cusolver, *cublas);
  }
  const absl::Status& why = cusolver.ok() ? cublas.status() : cusolver.status();
  return Unimplemented(ReasonOf(why), why.message());
}

/// Its version, or why there is none.
template <typename Library>
std::string VersionOf(const absl::StatusOr<Library>& library) {
  return library.ok() ? (*library)->version()
                      : std::string(library.status().message());
}

/// Bytes a nanosecond: both edges of the memory's clock, read and written.
double PeakBandwidth(int ordinal, const cudaDeviceProp& properties) {
  return 2.0 * Attribute(ordinal, cudaDevAttrMemoryClockRate) * 1e-6 *
         properties.memoryBusWidth / 8;
}

DeviceInfo InfoOf(const CudaDevice& device, int device_count,
                  const cudaDeviceProp& properties,
                  const cuda::MaybeGemmLibrary& gemm,
                  const cuda::MaybeSolverLibrary& solver) {
  int driver = 0;
  int runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  return {
      .name = device.name(),
      .kind = "cuda",
      .model = properties.name,
      .architecture = absl::StrCat("sm_", properties.major, properties.minor),
      .thread_count = properties.multiProcessorCount,
      .memory_bytes = static_cast<int64_t>(properties.totalGlobalMem),
      .uses_host_memory = false,
      .is_asynchronous = true,
      .properties = {{"driver", Version(driver)},
                     {"runtime", Version(runtime)},
                     {"pci_bus", absl::StrCat(properties.pciDomainID, ":",
                                              properties.pciBusID, ":",
                                              properties.pciDeviceID)},
                     {"peak_memory_gb_per_s",
                      absl::StrCat(static_cast<int64_t>(
                          PeakBandwidth(device.ordinal(), properties)))},
                     {"peer_access", PeersOf(device.ordinal(), device_count)},
                     {"cublaslt", VersionOf(gemm)},
                     {"cusolver", VersionOf(solver)}}};
}

cuda::GpuModel ModelOf(int ordinal, const cudaDeviceProp& properties) {
  const cuda::ArchitectureProducts products =
      cuda::ProductsOf(properties.major, IsDataCenter(properties));
  return {
      .multiprocessor_count = properties.multiProcessorCount,
      .shared_bytes_per_multiprocessor =
          Attribute(ordinal, cudaDevAttrMaxSharedMemoryPerMultiprocessor),
      .memory_bytes_per_ns = std::max(PeakBandwidth(ordinal, properties), 1.0),
      .clock_ghz =
          std::max(1e-6 * Attribute(ordinal, cudaDevAttrClockRate), 0.1),
      .float32_products_per_cycle = products.float32,
      .float64_products_per_cycle = products.float64,
      .tensor_float16_products_per_cycle = products.tensor_float16,
      .tensor_tf32_products_per_cycle = products.tensor_tf32,
      .tensor_float64_products_per_cycle = products.tensor_float64,
      .cycles = cuda::CyclesOf(properties.major)};
}

void AddContractions(const cuda::GpuModel& model,
                     const cuda::MaybeGemmLibrary& gemm, KernelLists& lists) {
  using enum cuda::DirectTile;
  auto& list = lists.contraction;
  list.push_back(cuda::CreateElementwiseContraction(lists));
  for (int rank = 0; rank < cuda::GemmLibrary::kMostAlgorithms; ++rank) {
    list.push_back(cuda::CreateGemmContraction(model, gemm, rank));
  }
  list.push_back(cuda::CreateGemmWithoutWorkspace(model, gemm));
  list.push_back(cuda::CreatePermutedGemmContraction(model, gemm, lists));
  list.push_back(cuda::CreateSplitGemmContraction(model, gemm, lists));
  for (const bool splits : {false, true}) {
    for (const auto tile : {kLarge, kSquare, kTall, kTall24, kDeep}) {
      list.push_back(cuda::CreateDirectContraction(model, tile, splits));
    }
  }
  for (const int64_t micro : {1, 4}) {
    list.push_back(cuda::CreateThreadsContraction(model, micro));
  }
  list.push_back(cuda::CreateReferenceContraction(model));
}

void AddMatrixKernels(const cuda::MaybeSolverLibrary& solver,
                      KernelLists& lists) {
  auto& list = lists.factorization;
  list.push_back(cuda::CreateQr(solver, lists));
  list.push_back(cuda::CreateJacobiSvd(solver, lists));
  list.push_back(cuda::CreateSvd(solver, lists));
  list.push_back(cuda::CreateJacobiEigh(solver, lists));
  list.push_back(cuda::CreateEigh(solver, lists));
  list.push_back(cuda::CreateCholesky(solver, lists));
  lists.linear_solve.push_back(cuda::CreateBatchedSolve(solver, lists));
  lists.linear_solve.push_back(cuda::CreateSolve(solver, lists));
}

/// Adds the kernels, each list in order; contractions and factorizations are
/// made of the others.
void AddKernels(const cuda::GpuModel& model, CudaDevice& device,
                const cuda::MaybeGemmLibrary& gemm,
                const cuda::MaybeSolverLibrary& solver, KernelLists& lists) {
  lists.permutation.push_back(cuda::CreateTrivialPermutation(model));
  lists.permutation.push_back(cuda::CreateTiledPermutation(model));
  lists.permutation.push_back(cuda::CreateTiledCopyPermutation(model));
  lists.permutation.push_back(cuda::CreateRunsPermutation(model));
  lists.permutation.push_back(cuda::CreatePackedPermutation(model, &device));
  lists.permutation.push_back(
      cuda::CreatePackedSplitPermutation(model, &device));
  lists.permutation.push_back(cuda::CreateReferencePermutation(model));
  lists.elementwise.push_back(cuda::CreateFusedElementwise(model));
  lists.elementwise.push_back(cuda::CreateTiledElementwise(model));
  lists.elementwise.push_back(cuda::CreateTakeElementwise(model));
  lists.elementwise.push_back(cuda::CreateReferenceElementwise(model));
  lists.reduction.push_back(cuda::CreateTreeReduction(model));
  lists.reduction.push_back(cuda::CreateScanReduction(model));
  lists.reduction.push_back(cuda::CreateSortReduction(model));
  lists.reduction.push_back(cuda::CreateReferenceReduction(model));
  AddContractions(model, gemm, lists);
  AddMatrixKernels(solver, lists);
}

class CudaBackend final : public Backend {
 public:
  CudaBackend(int ordinal, int device_count, const cudaDeviceProp& properties,
              const cuda::PartLimits& limits)
      : device_(ordinal),
        memory_(device_),
        staging_memory_(device_),
        gemm_(OpenGemmLibrary(device_)),
        solver_(OpenSolverLibrary(device_)),
        info_(InfoOf(device_, device_count, properties, gemm_, solver_)) {
    AddKernels(ModelOf(ordinal, properties), device_, gemm_, solver_, kernels_);
    kernels_ = cuda::InParts(std::move(kernels_), limits);
  }

  const DeviceInfo& info() const override { return info_; }
  const KernelLists& kernels() const override { return kernels_; }
  MemoryResource& memory() override { return memory_; }
  MemoryResource& staging_memory() override { return staging_memory_; }
  absl::Status health() const override { return device_.health(); }

  absl::StatusOr<std::unique_ptr<PinnedRange>> Pin(void* start,
                                                   int64_t bytes) override {
    return PinHostMemory(device_, start, bytes);
  }

  absl::StatusOr<std::unique_ptr<Stream>> CreateStream() override {
    return CudaStream::Create(device_);
  }

  absl::Status Gather(const GatherSteps& steps, const GatherOperands& operands,
                      Stream& stream) override {
    TENSORD_RETURN_IF_ERROR(device_.Select());
    if (steps.element_count == 0) return absl::OkStatus();
    cuda::GatherTask task{.steps = steps,
                          .storage = operands.storage,
                          .d = operands.d,
                          .element_bytes = operands.element_bytes,
                          .padding = {}};
    std::memcpy(task.padding, operands.padding.data(), sizeof(task.padding));
    return device_.Check(cuda::QueueGather(task, AsCuda(stream).get()),
                         "launching cuda.gather");
  }

  absl::Status Scatter(const GatherSteps& steps,
                       const ScatterOperands& operands,
                       Stream& stream) override {
    TENSORD_RETURN_IF_ERROR(device_.Select());
    if (steps.element_count == 0) return absl::OkStatus();
    const cuda::ScatterTask task{.steps = steps,
                                 .a = operands.a,
                                 .storage = operands.storage,
                                 .element_bytes = operands.element_bytes};
    return device_.Check(cuda::QueueScatter(task, AsCuda(stream).get()),
                         "launching cuda.scatter");
  }

  absl::Status Fill(const FillOperands& operands, Stream& stream) override {
    TENSORD_RETURN_IF_ERROR(device_.Select());
    for (const cuda::FillTask& task : cuda::TasksOf(operands)) {
      TENSORD_RETURN_IF_ERROR(device_.Check(
          cuda::QueueFill(task, AsCuda(stream).get()), "launching cuda.fill"));
    }
    return absl::OkStatus();
  }

  absl::Status Copy(const CopyOperands& operands, Stream& stream) override {
    TENSORD_RETURN_IF_ERROR(device_.Select());
    for (const cuda::CopyTask& task : cuda::TasksOf(operands)) {
      TENSORD_RETURN_IF_ERROR(device_.Check(
          cuda::QueueCopy(task, AsCuda(stream).get()), "launching cuda.copy"));
    }
    return absl::OkStatus();
  }

 private:
  CudaDevice device_;
  CudaMemory memory_;
  PinnedMemory staging_memory_;
  const cuda::MaybeGemmLibrary gemm_;
  const cuda::MaybeSolverLibrary solver_;
  const DeviceInfo info_;
  KernelLists kernels_;
};

}  // namespace

absl::StatusOr<int> CountCudaDevices() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaErrorInsufficientDriver || error == cudaErrorNoDevice) {
    cudaGetLastError();
    return Unavailable("NO_CUDA_DEVICE",
                       error == cudaErrorNoDevice
                           ? "the CUDA driver finds no device"
                           : "there is no CUDA driver, or one that is too old");
  }
  if (error != cudaSuccess) {
    cudaGetLastError();
    return Unavailable(
        "CUDA_UNAVAILABLE",
        absl::StrCat("CUDA cannot be used: ", cudaGetErrorString(error)));
  }
  if (count == 0) {
    return Unavailable("NO_CUDA_DEVICE", "the CUDA driver finds no device");
  }
  return count;
}

absl::StatusOr<std::unique_ptr<Backend>> CreateCudaBackend(int ordinal) {
  return CreateCudaBackend(ordinal, cuda::PartLimits());
}

absl::StatusOr<std::unique_ptr<Backend>> CreateCudaBackend(
    int ordinal, const cuda::PartLimits& limits) {
  TENSORD_ASSIGN_OR_RETURN(const int count, CountCudaDevices());
  if (ordinal < 0 || ordinal >= count) {
    return Unavailable(
        "NO_CUDA_DEVICE",
        absl::StrCat("there is no cuda:", ordinal, ", the node has ", count,
                     " CUDA devices, counted from 0"));
  }
  cudaDeviceProp properties;
  const cudaError_t error = cudaGetDeviceProperties(&properties, ordinal);
  if (error != cudaSuccess) {
    cudaGetLastError();
    return Unavailable("CUDA_UNAVAILABLE",
                       absl::StrCat("cuda:", ordinal, " cannot be used: ",
                                    cudaGetErrorString(error)));
  }
  if (properties.major < kLeastMajor) {
    return Unavailable(
        "CUDA_DEVICE_TOO_OLD",
        absl::StrCat("cuda:", ordinal, " has compute capability ",
                     properties.major, ".", properties.minor, ", wanted ",
                     kLeastMajor, ".0 or later"));
  }
  return std::make_unique<CudaBackend>(ordinal, count, properties, limits);
}

}  // namespace tensord::core
