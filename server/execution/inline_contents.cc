#include "server/execution/inline_contents.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/status.h"

namespace tensord::server {
namespace {

/// Writes `data` of `tensor` to `to`. Bytes of bool elements other than 0
/// become 1: kernels read bool.
void CopyElements(const InlineTensor& tensor, std::byte* to) {
  if (tensor.data.empty()) return;  // there may be no `to` then
  std::memcpy(to, tensor.data.data(), tensor.data.size());
  if (tensor.element_type == core::ElementType::kBool) {
    std::replace_if(
        to, to + tensor.data.size(),
        [](std::byte b) { return b != std::byte{0}; }, std::byte{1});
  }
}

}  // namespace

absl::StatusOr<core::TensorDesc> DescOf(const InlineTensor& tensor,
                                        absl::string_view name, bool has_data) {
  core::TensorDesc desc{tensor.element_type, tensor.layout, 0};
  TENSORD_RETURN_IF_ERROR(
      core::ValidateLayout(desc.layout, core::SizeOf(desc.element_type), name));
  const auto got = static_cast<int64_t>(tensor.data.size());
  if (got != desc.span_bytes() && (has_data || got != 0)) {
    return core::InvalidArgument(
        "INLINE_SIZE_MISMATCH", "inline data of ", name, " has ", got,
        " bytes, its layout wants ", desc.span_bytes());
  }
  return desc;
}

absl::Status CheckInlineBytes(int64_t bytes, int64_t limit,
                              absl::string_view what) {
  if (bytes <= limit) return absl::OkStatus();
  return core::InvalidArgument("INLINE_TOO_LARGE", what, " are ", bytes,
                               " bytes, wanted at most ", limit,
                               "; upload or keep it as a tensor instead");
}

absl::StatusOr<std::shared_ptr<StoredTensor>> InlineInputs::Add(
    Session& session, const core::TensorDesc& desc, const InlineTensor& sent) {
  const core::DeviceInfo& device = session.device().info();
  auto tensor = std::make_shared<StoredTensor>("(inline)", device.name, desc,
                                               session.memory());
  TENSORD_RETURN_IF_ERROR(tensor->Allocate());
  if (device.uses_host_memory) {
    CopyElements(sent, tensor->first());
  } else {
    TENSORD_ASSIGN_OR_RETURN(
        core::Buffer staging,
        core::Buffer::Allocate(*session.staging_memory(),
                               static_cast<int64_t>(sent.data.size())));
    CopyElements(sent, staging.data());
    staged_.push_back({tensor, std::move(staging)});
  }
  // Nobody else knows this tensor: it is written before it is read.
  TENSORD_RETURN_IF_ERROR(tensor->BeginWrite());
  tensor->StartWrite();
  tensor->Written();
  tensor->EndWrite(StoredTensor::WriteResult::kDone);
  return tensor;
}

absl::Status InlineInputs::Queue(core::Stream& stream) const {
  for (const auto& [tensor, contents] : staged_) {
    TENSORD_RETURN_IF_ERROR(stream.CopyToDevice(
        tensor->first(), contents.data(), contents.bytes()));
  }
  return absl::OkStatus();
}

absl::Status InlineOutput::Allocate(Session& session,
                                    const StoredTensor& result) {
  const int64_t bytes = result.desc().span_bytes();
  if (session.device().info().uses_host_memory || staging_.bytes() >= bytes) {
    return absl::OkStatus();
  }
  TENSORD_ASSIGN_OR_RETURN(
      staging_, core::Buffer::Allocate(*session.staging_memory(), bytes));
  return absl::OkStatus();
}

absl::Status InlineOutput::Queue(const StoredTensor& result,
                                 core::Stream& stream) {
  if (staging_.bytes() == 0) return absl::OkStatus();
  return stream.CopyToHost(staging_.data(), result.first(), staging_.bytes());
}

std::string InlineOutput::Bytes(const StoredTensor& result) const {
  const std::byte* const from =
      staging_.bytes() > 0 ? staging_.data() : result.first();
  return {reinterpret_cast<const char*>(from),
          static_cast<size_t>(result.desc().span_bytes())};
}

}  // namespace tensord::server
