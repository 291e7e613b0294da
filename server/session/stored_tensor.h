// A tensor of a session.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "core/tensor/tensor.h"
#include "server/session/storage.h"

namespace tensord::server {

/// A tensor that requests look up by name and keep alive while they use it: a
/// name, what it is, and the storage that holds its contents.
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

  const std::string& name() const { return name_; }
  const std::string& device() const { return device_; }
  const core::TensorDesc& desc() const { return desc_; }

  /// Address of the first element.
  /// Requires  Allocate().ok() before.
  std::byte* first() const { return storage_->data() + desc_.offset_bytes(); }

  // As Storage has them.
  absl::Status Allocate() { return storage_->Allocate(); }
  TensorState state() const { return storage_->state(); }
  int64_t committed_bytes() const { return storage_->committed_bytes(); }
  uint64_t version() const { return storage_->version(); }
  absl::Status BeginRead() { return storage_->BeginRead(); }
  void EndRead() { storage_->EndRead(); }
  absl::Status CheckReady() const { return storage_->CheckReady(); }
  absl::Status CheckSettled() const { return storage_->CheckSettled(); }
  absl::Status BeginWrite() { return storage_->BeginWrite(); }
  void StartWrite() { storage_->StartWrite(); }
  void Written() { storage_->Written(); }
  void EndWrite(WriteResult result) { storage_->EndWrite(result); }
  bool awaits_write() const { return storage_->awaits_write(); }
  bool in_use() const { return storage_->in_use(); }
  absl::Status BeginUpload(int64_t offset_bytes) {
    return storage_->BeginUpload(offset_bytes);
  }
  void Commit(int64_t bytes) { storage_->Commit(bytes); }
  void EndUpload() { storage_->EndUpload(); }

 private:
  const std::string name_;
  const std::string device_;
  const core::TensorDesc desc_;
  const std::shared_ptr<Storage> storage_;
};

}  // namespace tensord::server
