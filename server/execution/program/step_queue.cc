#include "server/execution/program/step_queue.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/device/device.h"
#include "core/executor/operands.h"
#include "core/notation/text_error.h"

namespace tensord::server {
namespace {

/// A stream and its branches, from the fork to the join.
class Lanes {
 public:
  Lanes(core::Stream& stream, absl::Span<const core::LaneStep> steps)
      : streams_{&stream} {
    for (const core::LaneStep& step : steps) {
      if (step.lane >= std::ssize(streams_)) streams_.resize(step.lane + 1);
    }
  }

  /// What is queued on branches comes behind what was queued on the stream
  /// before.
  absl::Status Fork() {
    if (streams_.size() == 1) return absl::OkStatus();
    TENSORD_ASSIGN_OR_RETURN(const std::unique_ptr<core::Event> fork,
                             streams_[0]->Record());
    for (size_t lane = 1; lane < streams_.size(); ++lane) {
      TENSORD_ASSIGN_OR_RETURN(streams_[lane],
                               streams_[0]->Branch(static_cast<int>(lane) - 1));
      TENSORD_RETURN_IF_ERROR(streams_[lane]->WaitFor(fork.get()));
    }
    return absl::OkStatus();
  }
  /// What is queued on the stream afterwards comes behind all of it.
  absl::Status Join() {
    absl::Status joined;
    for (size_t lane = 1; lane < streams_.size(); ++lane) {
      if (streams_[lane] != nullptr) joined.Update(Join(*streams_[lane]));
    }
    return joined;
  }

  core::Stream& operator[](int32_t lane) { return *streams_[lane]; }

 private:
  absl::Status Join(core::Stream& branch) {
    const absl::StatusOr<std::unique_ptr<core::Event>> end = branch.Record();
    absl::Status joined =
        end.ok() ? streams_[0]->WaitFor(end->get()) : end.status();
    // Nothing may be under way that nobody waits for.
    if (!joined.ok()) branch.Synchronize().IgnoreError();
    return joined;
  }

  std::vector<core::Stream*> streams_;  // (lane); null before Fork()
};

absl::Status QueueBeside(const PlacedProgram& placed, size_t block,
                         absl::Span<const core::LaneStep> steps, Lanes& lanes) {
  TENSORD_RETURN_IF_ERROR(lanes.Fork());
  std::vector<std::unique_ptr<core::Event>> ends(steps.size());
  for (size_t step = 0; step < steps.size(); ++step) {
    core::Stream& stream = lanes[steps[step].lane];
    for (const int32_t before : steps[step].after) {
      TENSORD_RETURN_IF_ERROR(stream.WaitFor(ends[before].get()));
    }
    TENSORD_RETURN_IF_ERROR(
        QueueStep(placed, {.block = block, .step = step}, stream));
    if (steps[step].is_awaited) {
      TENSORD_ASSIGN_OR_RETURN(ends[step], stream.Record());
    }
  }
  return absl::OkStatus();
}

}  // namespace

void StepPosition::Advance(const core::Program& program) {
  const core::ProgramBlock& in = program.blocks[block];
  if (++step < in.steps.size()) return;
  step = 0;
  slice.resize(in.slice_extents.size(), 0);
  for (size_t i = slice.size(); i-- > 0;) {
    if (++slice[i] < in.slice_extents[i]) return;
    slice[i] = 0;
  }
  ++block;
  slice.clear();
}

absl::Status QueueStep(const PlacedProgram& placed,
                       const StepPosition& position, core::Stream& stream) {
  const core::Program& program = placed.program();
  const core::ProgramBlock& block = program.blocks[position.block];
  core::ModeVector slice = position.slice;
  slice.resize(block.slice_extents.size(), 0);
  const auto address = [&](const core::StepOperand& operand) -> std::byte* {
    if (operand.tensor < 0 || placed.addresses[operand.tensor] == nullptr) {
      return nullptr;
    }
    int64_t offset = operand.offset;
    for (size_t i = 0; i < operand.slice_strides.size(); ++i) {
      offset += slice[i] * operand.slice_strides[i];
    }
    return placed.addresses[operand.tensor] +
           offset * core::SizeOf(program.tensors[operand.tensor].element_type);
  };
  const bool is_first =
      std::all_of(slice.begin() + block.kept_slice_count, slice.end(),
                  [](int64_t value) { return value == 0; });
  const core::ProgramStep& step = block.steps[position.step];
  const bool adds = step.accumulates && !is_first;
  core::Placement at{
      .inputs = {address(step.a), address(step.b), address(step.c)},
      .alpha = step.alpha,
      // The addend's factor: gamma of element-wise operations, else beta.
      .beta = adds && !std::holds_alternative<core::ElementwiseDesc>(step.desc)
                  ? core::kOne
                  : step.beta,
      .gamma = adds ? core::kOne : step.gamma,
      .truncation = step.truncation,
      .kept = step.kept < 0 ? nullptr : &placed.kept_extents[step.kept]};
  std::ranges::transform(
      step.outputs(), at.outputs.begin(),
      [&](const core::StepOperand* output) { return address(*output); });
  const absl::Status queued = placed.runner.Execute(
      placed.prepared.key_of(position.block, position.step),
      core::OperandsAt(step.desc, at), stream);
  // A matrix was refused, or has not converged.
  const bool is_placed = step.place && (absl::IsInvalidArgument(queued) ||
                                        absl::IsInternal(queued));
  if (!is_placed) return queued;
  return core::PlacedAt(
      step.place->position,
      core::Error(queued.code(), core::ReasonOf(queued),
                  absl::StrCat(step.place->roles, queued.message())));
}

std::vector<core::LaneStep> LanesOf(const PlacedProgram& placed, size_t block,
                                    int32_t stream_count) {
  const core::ProgramBlock& steps = placed.program().blocks[block];
  if (!steps.slice_extents.empty()) return {};
  std::vector<double> costs;
  std::vector<bool> needs_scratch;
  for (size_t step = 0; step < steps.steps.size(); ++step) {
    const core::Plan& plan = placed.plan_of(block, step);
    costs.push_back(plan.predicted_nanoseconds());
    needs_scratch.push_back(plan.workspace_bytes() > 0);
  }
  return core::AssignLanes(placed.program(), steps, costs, needs_scratch,
                           stream_count);
}

absl::Status QueueBlock(const PlacedProgram& placed, size_t block,
                        absl::Span<const core::LaneStep> lanes,
                        core::Stream& stream) {
  if (lanes.empty()) {
    StepPosition position{.block = block};
    while (position.block == block) {
      TENSORD_RETURN_IF_ERROR(QueueStep(placed, position, stream));
      position.Advance(placed.program());
    }
    return absl::OkStatus();
  }
  Lanes streams(stream, lanes);
  absl::Status queued = QueueBeside(placed, block, lanes, streams);
  queued.Update(streams.Join());
  return queued;
}

}  // namespace tensord::server
