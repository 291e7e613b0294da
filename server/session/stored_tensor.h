// A tensor of a session.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "core/base/status.h"
#include "core/tensor/tensor.h"
#include "server/session/storage.h"
#include "server/session/tensor_share.h"
#include "server/session/tensor_view.h"

namespace tensord::server {

/// A tensor that requests look up by name and keep alive while they use it: a
/// name, what it is, and the storage that holds its contents, its own or, of a
/// view, another tensor's.
///
/// Threads   safe for concurrent use.
/// Lifetime  shared.
class StoredTensor {
 public:
  using WriteResult = Storage::WriteResult;

  /// A tensor with storage of its own, from `memory`.
  /// Requires  ValidateTensor(desc).ok(). Owns no memory before Allocate().
  StoredTensor(std::string name, std::string device, core::TensorDesc desc,
               std::shared_ptr<core::MemoryResource> memory)
      : name_(std::move(name)),
        device_(std::move(device)),
        desc_(std::move(desc)),
        storage_(std::make_shared<Storage>(name_, desc_, std::move(memory))) {}

  /// A tensor with that storage, which nobody else has.
  StoredTensor(std::string name, std::string device,
               std::shared_ptr<Storage> storage)
      : name_(std::move(name)),
        device_(std::move(device)),
        desc_(storage->desc()),
        storage_(std::move(storage)) {}

  /// A view of the storage of `viewed`.
  /// Requires  `view` was made of it.
  StoredTensor(std::string name, const StoredTensor& viewed, TensorView view)
      : StoredTensor(std::move(name), viewed, std::move(view), viewed.origin_) {
  }
  /// A view of a tensor that another session shares by `origin`.
  StoredTensor(std::string name, const StoredTensor& viewed, TensorView view,
               std::shared_ptr<TensorShare> origin)
      : name_(std::move(name)),
        device_(viewed.device_),
        desc_(view.desc()),
        view_(std::make_unique<const TensorView>(std::move(view))),
        storage_(viewed.storage_),
        origin_(std::move(origin)) {}

  const std::string& name() const { return name_; }
  const std::string& device() const { return device_; }
  /// Of a view: TensorView::desc().
  const core::TensorDesc& desc() const { return desc_; }
  /// Null unless this is a view.
  const TensorView* view() const { return view_.get(); }
  bool is_in_place() const { return !view_ || view_->is_in_place(); }

  const Storage& storage() const { return *storage_; }

  /// By what its memory is shared, which is another session's; or null.
  const std::shared_ptr<TensorShare>& origin() const { return origin_; }

  /// Lets tenants read it, by the share that it has or else by `share`.
  /// Errors  as TensorShares::Add().
  absl::StatusOr<std::shared_ptr<TensorShare>> Share(
      std::shared_ptr<TensorShare> share,
      absl::Span<const std::string> tenants);
  /// They may not any more; none: nobody. Returns who may still.
  std::vector<std::string> Unshare(absl::Span<const std::string> tenants);
  /// Its session has forgotten it: nobody may read it, and never again.
  void Forget();

  /// Address of the first element.
  /// Requires  Allocate().ok() before; is_in_place().
  std::byte* first() const { return storage_->data() + desc_.offset_bytes(); }

  /// Bytes of span_bytes() that have come.
  int64_t committed_bytes() const {
    if (!view_) return storage_->committed_bytes();
    return state() == TensorState::kReady ? desc_.span_bytes() : 0;
  }

  /// True when writing it leaves other contents of the storage as they are.
  bool is_part() const { return view_ != nullptr && !view_->covers_storage(); }
  /// As Storage::BeginWrite().
  /// Errors  PERMISSION_DENIED, reason TENSOR_READ_ONLY: it is another
  /// session's.
  absl::Status BeginWrite() {
    return origin_ != nullptr ? ReadOnly() : storage_->BeginWrite(is_part());
  }

  /// As Storage::BeginUpload().
  /// Errors  INVALID_ARGUMENT, reason TENSOR_IS_VIEW. PERMISSION_DENIED, reason
  ///         TENSOR_READ_ONLY.
  absl::Status BeginUpload(int64_t offset_bytes) {
    if (origin_ != nullptr) return ReadOnly();
    if (view_) {
      return core::InvalidArgument("TENSOR_IS_VIEW", "tensor ", name_,
                                   " is a view, into which nothing can be "
                                   "uploaded; permute a tensor into it");
    }
    return storage_->BeginUpload(offset_bytes);
  }

  // As Storage has them.
  absl::Status Allocate() { return storage_->Allocate(); }
  bool has_memory() const { return storage_->has_memory(); }
  TensorState state() const { return storage_->state(); }
  uint64_t version() const { return storage_->version(); }
  absl::Status BeginRead() {
    return Told(origin_ != nullptr ? storage_->BeginForeignRead()
                                   : storage_->BeginRead());
  }
  void EndRead() {
    origin_ != nullptr ? storage_->EndForeignRead() : storage_->EndRead();
  }
  absl::Status CheckReady() const { return Told(storage_->CheckReady()); }
  absl::Status CheckSettled() const { return Told(storage_->CheckSettled()); }
  void StartWrite() { storage_->StartWrite(is_part()); }
  void Written() { storage_->Written(); }
  void EndWrite(WriteResult result) { storage_->EndWrite(result, is_part()); }
  bool awaits_write() const { return storage_->awaits_write(); }
  bool in_use() const { return storage_->in_use(); }
  void Commit(int64_t bytes) { storage_->Commit(bytes); }
  void EndUpload() { storage_->EndUpload(); }

 private:
  absl::Status ReadOnly() const;
  /// `status` without the name that the memory's owner has for it.
  absl::Status Told(absl::Status status) const;

  const std::string name_;
  const std::string device_;
  const core::TensorDesc desc_;
  const std::unique_ptr<const TensorView> view_;  // null: not a view
  const std::shared_ptr<Storage> storage_;
  const std::shared_ptr<TensorShare> origin_;  // or null
  absl::Mutex share_mutex_;
  std::shared_ptr<TensorShare> share_ ABSL_GUARDED_BY(share_mutex_);  // or null
  bool is_forgotten_ ABSL_GUARDED_BY(share_mutex_) = false;
};

}  // namespace tensord::server
