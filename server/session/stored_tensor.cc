#include "server/session/stored_tensor.h"

#include "absl/strings/str_replace.h"
#include "server/session/collection.h"

namespace tensord::server {

absl::StatusOr<std::shared_ptr<TensorShare>> StoredTensor::Share(
    std::shared_ptr<TensorShare> share, absl::Span<const std::string> tenants) {
  if (view_ != nullptr) {
    return core::InvalidArgument(
        "TENSOR_IS_VIEW", "tensor ", name_,
        " is a view, which cannot be shared; copy it, and share that");
  }
  absl::MutexLock lock(&share_mutex_);
  if (is_forgotten_) return NoSuch(name_, kTensors);
  if (share_ == nullptr) {
    TENSORD_RETURN_IF_ERROR(storage_->Freeze());
    share_ = std::move(share);
  }
  TENSORD_RETURN_IF_ERROR(share_->Allow(tenants));
  return share_;
}

std::vector<std::string> StoredTensor::Unshare(
    absl::Span<const std::string> tenants) {
  absl::MutexLock lock(&share_mutex_);
  if (share_ == nullptr) return {};
  if (share_->Forbid(tenants)) return share_->tenants();
  share_.reset();
  storage_->Thaw();
  return {};
}

void StoredTensor::Forget() {
  {
    absl::MutexLock lock(&share_mutex_);
    is_forgotten_ = true;
  }
  Unshare({});
}

absl::Status StoredTensor::ReadOnly() const {
  return core::Error(
      absl::StatusCode::kPermissionDenied, "TENSOR_READ_ONLY",
      absl::StrCat("tensor ", name_, " is shared by its owner, of ",
                   origin_->name(), ", to be read; write a copy"));
}

absl::Status StoredTensor::Told(absl::Status status) const {
  if (origin_ == nullptr || status.ok()) return status;
  return core::Error(
      status.code(), core::ReasonOf(status),
      absl::StrReplaceAll(status.message(), {{storage_->name(), name_}}));
}

}  // namespace tensord::server
