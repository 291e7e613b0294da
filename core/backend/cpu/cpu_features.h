// What the machine under the CPU backend is and can do.
#pragma once

#include <string>

namespace tensord::core {

/// Instruction sets that the CPU has and the operating system lets us use.
struct CpuFeatures {
  bool avx2 = false;         // with FMA
  bool avx512 = false;       // F, DQ, BW, VL and CD
  bool avx512_bf16 = false;  // on top of avx512
};

/// What the CPU itself reports; never guessed from its name.
CpuFeatures DetectCpuFeatures();

/// The name that the CPU gives itself, e.g. "AMD EPYC 9B45"; "unknown" when it
/// gives none.
std::string CpuModelName();

/// The widest instruction set that the SIMD kernels can use here, as Highway
/// names it, e.g. "AVX3_ZEN4".
std::string SimdTargetName();

/// Cores that this process may run on; at least 1.
int AllowedCoreCount();

}  // namespace tensord::core
