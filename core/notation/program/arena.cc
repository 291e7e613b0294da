#include "core/notation/program/arena.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "core/base/checked_math.h"
#include "core/base/status.h"

namespace tensord::core {
namespace {

/// A tensor in the arena, and the steps in which it is alive.
struct Tenant {
  int32_t tensor;
  int64_t bytes;
  int64_t first = -1;  // step; -1: not used
  int64_t last = -1;
  int64_t offset = 0;
};

/// Of every tensor of the arena the steps, counted through all blocks, in which
/// it is alive.
std::vector<Tenant> FindTenants(const Program& program) {
  using Place = ProgramTensor::Place;
  std::vector<Tenant> tenants;
  std::vector<int32_t> number(program.tensors.size(), -1);
  for (size_t t = 0; t < program.tensors.size(); ++t) {
    const ProgramTensor& tensor = program.tensors[t];
    if (tensor.place != Place::kTemporary && tensor.place != Place::kConstant) {
      continue;
    }
    number[t] = static_cast<int32_t>(tenants.size());
    tenants.push_back({.tensor = static_cast<int32_t>(t), .bytes = 0});
  }
  int64_t step = 0;
  for (const ProgramBlock& block : program.blocks) {
    const int64_t begin = step;
    const auto end = begin + static_cast<int64_t>(block.steps.size());
    const bool is_sliced = !block.slice_extents.empty();
    for (const ProgramStep& one : block.steps) {
      const auto use = [&](const StepOperand& operand, bool is_d) {
        if (number[operand.tensor] < 0) return;
        Tenant& tenant = tenants[number[operand.tensor]];
        const bool is_kept = is_sliced && (one.accumulates || !is_d);
        const bool is_constant =
            program.tensors[operand.tensor].place == Place::kConstant;
        if (tenant.first < 0) tenant.first = is_constant ? 0 : step;
        tenant.last = std::max(tenant.last, step);
        // Later slices use it again.
        if (is_kept && (is_constant || tenant.first < begin)) {
          tenant.last = end - 1;
        }
      };
      for (const StepOperand* const output : one.outputs()) use(*output, true);
      for (const StepOperand* const input : one.inputs()) use(*input, false);
      ++step;
    }
    // The sum of slices grows in all of them.
    if (!is_sliced) continue;
    const ProgramStep& last = block.steps.back();
    if (number[last.d.tensor] >= 0) {
      Tenant& tenant = tenants[number[last.d.tensor]];
      tenant.first = std::min(tenant.first, begin);
      tenant.last = end - 1;
    }
  }
  return tenants;
}

}  // namespace

absl::StatusOr<int64_t> ArenaBytesOf(const ProgramTensor& tensor) {
  std::optional<int64_t> bytes = SizeOf(tensor.element_type);
  for (const int64_t extent : tensor.layout.extents) {
    if (bytes) bytes = CheckedMultiply(*bytes, extent);
  }
  if (!bytes || *bytes > INT64_MAX / 4) {
    return ResourceExhausted(
        "ARENA_TOO_LARGE", "intermediate result ", tensor.name, " of extents ",
        ToString(tensor.layout.extents), " has more bytes than can be counted");
  }
  return RoundUp(*bytes, kArenaAlignment);
}

absl::Status AssignArena(Program& program, int64_t ample_bytes) {
  std::vector<Tenant> tenants = FindTenants(program);
  std::erase_if(tenants, [](const Tenant& tenant) { return tenant.first < 0; });
  for (Tenant& tenant : tenants) {
    TENSORD_ASSIGN_OR_RETURN(tenant.bytes,
                             ArenaBytesOf(program.tensors[tenant.tensor]));
  }
  // Large ones first, each at the lowest place that is free while it is alive.
  std::ranges::stable_sort(tenants, [](const Tenant& x, const Tenant& y) {
    return x.bytes > y.bytes;
  });
  double all_bytes = 0;
  for (const Tenant& tenant : tenants) {
    all_bytes += static_cast<double>(tenant.bytes);
  }
  const bool shares = all_bytes > static_cast<double>(ample_bytes);
  program.arena_bytes = 0;
  std::vector<const Tenant*> placed;  // by offset
  for (Tenant& tenant : tenants) {
    int64_t offset = 0;
    for (const Tenant* const other : placed) {
      const bool is_apart =
          other->last < tenant.first || tenant.last < other->first;
      if (shares && is_apart) continue;
      if (offset + tenant.bytes <= other->offset) break;
      offset = std::max(offset, other->offset + other->bytes);
    }
    const std::optional<int64_t> end = CheckedAdd(offset, tenant.bytes);
    if (!end) {
      return ResourceExhausted("ARENA_TOO_LARGE",
                               "intermediate results have more bytes together "
                               "than can be counted");
    }
    tenant.offset = offset;
    program.tensors[tenant.tensor].arena_offset_bytes = offset;
    program.arena_bytes = std::max(program.arena_bytes, *end);
    placed.insert(
        std::ranges::upper_bound(placed, offset, {},
                                 [](const Tenant* t) { return t->offset; }),
        &tenant);
  }
  return absl::OkStatus();
}

}  // namespace tensord::core
