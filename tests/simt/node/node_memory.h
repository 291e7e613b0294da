// The memory of the fake devices, and pinned memory of the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace tensord::simt {

/// Bits of devices.
using DeviceSet = uint32_t;
inline constexpr DeviceSet kAllDevices = ~DeviceSet{0};
inline DeviceSet SetOf(int device) { return DeviceSet{1} << device; }

/// Memory is filled with a pattern when it is allocated. Host code may touch
/// that of devices only while it is exposed (AddressSanitizer tells).
///
/// Threads  under the lock of the node.
class NodeMemory {
 public:
  NodeMemory() = default;
  ~NodeMemory();
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;

  /// Gives all memory back and starts with `device_count` empty devices.
  void Reset(int device_count, int64_t bytes_per_device);

  /// Null when the device has not that much left. Requires bytes > 0.
  void* AllocateOnDevice(int device, size_t bytes);
  void* AllocateOnHost(size_t bytes);

  /// The device of an allocation that starts at `memory`.
  std::optional<int> DeviceOf(const void* memory) const;
  /// The bytes of a pinned allocation that starts at `memory`.
  std::optional<size_t> PinnedBytes(const void* memory) const;
  /// Whether `memory` lies in a pinned allocation, or is registered.
  bool IsPinned(const void* memory) const;

  /// Pins memory that somebody else has got. False: a part of it is.
  bool Register(const void* memory, size_t bytes);
  /// The bytes of what was registered, from `memory` on.
  std::optional<size_t> RegisteredBytes(const void* memory) const;
  /// Requires RegisteredBytes(memory).
  void Unregister(const void* memory);

  /// Requires DeviceOf(memory), resp. PinnedBytes(memory).
  void FreeOnDevice(void* memory);
  void FreeOnHost(void* memory);

  /// Where [memory, memory + bytes) lies.
  enum class Place { kHost, kDevice, kNowhere };
  struct Range {
    Place place;
    int device;  // if kDevice
  };
  Range Locate(const void* memory, size_t bytes) const;

  int64_t device_bytes_in_use(int device) const { return in_use_[device]; }
  int64_t device_bytes() const { return bytes_per_device_; }
  int64_t host_bytes_in_use() const;

  /// Calls nest; each Expose() needs one Hide() of the same devices.
  void Expose(DeviceSet devices);
  void Hide(DeviceSet devices);

 private:
  struct Allocation {
    size_t bytes;
    int device;
  };

  void SetExposed(int device, bool is_exposed);

  int64_t bytes_per_device_ = 0;
  std::vector<int64_t> in_use_;      // (device)
  std::vector<int> exposure_count_;  // (device)
  std::map<uintptr_t, Allocation> on_devices_;
  std::map<uintptr_t, size_t> on_host_;
  std::map<uintptr_t, size_t> registered_;  // others' memory
};

}  // namespace tensord::simt
