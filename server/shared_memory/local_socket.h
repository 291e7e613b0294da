// Unix sockets of packets that bring descriptors.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tensord::shared_memory {

/// A descriptor that is closed at its end.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept
      : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Descriptor();

  int get() const { return value_; }

 private:
  int value_ = -1;
};

/// A socket that listens. Its file, if it has one, goes with it.
class LocalSocket {
 public:
  /// Listens at a path, whose file gets the permissions `mode` before anybody
  /// can connect, 0: as the umask says; or, for "", at an abstract name that
  /// nobody can guess. A file that is there is taken away if nobody answers at
  /// it.
  ///
  /// Errors  UNAVAILABLE, reason CANNOT_LISTEN.
  static absl::StatusOr<LocalSocket> Listen(absl::string_view path, int mode);

  LocalSocket(LocalSocket&& other) noexcept
      : address_(std::exchange(other.address_, {})),
        descriptor_(std::move(other.descriptor_)) {}
  ~LocalSocket();

  /// The path, or the abstract name behind an "@".
  const std::string& address() const { return address_; }
  /// Does not block.
  int get() const { return descriptor_.get(); }

 private:
  LocalSocket() = default;

  std::string address_;
  Descriptor descriptor_;
};

/// What one packet brings.
struct Packet {
  size_t bytes = 0;     // of what it was to be read into
  bool is_cut = false;  // it, or its descriptors, were more than fits
  std::vector<Descriptor> descriptors;
};

/// Reads one packet without waiting; 0 bytes: the other end has closed.
/// Errors  UNAVAILABLE: there is none now. ABORTED: the connection is broken.
absl::StatusOr<Packet> Receive(int socket, std::span<std::byte> into);

/// Sends one packet without waiting.
/// Errors  as Receive().
absl::Status Send(int socket, std::span<const std::byte> packet);

}  // namespace tensord::shared_memory
