// Small calls to a server, made and timed.
#pragma once

#include <grpcpp/grpcpp.h>
#include <sched.h>
#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "tensord/session.h"
#include "tensord/v1/compute.grpc.pb.h"
#include "tensord/v1/plan.grpc.pb.h"
#include "tensord/v1/session.grpc.pb.h"

namespace tensord::benchmarks {

inline constexpr int kCalls = 3000;  // in a round, one in flight
inline constexpr int kCallsInARow = 10;
inline constexpr int kPipelinedCalls = 20000;  // in a round, also operations
inline constexpr int kInFlight = 64;

/// Seconds, by a clock that only goes forwards.
double Now();

double Quantile(std::vector<double> values, double part);
double Median(const std::vector<double>& values);

[[noreturn]] void Die(const std::string& what);
void Check(const grpc::Status& status);

struct Stubs {
  explicit Stubs(const std::string& address);

  std::unique_ptr<v1::SessionService::Stub> session;
  std::unique_ptr<v1::ComputeService::Stub> compute;
  std::unique_ptr<v1::PlanService::Stub> plan;
};

/// An 8 x 8 x 8 product of float64 that travels whole, there and back.
v1::ContractRequest SmallContraction(const std::string& session);

struct Planned {
  RemoteTensor x, d;
  v1::ExecutePlanRequest request;
};
/// A 16 x 16 x 16 product of resident float64, by a plan.
Planned PlannedContraction(const Stubs& stubs, Session& session);

struct Latencies {
  std::vector<double> echo;           // seconds
  std::vector<double> empty;          // seconds
  std::vector<double> contract_echo;  // seconds
  std::vector<double> contract;       // seconds
  std::vector<double> planned;        // seconds
};
/// Has processes share one processor while it lives. Where the system puts
/// two that wake each other decides more than what they do.
class OnOneProcessor {
 public:
  explicit OnOneProcessor(std::vector<pid_t> pids);
  ~OnOneProcessor();
  OnOneProcessor(const OnOneProcessor&) = delete;

 private:
  const std::vector<pid_t> pids_;
  cpu_set_t before_;
};

/// Seconds that each of many calls takes, one after the other.
template <typename Call>
void TimeCalls(std::vector<double>& seconds, const Call& call) {
  for (int i = 0; i < kCallsInARow; ++i) {
    grpc::ClientContext context;
    const double start = Now();
    Check(call(&context));
    seconds.push_back(Now() - start);
  }
}
/// Echoes, empty calls, small contractions and executions of a plan by turns, a
/// few of each, one in flight.
Latencies MeasureLatency(const Stubs& echo, const Stubs& stubs,
                         const std::string& session, const Planned& planned);

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
double MeasureEmptyCallRate(const Stubs& stubs, const std::string& session);

/// Operations a second, x = x + x on 8 resident elements.
struct OperationRates {
  double waited = 0;     // each call for itself
  double in_flight = 0;  // kInFlight calls
  double streamed = 0;   // one pipeline
};
OperationRates MeasureOperationRates(const Stubs& stubs, Session& session);
/// Those of one pipeline alone.
double MeasureStreamed(Session& session);

}  // namespace tensord::benchmarks
