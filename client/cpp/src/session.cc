#include "tensord/session.h"

#include <utility>

#include "client/cpp/src/connection.h"
#include "client/cpp/src/convert.h"
#include "client/cpp/src/listing.h"
#include "client/cpp/src/operation_stream.h"
#include "client/cpp/src/requests.h"
#include "client/cpp/src/results.h"

namespace tensord {

using internal::Channels;
using internal::Connection;
using internal::ElementwiseOperands;
using internal::FromProto;
using internal::InvalidArgument;
using internal::MakeRequest;
using internal::Results;
using internal::ToProto;
using internal::Wrap;
using Compute = v1::ComputeService::Stub;
using Tensors = v1::TensorService::Stub;

namespace {

template <typename Request, typename Options>
absl::StatusOr<Explanation> Explain(Connection& connection,
                                    absl::StatusOr<Request> request,
                                    const Options& options) {
  if (!request.ok()) return request.status();
  Channels& channels = connection.channels();
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const v1::ExplainPlanResponse response,
      channels.Call(channels.plan, &v1::PlanService::Stub::ExplainPlan,
                    Wrap<v1::ExplainPlanRequest>(*std::move(request)),
                    connection.Deadline(options.deadline)));
  return internal::FromProto(response);
}

}  // namespace

/// Runs operations; what they have in common.
struct Session::Running {
  template <typename Request, typename Response>
  static absl::StatusOr<RemoteTensor> Run(
      const std::shared_ptr<Connection>& connection,
      grpc::Status (Compute::*method)(grpc::ClientContext*, const Request&,
                                      Response*),
      const absl::StatusOr<Request>& request, const ExecutionOptions& options) {
    if (!request.ok()) return request.status();
    Channels& channels = connection->channels();
    TENSORD_CLIENT_ASSIGN_OR_RETURN(
        const Response response,
        channels.Call(channels.compute, method, *request,
                      connection->Deadline(options.deadline)));
    return Results::One(connection, response.result(), options.output);
  }

  static absl::StatusOr<std::vector<RemoteTensor>> Run(
      const std::shared_ptr<Connection>& connection,
      const absl::StatusOr<v1::FactorizeRequest>& request,
      const FactorizeOptions& options) {
    if (!request.ok()) return request.status();
    std::vector<const RemoteTensor*> outputs;
    TENSORD_CLIENT_ASSIGN_OR_RETURN(
        const auto places,
        internal::PlacesOf(options, request->has_q() + request->has_r() +
                                        request->has_values()));
    for (const auto& place : places) outputs.push_back(place.output->output);
    Channels& channels = connection->channels();
    TENSORD_CLIENT_ASSIGN_OR_RETURN(
        const v1::FactorizeResponse response,
        channels.Call(channels.compute, &Compute::Factorize, *request,
                      connection->Deadline(options.deadline)));
    return Results::All(connection, response.result(), outputs);
  }
};

/// Prepares operations; what they have in common.
struct Session::Planning {
  template <typename Request>
  static absl::StatusOr<Plan> Prepare(
      const std::shared_ptr<Connection>& connection,
      absl::StatusOr<Request> request, const PlanOptions& options) {
    if (!request.ok()) return request.status();
    auto message = Wrap<v1::CreatePlanRequest>(*std::move(request));
    message.set_plan_id(options.name);
    Channels& channels = connection->channels();
    TENSORD_CLIENT_ASSIGN_OR_RETURN(
        const v1::CreatePlanResponse response,
        channels.Call(channels.plan, &v1::PlanService::Stub::CreatePlan,
                      message, connection->Deadline(options.deadline)));
    return Plan(connection, FromProto(response.plan()));
  }
};

Session::Session(std::shared_ptr<Connection> connection)
    : connection_(std::move(connection)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

absl::StatusOr<Session> Session::Connect(std::string_view address,
                                         const SessionOptions& options) {
  TENSORD_CLIENT_ASSIGN_OR_RETURN(auto connection,
                                  Connection::Open(address, options));
  return Session(std::move(connection));
}

const std::string& Session::name() const { return connection_->session().name; }
const std::string& Session::device() const {
  return connection_->session().device;
}
const Limits& Session::limits() const { return connection_->limits(); }

absl::Status Session::Close() { return connection_->Close(); }

absl::StatusOr<SessionInfo> Session::DescribeSession() const {
  Channels& channels = connection_->channels();
  v1::DescribeSessionRequest request;
  request.set_session(name());
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const v1::DescribeSessionResponse response,
      channels.Call(channels.session,
                    &v1::SessionService::Stub::DescribeSession, request));
  return FromProto(response.session());
}

absl::StatusOr<ServerInfo> Session::Info() const {
  Channels& channels = connection_->channels();
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const v1::GetServerInfoResponse response,
      channels.Call(channels.admin, &v1::AdminService::Stub::GetServerInfo,
                    v1::GetServerInfoRequest()));
  return FromProto(response);
}

absl::StatusOr<ServerStats> Session::Stats() const {
  Channels& channels = connection_->channels();
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const v1::GetServerStatsResponse response,
      channels.Call(channels.admin, &v1::AdminService::Stub::GetServerStats,
                    v1::GetServerStatsRequest()));
  return FromProto(response);
}

absl::StatusOr<RemoteTensor> Session::Create(ElementType element_type,
                                             const Layout& layout,
                                             const CreateOptions& options) {
  Channels& channels = connection_->channels();
  v1::CreateTensorRequest request;
  request.set_session(name());
  request.set_tensor_id(options.name);
  request.set_element_type(static_cast<v1::ElementType>(element_type));
  *request.mutable_layout() = ToProto(layout);
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const v1::CreateTensorResponse response,
      channels.Call(channels.tensor, &Tensors::CreateTensor, request,
                    connection_->Deadline(options.deadline)));
  return RemoteTensor(connection_, FromProto(response.tensor()),
                      /*owns=*/true);
}

absl::StatusOr<RemoteTensor> Session::Upload(const UntypedHostView& view,
                                             const UploadOptions& options) {
  TENSORD_CLIENT_ASSIGN_OR_RETURN(const auto bytes,
                                  internal::BytesOf(view, "the view"));
  const auto size = static_cast<int64_t>(bytes.size());
  // The server reads no bools where other bytes may be written.
  internal::SharedMemory* const memory = view.element_type == ElementType::kBool
                                             ? nullptr
                                             : connection_->MemoryFor(size);
  if (memory != nullptr) {
    v1::AdoptTensorRequest like;
    like.set_tensor_id(options.name);
    like.set_element_type(static_cast<v1::ElementType>(view.element_type));
    *like.mutable_layout() = ToProto(view.layout);
    const absl::StatusOr<v1::Tensor> adopted = memory->Upload(
        connection_->channels(), like, bytes,
        connection_->Transfer(size, options.deadline, options.progress)
            .deadline);
    if (adopted.ok()) {
      if (options.progress) options.progress(size, size);
      return RemoteTensor(connection_, FromProto(*adopted), /*owns=*/true);
    }
    if (!internal::MayGoByGrpc(adopted.status())) return adopted.status();
  }
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      RemoteTensor tensor,
      Create(view.element_type, view.layout,
             {.name = options.name, .deadline = options.deadline}));
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const v1::Tensor filled,
      internal::Upload(connection_->channels(), tensor.name(), bytes,
                       connection_->Transfer(bytes.size(), options.deadline,
                                             options.progress)));
  tensor.info_ = FromProto(filled);
  return tensor;
}

absl::Status Session::Refill(const RemoteTensor& tensor,
                             std::span<const std::byte> bytes,
                             const UploadOptions& options) {
  if (static_cast<int64_t>(bytes.size()) != tensor.info().span_bytes) {
    return InvalidArgument("SIZE_MISMATCH", tensor.name(), " spans ",
                           tensor.info().span_bytes, " bytes, got ",
                           bytes.size());
  }
  return internal::Upload(connection_->channels(), tensor.name(), bytes,
                          connection_->Transfer(bytes.size(), options.deadline,
                                                options.progress))
      .status();
}

absl::StatusOr<RemoteTensor> Session::Borrow(std::string_view name) const {
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      TensorInfo info, internal::DescribeTensor(connection_->channels(), name));
  return RemoteTensor(connection_, std::move(info), /*owns=*/false);
}

absl::StatusOr<TensorInfo> Session::Describe(const RemoteTensor& tensor) const {
  return internal::DescribeTensor(connection_->channels(), tensor.name());
}

absl::StatusOr<std::vector<TensorInfo>> Session::List() const {
  return internal::ListTensors(connection_->channels(), name());
}

absl::Status Session::Delete(RemoteTensor tensor) {
  tensor.Release();
  return connection_->channels().Delete(tensor.name());
}

absl::Status Session::Delete(std::vector<RemoteTensor> tensors) {
  std::vector<std::string> names;
  for (RemoteTensor& tensor : tensors) {
    tensor.Release();
    names.push_back(tensor.name());
  }
  return connection_->channels().DeleteTensors(names).status();
}

absl::StatusOr<RemoteTensor> Session::OpenShared(std::string_view share,
                                                 std::string_view name) const {
  Channels& channels = connection_->channels();
  v1::OpenSharedTensorRequest request;
  request.set_session(this->name());
  request.set_share(std::string(share));
  request.set_tensor_id(std::string(name));
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const v1::OpenSharedTensorResponse response,
      channels.Call(channels.tensor, &Tensors::OpenSharedTensor, request,
                    connection_->Deadline(std::nullopt)));
  return RemoteTensor(connection_, FromProto(response.tensor()),
                      /*owns=*/true);
}

absl::StatusOr<RemoteTensor> Session::Copy(const RemoteTensor& source,
                                           const CopyOptions& options) {
  Channels& channels = connection_->channels();
  v1::CopyTensorRequest request;
  request.set_source(source.name());
  request.set_session(name());
  request.set_tensor_id(options.name);
  if (options.layout.has_value()) {
    *request.mutable_layout() = ToProto(*options.layout);
  }
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const v1::CopyTensorResponse response,
      channels.Call(channels.tensor, &Tensors::CopyTensor, request,
                    connection_->Deadline(options.deadline)));
  return RemoteTensor(connection_, FromProto(response.tensor()),
                      /*owns=*/true);
}

absl::StatusOr<RemoteTensor> Session::Permute(const Operand& a, const Modes& d,
                                              const PermuteOptions& options) {
  return Running::Run(connection_, &Compute::Permute,
                      MakeRequest(*connection_, a, d, options),
                      options.execution);
}

absl::StatusOr<RemoteTensor> Session::Elementwise(
    const Operand& a, BinaryOperator op_ac, const Operand& c, const Modes& d,
    const ElementwiseOptions& options) {
  const ElementwiseOperands operands{.a = a, .c = c, .op_abc = op_ac};
  return Running::Run(connection_, &Compute::Elementwise,
                      MakeRequest(*connection_, operands, d, options),
                      options.execution);
}

absl::StatusOr<RemoteTensor> Session::Elementwise(
    const Operand& a, BinaryOperator op_ab, const Operand& b,
    BinaryOperator op_abc, const Operand& c, const Modes& d,
    const ElementwiseOptions& options) {
  const ElementwiseOperands operands{
      .a = a, .b = &b, .c = c, .op_ab = op_ab, .op_abc = op_abc};
  return Running::Run(connection_, &Compute::Elementwise,
                      MakeRequest(*connection_, operands, d, options),
                      options.execution);
}

absl::StatusOr<RemoteTensor> Session::Reduce(BinaryOperator op,
                                             const Operand& a, const Modes& d,
                                             const ReduceOptions& options) {
  return Running::Run(connection_, &Compute::Reduce,
                      MakeRequest(*connection_, op, a, d, options),
                      options.execution);
}

absl::StatusOr<RemoteTensor> Session::Contract(const Operand& a,
                                               const Operand& b, const Modes& d,
                                               const ContractOptions& options) {
  return Running::Run(connection_, &Compute::Contract,
                      MakeRequest(*connection_, a, b, d, options),
                      options.execution);
}

absl::StatusOr<RemoteTensor> Session::Solve(const Operand& a, const Operand& b,
                                            const Modes& d,
                                            const SolveOptions& options) {
  return Running::Run(connection_, &Compute::SolveLinear,
                      MakeRequest(*connection_, a, &b, d, options),
                      options.execution);
}

absl::StatusOr<RemoteTensor> Session::Invert(const Operand& a, const Modes& d,
                                             const SolveOptions& options) {
  return Running::Run(connection_, &Compute::SolveLinear,
                      MakeRequest(*connection_, a, nullptr, d, options),
                      options.execution);
}

absl::StatusOr<RemoteTensor> Session::Expm(const Operand& a, const Modes& d,
                                           const SolveOptions& options) {
  return Running::Run(connection_, &Compute::SolveLinear,
                      MakeExponentialRequest(*connection_, a, d, options),
                      options.execution);
}

absl::StatusOr<std::vector<RemoteTensor>> Session::RunFactorization(
    std::string_view subscripts, Operand a, const FactorizeOptions& options) {
  return Running::Run(
      connection_, MakeRequest(*connection_, subscripts, std::move(a), options),
      options);
}

absl::StatusOr<Factors> Session::PairOf(
    absl::StatusOr<std::vector<RemoteTensor>> made) {
  if (!made.ok()) return made.status();
  if (made->size() != 2) {
    return internal::InvalidArgument(
        "RESULT_COUNT_MISMATCH", "the factorization has ", made->size(),
        " results, wanted 2; FactorizeAll() gives any number");
  }
  return Factors{std::move((*made)[0]), std::move((*made)[1])};
}

Pipeline Session::StartPipeline(const PipelineOptions& options) {
  return Pipeline(std::make_shared<internal::OperationStream>(
      connection_, connection_->Deadline(options.deadline)));
}

absl::StatusOr<Plan> Session::PlanPermute(const Operand& a, const Modes& d,
                                          const PermuteOptions& options,
                                          const PlanOptions& plan) {
  return Planning::Prepare(connection_,
                           MakeRequest(*connection_, a, d, options), plan);
}

absl::StatusOr<Plan> Session::PlanElementwise(const Operand& a,
                                              BinaryOperator op_ac,
                                              const Operand& c, const Modes& d,
                                              const ElementwiseOptions& options,
                                              const PlanOptions& plan) {
  const ElementwiseOperands operands{.a = a, .c = c, .op_abc = op_ac};
  return Planning::Prepare(
      connection_, MakeRequest(*connection_, operands, d, options), plan);
}

absl::StatusOr<Plan> Session::PlanElementwise(
    const Operand& a, BinaryOperator op_ab, const Operand& b,
    BinaryOperator op_abc, const Operand& c, const Modes& d,
    const ElementwiseOptions& options, const PlanOptions& plan) {
  const ElementwiseOperands operands{
      .a = a, .b = &b, .c = c, .op_ab = op_ab, .op_abc = op_abc};
  return Planning::Prepare(
      connection_, MakeRequest(*connection_, operands, d, options), plan);
}

absl::StatusOr<Plan> Session::PlanReduce(BinaryOperator op, const Operand& a,
                                         const Modes& d,
                                         const ReduceOptions& options,
                                         const PlanOptions& plan) {
  return Planning::Prepare(connection_,
                           MakeRequest(*connection_, op, a, d, options), plan);
}

absl::StatusOr<Plan> Session::PlanContract(const Operand& a, const Operand& b,
                                           const Modes& d,
                                           const ContractOptions& options,
                                           const PlanOptions& plan) {
  return Planning::Prepare(connection_,
                           MakeRequest(*connection_, a, b, d, options), plan);
}

absl::StatusOr<Plan> Session::PlanFactorize(std::string_view subscripts,
                                            const RemoteTensor& a,
                                            const FactorizeOptions& options,
                                            const PlanOptions& plan) {
  return Planning::Prepare(
      connection_,
      MakeRequest(*connection_, subscripts, Operand(a, {}), options), plan);
}

absl::StatusOr<Plan> Session::PlanSolve(const Operand& a, const Operand& b,
                                        const Modes& d,
                                        const SolveOptions& options,
                                        const PlanOptions& plan) {
  return Planning::Prepare(connection_,
                           MakeRequest(*connection_, a, &b, d, options), plan);
}

absl::StatusOr<Plan> Session::PlanInvert(const Operand& a, const Modes& d,
                                         const SolveOptions& options,
                                         const PlanOptions& plan) {
  return Planning::Prepare(
      connection_, MakeRequest(*connection_, a, nullptr, d, options), plan);
}

absl::StatusOr<Plan> Session::PlanExpm(const Operand& a, const Modes& d,
                                       const SolveOptions& options,
                                       const PlanOptions& plan) {
  return Planning::Prepare(
      connection_, MakeExponentialRequest(*connection_, a, d, options), plan);
}

absl::StatusOr<Explanation> Session::ExplainPermute(
    const Operand& a, const Modes& d, const PermuteOptions& options) const {
  return Explain(*connection_, MakeRequest(*connection_, a, d, options),
                 options.execution);
}

absl::StatusOr<Explanation> Session::ExplainElementwise(
    const Operand& a, BinaryOperator op_ac, const Operand& c, const Modes& d,
    const ElementwiseOptions& options) const {
  const ElementwiseOperands operands{.a = a, .c = c, .op_abc = op_ac};
  return Explain(*connection_, MakeRequest(*connection_, operands, d, options),
                 options.execution);
}

absl::StatusOr<Explanation> Session::ExplainElementwise(
    const Operand& a, BinaryOperator op_ab, const Operand& b,
    BinaryOperator op_abc, const Operand& c, const Modes& d,
    const ElementwiseOptions& options) const {
  const ElementwiseOperands operands{
      .a = a, .b = &b, .c = c, .op_ab = op_ab, .op_abc = op_abc};
  return Explain(*connection_, MakeRequest(*connection_, operands, d, options),
                 options.execution);
}

absl::StatusOr<Explanation> Session::ExplainReduce(
    BinaryOperator op, const Operand& a, const Modes& d,
    const ReduceOptions& options) const {
  return Explain(*connection_, MakeRequest(*connection_, op, a, d, options),
                 options.execution);
}

absl::StatusOr<Explanation> Session::ExplainContract(
    const Operand& a, const Operand& b, const Modes& d,
    const ContractOptions& options) const {
  return Explain(*connection_, MakeRequest(*connection_, a, b, d, options),
                 options.execution);
}

absl::StatusOr<Explanation> Session::ExplainFactorize(
    std::string_view subscripts, const RemoteTensor& a,
    const FactorizeOptions& options) const {
  return Explain(*connection_,
                 MakeRequest(*connection_, subscripts, Operand(a, {}), options),
                 options);
}

absl::StatusOr<Explanation> Session::ExplainSolve(
    const Operand& a, const Operand& b, const Modes& d,
    const SolveOptions& options) const {
  return Explain(*connection_, MakeRequest(*connection_, a, &b, d, options),
                 options.execution);
}

absl::StatusOr<Explanation> Session::ExplainInvert(
    const Operand& a, const Modes& d, const SolveOptions& options) const {
  return Explain(*connection_,
                 MakeRequest(*connection_, a, nullptr, d, options),
                 options.execution);
}

absl::StatusOr<Explanation> Session::ExplainExpm(
    const Operand& a, const Modes& d, const SolveOptions& options) const {
  return Explain(*connection_,
                 MakeExponentialRequest(*connection_, a, d, options),
                 options.execution);
}

}  // namespace tensord
