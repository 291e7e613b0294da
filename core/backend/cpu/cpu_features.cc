#include "core/backend/cpu/cpu_features.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "hwy/highway.h"

namespace tensord::core {

CpuFeatures DetectCpuFeatures() {
  CpuFeatures features;
#if defined(__x86_64__)
  __builtin_cpu_init();
  features.avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  features.avx512 =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd");
  features.avx512_bf16 =
      features.avx512 && __builtin_cpu_supports("avx512bf16");
#endif
  return features;
}

std::string CpuModelName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    absl::string_view rest = line;
    if (!absl::ConsumePrefix(&rest, "model name")) continue;
    return std::string(
        absl::StripLeadingAsciiWhitespace(rest.substr(rest.find(':') + 1)));
  }
  return "unknown";
}

std::string SimdTargetName() {
  // Better targets have lower bits.
  const auto targets = hwy::SupportedTargets();
  return hwy::TargetName(targets & -targets);
}

int AllowedCoreCount() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof(cores), &cores) == 0) {
    return std::max(1, CPU_COUNT(&cores));
  }
  return std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
}

}  // namespace tensord::core
