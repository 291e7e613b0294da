#include "server/execution/program/program_steps.h"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/status.h"
#include "core/base/steady_time.h"
#include "core/executor/operands.h"
#include "server/execution/program/replays.h"

namespace tensord::server {
namespace {

using Place = core::ProgramTensor::Place;

// How long a program may have the device while others wait, where work is done
// as it is launched. Elsewhere, how much of it and how many operations go
// together, and how long a program may be that is queued at once.
constexpr absl::Duration kTurn = absl::Milliseconds(20);
constexpr absl::Duration kAhead = absl::Milliseconds(5);
constexpr int kMostStepsInATurn = 256;

/// Most bytes of each result of a step, by the plan that it needs.
std::vector<std::array<int64_t, core::kMostResults>> ResultBytes(
    const PreparedProgram& prepared) {
  std::vector<std::array<int64_t, core::kMostResults>> result_bytes(
      prepared.keys().size());
  const std::vector<core::ProgramBlock>& blocks = prepared.program().blocks;
  for (size_t b = 0; b < blocks.size(); ++b) {
    for (size_t s = 0; s < blocks[b].steps.size(); ++s) {
      auto& most = result_bytes[prepared.key_of(b, s)];
      std::ranges::transform(
          most, core::ResultBytes(blocks[b].steps[s].desc), most.begin(),
          [](int64_t x, int64_t y) { return std::max(x, y); });
    }
  }
  return result_bytes;
}

absl::Status TakePlans(const PreparedProgram& prepared, StepRunner& runner) {
  const auto result_bytes = ResultBytes(prepared);
  for (size_t i = 0; i < result_bytes.size(); ++i) {
    TENSORD_RETURN_IF_ERROR(runner.Add(prepared.keys()[i], result_bytes[i],
                                       /*is_whole=*/true));
  }
  return absl::OkStatus();
}

double Predict(const PreparedProgram& prepared,
               absl::Span<const std::shared_ptr<const core::Plan>> plans) {
  double nanoseconds = 0;
  const std::vector<core::ProgramBlock>& blocks = prepared.program().blocks;
  for (size_t b = 0; b < blocks.size(); ++b) {
    for (size_t s = 0; s < blocks[b].steps.size(); ++s) {
      nanoseconds += static_cast<double>(blocks[b].slice_count()) *
                     plans[prepared.key_of(b, s)]->predicted_nanoseconds();
    }
  }
  return nanoseconds;
}

/// Takes the operands into use, those that the program uses.
absl::Status UseOperands(const PreparedProgram& prepared,
                         absl::Span<const ProgramOperandRequest> operands,
                         FoundOperands found, int64_t max_inline_bytes,
                         RunState& state) {
  const core::Program& program = prepared.program();
  int64_t inline_bytes = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    OperandUse& use = state.uses.emplace_back();
    if (program.operands[i] < 0) continue;
    const OperandUse::Access access{program.operand_read[i],
                                    program.operand_written[i]};
    const std::string what =
        absl::StrCat("operand '", prepared.operands()[i].name, "'");
    core::TensorDesc& desc = found.descs[i];
    std::shared_ptr<StoredTensor> tensor = std::move(found.tensors[i]);
    if (const auto* sent = std::get_if<InlineTensor>(&operands[i].source)) {
      if (access.is_written) {
        return core::InvalidArgument(
            "OUTPUT_IS_INLINE", what,
            " is sent with the request, but the program writes it; wanted a "
            "resident tensor");
      }
      inline_bytes += static_cast<int64_t>(sent->data.size());
      TENSORD_RETURN_IF_ERROR(CheckInlineBytes(inline_bytes, max_inline_bytes,
                                               "the inline operands"));
      TENSORD_ASSIGN_OR_RETURN(
          tensor, state.inline_inputs.Add(*state.session, desc, *sent));
    }
    if (access.is_written) {
      TENSORD_RETURN_IF_ERROR(CheckInjective(*tensor, what));
    }
    const auto place = tensor->is_in_place() ? PlaceOf(*tensor, desc, access,
                                                       state.session->device())
                                             : OperandUse::Place::kPacked;
    use = OperandUse(std::move(tensor), std::move(desc), access, place);
  }
  state.first_result = state.uses.size();
  return absl::OkStatus();
}

/// OK when what is written shares no element with other operands.
absl::Status CheckOverlaps(const PreparedProgram& prepared,
                           absl::Span<const OperandUse> operands) {
  const auto overlap = FindOverlap(operands);
  if (!overlap) return absl::OkStatus();
  const auto [written, other] = *overlap;
  return core::InvalidArgument(
      "OUTPUT_OVERLAPS_INPUT", "operand '", prepared.operands()[written].name,
      "', ", operands[written].tensor()->name(),
      ", is written and shares elements with '",
      prepared.operands()[other].name, "', ", operands[other].tensor()->name());
}

absl::Status UseOutputs(const core::Program& program,
                        absl::Span<const ProgramOutputRequest> outputs,
                        int64_t max_inline_bytes, RunState& state) {
  int64_t inline_bytes = 0;
  for (const int32_t output : program.outputs) {
    const core::ProgramTensor& made = program.tensors[output];
    const auto asked =
        std::ranges::find_if(outputs, [&](const ProgramOutputRequest& other) {
          return other.name == made.name ||
                 (other.name.empty() && outputs.size() == 1);
        });
    const bool is_asked = asked != outputs.end();
    core::TensorDesc desc{made.element_type, made.layout, 0};
    const bool is_inline = is_asked && asked->is_inline;
    if (is_inline) inline_bytes += desc.span_bytes();
    TENSORD_RETURN_IF_ERROR(
        CheckInlineBytes(inline_bytes, max_inline_bytes, "the inline results"));
    TENSORD_ASSIGN_OR_RETURN(
        OperandUse use,
        OperandUse::OfNew(*state.session, is_asked ? asked->tensor_id : "",
                          std::move(desc), is_inline));
    state.uses.push_back(std::move(use));
  }
  return absl::OkStatus();
}

/// Steps that may be refused for what they read wait, while they are queued,
/// for what there is to be said of it: no recording could.
bool HasStepsThatWait(const core::Program& program) {
  return std::ranges::any_of(
      program.blocks, [](const core::ProgramBlock& block) {
        return std::ranges::any_of(block.steps,
                                   [](const core::ProgramStep& step) {
                                     return core::MayRefuseElements(step.desc);
                                   });
      });
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunState>> PlanProgramRun(
    Engine& engine, std::shared_ptr<Session> session,
    const PreparedProgram& program) {
  TENSORD_RETURN_IF_ERROR(session->device().health());
  auto state = std::make_unique<RunState>(engine, std::move(session));
  TENSORD_RETURN_IF_ERROR(TakePlans(program, state->runner));
  state->predicted_nanoseconds = Predict(program, state->runner.plans());
  return state;
}

absl::StatusOr<std::unique_ptr<Run>> PrepareProgramRun(
    std::unique_ptr<RunState> state,
    std::shared_ptr<const PreparedProgram> program,
    absl::Span<const ProgramOperandRequest> operands, FoundOperands found,
    absl::Span<const ProgramOutputRequest> outputs, int64_t max_inline_bytes) {
  state->uses.reserve(operands.size() + program->program().outputs.size());
  TENSORD_RETURN_IF_ERROR(UseOperands(*program, operands, std::move(found),
                                      max_inline_bytes, *state));
  TENSORD_RETURN_IF_ERROR(CheckOverlaps(*program, state->uses));
  TENSORD_RETURN_IF_ERROR(
      UseOutputs(program->program(), outputs, max_inline_bytes, *state));
  state->report.peak_bytes = program->program().arena_bytes;
  state->report.kept_bytes = program->program().kept_bytes;
  return Run::Make(std::move(state),
                   std::make_unique<ProgramSteps>(std::move(program)));
}

void ProgramSteps::Plan(RunState& state) {
  if (!program().has_folded_block()) return;
  sources_.clear();
  for (size_t i = 0; i < state.first_result; ++i) {
    if (!program().operand_folded[i]) continue;
    const std::shared_ptr<StoredTensor>& tensor = state.uses[i].tensor();
    sources_.push_back({tensor, tensor->version()});
  }
  folds_ = !prepared_->kept()->AreOf(sources_);
}

bool ProgramSteps::IsReadNow(const RunState& state, size_t i) const {
  return state.uses[i].is_read() &&
         (folds_ || !program().operand_only_folded[i]);
}

void ProgramSteps::CountWork(RunReport& report) const {
  const std::vector<core::ProgramBlock>& blocks = program().blocks;
  report.flops = program().flops;
  for (size_t b = 0; b < blocks.size(); ++b) {
    const int64_t count =
        blocks[b].slice_count() * static_cast<int64_t>(blocks[b].steps.size());
    if (b >= next_.block) {
      report.operation_count += count;
      continue;
    }
    report.folded_operation_count += count;
    for (const core::ProgramStep& step : blocks[b].steps) {
      report.flops -= step.flops;
    }
  }
}

absl::Status ProgramSteps::Allocate(RunState& state) {
  if (program().has_folded_block()) {
    TENSORD_RETURN_IF_ERROR(prepared_->kept()->Allocate());
  }
  if (arena_.bytes() < program().arena_bytes) {
    TENSORD_ASSIGN_OR_RETURN(arena_,
                             core::Buffer::Allocate(*state.session->memory(),
                                                    program().arena_bytes));
  }
  addresses_.clear();
  for (int32_t t = 0; t < std::ssize(program().tensors); ++t) {
    addresses_.push_back(AddressOf(state, t));
  }
  return absl::OkStatus();
}

std::byte* ProgramSteps::AddressOf(const RunState& state, int32_t t) const {
  const core::ProgramTensor& tensor = program().tensors[t];
  switch (tensor.place) {
    case Place::kOutput:
      return state.uses[state.first_result + tensor.number].first();
    case Place::kOperand: return state.uses[tensor.number].first();
    case Place::kTemporary:
    case Place::kConstant:
      return tensor.arena_offset_bytes < 0
                 ? nullptr
                 : arena_.data() + tensor.arena_offset_bytes;
    case Place::kKept:
      return prepared_->kept()->data() + tensor.kept_offset_bytes;
  }
  __builtin_unreachable();
}

absl::Status ProgramSteps::Begin(RunState& state, core::Stream& stream) {
  if (folds_) {
    computation_number_ = prepared_->kept()->BeginComputing();
  } else if (program().has_folded_block()) {
    next_.block = 1;
  }
  CountWork(state.report);
  std::vector<int64_t>& extents = state.report.kept_extents;
  if (next_.block > 0) extents = prepared_->kept()->extents();
  extents.resize(program().kept_extents.size());
  for (size_t t = 0; t < program().tensors.size(); ++t) {
    const core::ProgramTensor& tensor = program().tensors[t];
    if (tensor.place != Place::kConstant || addresses_[t] == nullptr) continue;
    TENSORD_RETURN_IF_ERROR(state.session->device().Fill(
        {.modes = {},
         .d = addresses_[t],
         .element_bytes = static_cast<int>(core::SizeOf(tensor.element_type)),
         .value = tensor.value},
        stream));
  }
  return absl::OkStatus();
}

absl::Status ProgramSteps::QueueSome(RunState& state, core::Stream& stream) {
  RunReport& report = state.report;
  const PlacedProgram placed{*prepared_, addresses_, state.runner,
                             absl::MakeSpan(report.kept_extents)};
  const bool is_asynchronous = state.session->device().info().is_asynchronous;
  // One operation alone gains nothing, and what takes long is not queued at
  // once: it could not be stopped.
  if (is_asynchronous && !state.runner.takes_times() &&
      !HasStepsThatWait(program()) && report.operation_count > 1 &&
      report.operation_count <= Replays::kMostSteps &&
      state.predicted_nanoseconds <= absl::ToDoubleNanoseconds(kTurn)) {
    TENSORD_ASSIGN_OR_RETURN(
        report.is_replayed,
        prepared_->replays().Queue(placed, next_.block, stream));
    next_.block = program().blocks.size();
    return absl::OkStatus();
  }
  const absl::Time turn_ends =
      core::SteadyNow() + (is_asynchronous ? kAhead : kTurn);
  absl::Duration ahead;
  for (int count = 0; next_.block < program().blocks.size(); ++count) {
    if (count == kMostStepsInATurn) return absl::OkStatus();
    if (count > 0 && core::SteadyNow() + ahead > turn_ends)
      return absl::OkStatus();
    TENSORD_RETURN_IF_ERROR(QueueStep(placed, next_, stream));
    if (is_asynchronous) {
      ahead += absl::Nanoseconds(
          placed.plan_of(next_.block, next_.step).predicted_nanoseconds());
    }
    next_.Advance(program());
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> ProgramSteps::Queue(RunState& state,
                                         core::Stream& stream) {
  TENSORD_RETURN_IF_ERROR(QueueSome(state, stream));
  if (next_.block > 0 && std::exchange(folds_, false)) {
    prepared_->kept()->Queued(computation_number_, std::move(sources_),
                              state.report.kept_extents);
  }
  return next_.block >= program().blocks.size();
}

void ProgramSteps::Discard() {
  if (computation_number_ > 0) {
    prepared_->kept()->Discard(computation_number_);
  }
}

}  // namespace tensord::server
