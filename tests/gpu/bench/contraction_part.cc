// Rows, one a kernel and case
//   suite, id, class, type and, unless its own, what it is multiplied in,
//   modes (d-a-b, first mode fastest), extents, m, n,
//   k, flops, bytes of a, b and d; copy_ns, how long a copy takes that moves as
//   many, measured just before; kernel, ns, least_ns, most_ns, gflop_per_s,
//   predicted_ns; chosen, true for the planner's kernel; sums, wrong_sums and
//   worst_error of contraction_check.h; left_out, kernels that are never timed
//   in this case: they would take too long.
// First comes the planner's kernel in every case, then, while there is time,
// the others; forced_cases and forced_left_out count the latter.
#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"
#include "core/executor/executor.h"
#include "core/plan/planner.h"
#include "tests/gpu/bench/bench_kernels.h"
#include "tests/gpu/bench/contraction_cases.h"
#include "tests/gpu/bench/contraction_check.h"
#include "tests/gpu/bench/kernel_rows.h"
#include "tests/gpu/bench/parts.h"

namespace tensord::test {
namespace {

using core::ElementType;

/// Elements and what they are multiplied in.
struct Arithmetic {
  absl::string_view name;  // "type" of a row
  ElementType type;
  core::ComputeType compute;

  /// 3xTF32 is for what arithmetic bounds.
  bool IsFor(const Effort& effort, const ContractionCase& c) const {
    return effort.IsAsked(c.suite, c.id, name) &&
           (compute != core::ComputeType::kThreeTf32 || c.group == "ccsd");
  }
};
constexpr Arithmetic kArithmetics[] = {
    {"float32", ElementType::kFloat32, core::ComputeType::kFloat32},
    {"float64", ElementType::kFloat64, core::ComputeType::kFloat64},
    {"complex64", ElementType::kComplex64, core::ComputeType::kFloat32},
    {"float32 in 3xtf32", ElementType::kFloat32,
     core::ComputeType::kThreeTf32}};
constexpr uint64_t kSeedA = 1, kSeedB = 2;
// A kernel that by its own model takes so many times the chosen one's time, or
// so long, shows nothing that is worth the time.
constexpr double kTooSlow = 8;
constexpr double kTooLongNs = 2e9;

/// Memory for the operands of every case.
struct OperandMemory {
  core::Buffer a, b, d;
};

/// A case in one type, with its operands.
struct Prepared {
  Row row;  // what the case is, for each line that is printed
  core::ContractionDesc desc;
  core::ContractionOperands operands;
  int64_t bytes = 0;
  int64_t d_bytes = 0;
  double flops = 0;
};

/// What the kernels say to a case.
struct Kernels {
  Planning planning;
  std::vector<core::Candidate> candidates;

  const core::Candidate* chosen() const {
    const auto found = std::find_if(
        candidates.begin(), candidates.end(),
        [&](const auto& each) { return each.name == planning.kernel; });
    return found == candidates.end() ? nullptr : &*found;
  }
  /// The reference kernel, which is the last in its list, always is.
  bool IsTooSlow(const core::Candidate& candidate) const {
    const double ns = candidate.solution->predicted_nanoseconds();
    return &candidate == &candidates.back() || ns > kTooLongNs ||
           ns > kTooSlow * chosen()->solution->predicted_nanoseconds();
  }
  /// Names of those that could run and are never timed.
  std::string LeftOut() const {
    std::vector<absl::string_view> names;
    for (const core::Candidate& candidate : candidates) {
      if (candidate.refusal.ok() && IsTooSlow(candidate)) {
        names.push_back(candidate.name);
      }
    }
    return absl::StrJoin(names, " ");
  }
};

int64_t BytesOf(const core::OperandDesc& operand) {
  return core::ElementCount(operand.layout) *
         core::SizeOf(operand.element_type);
}

std::string TextOf(const LabelExtents& extents) {
  return absl::StrJoin(extents, " ", [](std::string* out, const auto& pair) {
    absl::StrAppend(out, std::string(1, pair.first), ":", pair.second);
  });
}

absl::StatusOr<OperandMemory> AllocateFor(
    BenchDevice& device, const std::vector<ContractionCase>& cases) {
  int64_t a = 0, b = 0, d = 0;
  for (const ContractionCase& c : cases) {
    for (const Arithmetic& arithmetic : kArithmetics) {
      const core::ContractionDesc desc = c.Desc(arithmetic.type);
      a = std::max(a, BytesOf(desc.a));
      b = std::max(b, BytesOf(desc.b));
      d = std::max(d, BytesOf(desc.d));
    }
  }
  OperandMemory memory;
  TENSORD_ASSIGN_OR_RETURN(memory.a, device.Allocate(a));
  TENSORD_ASSIGN_OR_RETURN(memory.b, device.Allocate(b));
  TENSORD_ASSIGN_OR_RETURN(memory.d, device.Allocate(d));
  return memory;
}

absl::Status Fill(BenchDevice& device, const core::OperandDesc& operand,
                  const core::Buffer& buffer, uint64_t seed) {
  const int64_t bytes = BytesOf(operand);
  const bool is_wide =
      core::RealPartOf(operand.element_type) == ElementType::kFloat64;
  return CheckCuda(is_wide
                       ? FillNumbers(reinterpret_cast<double*>(buffer.data()),
                                     bytes / int64_t{sizeof(double)}, seed,
                                     device.cuda_stream())
                       : FillNumbers(reinterpret_cast<float*>(buffer.data()),
                                     bytes / int64_t{sizeof(float)}, seed,
                                     device.cuda_stream()),
                   "filling");
}

/// How long a copy takes that moves `bytes` in all.
absl::StatusOr<double> TimeMoving(BenchDevice& device,
                                  const OperandMemory& memory, int64_t bytes) {
  const int64_t copied = std::min(
      {std::max<int64_t>(bytes / 2, 1), memory.a.bytes(), memory.d.bytes()});
  TENSORD_ASSIGN_OR_RETURN(const Timing copy,
                           device.TimeCopy(memory.a, memory.d, copied));
  return copy.median_ns * static_cast<double>(bytes) /
         (2.0 * static_cast<double>(copied));
}

absl::StatusOr<Prepared> Prepare(BenchDevice& device, const ContractionCase& c,
                                 const Arithmetic& arithmetic,
                                 const OperandMemory& memory) {
  const ElementType type = arithmetic.type;
  Prepared prepared{
      .row = {},
      .desc = c.Desc(type),
      .operands = {
          .a = memory.a.data(), .b = memory.b.data(), .d = memory.d.data()}};
  prepared.desc.compute_type = arithmetic.compute;
  const core::ContractionDesc& desc = prepared.desc;
  TENSORD_RETURN_IF_ERROR(Validate(desc));
  prepared.d_bytes = BytesOf(desc.d);
  prepared.bytes = BytesOf(desc.a) + BytesOf(desc.b) + prepared.d_bytes;
  const MatrixExtents matrix = c.MatrixFor(type);
  prepared.flops =
      (core::IsComplex(type) ? 8.0 : 2.0) * static_cast<double>(matrix.m) *
      static_cast<double>(matrix.n) * static_cast<double>(matrix.k);
  TENSORD_RETURN_IF_ERROR(Fill(device, desc.a, memory.a, kSeedA));
  TENSORD_RETURN_IF_ERROR(Fill(device, desc.b, memory.b, kSeedB));
  TENSORD_ASSIGN_OR_RETURN(const double copy_ns,
                           TimeMoving(device, memory, prepared.bytes));
  prepared.row = {{"part", "contraction"},
                  {"suite", c.suite},
                  {"id", c.id},
                  {"class", c.group},
                  {"type", arithmetic.name},
                  {"modes", absl::StrCat(c.d, "-", c.a, "-", c.b)},
                  {"extents", TextOf(c.ExtentsFor(type))},
                  {"m", matrix.m},
                  {"n", matrix.n},
                  {"k", matrix.k},
                  {"flops", prepared.flops},
                  {"bytes", prepared.bytes},
                  {"copy_ns", copy_ns}};
  return prepared;
}

absl::StatusOr<Kernels> KernelsFor(BenchDevice& device,
                                   const Prepared& prepared) {
  const core::PlanKey key{.problem = core::Canonicalize(prepared.desc),
                          .device = device.backend().info().name};
  Kernels kernels;
  TENSORD_ASSIGN_OR_RETURN(kernels.planning, TimePlanning(device, key));
  kernels.candidates = core::ListCandidates(device.backend(), key);
  if (kernels.chosen() == nullptr) {
    return core::Internal("NO_SUCH_CANDIDATE", "the planner's kernel '",
                          kernels.planning.kernel, "' is no candidate");
  }
  return kernels;
}

/// Times one kernel, checks what it leaves in d, and prints its row.
absl::Status RunKernel(BenchDevice& device, const Prepared& prepared,
                       const Kernels& kernels,
                       const core::Candidate& candidate) {
  const core::Plan plan = core::PlanOf(candidate);
  TENSORD_ASSIGN_OR_RETURN(const core::Buffer scratch,
                           device.Allocate(plan.workspace_bytes()));
  TENSORD_RETURN_IF_ERROR(
      CheckCuda(cudaMemsetAsync(prepared.operands.d, kPoison,
                                static_cast<size_t>(prepared.d_bytes),
                                device.cuda_stream()),
                "cudaMemsetAsync"));
  TENSORD_ASSIGN_OR_RETURN(
      const Timing timing, device.Time(prepared.bytes, [&] {
        return core::Execute(plan, prepared.operands, scratch, device.stream());
      }));
  TENSORD_ASSIGN_OR_RETURN(
      const CheckedSums sums,
      CheckContraction(device, prepared.desc, prepared.operands));
  Row row = prepared.row;
  row.insert(row.end(), {{"kernel", candidate.name},
                         {"ns", timing.median_ns},
                         {"least_ns", timing.least_ns},
                         {"most_ns", timing.most_ns},
                         {"gflop_per_s", prepared.flops / timing.median_ns},
                         {"predicted_ns", plan.predicted_nanoseconds()},
                         {"chosen", &candidate == kernels.chosen()},
                         {"sums", sums.count},
                         {"wrong_sums", sums.wrong},
                         {"worst_error", sums.worst_error},
                         {"left_out", kernels.LeftOut()}});
  Print(row);
  return absl::OkStatus();
}

absl::Status RunChosen(BenchDevice& device, const ContractionCase& c,
                       const Arithmetic& arithmetic,
                       const OperandMemory& memory) {
  TENSORD_ASSIGN_OR_RETURN(const Prepared prepared,
                           Prepare(device, c, arithmetic, memory));
  TENSORD_ASSIGN_OR_RETURN(const Kernels kernels, KernelsFor(device, prepared));
  Row row = prepared.row;
  row.emplace_back("planning_ns", kernels.planning.nanoseconds);
  Print(row);
  if (kernels.IsTooSlow(*kernels.chosen())) {
    Row not_timed = prepared.row;
    not_timed.emplace_back("left_out", kernels.LeftOut());
    Print(not_timed);
    return absl::OkStatus();
  }
  return RunKernel(device, prepared, kernels, *kernels.chosen());
}

absl::Status RunOthers(BenchDevice& device, const ContractionCase& c,
                       const Arithmetic& arithmetic,
                       const OperandMemory& memory) {
  TENSORD_ASSIGN_OR_RETURN(const Prepared prepared,
                           Prepare(device, c, arithmetic, memory));
  TENSORD_ASSIGN_OR_RETURN(const Kernels kernels, KernelsFor(device, prepared));
  for (const core::Candidate& candidate : kernels.candidates) {
    if (&candidate == kernels.chosen()) continue;
    if (!candidate.refusal.ok()) {
      Row row = prepared.row;
      row.insert(row.end(), {{"kernel", candidate.name},
                             {"refused", core::ReasonOf(candidate.refusal)}});
      Print(row);
    } else if (!kernels.IsTooSlow(candidate)) {
      TENSORD_RETURN_IF_ERROR(RunKernel(device, prepared, kernels, candidate));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunContraction(BenchDevice& device,
                            const std::string& data_folder) {
  TENSORD_ASSIGN_OR_RETURN(auto cases, ReadContractionCases(data_folder));
  if (device.effort().tiny) cases = TinySample(cases);
  TENSORD_ASSIGN_OR_RETURN(const OperandMemory memory,
                           AllocateFor(device, cases));
  CaseCounter counter("contraction", device.effort());
  for (const ContractionCase& c : cases) {
    for (const Arithmetic& arithmetic : kArithmetics) {
      if (!arithmetic.IsFor(device.effort(), c)) continue;
      if (!counter.Next()) continue;
      TENSORD_RETURN_IF_ERROR(RunChosen(device, c, arithmetic, memory));
    }
  }
  int64_t forced = 0, left_out = 0;
  for (const ContractionCase& c : cases) {
    for (const Arithmetic& arithmetic : kArithmetics) {
      if (!arithmetic.IsFor(device.effort(), c)) continue;
      const bool may_start = !device.effort().IsOver();
      ++(may_start ? forced : left_out);
      if (!may_start) continue;
      TENSORD_RETURN_IF_ERROR(RunOthers(device, c, arithmetic, memory));
    }
  }
  Print({{"part", "contraction"},
         {"forced_cases", forced},
         {"forced_left_out", left_out}});
  return absl::OkStatus();
}

}  // namespace tensord::test
