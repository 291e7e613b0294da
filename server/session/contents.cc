#include "server/session/contents.h"

#include <algorithm>
#include <utility>

#include "core/base/status.h"

namespace tensord::server {

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

}  // namespace tensord::server
