#include "server/rpc/compute_service.h"

#include <memory>
#include <utility>

#include "absl/strings/string_view.h"
#include "server/rpc/convert.h"
#include "server/rpc/on_device.h"
#include "server/session/operation.h"

namespace tensord::rpc {
namespace {

struct Timing {
  absl::Time arrived = absl::Now();
  absl::Time started;
  absl::Time finished;
};

void FillResult(const server::Operation& operation, const Timing& timing,
                v1::Result* result) {
  const server::StoredTensor& d = operation.output();
  *result->mutable_tensor() = ToProto(d);
  v1::ExecutionReport& report = *result->mutable_report();
  const absl::string_view kernel = operation.report().kernel;
  report.set_kernel(kernel.data(), kernel.size());
  report.set_plan_cache_hit(operation.report().plan_cache_hit);
  report.set_workspace_bytes(operation.report().workspace_bytes);
  *report.mutable_queued() = ToProto(timing.started - timing.arrived);
  *report.mutable_executed() = ToProto(timing.finished - timing.started);
  if (operation.output_is_inline()) {
    result->set_data(d.first(), static_cast<size_t>(d.desc().span_bytes()));
  }
}

}  // namespace

void ComputeService::ServeOn(LoopGroup& loops) {
  using S = v1::ComputeService::AsyncService;
  loops.Serve(service_, &S::RequestPermute, [this](auto& call, auto& q) {
    return Compute<v1::PermuteResponse>(call, q);
  });
  loops.Serve(service_, &S::RequestElementwise, [this](auto& call, auto& q) {
    return Compute<v1::ElementwiseResponse>(call, q);
  });
  loops.Serve(service_, &S::RequestReduce, [this](auto& call, auto& q) {
    return Compute<v1::ReduceResponse>(call, q);
  });
  loops.Serve(service_, &S::RequestContract, [this](auto& call, auto& q) {
    return Compute<v1::ContractResponse>(call, q);
  });
}

template <typename Response, typename Request>
Task<absl::StatusOr<Response>> ComputeService::Compute(Call& call,
                                                       const Request& request) {
  Timing timing;
  const auto session = context_.sessions.Find(request.session());
  if (!session.ok()) co_return session.status();
  const server::SessionUse use(*session);
  const auto asked = FromProto(request);
  if (!asked.ok()) co_return asked.status();
  absl::ReleasableMutexLock order(&(*session)->order());
  auto operation = server::Operation::Prepare(context_.engine, *session, *asked,
                                              context_.limits.max_inline_bytes);
  absl::Status status = operation.status();
  if (status.ok()) {
    auto run = [&](core::Stream& stream) {
      timing.started = absl::Now();
      const absl::Status ran = (*operation)->Run(stream);
      timing.finished = absl::Now();
      return ran;
    };
    status = co_await OnDevice(call, (*session)->device().worker(),
                               (*session)->number(), run, &order);
  } else {
    order.Release();
  }
  const absl::string_view name = server::NameOf(asked->kind);
  context_.statistics.CountOperation(name, NameOf(status.code()));
  if (!status.ok()) {
    context_.log.Event(status.code() == absl::StatusCode::kInternal
                           ? server::LogLevel::kError
                           : server::LogLevel::kDebug,
                       "operation_failed",
                       {{"session", request.session()},
                        {"operation", name},
                        {"code", NameOf(status.code())},
                        {"message", status.message()}});
    co_return status;
  }
  context_.log.Event(server::LogLevel::kDebug, "operation_done",
                     {{"session", request.session()},
                      {"operation", name},
                      {"kernel", (*operation)->report().kernel},
                      {"microseconds", absl::ToInt64Microseconds(
                                           timing.finished - timing.started)}});
  Response response;
  FillResult(**operation, timing, response.mutable_result());
  co_return response;
}

}  // namespace tensord::rpc
