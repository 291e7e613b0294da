// How much of the host's memory the process may have.
#pragma once

#include <cstdint>
#include <string>

namespace tensord::server {

/// Bytes of memory that the process may use: the machine's or, if that is less,
/// what the control groups that it is in have as their limit, of version 1
/// or 2.
///
/// `root` is the root of the file system, another one in tests.
int64_t HostMemoryBytes(const std::string& root = "");

/// How much of `memory_bytes` goes to tensors and workspace unless the operator
/// says otherwise: three quarters, and of host memory no more than leaves a
/// gibibyte, or half, to all else that the process keeps there.
int64_t DefaultMemoryLimit(int64_t memory_bytes, bool is_host_memory);

}  // namespace tensord::server
