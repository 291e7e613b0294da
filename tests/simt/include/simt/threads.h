// The threads of a block: who a thread is, and barriers among all of them.
#pragma once

#include "simt/location.h"
#include "simt/vector_types.h"

extern constinit thread_local uint3 threadIdx;
extern constinit thread_local uint3 blockIdx;
extern constinit thread_local dim3 blockDim;
extern constinit thread_local dim3 gridDim;
extern const int warpSize;

namespace tensord::simt {

enum class Barrier { kPlain, kOr, kAnd, kCount };

/// Waits for all threads of the block and combines their predicates.
///
/// Errors  reports, and does not return, when the block's threads are at
///         different barriers or some have ended (stricter than the hardware).
int BlockBarrier(Barrier kind, int predicate, Location where);

/// What the calling thread wrote so far is there for whoever sees its next
/// atomic operation.
void Fence();

}  // namespace tensord::simt

#define TENSORD_SIMT_WHERE \
  ::tensord::simt::Location where = ::tensord::simt::Location::Current()

inline void __syncthreads(TENSORD_SIMT_WHERE) {
  ::tensord::simt::BlockBarrier(::tensord::simt::Barrier::kPlain, 0, where);
}
inline int __syncthreads_or(int predicate, TENSORD_SIMT_WHERE) {
  return ::tensord::simt::BlockBarrier(::tensord::simt::Barrier::kOr, predicate,
                                       where);
}
inline int __syncthreads_and(int predicate, TENSORD_SIMT_WHERE) {
  return ::tensord::simt::BlockBarrier(::tensord::simt::Barrier::kAnd,
                                       predicate, where);
}
inline int __syncthreads_count(int predicate, TENSORD_SIMT_WHERE) {
  return ::tensord::simt::BlockBarrier(::tensord::simt::Barrier::kCount,
                                       predicate, where);
}

inline void __threadfence() { ::tensord::simt::Fence(); }
/// Orders nothing here: within a block only barriers do.
inline void __threadfence_block() {}
