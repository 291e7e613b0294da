#include "tests/simt/node/node_memory.h"

#include <cstdlib>
#include <cstring>
#include <iterator>

#include "tests/simt/sanitizers.h"

namespace tensord::simt {
namespace {

constexpr size_t kAlignment = 256;  // cudaMalloc's
constexpr int kFreshMemory = 0xCD;
constexpr int kFreedMemory = 0xDD;

void* AllocateFilled(size_t bytes) {
  void* memory = nullptr;
  if (posix_memalign(&memory, kAlignment, bytes) != 0) std::abort();
  std::memset(memory, kFreshMemory, bytes);
  return memory;
}

void FreeFilled(void* memory, size_t bytes) {
  asan::Unpoison(memory, bytes);
  std::memset(memory, kFreedMemory, bytes);
  std::free(memory);
}

uintptr_t AddressOf(const void* memory) {
  return reinterpret_cast<uintptr_t>(memory);
}

void* PointerTo(uintptr_t address) { return reinterpret_cast<void*>(address); }

/// Whether any range, of so many bytes from its address on, has some of those.
bool Overlaps(const std::map<uintptr_t, size_t>& ranges, uintptr_t address,
              size_t bytes) {
  const auto next = ranges.lower_bound(address + bytes);
  if (next == ranges.begin()) return false;
  const auto& [begin, range_bytes] = *std::prev(next);
  return address < begin + range_bytes;
}

}  // namespace

NodeMemory::~NodeMemory() { Reset(0, 0); }

void NodeMemory::Reset(int device_count, int64_t bytes_per_device) {
  for (const auto& [address, allocation] : on_devices_) {
    FreeFilled(PointerTo(address), allocation.bytes);
  }
  for (const auto& [address, bytes] : on_host_) {
    FreeFilled(PointerTo(address), bytes);
  }
  on_devices_.clear();
  on_host_.clear();
  registered_.clear();
  bytes_per_device_ = bytes_per_device;
  in_use_.assign(static_cast<size_t>(device_count), 0);
  exposure_count_.assign(static_cast<size_t>(device_count), 0);
}

void* NodeMemory::AllocateOnDevice(int device, size_t bytes) {
  if (bytes > static_cast<uint64_t>(bytes_per_device_ - in_use_[device])) {
    return nullptr;
  }
  void* const memory = AllocateFilled(bytes);
  on_devices_[AddressOf(memory)] = {bytes, device};
  in_use_[device] += static_cast<int64_t>(bytes);
  if (exposure_count_[device] == 0) asan::Poison(memory, bytes);
  return memory;
}

void* NodeMemory::AllocateOnHost(size_t bytes) {
  void* const memory = AllocateFilled(bytes);
  on_host_[AddressOf(memory)] = bytes;
  return memory;
}

std::optional<int> NodeMemory::DeviceOf(const void* memory) const {
  const auto found = on_devices_.find(AddressOf(memory));
  if (found == on_devices_.end()) return std::nullopt;
  return found->second.device;
}

std::optional<size_t> NodeMemory::PinnedBytes(const void* memory) const {
  const auto found = on_host_.find(AddressOf(memory));
  if (found == on_host_.end()) return std::nullopt;
  return found->second;
}

bool NodeMemory::IsPinned(const void* memory) const {
  const uintptr_t address = AddressOf(memory);
  return Overlaps(on_host_, address, 1) || Overlaps(registered_, address, 1);
}

bool NodeMemory::Register(const void* memory, size_t bytes) {
  const uintptr_t address = AddressOf(memory);
  if (Overlaps(on_host_, address, bytes) ||
      Overlaps(registered_, address, bytes)) {
    return false;
  }
  registered_[address] = bytes;
  return true;
}

std::optional<size_t> NodeMemory::RegisteredBytes(const void* memory) const {
  const auto found = registered_.find(AddressOf(memory));
  if (found == registered_.end()) return std::nullopt;
  return found->second;
}

void NodeMemory::Unregister(const void* memory) {
  registered_.erase(AddressOf(memory));
}

void NodeMemory::FreeOnDevice(void* memory) {
  const auto found = on_devices_.find(AddressOf(memory));
  const Allocation allocation = found->second;
  on_devices_.erase(found);
  in_use_[allocation.device] -= static_cast<int64_t>(allocation.bytes);
  FreeFilled(memory, allocation.bytes);
}

void NodeMemory::FreeOnHost(void* memory) {
  const auto found = on_host_.find(AddressOf(memory));
  const size_t bytes = found->second;
  on_host_.erase(found);
  FreeFilled(memory, bytes);
}

NodeMemory::Range NodeMemory::Locate(const void* memory, size_t bytes) const {
  const uintptr_t begin = AddressOf(memory);
  const uintptr_t end = begin + bytes;
  auto next = on_devices_.upper_bound(begin);
  if (next != on_devices_.begin()) {
    const auto& [address, allocation] = *std::prev(next);
    if (begin < address + allocation.bytes) {
      const bool fits = end <= address + allocation.bytes;
      return {fits ? Place::kDevice : Place::kNowhere, allocation.device};
    }
  }
  const bool overlaps = next != on_devices_.end() && next->first < end;
  return {overlaps ? Place::kNowhere : Place::kHost, -1};
}

int64_t NodeMemory::host_bytes_in_use() const {
  int64_t sum = 0;
  for (const auto& [address, bytes] : on_host_) {
    sum += static_cast<int64_t>(bytes);
  }
  return sum;
}

void NodeMemory::Expose(DeviceSet devices) {
  for (size_t device = 0; device < exposure_count_.size(); ++device) {
    if ((devices >> device & 1) == 0) continue;
    if (exposure_count_[device]++ == 0) {
      SetExposed(static_cast<int>(device), true);
    }
  }
}

void NodeMemory::Hide(DeviceSet devices) {
  for (size_t device = 0; device < exposure_count_.size(); ++device) {
    if ((devices >> device & 1) == 0) continue;
    if (--exposure_count_[device] == 0) {
      SetExposed(static_cast<int>(device), false);
    }
  }
}

void NodeMemory::SetExposed(int device, bool is_exposed) {
  if (!asan::kIsOn) return;
  for (const auto& [address, allocation] : on_devices_) {
    if (allocation.device != device) continue;
    if (is_exposed) {
      asan::Unpoison(PointerTo(address), allocation.bytes);
    } else {
      asan::Poison(PointerTo(address), allocation.bytes);
    }
  }
}

}  // namespace tensord::simt
