// Stands in for NVIDIA's header of this name in tests: asynchronous copies from
// global to shared memory. A copy happens when it is waited for and not before,
// so that a forgotten wait leaves wrong values.
//
// Errors  reports, and does not return: sizes other than 4, 8 and 16, addresses
//         that are not aligned to the size, a destination outside the block's
//         shared memory.
#pragma once

#include <cstddef>
#include <cstring>

#include "simt/threads.h"

namespace tensord::simt {

struct AsyncCopy {
  void* destination;
  const void* source;
  unsigned bytes;
  unsigned zero_bytes;  // at the end, not read but cleared
  unsigned batch;
};

void QueueAsyncCopy(const AsyncCopy& copy, Location where);
void CommitAsyncCopies();

/// Takes the oldest copy of all but the last `prior` batches off the calling
/// thread's queue. Returns false when there is none.
bool TakeAsyncCopy(size_t prior, AsyncCopy& copy);

}  // namespace tensord::simt

inline void __pipeline_memcpy_async(void* dst_shared, const void* src_global,
                                    size_t size_and_align, size_t zfill = 0,
                                    TENSORD_SIMT_WHERE) {
  ::tensord::simt::QueueAsyncCopy(
      {dst_shared, src_global, static_cast<unsigned>(size_and_align),
       static_cast<unsigned>(zfill), 0},
      where);
}

inline void __pipeline_commit() { ::tensord::simt::CommitAsyncCopies(); }

inline void __pipeline_wait_prior(size_t prior) {
  ::tensord::simt::AsyncCopy copy;
  while (::tensord::simt::TakeAsyncCopy(prior, copy)) {
    auto* const destination = static_cast<unsigned char*>(copy.destination);
    const auto* const source = static_cast<const unsigned char*>(copy.source);
    const unsigned read_bytes = copy.bytes - copy.zero_bytes;
    std::memcpy(destination, source, read_bytes);
    std::memset(destination + read_bytes, 0, copy.zero_bytes);
  }
}
