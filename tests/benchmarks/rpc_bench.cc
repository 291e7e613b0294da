// What calls and transfers cost: latency and calls a second, beside a bare
// gRPC server that answers nothing, and bytes a second, beside a raw
// Unix-socket stream of the same bytes, in the same run.
//
//   rpc_bench --server=PATH_OF_TENSORD [--rounds=5] [--mebibytes=256]
//   rpc_bench --server=PATH_OF_TENSORD --only=KIND --seconds=10
//
// The second form makes calls of one kind, for a profiler to look at: single
// (empty ones, one after the other), empty, inline, streamed, upload or
// download.

#include <grpcpp/grpcpp.h>
#include <malloc.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
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
#include "tensord/v1/session.grpc.pb.h"
#include "tests/benchmarks/echo_server.h"
#include "tests/benchmarks/small_calls.h"
#include "tests/testing/server_process.h"

namespace {

using namespace tensord::benchmarks;
using tensord::testing::OwnCpuSeconds;
using tensord::testing::ServerProcess;
namespace v1 = tensord::v1;

constexpr size_t kWriteBytes = size_t{1} << 20;

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
struct LatencyResults {
  std::vector<double> echo, empty, contract_echo, contract, planned;  // p50
  std::vector<double> empty_p99, contract_p99;
  std::vector<double> echo_ratio, contract_ratio, planned_ratio;

  void Add(const Latencies& latencies) {
    const double call = Median(latencies.empty);
    echo.push_back(Median(latencies.echo));
    empty.push_back(call);
    contract_echo.push_back(Median(latencies.contract_echo));
    contract.push_back(Median(latencies.contract));
    planned.push_back(Median(latencies.planned));
    empty_p99.push_back(Quantile(latencies.empty, 0.99));
    contract_p99.push_back(Quantile(latencies.contract, 0.99));
    echo_ratio.push_back(echo.back() / call);
    contract_ratio.push_back(contract.back() / call);
    planned_ratio.push_back(planned.back() / call);
  }
};

struct Results {
  LatencyResults free, on_one;
  std::vector<double> echoes_per_second, echo_cpu_us, rate_ratio;
  std::vector<double> calls_per_second, call_cpu_us, streamed_ratio;
  std::vector<double> waited, in_flight, streamed;
  std::vector<double> raw, raw_cpu, up, up_cpu, up_ratio;
  std::vector<double> down, down_cpu, down_ratio;
};

void RunRound(const ServerProcess& echo, const Stubs& echo_stubs,
              const ServerProcess& server, const Stubs& stubs,
              tensord::Session& session, const std::vector<char>& source,
              std::vector<char>& destination, Results& results) {
  const Planned planned = PlannedContraction(stubs, session);
  const auto measure_latency = [&](LatencyResults& latency) {
    latency.Add(MeasureLatency(echo_stubs, stubs, session.name(), planned));
  };
  measure_latency(results.free);
  {
    const OnOneProcessor pinned({getpid(), echo.pid(), server.pid()});
    measure_latency(results.on_one);
  }
  const auto measure_rate = [&](const ServerProcess& asked, const Stubs& calls,
                                std::vector<double>& rate,
                                std::vector<double>& cpu_us) {
    const double before = OwnCpuSeconds() + asked.CpuSeconds();
    rate.push_back(MeasureEmptyCallRate(calls, session.name()));
    cpu_us.push_back(1e6 * (OwnCpuSeconds() + asked.CpuSeconds() - before) /
                     kPipelinedCalls);
  };
  measure_rate(echo, echo_stubs, results.echoes_per_second,
               results.echo_cpu_us);
  measure_rate(server, stubs, results.calls_per_second, results.call_cpu_us);
  results.rate_ratio.push_back(results.calls_per_second.back() /
                               results.echoes_per_second.back());
  const OperationRates rates = MeasureOperationRates(stubs, session);
  results.waited.push_back(rates.waited);
  results.in_flight.push_back(rates.in_flight);
  results.streamed.push_back(rates.streamed);
  results.streamed_ratio.push_back(rates.streamed /
                                   results.calls_per_second.back());

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

/// Makes calls of one kind for so long.
void Repeat(std::string_view kind, double seconds, const ServerProcess& server,
            const Stubs& stubs, tensord::Session& session,
            std::vector<char>& data) {
  const std::string& name = session.name();
  const v1::ContractRequest contract = SmallContraction(name);
  const auto tensor = session.Create(tensord::ElementType::kInt8,
                                     {{static_cast<int64_t>(data.size())}});
  if (!tensor.ok()) Die(tensor.status().ToString());
  const auto upload = [&] {
    return session.Refill(*tensor, std::as_bytes(std::span(data)));
  };
  if (!upload().ok()) Die("no upload");
  int64_t times = 0;
  const double cpu_before = OwnCpuSeconds() + server.CpuSeconds();
  const double start = Now();
  for (; Now() - start < seconds; ++times) {
    absl::Status status;
    if (kind == "empty") {
      MeasureEmptyCallRate(stubs, name);
    } else if (kind == "single") {
      v1::KeepSessionAliveRequest empty;
      empty.set_session(name);
      v1::KeepSessionAliveResponse none;
      std::vector<double> ignored;
      for (int i = 0; i < kPipelinedCalls / kCallsInARow; ++i) {
        TimeCalls(ignored, [&](auto* context) {
          return stubs.session->KeepSessionAlive(context, empty, &none);
        });
      }
    } else if (kind == "waited") {
      v1::ContractResponse product;
      std::vector<double> ignored;
      for (int i = 0; i < kPipelinedCalls / kCallsInARow; ++i) {
        TimeCalls(ignored, [&](auto* context) {
          return stubs.compute->Contract(context, contract, &product);
        });
      }
    } else if (kind == "inline") {
      MeasureCallRate<v1::ContractResponse>(
          contract, [&](auto* context, const auto& q, auto* queue) {
            return stubs.compute->AsyncContract(context, q, queue);
          });
    } else if (kind == "streamed") {
      MeasureStreamed(session);
    } else if (kind == "upload") {
      status = upload();
    } else if (kind == "download") {
      status = tensor->DownloadTo(tensord::ElementType::kInt8,
                                  std::as_writable_bytes(std::span(data)));
    } else {
      Die("--only is single, empty, inline, streamed, upload or download");
    }
    if (!status.ok()) Die(status.ToString());
  }
  const bool is_transfer = kind == "upload" || kind == "download";
  const double each = is_transfer ? 1e-9 * static_cast<double>(data.size())
                                  : 1e-3 * kPipelinedCalls;
  const double count = each * static_cast<double>(times);
  const double cpu = OwnCpuSeconds() + server.CpuSeconds() - cpu_before;
  std::printf("%s: %.2f %s, processor time of both sides %.3f %s\n",
              std::string(kind).c_str(), count / (Now() - start),
              is_transfer ? "GB/s" : "thousand/s",
              (is_transfer ? 1 : 1e3) * cpu / count,
              is_transfer ? "s/GB" : "us");
}

void PrintRow(const char* what, const std::vector<double>& values, double scale,
              const char* unit) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  std::printf("%-44s %10.2f [%.2f - %.2f] %s\n", what, Median(values) * scale,
              *least * scale, *most * scale, unit);
}

void PrintLatency(const LatencyResults& results) {
  PrintRow("  bare gRPC echo, p50", results.echo, 1e6, "us");
  PrintRow("  empty call, p50", results.empty, 1e6, "us");
  PrintRow("    echo / empty call", results.echo_ratio, 1, "");
  PrintRow("  empty call, p99", results.empty_p99, 1e6, "us");
  PrintRow("  echo of the next row's messages, p50", results.contract_echo, 1e6,
           "us");
  PrintRow("  inline 8x8x8 contraction, p50", results.contract, 1e6, "us");
  PrintRow("    / empty call", results.contract_ratio, 1, "");
  PrintRow("  inline 8x8x8 contraction, p99", results.contract_p99, 1e6, "us");
  PrintRow("  ExecutePlan, 16x16x16 resident, p50", results.planned, 1e6, "us");
  PrintRow("    / empty call", results.planned_ratio, 1, "");
}

void Print(const Results& results, int rounds, size_t bytes) {
  std::printf("medians [range] of %d rounds, transfers of %zu MiB\n\n", rounds,
              bytes >> 20);
  std::printf("one in flight, where the system puts it:\n");
  PrintLatency(results.free);
  std::printf("one in flight, all on one processor:\n");
  PrintLatency(results.on_one);
  std::printf("many in flight:\n");
  PrintRow("bare gRPC echoes, 64 in flight", results.echoes_per_second, 1e-3,
           "thousand/s");
  PrintRow("  processor time, both sides", results.echo_cpu_us, 1, "us/call");
  PrintRow("empty calls, 64 in flight", results.calls_per_second, 1e-3,
           "thousand/s");
  PrintRow("  / echoes", results.rate_ratio, 1, "");
  PrintRow("  processor time, both sides", results.call_cpu_us, 1, "us/call");
  PrintRow("small operations, each waited for", results.waited, 1e-3,
           "thousand/s");
  PrintRow("small operations, 64 calls in flight", results.in_flight, 1e-3,
           "thousand/s");
  PrintRow("small operations, one ExecuteStream", results.streamed, 1e-3,
           "thousand/s");
  PrintRow("  / empty calls", results.streamed_ratio, 1, "");
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
  std::string listen;
  bool is_echo = false;
  std::string only;
  double seconds = 10;
  int rounds = 5;
  size_t bytes = size_t{256} << 20;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with("--server=")) {
      binary = argument.substr(9);
    } else if (argument.starts_with("--listen=")) {
      listen = argument.substr(9);
    } else if (argument == "--echo") {  // as this program starts itself
      is_echo = true;
    } else if (argument.starts_with("--only=")) {
      only = argument.substr(7);
    } else if (argument.starts_with("--seconds=")) {
      seconds = std::atof(argv[i] + 10);
    } else if (argument.starts_with("--rounds=")) {
      rounds = std::max(1, std::atoi(argv[i] + 9));
    } else if (argument.starts_with("--mebibytes=")) {
      bytes = static_cast<size_t>(std::max(1, std::atoi(argv[i] + 12))) << 20;
    } else {
      Die("unknown argument " + std::string(argument));
    }
  }
  if (is_echo) {
    tensord::benchmarks::ServeEchoes(listen);
    return 0;
  }
  if (binary.empty()) Die("--server=PATH_OF_TENSORD is missing");

  // As programs that download much are told to.
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  mallopt(M_TOP_PAD, 64 << 20);
  // Buffers first: the raw stream's child shares what is there when it begins.
  std::vector<char> source(bytes);
  for (size_t i = 0; i < bytes; ++i) source[i] = static_cast<char>(i * 37 >> 4);
  std::vector<char> destination(bytes, 1);

  const ServerProcess server(binary, {"--log-level=error"});
  const Stubs stubs(server.address());
  const ServerProcess echo("/proc/self/exe", {"--echo"});
  const Stubs echo_stubs(echo.address());
  auto session = tensord::Session::Connect(
      server.address(), {.transport = tensord::Transport::kGrpc});
  if (!session.ok()) Die(session.status().ToString());
  if (!only.empty()) {
    Repeat(only, seconds, server, stubs, *session, source);
    return 0;
  }
  Results results;
  for (int round = 0; round < rounds; ++round) {
    RunRound(echo, echo_stubs, server, stubs, *session, source, destination,
             results);
  }
  Print(results, rounds, bytes);
  return 0;
}
