#include "client/cpp/src/transfer.h"

#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/slice.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/time/clock.h"
#include "client/cpp/src/errors.h"
#include "client/cpp/src/raw_call.h"
#include "proto/wire/chunk.h"
#include "tensord/status.h"

namespace tensord::internal {
namespace {

constexpr int kMostBreaks = 4;  // In a row, without a byte of progress.
constexpr absl::Duration kFirstBackoff = absl::Milliseconds(50);

void Report(const TransferOptions& options, int64_t done, int64_t total) {
  if (options.progress != nullptr && *options.progress) {
    (*options.progress)(done, total);
  }
}

/// One stream of an upload, from `offset` on. While a chunk travels, the next
/// one is prepared.
absl::StatusOr<v1::Tensor> Send(const Channels& channels,
                                const std::string& tensor,
                                std::span<const std::byte> bytes,
                                int64_t offset,
                                const TransferOptions& options) {
  RawCall call(channels, channels.bulk(),
               "/tensord.v1.TensorService/UploadTensor", options.deadline);
  const int64_t total = static_cast<int64_t>(bytes.size());
  const auto size_at = [&](int64_t at) {
    return std::min(options.chunk_bytes, total - at);
  };
  const auto chunk_at = [&](int64_t at) {
    return wire::MakeChunkOfCopy(at == offset ? tensor : "", at,
                                 bytes.subspan(at, size_at(at)),
                                 channels.buffers().Take(size_at(at)));
  };
  grpc::ByteBuffer message = chunk_at(offset);
  call.BeginRead();  // Ends with the call, whatever becomes of the writes.
  for (bool last = false; !last;) {
    const int64_t next = offset + size_at(offset);
    last = next == total;
    call.BeginWrite(message, last);
    if (!last) message = chunk_at(next);
    if (!call.AwaitWrite()) break;
    Report(options, next, total);
    offset = next;
  }
  grpc::ByteBuffer reply;
  const bool replied = call.AwaitRead(reply);
  TENSORD_CLIENT_RETURN_IF_ERROR(call.Finish());
  v1::UploadTensorResponse response;
  grpc::ProtoBufferReader reader(&reply);
  if (!replied || !response.ParseFromZeroCopyStream(&reader)) {
    return Error(absl::StatusCode::kInternal, "RESPONSE_MALFORMED",
                 "the server ended an upload without saying what came of it");
  }
  // The answer may be there before word of the last write.
  if (offset != total) Report(options, total, total);
  return std::move(*response.mutable_tensor());
}

/// Copies the data of a chunk to the front of `to`. Returns how many bytes
/// came.
///
/// Errors  DATA_LOSS: not a chunk, not at `offset`, more data than `to` holds,
///         or a checksum that differs.
absl::StatusOr<int64_t> TakeData(grpc::ByteBuffer& message, int64_t offset,
                                 std::span<std::byte> to) {
  const auto corrupt = [&](const auto&... what) {
    return Error(absl::StatusCode::kDataLoss, "CHUNK_CORRUPT",
                 absl::StrCat("the chunk received at byte ", offset, what...));
  };
  wire::ChunkReader chunk(message);
  const absl::StatusOr<wire::ChunkHeader> header = chunk.Header();
  if (!header.ok()) return corrupt(": ", header.status().message());
  if (header->offset_bytes != offset) {
    return corrupt(" says it starts at byte ", header->offset_bytes);
  }
  if (header->data_bytes > std::ssize(to)) {
    return corrupt(" has ", header->data_bytes, " bytes, but only ", to.size(),
                   " were left to come");
  }
  const absl::StatusOr<uint32_t> crc32c =
      chunk.Payload(to.data(), offset + std::ssize(to));
  if (!crc32c.ok()) return corrupt(": ", crc32c.status().message());
  if (*crc32c != header->crc32c) {
    return corrupt(" has another checksum than it was sent with");
  }
  return header->data_bytes;
}

/// One stream of a download. Advances `offset` by what has come and is checked.
/// While a chunk is taken apart, the next one travels.
absl::Status Receive(const Channels& channels, const std::string& tensor,
                     std::span<std::byte> bytes, int64_t& offset,
                     const TransferOptions& options) {
  v1::DownloadTensorRequest request;
  request.set_tensor(tensor);
  request.set_offset_bytes(offset);
  request.set_chunk_bytes(options.chunk_bytes);
  const grpc::Slice slice(request.SerializeAsString());

  RawCall call(channels, channels.bulk(),
               "/tensord.v1.TensorService/DownloadTensor", options.deadline);
  call.BeginRead();
  call.BeginWrite(grpc::ByteBuffer(&slice, 1), /*last=*/true);
  grpc::ByteBuffer message;
  while (call.AwaitRead(message)) {
    call.BeginRead();
    const absl::StatusOr<int64_t> size =
        TakeData(message, offset, bytes.subspan(offset));
    if (!size.ok()) {
      call.Cancel();
      while (call.AwaitRead(message)) call.BeginRead();
      (void)call.Finish();  // CANCELLED; what was wrong says more.
      return size.status();
    }
    offset += *size;
    Report(options, offset, static_cast<int64_t>(bytes.size()));
  }
  TENSORD_CLIENT_RETURN_IF_ERROR(call.Finish());
  if (offset != static_cast<int64_t>(bytes.size())) {
    return Error(absl::StatusCode::kDataLoss, "DOWNLOAD_INCOMPLETE",
                 absl::StrCat(offset, " bytes of ", tensor, " came, wanted ",
                              bytes.size()));
  }
  return absl::OkStatus();
}

bool IsBreak(const absl::Status& status) {
  return status.code() == absl::StatusCode::kUnavailable ||
         status.code() == absl::StatusCode::kDataLoss ||
         // This side did nothing for long, as when it was stopped.
         (status.code() == absl::StatusCode::kAborted &&
          ReasonOf(status) != "TENSOR_CHANGED");
}

/// Decides whether to go on after a break, and waits before that.
class Breaks {
 public:
  explicit Breaks(absl::Time deadline) : deadline_(deadline) {}

  /// More has come than before the break.
  void NoteProgress() { count_ = 0; }

  bool GoOn() {
    if (++count_ > kMostBreaks) return false;
    const absl::Duration pause = kFirstBackoff * (1 << count_);
    if (absl::Now() + pause >= deadline_) return false;
    absl::SleepFor(pause);
    return true;
  }

 private:
  const absl::Time deadline_;
  int count_ = 0;
};

}  // namespace

absl::StatusOr<v1::Tensor> Upload(const Channels& channels,
                                  const std::string& tensor,
                                  std::span<const std::byte> bytes,
                                  const TransferOptions& options) {
  Breaks breaks(options.deadline);
  v1::DescribeTensorRequest request;
  request.set_tensor(tensor);
  int64_t offset = 0;
  for (bool resumed = false;; resumed = true) {
    absl::StatusOr<v1::Tensor> sent =
        Send(channels, tensor, bytes, offset, options);
    // The server may not yet have noticed that the stream before has ended.
    const bool busy = resumed && ReasonOf(sent.status()) == "TENSOR_BUSY";
    if (sent.ok() || !(IsBreak(sent.status()) || busy)) return sent;
    absl::StatusOr<v1::DescribeTensorResponse> now;
    do {
      if (!breaks.GoOn()) return sent.status();
      now = channels.Call(channels.tensor,
                          &v1::TensorService::Stub::DescribeTensor, request,
                          options.deadline);
    } while (IsBreak(now.status()));
    if (!now.ok()) return sent.status();
    const v1::Tensor& described = now->tensor();
    if (described.committed_bytes() > offset) breaks.NoteProgress();
    offset = described.committed_bytes();
    // All had come but the word of it.
    if (described.state() == v1::TENSOR_STATE_READY) return described;
  }
}

absl::Status Download(const Channels& channels, const std::string& tensor,
                      std::span<std::byte> bytes,
                      const TransferOptions& options) {
  Breaks breaks(options.deadline);
  int64_t offset = 0;
  if (bytes.empty()) return absl::OkStatus();
  while (true) {
    const int64_t before = offset;
    const absl::Status status =
        Receive(channels, tensor, bytes, offset, options);
    if (status.ok() || !IsBreak(status)) return status;
    if (offset == static_cast<int64_t>(bytes.size())) return absl::OkStatus();
    if (offset > before) breaks.NoteProgress();
    if (!breaks.GoOn()) return status;
  }
}

}  // namespace tensord::internal
