// How kernels are launched.
#pragma once

#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "simt/runtime_types.h"

namespace tensord::simt {

/// Queues a grid in which every thread calls `thread`.
///
/// Errors  as a launch of `kernel` with this configuration gives.
cudaError_t QueueLaunch(const cudaLaunchConfig_t& config, const void* kernel,
                        std::function<void()> thread);

}  // namespace tensord::simt

/// A parameter that is __grid_constant__ is there once, for all GPU threads; of
/// others each gets its own copy.
template <typename... ExpTypes, typename... ActTypes>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config,
                               void (*kernel)(ExpTypes...),
                               ActTypes&&... args) {
  static_assert(sizeof...(ExpTypes) == sizeof...(ActTypes));
  static_assert(
      (std::is_trivially_copyable_v<std::remove_cvref_t<ExpTypes>> && ...),
      "a kernel's parameters travel to the device as bytes");
  if (config == nullptr || kernel == nullptr) return cudaErrorInvalidValue;
  const std::tuple<std::remove_cvref_t<ExpTypes>...> parameters(
      static_cast<ExpTypes>(std::forward<ActTypes>(args))...);
  return ::tensord::simt::QueueLaunch(
      *config, reinterpret_cast<const void*>(kernel),
      [kernel, parameters] { std::apply(kernel, parameters); });
}
