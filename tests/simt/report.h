// Rules that a kernel, or the host code around it, broke.
#pragma once

#include <string>

#include "cuda_runtime_api.h"

namespace tensord::simt {

struct Violation {
  std::string text;
  cudaError_t error;  // what the device would say
};

/// Hands `text` to the living ReportCapture; without one, ends the process.
void Report(const std::string& text);

}  // namespace tensord::simt
