#include "server/rpc/tensor_service.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "server/execution/operation.h"
#include "server/identity/token_file.h"
#include "server/rpc/convert.h"
#include "server/rpc/coroutine/carry.h"
#include "server/rpc/coroutine/on_device.h"
#include "server/rpc/coroutine/unheard.h"
#include "server/session/contents_copy.h"

namespace tensord::rpc {
namespace {

constexpr int64_t kSoonClearedBytes = int64_t{1} << 20;

/// The tenants that a request names.
template <typename Request>
absl::StatusOr<std::vector<std::string>> TenantsOf(const Request& request) {
  constexpr int kMaxTenants = 100;
  if (request.tenants_size() > kMaxTenants) {
    return core::InvalidArgument("TOO_MANY_TENANTS", "the request names ",
                                 request.tenants_size(),
                                 " tenants, wanted at most ", kMaxTenants);
  }
  std::vector<std::string> tenants(request.tenants().begin(),
                                   request.tenants().end());
  for (const std::string& tenant : tenants) {
    if (server::IsTenantName(tenant)) continue;
    return core::InvalidArgument("TENANT_MALFORMED", "'", tenant.substr(0, 100),
                                 "' is no name of a tenant");
  }
  return tenants;
}

/// Copies a tensor to another, perhaps on another device, in its turn on the
/// source's.
class Copying final : public server::DeviceWorker::Job {
 public:
  Copying(const server::StoredTensor& from, server::StoredTensor& to,
          server::ContentsCopy contents)
      : from_(from), to_(to), contents_(std::move(contents)) {}

  Outcome Launch(core::Stream& stream) override {
    if (const absl::Status prepared = Prepare(); !prepared.ok()) {
      return {.status = prepared, .may_be_repeated = true};
    }
    return {.status = contents_.Queue(stream)};
  }
  void Complete(const absl::Status&,
                const server::DeviceWorker::Times&) override {}

 private:
  absl::Status Prepare() {
    TENSORD_RETURN_IF_ERROR(from_.CheckReady());
    TENSORD_RETURN_IF_ERROR(to_.Allocate());
    return contents_.Allocate();
  }

  const server::StoredTensor& from_;
  server::StoredTensor& to_;
  server::ContentsCopy contents_;
};

}  // namespace

void TensorService::ServeOn(LoopGroup& loops) {
  loops.Serve(raw(), "CreateTensor", *this, &TensorService::Create);
  loops.Serve(raw(), "UploadTensor", *this, &TensorService::Upload);
  loops.Serve(raw(), "DownloadTensor", *this, &TensorService::Download);
  loops.Serve(raw(), "DescribeTensor", *this, &TensorService::Describe);
  loops.Serve(raw(), "ListTensors", *this, &TensorService::List);
  loops.Serve(raw(), "DeleteTensor", *this, &TensorService::Delete);
  loops.Serve(raw(), "DeleteTensors", *this, &TensorService::DeleteAll);
  loops.Serve(raw(), "CopyTensor", *this, &TensorService::Copy);
  loops.Serve(raw(), "ShareTensor", *this, &TensorService::Share);
  loops.Serve(raw(), "UnshareTensor", *this, &TensorService::Unshare);
  loops.Serve(raw(), "OpenSharedTensor", *this, &TensorService::OpenShared);
  loops.Serve(raw(), "AdoptTensor", *this, &TensorService::Adopt);
  loops.Serve(raw(), "StoreTensor", *this, &TensorService::Store);
}

Task<absl::Status> TensorService::AwaitQueued(Call& call) {
  FunctionJob nothing([](core::Stream&) { return JobOutcome(); });
  OnDevice queued(call, call.session().device().worker(),
                  call.session().client(), nothing);
  co_return co_await queued;
}

absl::StatusOr<std::shared_ptr<server::StoredTensor>> TensorService::Enter(
    Call& call, absl::string_view tensor, int64_t bytes) const {
  TENSORD_ASSIGN_OR_RETURN(const auto session,
                           SessionNameOf(tensor, server::kTensors));
  TENSORD_RETURN_IF_ERROR(context_.door.Enter(call, *session, bytes));
  return call.session().Find(tensor);
}

Task<absl::StatusOr<v1::CreateTensorResponse>> TensorService::Create(
    Call& call, const v1::CreateTensorRequest& request) {
  server::Session& session = call.session();
  auto desc = FromProto(request.element_type(), request.layout());
  if (!desc.ok()) co_return desc.status();
  const auto tensor = session.Add(request.tensor_id(), *std::move(desc));
  if (!tensor.ok()) co_return tensor.status();
  server::StoredTensor& created = **tensor;
  absl::Status allocated;
  // Memory that was another tenant's is cleared.
  const bool may_clear = session.device().shared_memory().clears() &&
                         created.desc().span_bytes() > kSoonClearedBytes;
  if (core::IsDense(created.desc().layout) && !may_clear) {
    allocated = created.Allocate();
  } else {  // Zeroes its memory: too slow for a Loop.
    FunctionJob allocate([&](core::Stream&) {
      return JobOutcome{.status = created.Allocate(), .may_be_repeated = true};
    });
    OnDevice queued(call, session.device().worker(), session.client(),
                    allocate);
    allocated = co_await queued;
  }
  if (!allocated.ok()) {
    session.Remove(created);
    co_return allocated;
  }
  RemoveUnheard(call, request.tensor_id(), call.shared_session(), *tensor);
  v1::CreateTensorResponse response;
  *response.mutable_tensor() = ToProto(created);
  co_return response;
}

Task<absl::StatusOr<v1::DescribeTensorResponse>> TensorService::Describe(
    Call& call, const v1::DescribeTensorRequest& request) {
  const auto tensor = call.session().Find(request.tensor());
  if (!tensor.ok()) co_return tensor.status();
  v1::DescribeTensorResponse response;
  *response.mutable_tensor() = ToProto(**tensor);
  co_return response;
}

Task<absl::StatusOr<v1::ListTensorsResponse>> TensorService::List(
    Call& call, const v1::ListTensorsRequest& request) {
  const absl::StatusOr<int> asked = PageSize(request.page_size());
  if (!asked.ok()) co_return asked.status();
  const int page_size = *asked;
  const auto page = call.session().List(request.page_token(), page_size + 1);
  v1::ListTensorsResponse response;
  for (int i = 0; i < std::min<int>(page_size, std::ssize(page)); ++i) {
    *response.add_tensors() = ToProto(*page[i]);
  }
  if (std::ssize(page) > page_size) {
    response.set_next_page_token(page[page_size - 1]->name());
  }
  co_return response;
}

Task<absl::StatusOr<v1::DeleteTensorResponse>> TensorService::Delete(
    Call& call, const v1::DeleteTensorRequest& request) {
  const absl::Status removed = call.session().Remove(request.tensor());
  if (!removed.ok()) co_return removed;
  co_return v1::DeleteTensorResponse();
}

Task<absl::StatusOr<v1::DeleteTensorsResponse>> TensorService::DeleteAll(
    Call& call, const v1::DeleteTensorsRequest& request) {
  constexpr int kMaxNames = 1000;
  if (request.tensors_size() > kMaxNames) {
    co_return core::InvalidArgument("TOO_MANY_NAMES", "the request names ",
                                    request.tensors_size(),
                                    " tensors, wanted at most ", kMaxNames);
  }
  absl::Status first;
  v1::DeleteTensorsResponse response;
  for (const std::string& name : request.tensors()) {
    const auto session = SessionNameOf(name, server::kTensors);
    const absl::Status removed =
        session.ok() ? call.session().Remove(name) : session.status();
    if (removed.ok()) response.set_deleted_count(response.deleted_count() + 1);
    first.Update(removed);
  }
  if (!first.ok()) {
    co_return core::Error(
        first.code(), core::ReasonOf(first),
        absl::StrCat(first.message(), "; ", response.deleted_count(), " of ",
                     request.tensors_size(), " tensors were deleted"));
  }
  co_return response;
}

Task<absl::StatusOr<v1::CopyTensorResponse>> TensorService::Copy(
    Call& call, const v1::CopyTensorRequest& request) {
  const std::shared_ptr<server::Session>& session = call.shared_session();
  const auto source = session->Find(request.source());
  if (!source.ok()) co_return source.status();
  const server::TensorView* const view = (*source)->view();
  core::TensorDesc desc =
      view == nullptr ? (*source)->desc() : view->packed_desc();
  if (request.has_layout()) {
    auto asked = FromProto(ToProto(desc.element_type), request.layout());
    if (!asked.ok()) co_return asked.status();
    desc = *std::move(asked);
  }
  if (!request.session().empty() && request.session() != session->name()) {
    if (view != nullptr) {
      co_return core::InvalidArgument(
          "TENSOR_IS_VIEW", "tensor ", request.source(),
          " is a view; copy it within its session, and that to another one");
    }
    co_return co_await CopyAcross(call, request, *source, std::move(desc));
  }
  const auto copy =
      co_await CopyWithin(call, **source, request.tensor_id(), std::move(desc));
  if (!copy.ok()) co_return copy.status();
  RemoveUnheard(call, request.tensor_id(), session, *copy);
  v1::CopyTensorResponse response;
  *response.mutable_tensor() = ToProto(**copy);
  co_return response;
}

Task<absl::StatusOr<std::shared_ptr<server::StoredTensor>>>
TensorService::CopyWithin(Call& call, const server::StoredTensor& source,
                          absl::string_view tensor_id, core::TensorDesc desc) {
  auto copy = call.session().Add(tensor_id, std::move(desc));
  if (!copy.ok()) co_return copy.status();
  const absl::Status copied = co_await CopyTo(call, source, **copy);
  if (!copied.ok()) {
    call.session().Remove(**copy);
    co_return copied;
  }
  co_return *std::move(copy);
}

Task<absl::Status> TensorService::CopyTo(Call& call,
                                         const server::StoredTensor& source,
                                         const server::StoredTensor& target) {
  const std::shared_ptr<server::Session>& session = call.shared_session();
  const auto run = co_await Carry(call, session, [&] {
    return server::PrepareOperation(context_.engine, session,
                                    server::CopyRequest(source, target),
                                    context_.limits.max_inline_bytes);
  });
  co_return run.status();
}

Task<absl::StatusOr<v1::ShareTensorResponse>> TensorService::Share(
    Call& call, const v1::ShareTensorRequest& request) {
  const auto tenants = TenantsOf(request);
  if (!tenants.ok()) co_return tenants.status();
  if (tenants->empty()) {
    co_return core::InvalidArgument("TENANT_MISSING",
                                    "the request names no tenant");
  }
  const auto tensor = call.session().Find(request.tensor());
  if (!tensor.ok()) co_return tensor.status();
  const auto share = context_.sessions.shares().Add(*tensor, *tenants);
  if (!share.ok()) co_return share.status();
  v1::ShareTensorResponse response;
  response.set_share((*share)->name());
  for (const std::string& tenant : (*share)->tenants()) {
    response.add_tenants(tenant);
  }
  co_return response;
}

Task<absl::StatusOr<v1::UnshareTensorResponse>> TensorService::Unshare(
    Call& call, const v1::UnshareTensorRequest& request) {
  const auto tenants = TenantsOf(request);
  if (!tenants.ok()) co_return tenants.status();
  const auto tensor = call.session().Find(request.tensor());
  if (!tensor.ok()) co_return tensor.status();
  v1::UnshareTensorResponse response;
  for (const std::string& tenant : (*tensor)->Unshare(*tenants)) {
    response.add_tenants(tenant);
  }
  co_return response;
}

Task<absl::StatusOr<v1::OpenSharedTensorResponse>> TensorService::OpenShared(
    Call& call, const v1::OpenSharedTensorRequest& request) {
  const auto share = context_.sessions.shares().Find(request.share());
  if (!share.ok()) co_return share.status();
  const auto opened =
      (*share)->Open(call.shared_session(), request.tensor_id());
  if (!opened.ok()) co_return opened.status();
  RemoveUnheard(call, request.tensor_id(), call.shared_session(), *opened);
  v1::OpenSharedTensorResponse response;
  *response.mutable_tensor() = ToProto(**opened);
  co_return response;
}

Task<absl::StatusOr<v1::CopyTensorResponse>> TensorService::CopyAcross(
    Call& call, const v1::CopyTensorRequest& request,
    std::shared_ptr<server::StoredTensor> source, core::TensorDesc desc) {
  server::Session& session = call.session();
  if (desc.layout != source->desc().layout) {
    co_return core::InvalidArgument(
        "LAYOUT_DIFFERS", "the copy of ", source->name(),
        " in another session has another layout, wanted the source's own");
  }
  const auto target = context_.door.FindSession(call, request.session());
  if (!target.ok()) co_return target.status();
  const server::SessionUse use(*target);
  const absl::Status healthy = (*target)->device().health();
  if (!healthy.ok()) co_return healthy;
  const auto added = (*target)->Add(request.tensor_id(), std::move(desc));
  if (!added.ok()) co_return added.status();
  server::StoredTensor& copy = **added;

  // An upload to all others: operations of the target's session, which are on
  // another stream, have to stay away from it.
  absl::Status status = copy.BeginUpload(0);
  if (!status.ok()) {
    (*target)->Remove(copy);
    co_return status;
  }
  Copying copying(
      *source, copy,
      server::ContentsCopy(*source, session.device(), *session.staging_memory(),
                           copy, (*target)->device()));
  OnDevice queued(call, session.device().worker(), session.client());
  {  // It takes its turn among the operations of the source's session.
    absl::MutexLock order(&session.order());
    status = source->BeginRead();
    if (status.ok()) queued.Queue(copying);
  }
  if (status.ok()) {
    status = co_await queued;
    source->EndRead();
  }
  if (status.ok()) copy.Commit(copy.desc().span_bytes());
  copy.EndUpload();
  if (!status.ok()) {
    (*target)->Remove(copy);
    co_return status;
  }
  RemoveUnheard(call, request.tensor_id(), *target, *added);
  v1::CopyTensorResponse response;
  *response.mutable_tensor() = ToProto(copy);
  co_return response;
}

}  // namespace tensord::rpc
