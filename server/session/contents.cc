#include "server/session/contents.h"

#include <algorithm>
#include <utility>

#include "core/base/status.h"

namespace tensord::server {
namespace {

/// Whether the host gets at the contents itself.
bool IsHosts(const StoredTensor& tensor, const Device& device) {
  return device.info().uses_host_memory || tensor.storage().is_given();
}

}  // namespace

absl::StatusOr<ContentsWriter> ContentsWriter::Open(
    StoredTensor& tensor, Device& device,
    std::shared_ptr<core::MemoryResource> staging) {
  ContentsWriter writer(tensor, std::move(staging));
  if (!IsHosts(tensor, device)) {
    TENSORD_ASSIGN_OR_RETURN(writer.stream_, device.CreateStream());
  }
  return writer;
}

ContentsWriter::~ContentsWriter() {
  if (stream_ != nullptr) stream_->Synchronize().IgnoreError();
}

absl::StatusOr<std::span<std::byte>> ContentsWriter::Place(int64_t bytes) {
  std::byte* place = nullptr;
  if (stream_ == nullptr) {
    place = tensor_->first() + tensor_->committed_bytes();
  } else {
    auto& [buffer, copied] = staging_[filled_];
    if (copied != nullptr) TENSORD_RETURN_IF_ERROR(copied->Wait());
    copied = nullptr;
    if (buffer.bytes() < bytes) {
      buffer = core::Buffer();
      TENSORD_ASSIGN_OR_RETURN(buffer,
                               core::Buffer::Allocate(*staging_memory_, bytes));
    }
    place = buffer.data();
  }
  placed_ = {place, static_cast<size_t>(bytes)};
  return placed_;
}

absl::Status ContentsWriter::Commit() {
  const std::span<std::byte> placed = std::exchange(placed_, {});
  const auto bytes = static_cast<int64_t>(placed.size());
  const int64_t committed = tensor_->committed_bytes();
  if (tensor_->desc().element_type == core::ElementType::kBool) {
    std::replace_if(
        placed.begin(), placed.end(),
        [](std::byte b) { return b != std::byte{0}; }, std::byte{1});
  }
  if (stream_ != nullptr && bytes > 0) {
    TENSORD_RETURN_IF_ERROR(stream_->CopyToDevice(tensor_->first() + committed,
                                                  placed.data(), bytes));
    if (committed + bytes == tensor_->desc().span_bytes()) {
      TENSORD_RETURN_IF_ERROR(stream_->Synchronize());
    } else {
      TENSORD_ASSIGN_OR_RETURN(staging_[filled_].copied, stream_->Record());
      filled_ = 1 - filled_;
    }
  }
  tensor_->Commit(bytes);
  return absl::OkStatus();
}

absl::StatusOr<ContentsReader> ContentsReader::Open(
    std::shared_ptr<const StoredTensor> tensor, Device& device,
    std::shared_ptr<core::MemoryResource> staging, Range range) {
  const bool is_hosts = IsHosts(*tensor, device);
  ContentsReader reader(std::move(tensor), std::move(staging), range);
  if (!is_hosts) {
    TENSORD_ASSIGN_OR_RETURN(reader.stream_, device.CreateStream());
  }
  return reader;
}

ContentsReader::~ContentsReader() {
  if (stream_ != nullptr) stream_->Synchronize().IgnoreError();
}

absl::StatusOr<ContentsReader::Coming> ContentsReader::Begin() {
  const std::byte* const from = tensor_->first() + rest_.begin;
  const int64_t bytes = std::min(rest_.step, rest_.end - rest_.begin);
  rest_.begin += bytes;
  Coming coming{{{from, static_cast<size_t>(bytes)}, tensor_}, nullptr};
  if (stream_ == nullptr || bytes == 0) return coming;
  TENSORD_ASSIGN_OR_RETURN(core::Buffer buffer,
                           core::Buffer::Allocate(*staging_memory_, bytes));
  const auto staging = std::make_shared<const Staging>(
      Staging{staging_memory_, std::move(buffer)});
  std::byte* const to = staging->buffer.data();
  coming.piece = {{to, static_cast<size_t>(bytes)}, staging};
  absl::Status status = stream_->CopyToHost(to, from, bytes);
  if (status.ok()) {
    absl::StatusOr<std::unique_ptr<core::Event>> end = stream_->Record();
    status = end.status();
    if (end.ok()) coming.end = *std::move(end);
  }
  // Before the memory goes that the copy may be writing.
  if (!status.ok()) stream_->Synchronize().IgnoreError();
  TENSORD_RETURN_IF_ERROR(status);
  return coming;
}

absl::StatusOr<ContentsReader::Piece> ContentsReader::Next() {
  if (!coming_) {
    TENSORD_ASSIGN_OR_RETURN(coming_, Begin());
  }
  const Coming current = *std::exchange(coming_, std::nullopt);
  if (stream_ != nullptr && rest_.begin < rest_.end) {
    absl::StatusOr<Coming> next = Begin();
    if (!next.ok()) {
      // Before the memory goes that the current one is copied to.
      stream_->Synchronize().IgnoreError();
      return next.status();
    }
    coming_ = *std::move(next);
  }
  if (current.end != nullptr) TENSORD_RETURN_IF_ERROR(current.end->Wait());
  return current.piece;
}

}  // namespace tensord::server
