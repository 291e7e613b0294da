// What the headers under include/ call on behalf of the running GPU thread.
#include "tests/simt/grid/block_runner.h"

namespace tensord::simt {

int BlockBarrier(Barrier kind, int predicate, Location where) {
  return BlockRunner::Current().Synchronize(kind, predicate, where);
}

void Fence() { BlockRunner::Current().Fence(); }

void* BlockSharedMemory() { return BlockRunner::Current().shared_memory(); }

uint64_t WarpCollective(Collective collective, unsigned mask, uint64_t value,
                        int source_lane, Location where) {
  return BlockRunner::Current().Collect(collective, mask, value, source_lane,
                                        where);
}

int LaneOfWidth(int width, Location where) {
  BlockRunner& runner = BlockRunner::Current();
  if (width < 1 || width > 32 || (width & (width - 1)) != 0) {
    runner.Fail("a shuffle's width is a power of two up to 32", where);
  }
  return runner.lane();
}

void Misaligned(const void* /*address*/, size_t alignment, Location where) {
  BlockRunner& runner = BlockRunner::Current();
  const char* const what =
      alignment == 16  ? "address is not aligned to 16 bytes"
      : alignment == 8 ? "address is not aligned to 8 bytes"
      : alignment == 4 ? "address is not aligned to 4 bytes"
                       : "address is not aligned to 2 bytes";
  runner.Fail(what, where, cudaErrorMisalignedAddress);
}

// An atomic operation sees what others made visible with a fence before theirs.
void BeforeAtomic(void* address) {
  if (BlockRunner::Current().HasFenced()) tsan::Release(address);
}
void AfterAtomic(void* address) { tsan::Acquire(address); }

void QueueAsyncCopy(const AsyncCopy& copy, Location where) {
  BlockRunner::Current().QueueCopy(copy, where);
}
void CommitAsyncCopies() { BlockRunner::Current().CommitCopies(); }
bool TakeAsyncCopy(size_t prior, AsyncCopy& copy) {
  return BlockRunner::Current().TakeCopy(prior, copy);
}

}  // namespace tensord::simt
