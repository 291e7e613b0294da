// Rows, one a kernel of a small contraction of float32, all of it in the cache
//   case, kernel, chosen; host_ns, what queueing one takes of the host;
//   stream_ns, from one to the next on a stream that is never idle; graph_ns,
//   from one to the next in a graph. What a contraction costs above the kernel
//   itself is what the first two have over the last
#include <chrono>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/executor/executor.h"
#include "core/plan/planner.h"
#include "tests/gpu/bench/contraction_cases.h"
#include "tests/gpu/bench/kernel_rows.h"
#include "tests/gpu/bench/parts.h"

namespace tensord::test {
namespace {

using core::ElementType;

constexpr int kLaunches = 200;  // timed together
// Of the cache: some 10 ms, longer than it takes to queue the launches.
constexpr int kFlushes = 200;

struct OverheadCase {
  const char* name;
  const char *d, *a, *b;  // labels, first mode fastest
  int64_t extent;         // of every mode
};
constexpr OverheadCase kCases[] = {
    {"matrices", "ij", "ik", "kj", 64},
    {"transposed", "ij", "ki", "jk", 64},
    {"scattered", "cadb", "akbl", "clkd", 8},
    {"dot", "", "k", "k", 4096},
};

core::ContractionDesc DescOf(const OverheadCase& c) {
  ContractionCase contraction;
  contraction.d = c.d;
  contraction.a = c.a;
  contraction.b = c.b;
  for (const char* labels : {c.a, c.b}) {
    for (; *labels != 0; ++labels) contraction.of_float32[*labels] = c.extent;
  }
  return contraction.Desc(ElementType::kFloat32);
}

/// Keeps the stream busy for as long as the host needs to queue what follows.
absl::Status Hold(BenchDevice& device) {
  const int flushes = device.effort().tiny ? 1 : kFlushes;
  for (int i = 0; i < flushes; ++i) {
    TENSORD_RETURN_IF_ERROR(device.FlushCache());
  }
  return absl::OkStatus();
}

/// Times `work` by the device, from when the stream comes to it; all of it is
/// queued by then.
absl::StatusOr<Timing> TimeOnBusyStream(
    BenchDevice& device, absl::FunctionRef<absl::Status()> work) {
  // Behind it nothing waits for the host, nor for memory.
  constexpr int64_t kLeaveCache = int64_t{1} << 60;
  return device.Time(kLeaveCache, work, [&] { return Hold(device); });
}

/// What queueing `launch` so often takes of the host; the stream is idle
/// before.
absl::StatusOr<Timing> TimeHost(BenchDevice& device, int launches,
                                absl::FunctionRef<absl::Status()> launch) {
  std::vector<double> durations_ns;
  for (int i = 0; i <= device.effort().repetitions(); ++i) {
    TENSORD_RETURN_IF_ERROR(device.stream().Synchronize());
    const auto start = std::chrono::steady_clock::now();
    for (int j = 0; j < launches; ++j) TENSORD_RETURN_IF_ERROR(launch());
    const double ns = std::chrono::duration<double, std::nano>(
                          std::chrono::steady_clock::now() - start)
                          .count();
    if (i > 0) durations_ns.push_back(ns);
  }
  TENSORD_RETURN_IF_ERROR(device.stream().Synchronize());
  return TimingOf(std::move(durations_ns));
}

absl::Status RunKernel(BenchDevice& device, const OverheadCase& c,
                       const core::ContractionOperands& operands,
                       const core::Candidate& candidate, bool is_chosen) {
  const core::Plan plan = core::PlanOf(candidate);
  TENSORD_ASSIGN_OR_RETURN(const core::Buffer scratch,
                           device.Allocate(plan.workspace_bytes()));
  const auto launch = [&] {
    return core::Execute(plan, operands, scratch, device.stream());
  };
  const int launches = device.effort().tiny ? 3 : kLaunches;
  const auto launch_all = [&]() -> absl::Status {
    for (int i = 0; i < launches; ++i) TENSORD_RETURN_IF_ERROR(launch());
    return absl::OkStatus();
  };
  TENSORD_ASSIGN_OR_RETURN(const Timing host,
                           TimeHost(device, launches, launch));
  TENSORD_ASSIGN_OR_RETURN(const Timing stream,
                           TimeOnBusyStream(device, launch_all));
  Row row{{"part", "overhead"},
          {"case", c.name},
          {"kernel", candidate.name},
          {"chosen", is_chosen},
          {"host_ns", host.median_ns / launches},
          {"stream_ns", stream.median_ns / launches}};
  TENSORD_ASSIGN_OR_RETURN(const bool records,
                           device.stream().BeginRecording());
  if (records) {
    const absl::Status queued = launch_all();
    auto recording = device.stream().EndRecording();
    TENSORD_RETURN_IF_ERROR(queued);
    TENSORD_RETURN_IF_ERROR(recording.status());
    TENSORD_ASSIGN_OR_RETURN(const Timing graph, TimeOnBusyStream(device, [&] {
                               return (*recording)->Launch(device.stream());
                             }));
    row.emplace_back("graph_ns", graph.median_ns / launches);
    TENSORD_RETURN_IF_ERROR(device.stream().Synchronize());
  }
  Print(row);
  return absl::OkStatus();
}

}  // namespace

absl::Status RunOverhead(BenchDevice& device) {
  CaseCounter counter("overhead", device.effort());
  for (const OverheadCase& c : kCases) {
    if (!counter.Next()) continue;
    const core::ContractionDesc desc = DescOf(c);
    TENSORD_RETURN_IF_ERROR(Validate(desc));
    const auto allocate = [&](const core::OperandDesc& operand) {
      return device.Allocate(core::ElementCount(operand.layout) *
                             core::SizeOf(operand.element_type));
    };
    TENSORD_ASSIGN_OR_RETURN(const core::Buffer a, allocate(desc.a));
    TENSORD_ASSIGN_OR_RETURN(const core::Buffer b, allocate(desc.b));
    TENSORD_ASSIGN_OR_RETURN(const core::Buffer d, allocate(desc.d));
    for (const core::Buffer* buffer : {&a, &b}) {
      TENSORD_RETURN_IF_ERROR(
          CheckCuda(cudaMemsetAsync(buffer->data(), 0,
                                    static_cast<size_t>(buffer->bytes()),
                                    device.cuda_stream()),
                    "cudaMemsetAsync"));
    }
    const core::ContractionOperands operands{
        .a = a.data(), .b = b.data(), .d = d.data()};
    const core::PlanKey key{.problem = core::Canonicalize(desc),
                            .device = device.backend().info().name};
    TENSORD_ASSIGN_OR_RETURN(const Planning planning,
                             TimePlanning(device, key));
    const auto candidates = core::ListCandidates(device.backend(), key);
    for (const core::Candidate& candidate : candidates) {
      // The reference kernel, the last, is no kernel for these unless chosen.
      if (!candidate.refusal.ok() || (&candidate == &candidates.back() &&
                                      candidate.name != planning.kernel)) {
        continue;
      }
      TENSORD_RETURN_IF_ERROR(RunKernel(device, c, operands, candidate,
                                        candidate.name == planning.kernel));
    }
  }
  return absl::OkStatus();
}

}  // namespace tensord::test
