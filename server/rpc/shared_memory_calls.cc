// Handlers of what clients on the same host do with memory that both see.
#include <memory>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "core/base/status.h"
#include "server/rpc/convert.h"
#include "server/rpc/coroutine/in_background.h"
#include "server/rpc/coroutine/unheard.h"
#include "server/rpc/session_service.h"
#include "server/rpc/tensor_service.h"

namespace tensord::rpc {
namespace {

absl::StatusOr<shared_memory::Broker*> BrokerOf(const ServiceContext& context) {
  if (context.shared_memory == nullptr) {
    return core::FailedPrecondition(
        "SHARED_MEMORY_OFF",
        "the server takes no shared memory: it was told so "
        "(--shared-memory=off), or has no address of its host alone");
  }
  return context.shared_memory;
}

/// The region of that number, with a tensor of that kind in it.
absl::StatusOr<std::shared_ptr<shared_memory::Region>> RegionFor(
    const ServiceContext& context, const Call& call, int64_t number,
    const core::TensorDesc& desc, int64_t offset_bytes) {
  TENSORD_ASSIGN_OR_RETURN(const auto* const broker, BrokerOf(context));
  TENSORD_ASSIGN_OR_RETURN(
      auto region, broker->Find(call.session(), static_cast<uint64_t>(number)));
  TENSORD_RETURN_IF_ERROR(core::ValidateTensor(desc));
  TENSORD_RETURN_IF_ERROR(region->Check(desc, offset_bytes));
  return region;
}

}  // namespace

Task<absl::StatusOr<v1::OpenSharedMemoryResponse>>
SessionService::OpenSharedMemory(Call& call,
                                 const v1::OpenSharedMemoryRequest& request) {
  const auto broker = BrokerOf(context_);
  if (!broker.ok()) co_return broker.status();
  const core::DeviceInfo& device = call.session().device().info();
  if (!device.uses_host_memory && !request.takes_copies()) {
    co_return core::FailedPrecondition(
        "SHARED_MEMORY_NEEDS_HOST_DEVICE", "the session is on ", device.name,
        ", whose memory is not the host's, and this client knows of no other");
  }
  const auto ticket = (*broker)->Invite(call.shared_session());
  if (!ticket.ok()) co_return ticket.status();
  v1::OpenSharedMemoryResponse response;
  for (const std::string& address : (*broker)->addresses()) {
    response.add_sockets(address);
  }
  response.set_ticket(ticket->data(), ticket->size());
  response.set_copies(!device.uses_host_memory);
  co_return response;
}

Task<absl::StatusOr<std::shared_ptr<server::StoredTensor>>>
TensorService::AddIn(Call& call, shared_memory::Region& region,
                     absl::string_view tensor_id, const core::TensorDesc& desc,
                     int64_t offset_bytes) {
  server::Device& device = call.session().device();
  if (!device.info().uses_host_memory && !region.is_pinned()) {
    absl::Status pinned;
    auto pin = [&] {
      pinned = region.Pin(
          [&](void* start, int64_t bytes) { return device.Pin(start, bytes); });
    };
    const absl::Status waited = co_await InBackground(
        call, context_.preparer.background(), call.session().client(), pin);
    if (!waited.ok()) co_return waited;
    if (!pinned.ok()) co_return pinned;
  }
  co_return call.session().Adopt(tensor_id, desc, [&](std::string name) {
    return region.Adopt(std::move(name), desc, offset_bytes);
  });
}

Task<absl::StatusOr<v1::AdoptTensorResponse>> TensorService::Adopt(
    Call& call, const v1::AdoptTensorRequest& request) {
  const auto desc = FromProto(request.element_type(), request.layout());
  if (!desc.ok()) co_return desc.status();
  const int64_t offset = request.offset_bytes();
  const auto region =
      RegionFor(context_, call, request.region(), *desc, offset);
  if (!region.ok()) co_return region.status();
  if (desc->element_type == core::ElementType::kBool) {
    // Kernels read bool, of which other bytes than 0 and 1 are none.
    co_return core::InvalidArgument(
        "SHARED_MEMORY_BOOL",
        "bool elements are not read where a client may write other bytes at "
        "any time; upload them");
  }
  const bool is_copied =
      !call.session().device().info().uses_host_memory && !request.in_place();
  const auto adopted = co_await AddIn(
      call, **region,
      is_copied ? absl::string_view() : absl::string_view(request.tensor_id()),
      *desc, offset);
  if (!adopted.ok()) co_return adopted.status();
  std::shared_ptr<server::StoredTensor> tensor = *adopted;
  if (is_copied) {
    // Nobody else has heard of it.
    const absl::Cleanup remove = [&] { call.session().Remove(**adopted); };
    auto copy =
        co_await CopyWithin(call, **adopted, request.tensor_id(), *desc);
    if (!copy.ok()) co_return copy.status();
    tensor = *std::move(copy);
    context_.metrics.uploaded_bytes().Increment(
        static_cast<double>(desc->span_bytes()));
  }
  RemoveUnheard(call, request.tensor_id(), call.shared_session(), tensor);
  v1::AdoptTensorResponse response;
  *response.mutable_tensor() = ToProto(*tensor);
  co_return response;
}

Task<absl::StatusOr<v1::StoreTensorResponse>> TensorService::Store(
    Call& call, const v1::StoreTensorRequest& request) {
  const std::shared_ptr<server::Session>& session = call.shared_session();
  const auto source = session->Find(request.tensor());
  if (!source.ok()) co_return source.status();
  const auto desc =
      FromProto(ToProto((*source)->desc().element_type), request.layout());
  if (!desc.ok()) co_return desc.status();
  const auto region = RegionFor(context_, call, request.region(), *desc,
                                request.offset_bytes());
  if (!region.ok()) co_return region.status();
  const auto target =
      co_await AddIn(call, **region, "", *desc, request.offset_bytes());
  if (!target.ok()) co_return target.status();
  // Nobody else has heard of it.
  const absl::Cleanup remove = [&] { session->Remove(**target); };
  const absl::Status copied = co_await CopyTo(call, **source, **target);
  if (!copied.ok()) co_return copied;
  context_.metrics.downloaded_bytes().Increment(
      static_cast<double>(desc->span_bytes()));
  co_return v1::StoreTensorResponse();
}

}  // namespace tensord::rpc
