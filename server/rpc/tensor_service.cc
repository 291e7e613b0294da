#include "server/rpc/tensor_service.h"

#include <algorithm>
#include <utility>

#include "core/base/status.h"
#include "server/rpc/convert.h"
#include "server/rpc/coroutine/on_device.h"
#include "server/session/contents_copy.h"
#include "server/session/operation.h"

namespace tensord::rpc {
namespace {

/// Allocates a tensor's memory on a device's thread.
struct Allocating {
  server::StoredTensor& tensor;

  absl::Status Launch(core::Stream&) const { return tensor.Allocate(); }
  bool CanLaunchAgain() const { return true; }
};

/// Copies a tensor to another, perhaps on another device, in its turn on the
/// source's.
struct Copying {
  const server::StoredTensor& from;
  server::StoredTensor& to;
  server::ContentsCopy contents;
  bool has_queued = false;

  absl::Status Launch(core::Stream& stream) {
    TENSORD_RETURN_IF_ERROR(from.CheckReady());
    TENSORD_RETURN_IF_ERROR(to.Allocate());
    TENSORD_RETURN_IF_ERROR(contents.Allocate());
    has_queued = true;
    return contents.Queue(stream);
  }
  bool CanLaunchAgain() const { return !has_queued; }
};

}  // namespace

void TensorService::ServeOn(LoopGroup& loops) {
  loops.Serve(service_, &Service::RequestCreateTensor,
              [this](auto& call, auto& q) { return Create(call, q); });
  loops.Serve(
      service_, &Service::RequestUploadTensor,
      [this](auto& call, auto in) { return Upload(call, in); },
      Traffic::kTransfers);
  loops.Serve(
      service_, &Service::RequestDownloadTensor,
      [this](auto& call, auto& q, auto out) { return Download(call, q, out); },
      Traffic::kTransfers);
  loops.Serve(service_, &Service::RequestDescribeTensor,
              [this](auto& call, auto& q) { return Describe(call, q); });
  loops.Serve(service_, &Service::RequestListTensors,
              [this](auto& call, auto& q) { return List(call, q); });
  loops.Serve(service_, &Service::RequestDeleteTensor,
              [this](auto& call, auto& q) { return Delete(call, q); });
  loops.Serve(service_, &Service::RequestCopyTensor,
              [this](auto& call, auto& q) { return Copy(call, q); });
}

Task<absl::Status> TensorService::AwaitQueued(Call& call,
                                              const server::Session& session) {
  auto nothing = [](core::Stream&) { return absl::OkStatus(); };
  co_return co_await OnDevice(call, session.device().worker(), session.number(),
                              nothing);
}

Task<absl::StatusOr<v1::CreateTensorResponse>> TensorService::Create(
    Call& call, const v1::CreateTensorRequest& request) {
  const auto session = context_.sessions.Find(request.session());
  if (!session.ok()) co_return session.status();
  const server::SessionUse use(*session);
  auto desc = FromProto(request.element_type(), request.layout());
  if (!desc.ok()) co_return desc.status();
  const auto tensor = (*session)->Add(request.tensor_id(), *std::move(desc));
  if (!tensor.ok()) co_return tensor.status();
  server::StoredTensor& created = **tensor;
  absl::Status allocated;
  if (core::IsDense(created.desc().layout)) {
    allocated = created.Allocate();
  } else {  // Zeroes its memory: too slow for a Loop.
    Allocating allocate{created};
    allocated = co_await OnDevice(call, (*session)->device().worker(),
                                  (*session)->number(), allocate);
  }
  if (!allocated.ok()) {
    (*session)->Remove(created);
    co_return allocated;
  }
  v1::CreateTensorResponse response;
  *response.mutable_tensor() = ToProto(created);
  co_return response;
}

Task<absl::StatusOr<v1::DescribeTensorResponse>> TensorService::Describe(
    Call&, const v1::DescribeTensorRequest& request) {
  const auto found = context_.FindTensor(request.tensor());
  if (!found.ok()) co_return found.status();
  v1::DescribeTensorResponse response;
  *response.mutable_tensor() = ToProto(*found->tensor);
  co_return response;
}

Task<absl::StatusOr<v1::ListTensorsResponse>> TensorService::List(
    Call&, const v1::ListTensorsRequest& request) {
  const auto session = context_.sessions.Find(request.session());
  if (!session.ok()) co_return session.status();
  const absl::StatusOr<int> asked = PageSize(request.page_size());
  if (!asked.ok()) co_return asked.status();
  const int page_size = *asked;
  const auto page = (*session)->List(request.page_token(), page_size + 1);
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
    Call&, const v1::DeleteTensorRequest& request) {
  const auto found = context_.FindTensor(request.tensor());
  if (!found.ok()) co_return found.status();
  const absl::Status removed = found->session->Remove(request.tensor());
  if (!removed.ok()) co_return removed;
  co_return v1::DeleteTensorResponse();
}

Task<absl::StatusOr<v1::CopyTensorResponse>> TensorService::Copy(
    Call& call, const v1::CopyTensorRequest& request) {
  const auto found = context_.FindTensor(request.source());
  if (!found.ok()) co_return found.status();
  const std::shared_ptr<server::Session>& session = found->session;
  const server::SessionUse use(session);
  const server::TensorView* const view = found->tensor->view();
  core::TensorDesc desc =
      view == nullptr ? found->tensor->desc() : view->packed_desc();
  if (request.has_layout()) {
    auto asked = FromProto(
        static_cast<v1::ElementType>(static_cast<int>(desc.element_type) + 1),
        request.layout());
    if (!asked.ok()) co_return asked.status();
    desc = *std::move(asked);
  }
  if (!request.session().empty() && request.session() != session->name()) {
    if (view != nullptr) {
      co_return core::InvalidArgument(
          "TENSOR_IS_VIEW", "tensor ", request.source(),
          " is a view; copy it within its session, and that to another one");
    }
    co_return co_await CopyAcross(call, request, *found, std::move(desc));
  }
  const auto copy = session->Add(request.tensor_id(), std::move(desc));
  if (!copy.ok()) co_return copy.status();
  // A copy is a permutation that leaves every mode in its place.
  server::OperationRequest permute{.kind = server::OperationKind::kPermute,
                                   .a = {},
                                   .b = {},
                                   .c = {},
                                   .d = {}};
  core::Modes modes;
  for (int i = 0; i < found->tensor->desc().layout.mode_count(); ++i) {
    modes.push_back(i);
  }
  permute.a = server::InputRequest{found->tensor->name(), modes};
  permute.d.tensor = (*copy)->name();
  permute.d.modes = modes;
  absl::ReleasableMutexLock order(&session->order());
  auto operation = server::Operation::Prepare(context_.engine, session, permute,
                                              context_.limits.max_inline_bytes);
  absl::Status status = operation.status();
  if (status.ok()) {
    status = co_await OnDevice(call, session->device().worker(),
                               session->number(), **operation, &order);
  } else {
    order.Release();
  }
  context_.statistics.CountOperation("copy", NameOf(status.code()));
  if (!status.ok()) {
    session->Remove(**copy);
    co_return status;
  }
  v1::CopyTensorResponse response;
  *response.mutable_tensor() = ToProto(**copy);
  co_return response;
}

Task<absl::StatusOr<v1::CopyTensorResponse>> TensorService::CopyAcross(
    Call& call, const v1::CopyTensorRequest& request, FoundTensor source,
    core::TensorDesc desc) {
  if (desc.layout != source.tensor->desc().layout) {
    co_return core::InvalidArgument(
        "LAYOUT_DIFFERS", "the copy of ", source.tensor->name(),
        " in another session has another layout, wanted the source's own");
  }
  const auto target = context_.sessions.Find(request.session());
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
  // It takes its turn among the operations of the source's session.
  absl::ReleasableMutexLock order(&source.session->order());
  status = source.tensor->BeginRead();
  if (!status.ok()) {
    order.Release();
  } else {
    Copying copying{
        *source.tensor, copy,
        server::ContentsCopy(*source.tensor, source.session->device(),
                             *source.session->staging_memory(), copy,
                             (*target)->device())};
    status = co_await OnDevice(call, source.session->device().worker(),
                               source.session->number(), copying, &order);
    source.tensor->EndRead();
  }
  if (status.ok()) copy.Commit(copy.desc().span_bytes());
  copy.EndUpload();
  context_.statistics.CountOperation("copy", NameOf(status.code()));
  if (!status.ok()) {
    (*target)->Remove(copy);
    co_return status;
  }
  v1::CopyTensorResponse response;
  *response.mutable_tensor() = ToProto(copy);
  co_return response;
}

}  // namespace tensord::rpc
