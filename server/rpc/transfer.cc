// Uploads and downloads: the streaming handlers of TensorService.
#include <algorithm>
#include <memory>
#include <span>

#include "absl/cleanup/cleanup.h"
#include "core/base/status.h"
#include "proto/wire/chunk.h"
#include "server/rpc/convert.h"
#include "server/rpc/coroutine/in_background.h"
#include "server/rpc/coroutine/patience.h"
#include "server/rpc/tensor_service.h"
#include "server/session/contents.h"

namespace tensord::rpc {
namespace {

constexpr int64_t kDefaultChunkBytes = int64_t{1} << 20;
// What others would not notice, also if it is cleared.
constexpr int64_t kSoonAllocatedBytes = int64_t{1} << 20;

absl::Status Malformed(const absl::Status& why) {
  return core::InvalidArgument("CHUNK_MALFORMED",
                               "malformed chunk: ", why.message());
}

absl::Status NamedAgain(absl::string_view tensor) {
  return core::InvalidArgument("CHUNK_MALFORMED",
                               "a chunk after the first names tensor '", tensor,
                               "', wanted no name");
}

/// Puts one chunk in its place and commits it.
absl::Status Place(wire::ChunkReader& chunk, const wire::ChunkHeader& header,
                   int64_t max_chunk_bytes, const server::StoredTensor& tensor,
                   server::ContentsWriter& writer) {
  const int64_t span_bytes = tensor.desc().span_bytes();
  const int64_t committed = tensor.committed_bytes();
  if (header.data_bytes > max_chunk_bytes) {
    return core::InvalidArgument("CHUNK_MALFORMED", "chunk has ",
                                 header.data_bytes, " bytes, wanted at most ",
                                 max_chunk_bytes);
  }
  if (header.offset_bytes != committed) {
    return core::InvalidArgument("CHUNK_OUT_OF_ORDER", "chunk for ",
                                 tensor.name(), " starts at byte ",
                                 header.offset_bytes, ", wanted ", committed);
  }
  if (header.data_bytes > span_bytes - committed) {
    return core::InvalidArgument("CHUNK_OUT_OF_RANGE", "chunk for ",
                                 tensor.name(), " at byte ", committed, " has ",
                                 header.data_bytes, " bytes, the tensor takes ",
                                 span_bytes - committed, " more");
  }
  if (header.data_bytes == 0) return absl::OkStatus();
  TENSORD_ASSIGN_OR_RETURN(const std::span<std::byte> place,
                           writer.Place(header.data_bytes));
  const absl::StatusOr<uint32_t> crc = chunk.Payload(place.data(), span_bytes);
  if (!crc.ok()) return Malformed(crc.status());
  if (*crc != header.crc32c) {
    return core::Error(
        absl::StatusCode::kDataLoss, "CHUNK_CORRUPT",
        absl::StrCat("chunk for ", tensor.name(), " at byte ", committed,
                     " has CRC-32C ", *crc, ", wanted ", header.crc32c,
                     "; resend from byte ", committed));
  }
  return writer.Commit();
}

/// Whether the session still has it: what another shares may be taken back any
/// time.
absl::Status CheckReadable(const Call& call,
                           const server::StoredTensor& tensor) {
  return tensor.origin() == nullptr
             ? absl::OkStatus()
             : call.session().Find(tensor.name()).status();
}

/// What of `tensor` a download asks for, and in what pieces.
absl::StatusOr<server::ContentsReader::Range> RangeOf(
    const v1::DownloadTensorRequest& request,
    const server::StoredTensor& tensor, int64_t max_chunk_bytes) {
  const int64_t span_bytes = tensor.desc().span_bytes();
  const int64_t offset = request.offset_bytes();
  const int64_t length = request.length_bytes();
  const int64_t chunk_bytes = request.chunk_bytes();
  if (offset < 0 || offset > span_bytes || length < 0 ||
      length > span_bytes - offset || chunk_bytes < 0) {
    return core::InvalidArgument(
        "RANGE_OUTSIDE_TENSOR", "offset_bytes ", offset, ", length_bytes ",
        length, " and chunk_bytes ", chunk_bytes, " do not fit the ",
        span_bytes, " bytes of ", tensor.name());
  }
  return server::ContentsReader::Range{
      offset, length == 0 ? span_bytes : offset + length,
      chunk_bytes == 0 ? kDefaultChunkBytes
                       : std::min(chunk_bytes, max_chunk_bytes)};
}

}  // namespace

Task<absl::StatusOr<v1::UploadTensorResponse>> TensorService::Upload(
    Call& call, Reader in) {
  PatientReader reader(in, call, context_.transfer_idle);
  ByteBuffer* message = co_await reader.Read();
  const absl::Status heard = reader.failure();
  if (!heard.ok()) co_return heard;
  if (message == nullptr) {
    co_return core::InvalidArgument("CHUNK_MALFORMED",
                                    "the stream has no message");
  }
  wire::ChunkReader first(*message);
  const absl::StatusOr<wire::ChunkHeader> first_header = first.Header();
  if (!first_header.ok()) co_return Malformed(first_header.status());
  const auto found =
      Enter(call, first_header->tensor, 2 * call.record().received_bytes);
  if (!found.ok()) co_return found.status();
  server::StoredTensor& tensor = **found;
  if (tensor.in_use()) {
    const absl::Status waited = co_await AwaitQueued(call);
    if (!waited.ok()) co_return waited;
  }
  // When its creation still runs, or when the operation that should have
  // written it failed.
  if (!tensor.has_memory()) {
    absl::Status allocated;
    auto allocate = [&] { allocated = tensor.Allocate(); };
    if (tensor.desc().span_bytes() <= kSoonAllocatedBytes) {
      allocate();
    } else {
      const absl::Status waited =
          co_await InBackground(call, context_.preparer.background(),
                                call.session().client(), allocate);
      if (!waited.ok()) co_return waited;
    }
    if (!allocated.ok()) co_return allocated;
  }
  const absl::Status begun = tensor.BeginUpload(first_header->offset_bytes);
  if (!begun.ok()) co_return begun;
  const absl::Cleanup end = [&tensor] { tensor.EndUpload(); };

  auto writer = server::ContentsWriter::Open(tensor, call.session().device(),
                                             call.session().staging_memory());
  if (!writer.ok()) co_return writer.status();
  const auto place = [&](wire::ChunkReader& chunk,
                         const wire::ChunkHeader& header) -> absl::Status {
    TENSORD_RETURN_IF_ERROR(
        Place(chunk, header, context_.limits.max_chunk_bytes, tensor, *writer));
    context_.metrics.uploaded_bytes().Increment(
        static_cast<double>(header.data_bytes));
    if (header.data_bytes > 0) reader.Progress();
    return absl::OkStatus();
  };
  absl::Status placed = place(first, *first_header);
  if (!placed.ok()) co_return placed;
  while (true) {
    message = co_await reader.Read();
    if (message == nullptr) break;
    wire::ChunkReader chunk(*message);
    const absl::StatusOr<wire::ChunkHeader> header = chunk.Header();
    if (!header.ok()) co_return Malformed(header.status());
    if (!header->tensor.empty()) co_return NamedAgain(header->tensor);
    placed = place(chunk, *header);
    if (!placed.ok()) co_return placed;
  }
  const absl::Status failure = reader.failure();
  if (!failure.ok()) co_return failure;
  v1::UploadTensorResponse response;
  *response.mutable_tensor() = ToProto(tensor);
  co_return response;
}

Task<absl::Status> TensorService::Download(
    Call& call, const v1::DownloadTensorRequest& request,
    Writer<ByteBuffer> out) {
  const auto view = ViewOf(request, true, "tensor");
  if (!view.ok()) co_return view.status();
  const auto found =
      call.session().Find(request.tensor(), *view, "the download");
  if (!found.ok()) co_return found.status();
  server::StoredTensor& tensor = **found;
  if (!tensor.is_in_place()) {
    co_return core::InvalidArgument(
        "VIEW_NOT_STRIDED", "tensor ", tensor.name(),
        request.has_view() ? " is seen as" : " is",
        " a view without strides of 1 or more; permute it into a tensor of its "
        "own, and download that");
  }
  if (tensor.awaits_write()) {
    const absl::Status waited = co_await AwaitQueued(call);
    if (!waited.ok()) co_return waited;
  }
  const uint64_t version = tensor.version();
  const absl::Status settled = tensor.CheckSettled();
  if (!settled.ok()) co_return settled;

  const auto range = RangeOf(request, tensor, context_.limits.max_chunk_bytes);
  if (!range.ok()) co_return range.status();
  auto reader = server::ContentsReader::Open(
      *found, call.session().device(), call.session().staging_memory(), *range);
  if (!reader.ok()) co_return reader.status();
  // Of pieces on their way: what gRPC sends, and what waits behind it.
  const absl::Status held = call.record().hold.Grow(
      2 * std::min(range->step, range->end - range->begin));
  if (!held.ok()) co_return held;
  PatientWriter writer(out, call, context_.transfer_idle);
  for (int64_t at = range->begin; at < range->end;) {
    const absl::Status readable = CheckReadable(call, tensor);
    if (!readable.ok()) co_return readable;
    const auto piece = reader->Next();
    if (!piece.ok()) co_return piece.status();
    const std::span data = piece->bytes;
    // Before its version is looked at, so that what is sent is of that one.
    const ByteBuffer chunk =
        reader->is_in_place()
            ? wire::MakeChunkOfCopy(
                  "", at, data,
                  std::make_shared_for_overwrite<std::byte[]>(data.size()))
            : wire::MakeChunk("", at, data, piece->owner);
    if (tensor.version() != version) {
      co_return core::Error(absl::StatusCode::kAborted, "TENSOR_CHANGED",
                            absl::StrCat("tensor ", tensor.name(),
                                         " was written during its download"));
    }
    const absl::Status sent = co_await writer.Write(chunk);
    if (!sent.ok()) co_return sent;
    at += static_cast<int64_t>(data.size());
    context_.metrics.downloaded_bytes().Increment(
        static_cast<double>(data.size()));
  }
  co_return absl::OkStatus();
}

}  // namespace tensord::rpc
