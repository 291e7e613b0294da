#include "server/session/program/program_run.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/status.h"
#include "core/view/disjoint.h"
#include "server/session/program/replays.h"
#include "server/session/program/step_queue.h"

namespace tensord::server {
namespace {

using Place = core::ProgramTensor::Place;

// How long a program may have the device while others wait, where work is done
// as it is launched, and how many operations are launched ahead elsewhere.
constexpr absl::Duration kTurn = absl::Milliseconds(20);
constexpr int kMostStepsInATurn = 256;

/// A view that repeats is written nowhere and read by way of a copy.
bool IsCopied(const StoredTensor& tensor) {
  return tensor.view() != nullptr && !tensor.view()->is_in_place();
}

core::TensorDesc AsUsed(const StoredTensor& tensor) {
  return IsCopied(tensor) ? tensor.view()->gathered_desc() : tensor.desc();
}

core::StridedView Strided(const core::TensorDesc& desc) {
  return {desc.layout.extents, desc.layout.strides, desc.offset};
}

}  // namespace

absl::StatusOr<FoundOperands> FindOperands(
    const Session& session, absl::Span<const ProgramOperandRequest> operands,
    bool has_data) {
  FoundOperands found;
  for (size_t i = 0; i < operands.size(); ++i) {
    const ProgramOperandRequest& operand = operands[i];
    core::NamedOperand described;
    described.name =
        operand.name.empty() ? absl::StrCat("operand ", i) : operand.name;
    described.is_constant = operand.is_constant;
    std::shared_ptr<StoredTensor> tensor;
    core::TensorDesc desc;
    if (const auto* scalar = std::get_if<core::Scalar>(&operand.source)) {
      described.scalar = *scalar;
    } else if (const auto* sent = std::get_if<InlineTensor>(&operand.source)) {
      TENSORD_ASSIGN_OR_RETURN(desc, DescOf(*sent, described.name, has_data));
    } else {
      if (const auto* name = std::get_if<std::string>(&operand.source)) {
        TENSORD_ASSIGN_OR_RETURN(tensor, session.Find(*name));
      } else {
        tensor = std::get<std::shared_ptr<StoredTensor>>(operand.source);
      }
      desc = AsUsed(*tensor);
    }
    described.element_type = desc.element_type;
    described.layout = desc.layout;
    described.alignment_bytes = core::AlignmentOf(desc);
    found.tensors.push_back(std::move(tensor));
    found.descs.push_back(std::move(desc));
    found.described.push_back(std::move(described));
  }
  return found;
}

ProgramRun::ProgramRun(std::shared_ptr<Session> session,
                       std::shared_ptr<const PreparedProgram> program)
    : session_(std::move(session)), program_(std::move(program)) {}

ProgramRun::~ProgramRun() { End(); }

absl::StatusOr<std::unique_ptr<ProgramRun>> ProgramRun::Prepare(
    Engine& engine, std::shared_ptr<Session> session,
    std::shared_ptr<const PreparedProgram> program,
    absl::Span<const ProgramOperandRequest> operands, FoundOperands found,
    absl::Span<const ProgramOutputRequest> outputs, int64_t max_inline_bytes) {
  TENSORD_RETURN_IF_ERROR(session->device().health());
  // From here on the destructor takes back what was announced.
  std::unique_ptr<ProgramRun> run(
      new ProgramRun(std::move(session), std::move(program)));
  TENSORD_RETURN_IF_ERROR(run->TakePlans(engine));
  TENSORD_RETURN_IF_ERROR(
      run->TakeOperands(operands, std::move(found), max_inline_bytes));
  TENSORD_RETURN_IF_ERROR(run->CheckOverlaps());
  TENSORD_RETURN_IF_ERROR(run->TakeOutputs(outputs, max_inline_bytes));
  TENSORD_RETURN_IF_ERROR(run->Announce());
  return run;
}

absl::Status ProgramRun::TakePlans(Engine& engine) {
  for (const core::PlanKey& key : program_->keys()) {
    TENSORD_ASSIGN_OR_RETURN(
        core::PlanCache::Lookup lookup,
        engine.PlanFor(session_->device(), key, session_->options().job));
    report_.plan_cache_hits += lookup.hit;
    report_.workspace_bytes =
        std::max(report_.workspace_bytes, lookup.plan->workspace_bytes());
    plans_.push_back(std::move(lookup.plan));
  }
  report_.plan_count = static_cast<int64_t>(plans_.size());
  report_.peak_bytes = program().arena_bytes;
  report_.kept_bytes = program().kept_bytes;
  return absl::OkStatus();
}

absl::Status ProgramRun::TakeOperands(
    absl::Span<const ProgramOperandRequest> operands, FoundOperands found,
    int64_t max_inline_bytes) {
  const core::Program& program = program_->program();
  int64_t inline_bytes = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    Operand& operand = operands_.emplace_back();
    if (program.operands[i] < 0) continue;
    operand.is_read = program.operand_read[i];
    operand.is_written = program.operand_written[i];
    operand.desc = std::move(found.descs[i]);
    const std::string& name = program_->operands()[i].name;
    if (const auto* sent = std::get_if<InlineTensor>(&operands[i].source)) {
      if (operand.is_written) {
        return core::InvalidArgument(
            "OUTPUT_IS_INLINE", "operand '", name,
            "' is sent with the request, but the program writes it; wanted a "
            "resident tensor");
      }
      inline_bytes += static_cast<int64_t>(sent->data.size());
      TENSORD_RETURN_IF_ERROR(CheckInlineBytes(inline_bytes, max_inline_bytes,
                                               "the inline operands"));
      TENSORD_ASSIGN_OR_RETURN(
          operand.tensor, inline_inputs_.Add(*session_, operand.desc, *sent));
      continue;
    }
    operand.tensor = std::move(found.tensors[i]);
    const TensorView* const view = operand.tensor->view();
    if (operand.is_written && view != nullptr && !view->view().IsInjective()) {
      return core::InvalidArgument("OUTPUT_NOT_INJECTIVE", "operand '", name,
                                   "' is the view ", operand.tensor->name(),
                                   ", which has elements of ", view->viewed(),
                                   " more than once, wanted each at most once");
    }
    operand.is_copied = IsCopied(*operand.tensor);
  }
  return absl::OkStatus();
}

absl::Status ProgramRun::CheckOverlaps() const {
  for (size_t w = 0; w < operands_.size(); ++w) {
    const Operand& written = operands_[w];
    if (!written.is_written) continue;
    for (size_t i = 0; i < operands_.size(); ++i) {
      const Operand& other = operands_[i];
      if (i == w || other.tensor == nullptr ||
          !(other.is_read || other.is_written) ||
          &other.tensor->storage() != &written.tensor->storage()) {
        continue;
      }
      // Copies are made before anything is written, or written back behind all.
      if (!other.is_written && (other.is_copied || written.is_copied)) continue;
      const core::TensorDesc& storage = written.tensor->storage().desc();
      if (!other.is_copied && !written.is_copied &&
          core::AreDisjoint(storage.layout, storage.offset,
                            Strided(written.desc), Strided(other.desc))) {
        continue;
      }
      return core::InvalidArgument(
          "OUTPUT_OVERLAPS_INPUT", "operand '", program_->operands()[w].name,
          "', ", written.tensor->name(),
          ", is written and shares elements with '",
          program_->operands()[i].name, "', ", other.tensor->name());
    }
  }
  return absl::OkStatus();
}

absl::Status ProgramRun::TakeOutputs(
    absl::Span<const ProgramOutputRequest> outputs, int64_t max_inline_bytes) {
  const core::Program& program = program_->program();
  int64_t inline_bytes = 0;
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const core::ProgramTensor& made = program.tensors[program.outputs[i]];
    const auto asked =
        std::ranges::find_if(outputs, [&](const ProgramOutputRequest& output) {
          return output.name == made.name ||
                 (output.name.empty() && outputs.size() == 1);
        });
    Output& output = outputs_.emplace_back();
    core::TensorDesc desc{made.element_type, made.layout, 0};
    if (asked != outputs.end() && asked->is_inline) {
      output.is_inline = true;
      inline_bytes += desc.span_bytes();
      TENSORD_RETURN_IF_ERROR(CheckInlineBytes(inline_bytes, max_inline_bytes,
                                               "the inline results"));
      output.tensor =
          std::make_shared<StoredTensor>("", session_->device().info().name,
                                         std::move(desc), session_->memory());
      continue;
    }
    const std::string id = asked == outputs.end() ? "" : asked->tensor_id;
    output.is_named = !id.empty();
    TENSORD_ASSIGN_OR_RETURN(output.tensor, session_->Add(id, std::move(desc)));
  }
  return absl::OkStatus();
}

absl::Status ProgramRun::Announce() {
  for (Operand& operand : operands_) {
    if (operand.is_read) {
      TENSORD_RETURN_IF_ERROR(operand.tensor->BeginRead());
      operand.read_announced = true;
    }
    if (operand.is_written) {
      TENSORD_RETURN_IF_ERROR(operand.tensor->BeginWrite());
      operand.write_announced = true;
    }
  }
  for (const Output& output : outputs_) {
    TENSORD_RETURN_IF_ERROR(output.tensor->BeginWrite());
  }
  outputs_announced_ = true;
  return absl::OkStatus();
}

void ProgramRun::End() {
  for (Operand& operand : operands_) {
    if (std::exchange(operand.read_announced, false)) {
      operand.tensor->EndRead();
    }
    if (std::exchange(operand.write_announced, false)) {
      operand.tensor->EndWrite(result_);
    }
    operand.tensor.reset();
    operand.copy = core::Buffer();
  }
  const bool announced = std::exchange(outputs_announced_, false);
  for (const Output& output : outputs_) {
    if (output.tensor == nullptr) continue;
    if (announced) output.tensor->EndWrite(result_);
    if (result_ != WriteResult::kDone && !output.is_inline) {
      session_->Remove(*output.tensor);
    }
  }
  if (result_ != WriteResult::kDone) outputs_.clear();
  arena_ = core::Buffer();
  scratch_.reset();
  inline_inputs_.Clear();
}

absl::Status ProgramRun::CheckReady() const {
  for (const Operand& operand : operands_) {
    const bool is_needed =
        operand.is_read || (operand.is_written && operand.tensor->is_part());
    if (is_needed) TENSORD_RETURN_IF_ERROR(operand.tensor->CheckReady());
  }
  return absl::OkStatus();
}

void ProgramRun::LookForKept() {
  if (!program().has_folded_block()) return;
  sources_.clear();
  for (size_t i = 0; i < operands_.size(); ++i) {
    if (!program().operand_folded[i]) continue;
    const std::shared_ptr<StoredTensor>& tensor = operands_[i].tensor;
    sources_.push_back({tensor, tensor->version()});
  }
  folds_ = !program_->kept()->AreOf(sources_);
}

bool ProgramRun::IsReadNow(size_t i) const {
  return operands_[i].is_read && (folds_ || !program().operand_only_folded[i]);
}

void ProgramRun::CountWork() {
  for (size_t i = 0; i < operands_.size(); ++i) {
    if (!operands_[i].is_copied) continue;
    report_.gathered_bytes += operands_[i].desc.span_bytes() *
                              (IsReadNow(i) + operands_[i].is_written);
  }
  const std::vector<core::ProgramBlock>& blocks = program().blocks;
  report_.flops = program().flops;
  for (size_t b = 0; b < blocks.size(); ++b) {
    const int64_t count =
        blocks[b].slice_count() * static_cast<int64_t>(blocks[b].steps.size());
    if (b >= next_.block) {
      report_.operation_count += count;
      continue;
    }
    report_.folded_operation_count += count;
    for (const core::ProgramStep& step : blocks[b].steps) {
      report_.flops -= step.flops;
    }
  }
}

absl::Status ProgramRun::Allocate() {
  core::MemoryResource& memory = *session_->memory();
  for (size_t i = 0; i < operands_.size(); ++i) {
    Operand& operand = operands_[i];
    if (operand.is_written) TENSORD_RETURN_IF_ERROR(operand.tensor->Allocate());
    const bool is_used = IsReadNow(i) || operand.is_written;
    if (!operand.is_copied || !is_used || operand.copy.bytes() > 0) continue;
    TENSORD_ASSIGN_OR_RETURN(
        operand.copy,
        core::Buffer::Allocate(memory, operand.desc.span_bytes()));
  }
  for (Output& output : outputs_) {
    TENSORD_RETURN_IF_ERROR(output.tensor->Allocate());
    if (!output.is_inline) continue;
    TENSORD_RETURN_IF_ERROR(
        output.contents.Allocate(*session_, *output.tensor));
  }
  if (program().has_folded_block()) {
    TENSORD_RETURN_IF_ERROR(program_->kept()->Allocate());
  }
  const int64_t arena_bytes = program().arena_bytes;
  if (arena_.bytes() < arena_bytes) {
    TENSORD_ASSIGN_OR_RETURN(arena_,
                             core::Buffer::Allocate(memory, arena_bytes));
  }
  if (report_.workspace_bytes > 0 && scratch_ == nullptr) {
    TENSORD_ASSIGN_OR_RETURN(
        scratch_, session_->scratch().Lend(memory, report_.workspace_bytes));
  }
  addresses_.clear();
  for (int32_t t = 0; t < std::ssize(program().tensors); ++t) {
    addresses_.push_back(AddressOf(t));
  }
  return absl::OkStatus();
}

std::byte* ProgramRun::AddressOf(int32_t t) const {
  const core::ProgramTensor& tensor = program().tensors[t];
  switch (tensor.place) {
    case Place::kOutput: return outputs_[tensor.number].tensor->first();
    case Place::kOperand: {
      const Operand& operand = operands_[tensor.number];
      if (!operand.is_read && !operand.is_written) return nullptr;
      return operand.is_copied ? operand.copy.data()
                               : operand.tensor->storage().data() +
                                     operand.desc.offset_bytes();
    }
    case Place::kTemporary:
    case Place::kConstant:
      return tensor.arena_offset_bytes < 0
                 ? nullptr
                 : arena_.data() + tensor.arena_offset_bytes;
    case Place::kKept:
      return program_->kept()->data() + tensor.kept_offset_bytes;
  }
  __builtin_unreachable();
}

absl::Status ProgramRun::QueueInputs(core::Stream& stream) {
  Device& device = session_->device();
  TENSORD_RETURN_IF_ERROR(inline_inputs_.Queue(stream));
  for (size_t i = 0; i < operands_.size(); ++i) {
    const Operand& operand = operands_[i];
    if (!operand.is_copied || !IsReadNow(i)) continue;
    TENSORD_RETURN_IF_ERROR(operand.tensor->view()->Gather(
        device, operand.tensor->storage().data(), operand.copy.data(), stream));
  }
  const core::Program& program = program_->program();
  for (size_t t = 0; t < program.tensors.size(); ++t) {
    const core::ProgramTensor& tensor = program.tensors[t];
    if (tensor.place != Place::kConstant || addresses_[t] == nullptr) continue;
    TENSORD_RETURN_IF_ERROR(device.Fill(
        {.modes = {},
         .d = addresses_[t],
         .element_bytes = static_cast<int>(core::SizeOf(tensor.element_type)),
         .value = tensor.value},
        stream));
  }
  return absl::OkStatus();
}

PlacedProgram ProgramRun::Placed() const {
  static const core::Buffer* const kNone = new core::Buffer;
  return {.prepared = *program_,
          .plans = plans_,
          .addresses = addresses_,
          .scratch = scratch_ == nullptr ? *kNone : *scratch_};
}

absl::Status ProgramRun::QueueSteps(core::Stream& stream) {
  const PlacedProgram placed = Placed();
  // One operation alone gains nothing.
  if (session_->device().info().is_asynchronous &&
      report_.operation_count > 1 &&
      report_.operation_count <= Replays::kMostSteps) {
    TENSORD_ASSIGN_OR_RETURN(
        report_.is_replayed,
        program_->replays().Queue(placed, next_.block, stream));
    next_.block = program().blocks.size();
    return absl::OkStatus();
  }
  const absl::Time turn_ends = absl::Now() + kTurn;
  for (int count = 0; next_.block < program().blocks.size(); ++count) {
    if (count == kMostStepsInATurn) return absl::OkStatus();
    if (count > 0 && absl::Now() > turn_ends) return absl::OkStatus();
    TENSORD_RETURN_IF_ERROR(QueueStep(placed, next_, stream));
    next_.Advance(program());
  }
  return absl::OkStatus();
}

absl::Status ProgramRun::QueueResults(core::Stream& stream) {
  for (const Operand& operand : operands_) {
    if (!operand.is_copied || !operand.is_written) continue;
    TENSORD_RETURN_IF_ERROR(operand.tensor->view()->Scatter(
        session_->device(), operand.copy.data(),
        operand.tensor->storage().data(), stream));
  }
  for (Output& output : outputs_) {
    if (!output.is_inline) continue;
    TENSORD_RETURN_IF_ERROR(output.contents.Queue(*output.tensor, stream));
  }
  return absl::OkStatus();
}

absl::Status ProgramRun::Begin(core::Stream& stream) {
  TENSORD_RETURN_IF_ERROR(CheckReady());
  LookForKept();
  TENSORD_RETURN_IF_ERROR(Allocate());
  has_queued_ = true;
  if (folds_) {
    computation_number_ = program_->kept()->BeginComputing();
  } else if (program().has_folded_block()) {
    next_.block = 1;
  }
  CountWork();
  TENSORD_RETURN_IF_ERROR(QueueInputs(stream));
  for (const Operand& operand : operands_) {
    if (operand.is_written) operand.tensor->StartWrite();
  }
  for (const Output& output : outputs_) output.tensor->StartWrite();
  result_ = WriteResult::kFailed;
  return absl::OkStatus();
}

absl::Status ProgramRun::Launch(core::Stream& stream) {
  const absl::Status launched = LaunchPart(stream);
  // At once: what is launched next may look for them.
  if (!launched.ok()) DiscardKept();
  return launched;
}

void ProgramRun::DiscardKept() {
  if (computation_number_ > 0) {
    program_->kept()->Discard(computation_number_);
  }
}

absl::Status ProgramRun::LaunchPart(core::Stream& stream) {
  if (!has_queued_) TENSORD_RETURN_IF_ERROR(Begin(stream));
  TENSORD_RETURN_IF_ERROR(QueueSteps(stream));
  if (next_.block > 0 && std::exchange(folds_, false)) {
    program_->kept()->Queued(computation_number_, std::move(sources_));
  }
  if (IsUnfinished()) return absl::OkStatus();
  TENSORD_RETURN_IF_ERROR(QueueResults(stream));
  result_ = WriteResult::kDone;
  for (const Operand& operand : operands_) {
    if (operand.is_written) operand.tensor->Written();
  }
  for (const Output& output : outputs_) output.tensor->Written();
  return absl::OkStatus();
}

void ProgramRun::Complete(const absl::Status& status) {
  if (!status.ok() && result_ == WriteResult::kDone) {
    result_ = WriteResult::kFailed;
  }
  if (status.ok()) {
    program_->CountExecution();
  } else {
    DiscardKept();
  }
  // Before the response, so that the next request finds everything settled.
  End();
}

}  // namespace tensord::server
