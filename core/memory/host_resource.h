// The machine's own memory.
#pragma once

#include <cstdint>

#include "core/memory/memory_resource.h"

namespace tensord::core {

/// Memory of the machine.
int64_t HostMemoryBytes();

/// Memory from the operating system. Allocations of 2 MiB and more start at a
/// multiple of 2 MiB and ask for huge pages; pages are touched when they are
/// first used, which costs several times a copy, so put a pool on top.
class HostResource final : public MemoryResource {
 public:
  absl::StatusOr<void*> Allocate(int64_t bytes) override;
  void Deallocate(void* pointer, int64_t bytes) override;
  absl::Status Clear(void* pointer, int64_t bytes) override;
};

}  // namespace tensord::core
