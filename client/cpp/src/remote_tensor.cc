#include "tensord/remote_tensor.h"

#include <array>

#include "client/cpp/src/connection.h"
#include "client/cpp/src/convert.h"
#include "client/cpp/src/view_requests.h"

namespace tensord {

using internal::Connection;
using internal::InvalidArgument;

std::string_view ToString(TensorState state) {
  constexpr std::array<std::string_view, 6> kNames = {
      "UNSPECIFIED", "EMPTY", "PARTIAL", "PENDING", "READY", "INVALID"};
  const auto index = static_cast<size_t>(state);
  return kNames[index < kNames.size() ? index : 0];
}

RemoteTensor::RemoteTensor(std::shared_ptr<Connection> connection,
                           TensorInfo info, bool owns, ExecutionReport report)
    : handle_(std::move(connection), info.name, owns),
      info_(std::move(info)),
      report_(std::move(report)) {}

absl::Status RemoteTensor::DownloadTo(ElementType element_type,
                                      std::span<std::byte> bytes,
                                      const DownloadOptions& options) const {
  if (element_type != info_.element_type) {
    const std::string_view got = ToString(info_.element_type);
    const std::string_view wanted = ToString(element_type);
    return InvalidArgument("ELEMENT_TYPE_MISMATCH", info_.name, " has ",
                           absl::string_view(got.data(), got.size()),
                           " elements, but is downloaded as ",
                           absl::string_view(wanted.data(), wanted.size()));
  }
  const int64_t packed_bytes =
      ElementCount(extents()) * ElementBytes(element_type);
  if (packed_bytes != static_cast<int64_t>(bytes.size())) {
    return InvalidArgument("SIZE_MISMATCH", info_.name, " has ", packed_bytes,
                           " bytes, but there is memory for ", bytes.size());
  }
  const auto& connection = handle_.connection();
  internal::Channels& channels = connection->channels();
  const internal::TransferOptions transfer =
      connection->Transfer(packed_bytes, options.deadline, options.progress);
  const Order order = options.order.value_or(connection->order());
  v1::Layout wanted = internal::ToProto(Layout{extents(), {}, order});
  if (internal::SharedMemory* const memory =
          connection->MemoryFor(packed_bytes)) {
    const absl::Status stored = memory->Download(channels, info_.name, wanted,
                                                 bytes, transfer.deadline);
    if (stored.ok() && options.progress) {
      options.progress(packed_bytes, packed_bytes);
    }
    if (!internal::MayGoByGrpc(stored)) return stored;
  }
  // A view that repeats or goes backwards is never packed; one that is read by
  // a packed copy shows the layout of that.
  const bool is_in_place = !info_.view || !info_.view->is_gathered;
  if (is_in_place && IsPacked(info_.layout, order)) {
    return internal::Download(channels, info_.name, bytes, transfer);
  }
  v1::CopyTensorRequest request;
  request.set_source(info_.name);
  *request.mutable_layout() = std::move(wanted);
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const v1::CopyTensorResponse copied,
      channels.Call(channels.tensor, &v1::TensorService::Stub::CopyTensor,
                    request, transfer.deadline));
  const RemoteTensor packed(connection, internal::FromProto(copied.tensor()),
                            /*owns=*/true);
  return internal::Download(channels, packed.name(), bytes, transfer);
}

template <typename Stages>
absl::StatusOr<RemoteTensor> RemoteTensor::ViewOf(
    const absl::StatusOr<Stages>& stages, const ViewOptions& options) const {
  if (!stages.ok()) return stages.status();
  const auto& connection = handle_.connection();
  internal::Channels& channels = connection->channels();
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const v1::CreateViewResponse response,
      channels.Call(channels.view, &v1::ViewService::Stub::CreateView,
                    internal::MakeViewRequest(info_.name, *stages, options),
                    connection->Deadline(options.deadline)));
  return RemoteTensor(connection, internal::FromProto(response.tensor()),
                      /*owns=*/true);
}

absl::StatusOr<std::string> RemoteTensor::Share(
    const std::vector<std::string>& tenants) const {
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      v1::ShareTensorResponse response,
      handle_.connection()->channels().Share(info_.name, tenants));
  return std::move(*response.mutable_share());
}

absl::Status RemoteTensor::Unshare(
    const std::vector<std::string>& tenants) const {
  return handle_.connection()->channels().Unshare(info_.name, tenants).status();
}

absl::StatusOr<RemoteTensor> RemoteTensor::Index(
    const std::vector<IndexItem>& items, const ViewOptions& options) const {
  return ViewOf(absl::StatusOr<std::vector<IndexItem>>(items), options);
}

absl::StatusOr<RemoteTensor> RemoteTensor::Transpose(
    const std::vector<int>& axes, const ViewOptions& options) const {
  TENSORD_CLIENT_ASSIGN_OR_RETURN(Stage stage,
                                  internal::TransposeStage(axes, mode_count()));
  return View({std::move(stage)}, options);
}

absl::StatusOr<RemoteTensor> RemoteTensor::Reshape(
    const std::vector<int64_t>& extents, const ViewOptions& options) const {
  return ViewOf(internal::ReshapeStages(this->extents(), extents), options);
}

absl::StatusOr<RemoteTensor> RemoteTensor::BroadcastTo(
    const std::vector<int64_t>& extents, const ViewOptions& options) const {
  return ViewOf(internal::BroadcastStages(this->extents(), extents), options);
}

absl::StatusOr<RemoteTensor> RemoteTensor::Pad(
    const std::vector<transform::Pad>& pads, const ViewOptions& options) const {
  TENSORD_CLIENT_ASSIGN_OR_RETURN(Stage stage,
                                  internal::PadStage(pads, mode_count()));
  return View({std::move(stage)}, options);
}

absl::StatusOr<RemoteTensor> RemoteTensor::Diagonal(
    int first, int second, const ViewOptions& options) const {
  return ViewOf(internal::DiagonalStages(first, second, extents()), options);
}

absl::StatusOr<RemoteTensor> RemoteTensor::View(
    const std::vector<Stage>& stages, const ViewOptions& options) const {
  return ViewOf(absl::StatusOr<std::vector<Stage>>(stages), options);
}

}  // namespace tensord
