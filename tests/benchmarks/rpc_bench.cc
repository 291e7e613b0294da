// What calls and transfers cost: latency, calls a second, and bytes a second
// beside a raw Unix-socket stream of the same bytes in the same run.
//
//   rpc_bench --server=PATH_OF_TENSORD [--rounds=5] [--mebibytes=256]

#include <grpcpp/grpcpp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensord/session.h"
#include "tensord/v1/compute.grpc.pb.h"
#include "tensord/v1/plan.grpc.pb.h"
#include "tensord/v1/session.grpc.pb.h"
#include "tests/testing/server_process.h"

namespace {

using tensord::testing::OwnCpuSeconds;
using tensord::testing::ServerProcess;
namespace v1 = tensord::v1;

constexpr int kCalls = 3000;            // in a round, one in flight
constexpr int kPipelinedCalls = 20000;  // in a round, also operations
constexpr int kInFlight = 64;
constexpr size_t kWriteBytes = size_t{1} << 20;

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

struct Stubs {
  explicit Stubs(const std::string& address) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
    const auto channel = grpc::CreateCustomChannel(
        address, grpc::InsecureChannelCredentials(), arguments);
    session = v1::SessionService::NewStub(channel);
    compute = v1::ComputeService::NewStub(channel);
    plan = v1::PlanService::NewStub(channel);
  }
  std::unique_ptr<v1::SessionService::Stub> session;
  std::unique_ptr<v1::ComputeService::Stub> compute;
  std::unique_ptr<v1::PlanService::Stub> plan;
};

/// An 8 x 8 x 8 product of float64 that travels whole, there and back.
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

struct Planned {
  tensord::RemoteTensor x, d;
  v1::ExecutePlanRequest request;
};

/// A 16 x 16 x 16 product of resident float64, by a plan.
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

struct Latencies {
  std::vector<double> empty;     // seconds
  std::vector<double> contract;  // seconds
  std::vector<double> planned;   // seconds
};

/// Empty calls, small contractions and executions of a plan by turns, one in
/// flight.
Latencies MeasureLatency(const Stubs& stubs, const std::string& session,
                         const Planned& planned) {
  v1::KeepSessionAliveRequest empty;
  empty.set_session(session);
  const v1::ContractRequest contract = SmallContraction(session);
  Latencies latencies;
  for (int i = 0; i < kCalls; ++i) {
    {
      grpc::ClientContext context;
      v1::KeepSessionAliveResponse response;
      const double start = Now();
      Check(stubs.session->KeepSessionAlive(&context, empty, &response));
      latencies.empty.push_back(Now() - start);
    }
    grpc::ClientContext context;
    v1::ContractResponse response;
    const double start = Now();
    Check(stubs.compute->Contract(&context, contract, &response));
    latencies.contract.push_back(Now() - start);
    grpc::ClientContext planned_context;
    v1::ExecutePlanResponse executed;
    const double begun = Now();
    Check(stubs.compute->ExecutePlan(&planned_context, planned.request,
                                     &executed));
    latencies.planned.push_back(Now() - begun);
  }
  return latencies;
}

/// Calls a second with kInFlight of them under way, on one connection and one
/// thread. `start` is e.g. the stub's AsyncKeepSessionAlive.
template <typename Response, typename Request, typename Start>
double MeasureCallRate(const Request& request, const Start& start_call) {
  struct Call {
    std::unique_ptr<grpc::ClientContext> context;
    std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> reader;
    Response response;
    grpc::Status status;
  };
  std::vector<Call> calls(kInFlight);
  grpc::CompletionQueue queue;
  int begun = 0;
  const auto begin = [&](Call& call) {
    call.context = std::make_unique<grpc::ClientContext>();
    call.reader = start_call(call.context.get(), request, &queue);
    call.reader->Finish(&call.response, &call.status, &call);
    ++begun;
  };
  const double start = Now();
  for (Call& call : calls) begin(call);
  void* tag = nullptr;
  bool ok = false;
  for (int ended = 0; ended < kPipelinedCalls; ++ended) {
    queue.Next(&tag, &ok);
    Call& call = *static_cast<Call*>(tag);
    Check(call.status);
    if (begun < kPipelinedCalls) begin(call);
  }
  const double seconds = Now() - start;
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  return kPipelinedCalls / seconds;
}

double MeasureEmptyCallRate(const Stubs& stubs, const std::string& session) {
  v1::KeepSessionAliveRequest request;
  request.set_session(session);
  return MeasureCallRate<v1::KeepSessionAliveResponse>(
      request, [&](auto* context, const auto& q, auto* queue) {
        return stubs.session->AsyncKeepSessionAlive(context, q, queue);
      });
}

/// Operations a second, x = x + x on 8 resident elements.
struct OperationRates {
  double waited = 0;     // each call for itself
  double in_flight = 0;  // kInFlight calls
  double streamed = 0;   // one pipeline
};

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

  start = Now();
  auto pipeline = session.StartPipeline();
  for (int i = 0; i < kPipelinedCalls; ++i) {
    pipeline.Elementwise({*x, "i"}, tensord::BinaryOperator::kAdd, {*x, "i"},
                         "i", {.execution = {.output = &*x}});
  }
  const absl::Status done = pipeline.Finish();
  if (!done.ok()) Die(done.ToString());
  rates.streamed = kPipelinedCalls / (Now() - start);
  return rates;
}

struct Transfer {
  double bytes_per_second = 0;
  double cpu_seconds_per_gigabyte = 0;  // both sides
};

Transfer MakeTransfer(double bytes, double seconds, double cpu_seconds) {
  return {bytes / seconds, cpu_seconds / (bytes * 1e-9)};
}

void SendAll(int fd, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t sent = write(fd, data, std::min(size, kWriteBytes));
    if (sent <= 0) Die("write to the raw socket failed");
    data += sent;
    size -= static_cast<size_t>(sent);
  }
}

void ReceiveAll(int fd, char* data, size_t size) {
  while (size > 0) {
    const ssize_t received = read(fd, data, size);
    if (received <= 0) Die("read from the raw socket failed");
    data += received;
    size -= static_cast<size_t>(received);
  }
}

/// `source` through a Unix socket to another process, whose memory is there
/// already, until it says that all has come.
Transfer MeasureRawStream(const std::vector<char>& source) {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0) Die("no socket pair");
  const pid_t child = fork();
  if (child == 0) {
    std::vector<char> destination(source.size(), 1);
    char ready = 0;
    SendAll(fds[1], &ready, 1);
    const double before = OwnCpuSeconds();
    ReceiveAll(fds[1], destination.data(), destination.size());
    const double used = OwnCpuSeconds() - before;
    SendAll(fds[1], reinterpret_cast<const char*>(&used), sizeof(used));
    _exit(0);
  }
  char ready = 0;
  ReceiveAll(fds[0], &ready, 1);
  const double cpu_before = OwnCpuSeconds();
  const double start = Now();
  SendAll(fds[0], source.data(), source.size());
  double used = 0;
  ReceiveAll(fds[0], reinterpret_cast<char*>(&used), sizeof(used));
  const double seconds = Now() - start;
  used += OwnCpuSeconds() - cpu_before;
  waitpid(child, nullptr, 0);
  close(fds[0]);
  close(fds[1]);
  return MakeTransfer(static_cast<double>(source.size()), seconds, used);
}

/// Runs `transfer` once and accounts for this process and the server's.
template <typename Function>
Transfer Account(const ServerProcess& server, size_t bytes, Function transfer) {
  const double cpu_before = OwnCpuSeconds() + server.CpuSeconds();
  const double start = Now();
  const absl::Status status = transfer();
  const double seconds = Now() - start;
  const double cpu = OwnCpuSeconds() + server.CpuSeconds() - cpu_before;
  if (!status.ok()) Die(status.ToString());
  return MakeTransfer(static_cast<double>(bytes), seconds, cpu);
}

/// What the rounds gave, one entry a round.
struct Results {
  std::vector<double> empty_p50, empty_p99, contract_p50, contract_p99;
  std::vector<double> planned_p50, planned_ratio;
  std::vector<double> contract_ratio, calls_per_second, call_cpu_us;
  std::vector<double> waited, in_flight, streamed;
  std::vector<double> raw, raw_cpu, up, up_cpu, up_ratio;
  std::vector<double> down, down_cpu, down_ratio;
};

void RunRound(const ServerProcess& server, const Stubs& stubs,
              tensord::Session& session, const std::vector<char>& source,
              std::vector<char>& destination, Results& results) {
  const Latencies latencies =
      MeasureLatency(stubs, session.name(), PlannedContraction(stubs, session));
  results.empty_p50.push_back(Quantile(latencies.empty, 0.5));
  results.empty_p99.push_back(Quantile(latencies.empty, 0.99));
  results.contract_p50.push_back(Quantile(latencies.contract, 0.5));
  results.contract_p99.push_back(Quantile(latencies.contract, 0.99));
  results.planned_p50.push_back(Quantile(latencies.planned, 0.5));
  results.planned_ratio.push_back(results.planned_p50.back() /
                                  results.empty_p50.back());
  results.contract_ratio.push_back(results.contract_p50.back() /
                                   results.empty_p50.back());
  const double cpu_before = OwnCpuSeconds() + server.CpuSeconds();
  results.calls_per_second.push_back(
      MeasureEmptyCallRate(stubs, session.name()));
  results.call_cpu_us.push_back(
      1e6 * (OwnCpuSeconds() + server.CpuSeconds() - cpu_before) /
      kPipelinedCalls);
  const OperationRates rates = MeasureOperationRates(stubs, session);
  results.waited.push_back(rates.waited);
  results.in_flight.push_back(rates.in_flight);
  results.streamed.push_back(rates.streamed);

  const Transfer raw = MeasureRawStream(source);
  const auto tensor = session.Create(tensord::ElementType::kInt8,
                                     {{static_cast<int64_t>(source.size())}});
  if (!tensor.ok()) Die(tensor.status().ToString());
  // The first time the server's memory comes fresh from the system.
  const auto upload = [&] {
    return session.Refill(*tensor, std::as_bytes(std::span(source)));
  };
  if (const absl::Status status = upload(); !status.ok()) {
    Die(status.ToString());
  }
  const Transfer up = Account(server, source.size(), upload);
  // Other bytes than shall come, and pages of our own again after the fork.
  std::fill(destination.begin(), destination.end(), 1);
  const Transfer down = Account(server, source.size(), [&] {
    return tensor->DownloadTo(tensord::ElementType::kInt8,
                              std::as_writable_bytes(std::span(destination)));
  });
  if (source != destination) Die("other bytes came back than were sent");
  results.raw.push_back(raw.bytes_per_second);
  results.raw_cpu.push_back(raw.cpu_seconds_per_gigabyte);
  results.up.push_back(up.bytes_per_second);
  results.up_cpu.push_back(up.cpu_seconds_per_gigabyte);
  results.up_ratio.push_back(up.bytes_per_second / raw.bytes_per_second);
  results.down.push_back(down.bytes_per_second);
  results.down_cpu.push_back(down.cpu_seconds_per_gigabyte);
  results.down_ratio.push_back(down.bytes_per_second / raw.bytes_per_second);
}

void PrintRow(const char* what, const std::vector<double>& values, double scale,
              const char* unit) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  std::printf("%-44s %10.2f [%.2f - %.2f] %s\n", what, Median(values) * scale,
              *least * scale, *most * scale, unit);
}

void Print(const Results& results, int rounds, size_t bytes) {
  std::printf("medians [range] of %d rounds, transfers of %zu MiB\n\n", rounds,
              bytes >> 20);
  PrintRow("empty call, 1 in flight, p50", results.empty_p50, 1e6, "us");
  PrintRow("empty call, 1 in flight, p99", results.empty_p99, 1e6, "us");
  PrintRow("inline 8x8x8 contraction, p50", results.contract_p50, 1e6, "us");
  PrintRow("inline 8x8x8 contraction, p99", results.contract_p99, 1e6, "us");
  PrintRow("inline contraction / empty call, p50", results.contract_ratio, 1,
           "");
  PrintRow("ExecutePlan, 16x16x16 resident, p50", results.planned_p50, 1e6,
           "us");
  PrintRow("ExecutePlan / empty call, p50", results.planned_ratio, 1, "");
  PrintRow("empty calls, 64 in flight", results.calls_per_second, 1e-3,
           "thousand/s");
  PrintRow("  processor time, both sides", results.call_cpu_us, 1, "us/call");
  PrintRow("small operations, each waited for", results.waited, 1e-3,
           "thousand/s");
  PrintRow("small operations, 64 calls in flight", results.in_flight, 1e-3,
           "thousand/s");
  PrintRow("small operations, one ExecuteStream", results.streamed, 1e-3,
           "thousand/s");
  PrintRow("raw Unix-socket stream", results.raw, 1e-9, "GB/s");
  PrintRow("  processor time, both sides", results.raw_cpu, 1, "s/GB");
  PrintRow("upload", results.up, 1e-9, "GB/s");
  PrintRow("  / raw", results.up_ratio, 1, "");
  PrintRow("  processor time, both sides", results.up_cpu, 1, "s/GB");
  PrintRow("download", results.down, 1e-9, "GB/s");
  PrintRow("  / raw", results.down_ratio, 1, "");
  PrintRow("  processor time, both sides", results.down_cpu, 1, "s/GB");
}

}  // namespace

int main(int argc, char** argv) {
  std::string binary;
  int rounds = 5;
  size_t bytes = size_t{256} << 20;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with("--server=")) {
      binary = argument.substr(9);
    } else if (argument.starts_with("--rounds=")) {
      rounds = std::max(1, std::atoi(argv[i] + 9));
    } else if (argument.starts_with("--mebibytes=")) {
      bytes = static_cast<size_t>(std::max(1, std::atoi(argv[i] + 12))) << 20;
    } else {
      Die("unknown argument " + std::string(argument));
    }
  }
  if (binary.empty()) Die("--server=PATH_OF_TENSORD is missing");

  // Buffers first: the raw stream's child shares what is there when it begins.
  std::vector<char> source(bytes);
  for (size_t i = 0; i < bytes; ++i) source[i] = static_cast<char>(i * 37 >> 4);
  std::vector<char> destination(bytes, 1);

  const ServerProcess server(binary, {"--log-level=error"});
  const Stubs stubs(server.address());
  auto session = tensord::Session::Connect(server.address());
  if (!session.ok()) Die(session.status().ToString());
  Results results;
  for (int round = 0; round < rounds; ++round) {
    RunRound(server, stubs, *session, source, destination, results);
  }
  Print(results, rounds, bytes);
  return 0;
}
