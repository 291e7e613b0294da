// Files in memory, as clients bring them, good and bad.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "server/shared_memory/local_socket.h"

namespace tensord::testing {

struct MemoryFileOptions {
  int64_t bytes = 4096;
  int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  bool is_allocated = true;
};

/// A descriptor of one.
inline shared_memory::Descriptor MemoryFile(
    const MemoryFileOptions& options = {}) {
  shared_memory::Descriptor file(
      memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (options.is_allocated) {
    if (fallocate(file.get(), 0, 0, options.bytes) != 0) return {};
  } else if (ftruncate(file.get(), options.bytes) != 0) {
    return {};
  }
  if (fcntl(file.get(), F_ADD_SEALS, options.seals) != 0) return {};
  return file;
}

/// Where the same is mapped in the test.
inline std::byte* Mapped(const shared_memory::Descriptor& file, int64_t bytes) {
  return static_cast<std::byte*>(mmap(nullptr, static_cast<size_t>(bytes),
                                      PROT_READ | PROT_WRITE, MAP_SHARED,
                                      file.get(), 0));
}

}  // namespace tensord::testing
