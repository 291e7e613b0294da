// A device family's way of computing: kernels, memory, streams.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/backend/kernel.h"
#include "core/device/device.h"
#include "core/memory/memory_resource.h"
#include "core/problem/loop_modes.h"
#include "core/view/gather_steps.h"

namespace tensord::core {

template <typename Kernel>
using KernelList = std::vector<std::unique_ptr<const Kernel>>;

/// The kernels of a backend, each list from the most special to the reference
/// kernel, which supports every problem but decompositions of large matrices.
/// GPUs have none of those that factorize and solve.
struct KernelLists {
  KernelList<PermutationKernel> permutation;
  KernelList<ElementwiseKernel> elementwise;
  KernelList<ReductionKernel> reduction;
  KernelList<ContractionKernel> contraction;
  KernelList<FactorizationKernel> factorization;
  KernelList<LinearSolveKernel> linear_solve;
};

inline const auto& KernelsFor(const KernelLists& lists,
                              const PermutationProblem&) {
  return lists.permutation;
}
inline const auto& KernelsFor(const KernelLists& lists,
                              const ElementwiseProblem&) {
  return lists.elementwise;
}
inline const auto& KernelsFor(const KernelLists& lists,
                              const ReductionProblem&) {
  return lists.reduction;
}
inline const auto& KernelsFor(const KernelLists& lists,
                              const ContractionProblem&) {
  return lists.contraction;
}
inline const auto& KernelsFor(const KernelLists& lists,
                              const FactorizationProblem&) {
  return lists.factorization;
}
inline const auto& KernelsFor(const KernelLists& lists,
                              const LinearSolveProblem&) {
  return lists.linear_solve;
}

/// Where a view's elements go, one after the other, in the order of their
/// linear index.
struct GatherOperands {
  const void* storage = nullptr;  // its first element
  void* d = nullptr;
  int element_bytes = 4;                   // 1, 2, 4, 8 or 16
  std::array<std::byte, 16> padding = {};  // an element of it
};

/// The other way round.
struct ScatterOperands {
  const void* a = nullptr;
  void* storage = nullptr;  // its first element
  int element_bytes = 4;    // 1, 2, 4, 8 or 16
};

/// One value, and the elements that are to have it.
struct FillOperands {
  LoopModes<1> modes;                    // Canonical()
  void* d = nullptr;                     // the first of them
  int element_bytes = 4;                 // 1, 2, 4, 8 or 16
  std::array<std::byte, 16> value = {};  // an element of it
};

/// Elements, and where each of them is to go.
struct CopyOperands {
  static constexpr size_t kA = 0, kD = 1;  // LoopMode::strides, of either sign

  LoopModes<2> modes;       // Canonical()
  const void* a = nullptr;  // the first of each
  void* d = nullptr;
  int element_bytes = 4;  // 1, 2, 4, 8 or 16
};

/// Memory of the host that a device reaches by itself, until this goes.
///
/// Lifetime  ends before the memory, and behind all work on it.
class PinnedRange {
 public:
  virtual ~PinnedRange() = default;
};

/// One device.
///
/// Threads  safe for concurrent use.
/// Owner    the Engine; outlives streams, plans and buffers made from it.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual const DeviceInfo& info() const = 0;
  virtual const KernelLists& kernels() const = 0;

  /// The device's memory itself, without pool or limit.
  virtual MemoryResource& memory() = 0;

  /// Host memory that streams copy from and to at full speed.
  virtual MemoryResource& staging_memory() = 0;

  /// Lets kernels and streams of the device reach memory that somebody else has
  /// got, at the addresses that it has for the host. Null where the device's
  /// memory is the host's: they do already.
  ///
  /// Errors  UNIMPLEMENTED, reason HOST_MEMORY_OUT_OF_REACH: the device has
  ///         other addresses for it. RESOURCE_EXHAUSTED. INTERNAL. UNAVAILABLE:
  ///         the device is lost.
  virtual absl::StatusOr<std::unique_ptr<PinnedRange>> Pin(void* /*start*/,
                                                           int64_t /*bytes*/) {
    return nullptr;
  }

  /// OK, or UNAVAILABLE from the moment when the device is lost.
  virtual absl::Status health() const = 0;

  /// Errors  UNAVAILABLE: the device is lost.
  virtual absl::StatusOr<std::unique_ptr<Stream>> CreateStream() = 0;

  /// Queues a copy of the elements that `steps` lead to, and of padding.
  ///
  /// Requires  `stream` is the backend's; d does not overlap the storage.
  /// Lifetime  the operands must outlive the work on `stream`.
  /// Errors    INTERNAL; UNAVAILABLE: the device is lost.
  virtual absl::Status Gather(const GatherSteps& steps,
                              const GatherOperands& operands,
                              Stream& stream) = 0;

  /// Queues a copy to the elements that `steps` lead to; what belongs to
  /// padding is dropped.
  ///
  /// Requires  as Gather(), a in place of d; no two linear indices lead to one
  ///           element.
  /// Lifetime, Errors  as Gather().
  virtual absl::Status Scatter(const GatherSteps& steps,
                               const ScatterOperands& operands,
                               Stream& stream) = 0;

  /// Queues writing a value to every element of a loop nest.
  ///
  /// Requires  `stream` is the backend's.
  /// Lifetime, Errors  as Gather().
  virtual absl::Status Fill(const FillOperands& operands, Stream& stream) = 0;

  /// Queues a copy from one loop nest to another.
  ///
  /// Requires  `stream` is the backend's; the elements of d are distinct, and
  ///           none is an element of a.
  /// Lifetime, Errors  as Gather().
  virtual absl::Status Copy(const CopyOperands& operands, Stream& stream) = 0;
};

}  // namespace tensord::core
