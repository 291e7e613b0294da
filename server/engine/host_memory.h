// How much of the host's memory the process may have.
#pragma once

#include <cstdint>
#include <string>

namespace tensord::server {

/// Bytes of memory that the process may use: the machine's, or the least limit
/// of its control groups, of version 1 or 2, if that is less.
///
/// `root` is the root of the file system, another one in tests.
int64_t HostMemoryBytes(const std::string& root = "");

/// How much of `memory_bytes` goes to tensors and workspace unless the operator
/// says otherwise: three quarters. Of host memory so much less that a gibibyte,
/// or half of it, is left for all else that the process keeps there.
int64_t DefaultMemoryLimit(int64_t memory_bytes, bool is_host_memory);

}  // namespace tensord::server
