// The client's side of memory that both see.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "client/cpp/src/channels.h"
#include "tensord/layout.h"
#include "tensord/v1/tensor.pb.h"

namespace tensord::internal {

/// A descriptor that is closed at its end.
class OwnedDescriptor {
 public:
  explicit OwnedDescriptor(int value = -1) : value_(value) {}
  OwnedDescriptor(OwnedDescriptor&& other) noexcept
      : value_(std::exchange(other.value_, -1)) {}
  OwnedDescriptor& operator=(OwnedDescriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~OwnedDescriptor();

  int get() const { return value_; }

 private:
  int value_ = -1;
};

/// A sealed file in memory of so many bytes.
/// Errors  RESOURCE_EXHAUSTED, reason SHARED_MEMORY_EXHAUSTED.
absl::StatusOr<OwnedDescriptor> MakeSealedFile(int64_t bytes);

/// OK when the address may be this host's own.
/// Errors  FAILED_PRECONDITION, reason SHARED_MEMORY_NOT_LOCAL.
absl::Status CheckSharedAddress(const std::string& address);

/// Where a client that has come by `address` may find the socket, when the
/// server says that it is at `sockets`.
std::vector<std::string> SocketsFor(const std::string& address,
                                    std::span<const std::string> sockets);

/// Connects to one.
/// Errors  UNAVAILABLE, reason SHARED_MEMORY_UNREACHABLE: why.
absl::StatusOr<OwnedDescriptor> ConnectTo(const std::string& socket);

/// Whether what shared memory has failed with is no reason for gRPC to fail:
/// the way itself, or room for regions.
bool MayGoByGrpc(const absl::Status& status);

/// Memory of a session that its server sees, too. Regions are reused, as new
/// pages cost more than a copy.
///
/// Threads  safe for concurrent use.
class SharedMemory {
 public:
  /// Less than that goes by gRPC.
  static constexpr int64_t kLeastBytes = int64_t{64} << 10;

  /// Says hello on a connection.
  /// Errors  those of the server; UNAVAILABLE, reason SHARED_MEMORY_LOST.
  static absl::StatusOr<std::unique_ptr<SharedMemory>> Open(
      OwnedDescriptor socket, const std::string& ticket, std::string session);
  ~SharedMemory();

  /// A tensor with these bytes, which `layout` spans, by one copy.
  /// Errors  those of AdoptTensor, and as Take().
  absl::StatusOr<v1::Tensor> Upload(const Channels& channels,
                                    const v1::AdoptTensorRequest& like,
                                    std::span<const std::byte> bytes,
                                    absl::Time deadline);
  /// The elements of a tensor, in that layout.
  /// Errors  those of StoreTensor, and as Take().
  absl::Status Download(const Channels& channels, const std::string& tensor,
                        const v1::Layout& layout, std::span<std::byte> bytes,
                        absl::Time deadline);

  /// Gives back what nobody uses.
  void Trim();

 private:
  struct Region {
    uint64_t number = 0;
    std::byte* start = nullptr;
    int64_t bytes = 0;
    bool is_leased = true;
    uint64_t adoptions = 0;
    uint64_t released = 0;
  };
  using Regions = std::list<Region>;

  SharedMemory(OwnedDescriptor socket, std::string session)
      : socket_(std::move(socket)), session_(std::move(session)) {}

  /// An idle region, or a new one.
  /// Errors  RESOURCE_EXHAUSTED: the system or the quota has no room.
  ///         UNAVAILABLE, reason SHARED_MEMORY_LOST.
  absl::StatusOr<Regions::iterator> Take(int64_t bytes);
  void GiveBack(Regions::iterator region, bool is_known);
  absl::StatusOr<Regions::iterator> Add(int64_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Drop(Regions::iterator region) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Keeps no more idle bytes than these.
  void KeepWithin(int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Send(std::span<const std::byte> packet, int descriptor);
  /// Reads until an answer has come.
  absl::Status Hear() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Reads what is there. True: an answer was, which `answer` has.
  absl::StatusOr<bool> HearOne(bool waits, absl::Status& answer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const OwnedDescriptor socket_;
  const std::string session_;
  absl::Mutex mutex_;
  Regions regions_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_number_ ABSL_GUARDED_BY(mutex_) = 1;
};

}  // namespace tensord::internal
