#include "core/memory/pool_resource.h"

#include <algorithm>
#include <cassert>
#include <iterator>

#include "core/base/checked_math.h"
#include "core/base/status.h"

namespace tensord::core {

PoolResource::PoolResource(MemoryResource& upstream, const PoolOptions& options)
    : upstream_(upstream), options_(options) {}

PoolResource::~PoolResource() {
  Trim();
  absl::MutexLock lock(&mutex_);
  assert(slabs_.empty());
}

absl::StatusOr<void*> PoolResource::Allocate(int64_t bytes) {
  constexpr int64_t kLargest = int64_t{1} << 62;
  if (bytes > kLargest) {
    return ResourceExhausted("MEMORY_LIMIT", "asked for ", bytes,
                             " bytes, more than any device has");
  }
  const bool large = bytes >= options_.large_alignment;
  const int64_t alignment = large ? options_.large_alignment : kBufferAlignment;
  const int64_t rounded = RoundUp(bytes, kBufferAlignment);
  absl::MutexLock lock(&mutex_);
  if (void* const pointer = TakeFit(rounded, alignment)) return pointer;
  // Whole slabs keep the alignment of large requests for their successors.
  const int64_t exact = RoundUp(rounded, alignment);
  int64_t slab_bytes = std::max(exact, options_.slab_bytes);
  absl::StatusOr<void*> slab = upstream_.Allocate(slab_bytes);
  if (!slab.ok() && slab_bytes > exact) {
    slab_bytes = exact;
    slab = upstream_.Allocate(slab_bytes);
  }
  if (!slab.ok()) {
    ReleaseUnused();
    slab = upstream_.Allocate(slab_bytes);
  }
  if (!slab.ok()) {
    int64_t free_bytes = 0;
    for (const auto& [start, size] : free_) free_bytes += size;
    return Error(
        slab.status().code(), ReasonOf(slab.status()),
        absl::StrCat(slab.status().message(), "; the pool holds ", free_bytes,
                     " more free bytes, in pieces too small"));
  }
  const auto start = static_cast<Address>(*slab);
  slabs_.emplace(start, Slab{slab_bytes, 0});
  AddFree(start, slab_bytes);
  void* const pointer = TakeFit(rounded, alignment);
  // An upstream whose slabs start elsewhere cannot give the large alignment.
  return pointer != nullptr ? pointer : TakeFit(rounded, kBufferAlignment);
}

void* PoolResource::TakeFit(int64_t bytes, int64_t alignment) {
  for (auto fit = free_by_size_.lower_bound({bytes, nullptr});
       fit != free_by_size_.end(); ++fit) {
    const auto [block_bytes, block] = *fit;
    const auto address = reinterpret_cast<int64_t>(block);
    const int64_t skipped = RoundUp(address, alignment) - address;
    if (skipped + bytes > block_bytes) continue;
    RemoveFree(free_.find(block));
    const Address start = block + skipped;
    if (skipped > 0) AddFree(block, skipped);
    if (const int64_t rest = block_bytes - skipped - bytes; rest > 0) {
      AddFree(start + bytes, rest);
    }
    SlabOf(start)->second.used_bytes += bytes;
    return start;
  }
  return nullptr;
}

void PoolResource::Deallocate(void* pointer, int64_t bytes) {
  const auto start = static_cast<Address>(pointer);
  const int64_t rounded = RoundUp(bytes, kBufferAlignment);
  absl::MutexLock lock(&mutex_);
  SlabOf(start)->second.used_bytes -= rounded;
  AddFree(start, rounded);
}

void PoolResource::AddFree(Address start, int64_t bytes) {
  // Merge with the free neighbours, but never across two slabs.
  const auto slab = SlabOf(start);
  const Address slab_end = slab->first + slab->second.bytes;
  const auto after = free_.lower_bound(start);
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first >= slab->first &&
        before->first + before->second == start) {
      start = before->first;
      bytes += before->second;
      RemoveFree(before);
    }
  }
  if (after != free_.end() && after->first < slab_end &&
      after->first == start + bytes) {
    bytes += after->second;
    RemoveFree(after);
  }
  free_.emplace(start, bytes);
  free_by_size_.emplace(bytes, start);
}

void PoolResource::RemoveFree(std::map<Address, int64_t>::iterator block) {
  free_by_size_.erase({block->second, block->first});
  free_.erase(block);
}

std::map<PoolResource::Address, PoolResource::Slab>::iterator
PoolResource::SlabOf(Address address) {
  return std::prev(slabs_.upper_bound(address));
}

void PoolResource::ReleaseUnused() {
  for (auto slab = slabs_.begin(); slab != slabs_.end();) {
    if (slab->second.used_bytes > 0) {
      ++slab;
      continue;
    }
    RemoveFree(free_.find(slab->first));
    upstream_.Deallocate(slab->first, slab->second.bytes);
    slab = slabs_.erase(slab);
  }
}

void PoolResource::Trim() {
  absl::MutexLock lock(&mutex_);
  ReleaseUnused();
}

int64_t PoolResource::reserved_bytes() const {
  absl::MutexLock lock(&mutex_);
  int64_t bytes = 0;
  for (const auto& [start, slab] : slabs_) bytes += slab.bytes;
  return bytes;
}

}  // namespace tensord::core
