// Tests that link this run on the CPU.
#include "tests/testing/in_process_server.h"

namespace tensord::testing {

void SelectDevices(server::EngineOptions& options) {
  options.devices = *server::ParseDevices("cpu");
}

}  // namespace tensord::testing
