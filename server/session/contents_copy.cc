#include "server/session/contents_copy.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "core/base/status.h"

namespace tensord::server {
namespace {

// In staging memory at a time.
constexpr int64_t kPieceBytes = int64_t{8} << 20;

}  // namespace

absl::Status ContentsCopy::Allocate() {
  const int64_t bytes = std::min(from_.desc().span_bytes(), kPieceBytes);
  const bool is_staged = !from_device_.info().uses_host_memory &&
                         to_device_.info().uses_host_memory;
  if (!is_staged || staging_.bytes() == bytes) return absl::OkStatus();
  TENSORD_ASSIGN_OR_RETURN(staging_,
                           core::Buffer::Allocate(staging_memory_, bytes));
  return absl::OkStatus();
}

absl::Status ContentsCopy::Queue(core::Stream& stream) {
  if (from_device_.info().kind == to_device_.info().kind) {
    return stream.CopyBetweenDevices(to_.first(), from_.first(),
                                     from_.desc().span_bytes());
  }
  return from_device_.info().uses_host_memory ? CopyFromHost()
                                              : QueueToHost(stream);
}

absl::Status ContentsCopy::QueueToHost(core::Stream& stream) {
  const int64_t all = from_.desc().span_bytes();
  // Before their addresses are queued.
  for (int64_t at = 0; at < all; at += kPieceBytes) {
    pieces_.push_back({to_.first() + at, staging_.data(),
                       static_cast<size_t>(std::min(all - at, kPieceBytes))});
  }
  const auto put_in_place = [](void* argument) {
    const Piece& piece = *static_cast<const Piece*>(argument);
    std::memcpy(piece.to, piece.from, piece.bytes);
  };
  // The stream's order keeps a piece in staging memory until it is in place.
  for (Piece& piece : pieces_) {
    TENSORD_RETURN_IF_ERROR(stream.CopyToHost(
        staging_.data(), from_.first() + (piece.to - to_.first()),
        static_cast<int64_t>(piece.bytes)));
    TENSORD_RETURN_IF_ERROR(stream.Call(put_in_place, &piece));
  }
  return absl::OkStatus();
}

absl::Status ContentsCopy::CopyFromHost() {
  TENSORD_ASSIGN_OR_RETURN(const std::unique_ptr<core::Stream> stream,
                           to_device_.CreateStream());
  absl::Status status = stream->CopyToDevice(to_.first(), from_.first(),
                                             from_.desc().span_bytes());
  // Also after a failure: a part may be under way.
  status.Update(stream->Synchronize());
  return status;
}

}  // namespace tensord::server
