#include "server/session/contents.h"

#include <algorithm>
#include <utility>

#include "core/base/status.h"

namespace tensord::server {
namespace {

// Of a copy between devices, in host memory at a time.
constexpr int64_t kPieceBytes = int64_t{8} << 20;

}  // namespace

absl::StatusOr<ContentsWriter> ContentsWriter::Open(StoredTensor& tensor,
                                                    Device& device) {
  ContentsWriter writer(tensor, device);
  if (!device.info().uses_host_memory) {
    TENSORD_ASSIGN_OR_RETURN(writer.stream_, device.CreateStream());
  }
  return writer;
}

absl::StatusOr<std::span<std::byte>> ContentsWriter::Place(int64_t bytes) {
  std::byte* place = nullptr;
  if (stream_ == nullptr) {
    place = tensor_->first() + tensor_->committed_bytes();
  } else {
    if (staging_.bytes() < bytes) {
      staging_ = core::Buffer();
      TENSORD_ASSIGN_OR_RETURN(
          staging_, core::Buffer::Allocate(device_->staging_memory(), bytes));
    }
    place = staging_.data();
  }
  placed_ = {place, static_cast<size_t>(bytes)};
  return placed_;
}

absl::Status ContentsWriter::Commit() {
  const std::span<std::byte> placed = std::exchange(placed_, {});
  const auto bytes = static_cast<int64_t>(placed.size());
  if (tensor_->desc().element_type == core::ElementType::kBool) {
    std::replace_if(
        placed.begin(), placed.end(),
        [](std::byte b) { return b != std::byte{0}; }, std::byte{1});
  }
  if (stream_ != nullptr && bytes > 0) {
    TENSORD_RETURN_IF_ERROR(stream_->CopyToDevice(
        tensor_->first() + tensor_->committed_bytes(), placed.data(), bytes));
    TENSORD_RETURN_IF_ERROR(stream_->Synchronize());
  }
  tensor_->Commit(bytes);
  return absl::OkStatus();
}

absl::StatusOr<ContentsReader> ContentsReader::Open(
    std::shared_ptr<const StoredTensor> tensor, Device& device) {
  ContentsReader reader(std::move(tensor), device);
  if (!device.info().uses_host_memory) {
    TENSORD_ASSIGN_OR_RETURN(reader.stream_, device.CreateStream());
  }
  return reader;
}

absl::StatusOr<ContentsReader::Piece> ContentsReader::Read(int64_t offset,
                                                           int64_t bytes) {
  const std::byte* const from = tensor_->first() + offset;
  if (stream_ == nullptr) {
    return Piece{{from, static_cast<size_t>(bytes)}, tensor_};
  }
  TENSORD_ASSIGN_OR_RETURN(
      core::Buffer staging,
      core::Buffer::Allocate(device_->staging_memory(), bytes));
  const auto owner = std::make_shared<const core::Buffer>(std::move(staging));
  TENSORD_RETURN_IF_ERROR(stream_->CopyToHost(owner->data(), from, bytes));
  TENSORD_RETURN_IF_ERROR(stream_->Synchronize());
  return Piece{{owner->data(), static_cast<size_t>(bytes)}, owner};
}

absl::Status CopyContents(const std::shared_ptr<const StoredTensor>& from,
                          Device& from_device, const StoredTensor& to,
                          Device& to_device) {
  TENSORD_ASSIGN_OR_RETURN(ContentsReader reader,
                           ContentsReader::Open(from, from_device));
  TENSORD_ASSIGN_OR_RETURN(const std::unique_ptr<core::Stream> stream,
                           to_device.CreateStream());
  const int64_t all = from->desc().span_bytes();
  for (int64_t at = 0; at < all; at += kPieceBytes) {
    const int64_t bytes = std::min(kPieceBytes, all - at);
    TENSORD_ASSIGN_OR_RETURN(const ContentsReader::Piece piece,
                             reader.Read(at, bytes));
    TENSORD_RETURN_IF_ERROR(
        stream->CopyToDevice(to.first() + at, piece.bytes.data(), bytes));
    TENSORD_RETURN_IF_ERROR(stream->Synchronize());
  }
  return absl::OkStatus();
}

}  // namespace tensord::server
