// Host addresses among the parameters of a kernel.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "cuda_runtime.h"
#include "tests/simt/node_memory.h"

namespace tensord::simt {

/// Says which parameter holds the address of host memory that no device can
/// reach, if one does. Here such a kernel would run; on a device it would not.
///
/// An address is a word, at the alignment of one, that points to readable
/// memory; so unused parts of a parameter are to be initialised.
std::optional<std::string> FindHostAddress(
    std::span<const KernelParameter> parameters, const NodeMemory& memory);

}  // namespace tensord::simt
