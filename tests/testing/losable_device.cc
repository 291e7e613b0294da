// A module whose one device is lost, for good, once the file exists that
// $TEST_DEVICE_LOSS names: a stand-in for a GPU after an illegal address, or
// for none; with $TEST_OWN_MEMORY, for one whose memory is not the host's.
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/backend/backend_module.h"
#include "core/base/status.h"
#include "tests/testing/stand_in_backend.h"

namespace tensord::testing {
namespace {

class LosableBackend final : public StandInBackend {
 public:
  LosableBackend() {
    info_.name = "cuda:0";
    info_.uses_host_memory = std::getenv("TEST_OWN_MEMORY") == nullptr;
  }
  absl::Status health() const override {
    const char* const file = std::getenv("TEST_DEVICE_LOSS");
    if (file == nullptr || access(file, F_OK) != 0) return absl::OkStatus();
    return core::Error(absl::StatusCode::kUnavailable, "DEVICE_LOST",
                       "cuda:0 is lost");
  }
};

/// None where $TEST_NO_DEVICE is set, as on a machine without a driver.
absl::StatusOr<int> Count() {
  if (std::getenv("TEST_NO_DEVICE") == nullptr) return 1;
  return core::Error(absl::StatusCode::kUnavailable, "CUDA_NOT_AVAILABLE",
                     "there is no driver");
}
absl::StatusOr<std::unique_ptr<core::Backend>> Create(int) {
  return std::make_unique<LosableBackend>();
}

}  // namespace
}  // namespace tensord::testing

extern "C" __attribute__((visibility("default")))
const tensord::core::BackendModule*
tensord_backend_module() {
  static constexpr tensord::core::BackendModule kModule{
      tensord::core::kBackendBuild, &tensord::testing::Count,
      &tensord::testing::Create};
  return &kModule;
}
