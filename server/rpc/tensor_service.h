// Handlers of TensorService.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <memory>

#include "server/rpc/service.h"
#include "server/shared_memory/region.h"
#include "tensord/v1/tensor.pb.h"

namespace tensord::rpc {

/// Uploads and downloads are raw: their payloads never become messages.
class TensorService final : public Service {
 public:
  explicit TensorService(ServiceContext& context)
      : Service(ServiceBeside<v1::CreateTensorRequest>("TensorService"),
                {"UploadTensor", "DownloadTensor"}),
        context_(context) {}

  void ServeOn(LoopGroup& loops) override;

 private:
  Task<absl::StatusOr<v1::CreateTensorResponse>> Create(
      Call& call, const v1::CreateTensorRequest& request);
  Task<absl::StatusOr<v1::UploadTensorResponse>> Upload(Call& call, Reader in);
  Task<absl::Status> Download(Call& call,
                              const v1::DownloadTensorRequest& request,
                              Writer<ByteBuffer> out);
  Task<absl::StatusOr<v1::DescribeTensorResponse>> Describe(
      Call& call, const v1::DescribeTensorRequest& request);
  Task<absl::StatusOr<v1::ListTensorsResponse>> List(
      Call& call, const v1::ListTensorsRequest& request);
  Task<absl::StatusOr<v1::DeleteTensorResponse>> Delete(
      Call& call, const v1::DeleteTensorRequest& request);
  Task<absl::StatusOr<v1::DeleteTensorsResponse>> DeleteAll(
      Call& call, const v1::DeleteTensorsRequest& request);
  Task<absl::StatusOr<v1::CopyTensorResponse>> Copy(
      Call& call, const v1::CopyTensorRequest& request);
  /// Copies a tensor of the call's session to a new one of it.
  Task<absl::StatusOr<std::shared_ptr<server::StoredTensor>>> CopyWithin(
      Call& call, const server::StoredTensor& source,
      absl::string_view tensor_id, core::TensorDesc desc);
  /// Copies the elements of a tensor of the call's session to another's.
  Task<absl::Status> CopyTo(Call& call, const server::StoredTensor& source,
                            const server::StoredTensor& target);
  /// Copy() from one session to another.
  Task<absl::StatusOr<v1::CopyTensorResponse>> CopyAcross(
      Call& call, const v1::CopyTensorRequest& request,
      std::shared_ptr<server::StoredTensor> source, core::TensorDesc desc);

  Task<absl::StatusOr<v1::ShareTensorResponse>> Share(
      Call& call, const v1::ShareTensorRequest& request);
  Task<absl::StatusOr<v1::UnshareTensorResponse>> Unshare(
      Call& call, const v1::UnshareTensorRequest& request);
  Task<absl::StatusOr<v1::OpenSharedTensorResponse>> OpenShared(
      Call& call, const v1::OpenSharedTensorRequest& request);

  // In shared_memory_calls.cc.
  Task<absl::StatusOr<v1::AdoptTensorResponse>> Adopt(
      Call& call, const v1::AdoptTensorRequest& request);
  Task<absl::StatusOr<v1::StoreTensorResponse>> Store(
      Call& call, const v1::StoreTensorRequest& request);
  /// A tensor in a region that the call's session has, and that its device
  /// reaches from then on.
  Task<absl::StatusOr<std::shared_ptr<server::StoredTensor>>> AddIn(
      Call& call, shared_memory::Region& region, absl::string_view tensor_id,
      const core::TensorDesc& desc, int64_t offset_bytes);

  /// Waits for what the session had queued when the call came.
  Task<absl::Status> AwaitQueued(Call& call);
  /// The tensor of that name, whose session the call has entered then with
  /// `bytes`.
  absl::StatusOr<std::shared_ptr<server::StoredTensor>> Enter(
      Call& call, absl::string_view tensor, int64_t bytes) const;

  ServiceContext& context_;
};

}  // namespace tensord::rpc
