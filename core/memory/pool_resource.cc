#include "core/memory/pool_resource.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <iterator>
#include <utility>

#include "core/base/checked_math.h"
#include "core/base/status.h"

namespace tensord::core {

PoolResource::PoolResource(MemoryResource& upstream, const PoolOptions& options,
                           OnRelease on_release)
    : upstream_(upstream),
      options_(options),
      on_release_(std::move(on_release)) {}

PoolResource::~PoolResource() {
  Trim();
  absl::MutexLock lock(&mutex_);
  assert(large_.slabs.empty() && small_.slabs.empty());
}

absl::StatusOr<void*> PoolResource::Allocate(int64_t bytes) {
  constexpr int64_t kLargest = int64_t{1} << 62;
  if (bytes > kLargest) {
    return ResourceExhausted("MEMORY_LIMIT", "asked for ", bytes,
                             " bytes, more than any device has");
  }
  const int64_t alignment =
      IsLarge(bytes) ? options_.large_alignment : kBufferAlignment;
  const int64_t rounded = RoundUp(bytes, kBufferAlignment);
  const auto take_fit = [&]() -> void* {
    absl::MutexLock lock(&mutex_);
    return ArenaOf(bytes).TakeFit(rounded, alignment);
  };
  if (void* const pointer = take_fit()) return pointer;
  absl::MutexLock growing(&growth_mutex_);
  // Whoever grew it before may have left enough.
  if (void* const pointer = take_fit()) return pointer;
  // A slab to grow by; else one of whole huge pages; else just what is needed,
  // if need be in place of slabs that nobody uses.
  const int64_t growth =
      IsLarge(bytes) ? options_.slab_bytes
                     : std::min(options_.slab_bytes, options_.small_slab_bytes);
  const std::array<int64_t, 3> sizes = {
      std::max(RoundUp(rounded, alignment), growth),
      RoundUp(rounded, alignment), rounded};
  absl::StatusOr<void*> slab;
  int64_t slab_bytes = 0;
  for (const bool released : {false, true}) {
    if (released) ReleaseUnused();
    for (const int64_t size : sizes) {
      slab_bytes = size;
      slab = upstream_.Allocate(slab_bytes);
      if (slab.ok()) break;
    }
    if (slab.ok()) break;
    // Given back meanwhile.
    if (void* const pointer = take_fit()) return pointer;
  }
  absl::MutexLock lock(&mutex_);
  if (!slab.ok()) {
    for (Arena* const arena : {&small_, &large_}) {
      if (void* const pointer = arena->TakeFit(rounded, kBufferAlignment)) {
        return pointer;
      }
    }
    return Error(slab.status().code(), ReasonOf(slab.status()),
                 absl::StrCat(slab.status().message(), "; the pool holds ",
                              large_.free_bytes() + small_.free_bytes(),
                              " more free bytes, in pieces too small"));
  }
  Arena& arena = ArenaOf(bytes);
  const auto start = static_cast<Address>(*slab);
  arena.slabs.emplace(start, Slab{slab_bytes, 0});
  arena.AddFree(start, slab_bytes);
  void* const pointer = arena.TakeFit(rounded, alignment);
  // An upstream whose slabs start elsewhere cannot give the large alignment.
  return pointer != nullptr ? pointer
                            : arena.TakeFit(rounded, kBufferAlignment);
}

void* PoolResource::Arena::TakeFit(int64_t bytes, int64_t alignment) {
  for (auto fit = free_by_size.lower_bound({bytes, nullptr});
       fit != free_by_size.end(); ++fit) {
    const auto [block_bytes, block] = *fit;
    const auto address = reinterpret_cast<int64_t>(block);
    const int64_t skipped = RoundUp(address, alignment) - address;
    if (skipped + bytes > block_bytes) continue;
    RemoveFree(free.find(block));
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
  Arena& arena = small_.Holds(start) ? small_ : large_;
  arena.SlabOf(start)->second.used_bytes -= rounded;
  arena.AddFree(start, rounded);
}

void PoolResource::Arena::AddFree(Address start, int64_t bytes) {
  // Merge with the free neighbours, but never across two slabs.
  const auto slab = SlabOf(start);
  const Address slab_end = slab->first + slab->second.bytes;
  const auto after = free.lower_bound(start);
  if (after != free.begin()) {
    const auto before = std::prev(after);
    if (before->first >= slab->first &&
        before->first + before->second == start) {
      start = before->first;
      bytes += before->second;
      RemoveFree(before);
    }
  }
  if (after != free.end() && after->first < slab_end &&
      after->first == start + bytes) {
    bytes += after->second;
    RemoveFree(after);
  }
  free.emplace(start, bytes);
  free_by_size.emplace(bytes, start);
}

void PoolResource::Arena::RemoveFree(
    std::map<Address, int64_t>::iterator block) {
  free_by_size.erase({block->second, block->first});
  free.erase(block);
}

std::map<PoolResource::Address, PoolResource::Slab>::iterator
PoolResource::Arena::SlabOf(Address address) {
  return std::prev(slabs.upper_bound(address));
}

bool PoolResource::Arena::Holds(Address address) const {
  const auto after = slabs.upper_bound(address);
  if (after == slabs.begin()) return false;
  const auto& [start, slab] = *std::prev(after);
  return address < start + slab.bytes;
}

void PoolResource::Arena::TakeUnused(
    std::vector<std::pair<Address, int64_t>>& unused) {
  for (auto slab = slabs.begin(); slab != slabs.end();) {
    if (slab->second.used_bytes > 0) {
      ++slab;
      continue;
    }
    RemoveFree(free.find(slab->first));
    unused.emplace_back(slab->first, slab->second.bytes);
    slab = slabs.erase(slab);
  }
}

int64_t PoolResource::Arena::free_bytes() const {
  int64_t bytes = 0;
  for (const auto& [start, size] : free) bytes += size;
  return bytes;
}

void PoolResource::ReleaseUnused() {
  std::vector<std::pair<Address, int64_t>> unused;
  {
    absl::MutexLock lock(&mutex_);
    large_.TakeUnused(unused);
    small_.TakeUnused(unused);
  }
  for (const auto& [slab, bytes] : unused) {
    if (on_release_) on_release_(slab, bytes);
    upstream_.Deallocate(slab, bytes);
  }
}

absl::Status PoolResource::Charge(int64_t bytes) {
  absl::MutexLock growing(&growth_mutex_);
  if (upstream_.Charge(bytes).ok()) return absl::OkStatus();
  ReleaseUnused();
  return upstream_.Charge(bytes);
}

void PoolResource::Trim() {
  absl::MutexLock growing(&growth_mutex_);
  ReleaseUnused();
}

int64_t PoolResource::reserved_bytes() const {
  absl::MutexLock lock(&mutex_);
  int64_t bytes = 0;
  for (const Arena* arena : {&large_, &small_}) {
    for (const auto& [start, slab] : arena->slabs) bytes += slab.bytes;
  }
  return bytes;
}

}  // namespace tensord::core
