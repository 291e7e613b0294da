#include "core/backend/cuda/cuda_module.h"

#include "core/backend/cuda/cuda_backend.h"

const tensord::core::BackendModule* tensord_backend_module() {
  static constexpr tensord::core::BackendModule kModule{
      .build = tensord::core::kBackendBuild,
      .count_devices = &tensord::core::CountCudaDevices,
      .create = &tensord::core::CreateCudaBackend};
  return &kModule;
}
