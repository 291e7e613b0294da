// The dynamic shared memory of the running block.
#pragma once

namespace tensord::simt {

/// Aligned to 16 bytes and, on purpose, to no more. Undefined contents.
void* BlockSharedMemory();

}  // namespace tensord::simt

namespace tensord::core {

/// What the product's own function of this name is under nvcc.
inline void* SharedMemory() { return simt::BlockSharedMemory(); }

}  // namespace tensord::core
