// What gRPC's completion queues deliver.
#pragma once

#include <grpcpp/impl/codegen/completion_queue_tag.h>

namespace tensord::rpc {

/// Something that is waited for, by gRPC's C interface or by the C++ one.
class Tag : public grpc::internal::CompletionQueueTag {
 public:
  /// On the Loop's thread.
  virtual void Fire(bool ok) = 0;

  /// What gRPC is given, and delivers.
  void* AsTag() { return static_cast<CompletionQueueTag*>(this); }
  static Tag* Of(void* delivered) {
    return static_cast<Tag*>(static_cast<CompletionQueueTag*>(delivered));
  }

 protected:
  ~Tag() override = default;

 private:
  friend class Loop;
  bool FinalizeResult(void**, bool*) final { return true; }

  Tag* next_ = nullptr;
};

}  // namespace tensord::rpc
