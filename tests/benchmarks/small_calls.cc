#include "tests/benchmarks/small_calls.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

namespace tensord::benchmarks {
namespace {

/// Has all threads of a process run on the processors of `set`.
void RunOn(const cpu_set_t& set, pid_t pid) {
  const std::string threads = "/proc/" + std::to_string(pid) + "/task";
  for (const auto& entry : std::filesystem::directory_iterator(threads)) {
    const int thread = std::stoi(entry.path().filename());
    if (sched_setaffinity(thread, sizeof(set), &set) != 0) Die("cannot pin");
  }
}

}  // namespace

double Now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double Quantile(std::vector<double> values, double part) {
  const size_t at =
      std::min(values.size() - 1, static_cast<size_t>(part * values.size()));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[at];
}

double Median(const std::vector<double>& values) {
  return Quantile(values, 0.5);
}

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "rpc_bench: %s\n", what.c_str());
  std::exit(1);
}

void Check(const grpc::Status& status) {
  if (!status.ok()) Die(status.error_message());
}

Stubs::Stubs(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  const auto channel = grpc::CreateCustomChannel(
      address, grpc::InsecureChannelCredentials(), arguments);
  session = v1::SessionService::NewStub(channel);
  compute = v1::ComputeService::NewStub(channel);
  plan = v1::PlanService::NewStub(channel);
}

v1::ContractRequest SmallContraction(const std::string& session) {
  v1::ContractRequest request;
  request.set_session(session);
  const std::string data(8 * 8 * sizeof(double), '\0');
  for (v1::Operand* operand : {request.mutable_a(), request.mutable_b()}) {
    v1::InlineTensor& tensor = *operand->mutable_inline_();
    tensor.set_element_type(v1::ELEMENT_TYPE_FLOAT64);
    tensor.mutable_layout()->add_extents(8);
    tensor.mutable_layout()->add_extents(8);
    tensor.set_data(data);
  }
  for (const int32_t mode : {0, 1}) request.mutable_a()->add_modes(mode);
  for (const int32_t mode : {1, 2}) request.mutable_b()->add_modes(mode);
  for (const int32_t mode : {0, 2}) request.mutable_d()->add_modes(mode);
  request.mutable_d()->set_inline_(true);
  return request;
}

Planned PlannedContraction(const Stubs& stubs, tensord::Session& session) {
  const std::vector<double> ones(16 * 16, 1.0);
  auto x = session.Upload(tensord::HostView<double>{ones.data(), {16, 16}});
  auto d = session.Create(tensord::ElementType::kFloat64, {{16, 16}});
  if (!x.ok() || !d.ok()) Die("no tensors for the plan");
  v1::CreatePlanRequest request;
  v1::ContractRequest& contract = *request.mutable_contract();
  contract.set_session(session.name());
  contract.mutable_a()->set_tensor(x->name());
  contract.mutable_b()->set_tensor(x->name());
  contract.mutable_d()->set_tensor(d->name());
  for (const int32_t mode : {0, 1}) contract.mutable_a()->add_modes(mode);
  for (const int32_t mode : {1, 2}) contract.mutable_b()->add_modes(mode);
  for (const int32_t mode : {0, 2}) contract.mutable_d()->add_modes(mode);
  grpc::ClientContext context;
  v1::CreatePlanResponse made;
  Check(stubs.plan->CreatePlan(&context, request, &made));
  v1::ExecutePlanRequest execute;
  execute.set_plan(made.plan().name());
  execute.mutable_a()->set_tensor(x->name());
  execute.mutable_b()->set_tensor(x->name());
  execute.set_d(d->name());
  return {*std::move(x), *std::move(d), std::move(execute)};
}

OnOneProcessor::OnOneProcessor(std::vector<pid_t> pids)
    : pids_(std::move(pids)) {
  sched_getaffinity(0, sizeof(before_), &before_);
  cpu_set_t first;
  CPU_ZERO(&first);
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_COUNT(&first) == 0 && CPU_ISSET(i, &before_)) CPU_SET(i, &first);
  }
  for (const pid_t pid : pids_) RunOn(first, pid);
}
OnOneProcessor::~OnOneProcessor() {
  for (const pid_t pid : pids_) RunOn(before_, pid);
}

Latencies MeasureLatency(const Stubs& echo, const Stubs& stubs,
                         const std::string& session, const Planned& planned) {
  v1::KeepSessionAliveRequest empty;
  empty.set_session(session);
  const v1::ContractRequest contract = SmallContraction(session);
  v1::KeepSessionAliveResponse none;
  v1::ContractResponse product;
  v1::ExecutePlanResponse executed;
  Latencies latencies;
  for (int i = 0; i < kCalls / kCallsInARow; ++i) {
    TimeCalls(latencies.echo, [&](auto* context) {
      return echo.session->KeepSessionAlive(context, empty, &none);
    });
    TimeCalls(latencies.empty, [&](auto* context) {
      return stubs.session->KeepSessionAlive(context, empty, &none);
    });
    TimeCalls(latencies.contract_echo, [&](auto* context) {
      return echo.compute->Contract(context, contract, &product);
    });
    TimeCalls(latencies.contract, [&](auto* context) {
      return stubs.compute->Contract(context, contract, &product);
    });
    TimeCalls(latencies.planned, [&](auto* context) {
      return stubs.compute->ExecutePlan(context, planned.request, &executed);
    });
  }
  return latencies;
}

double MeasureEmptyCallRate(const Stubs& stubs, const std::string& session) {
  v1::KeepSessionAliveRequest request;
  request.set_session(session);
  return MeasureCallRate<v1::KeepSessionAliveResponse>(
      request, [&](auto* context, const auto& q, auto* queue) {
        return stubs.session->AsyncKeepSessionAlive(context, q, queue);
      });
}

double MeasureStreamed(tensord::Session& session) {
  const std::vector<double> zeros(8);
  const auto x = session.Upload(tensord::HostView<double>{zeros.data(), {8}});
  if (!x.ok()) Die(x.status().ToString());
  const double start = Now();
  auto pipeline = session.StartPipeline();
  for (int i = 0; i < kPipelinedCalls; ++i) {
    pipeline.Elementwise({*x, "i"}, tensord::BinaryOperator::kAdd, {*x, "i"},
                         "i", {.execution = {.output = &*x}});
  }
  const absl::Status done = pipeline.Finish();
  if (!done.ok()) Die(done.ToString());
  return kPipelinedCalls / (Now() - start);
}

OperationRates MeasureOperationRates(const Stubs& stubs,
                                     tensord::Session& session) {
  const std::vector<double> zeros(8);
  const auto x = session.Upload(tensord::HostView<double>{zeros.data(), {8}});
  if (!x.ok()) Die(x.status().ToString());
  OperationRates rates;

  v1::ElementwiseRequest request;
  request.set_session(session.name());
  for (v1::Operand* operand : {request.mutable_a(), request.mutable_c()}) {
    operand->set_tensor(x->name());
    operand->add_modes(0);
  }
  request.mutable_d()->set_tensor(x->name());
  request.mutable_d()->add_modes(0);
  request.set_op_abc(v1::BINARY_OPERATOR_ADD);
  double start = Now();
  for (int i = 0; i < kCalls; ++i) {
    grpc::ClientContext context;
    v1::ElementwiseResponse response;
    Check(stubs.compute->Elementwise(&context, request, &response));
  }
  rates.waited = kCalls / (Now() - start);

  rates.in_flight = MeasureCallRate<v1::ElementwiseResponse>(
      request, [&](auto* context, const auto& q, auto* queue) {
        return stubs.compute->AsyncElementwise(context, q, queue);
      });

  rates.streamed = MeasureStreamed(session);
  return rates;
}

}  // namespace tensord::benchmarks
