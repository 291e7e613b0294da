#include "server/session/operation.h"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/status.h"
#include "core/executor/aliasing.h"
#include "core/view/disjoint.h"
#include "server/session/prepared_plan.h"

namespace tensord::server {
namespace {

using TensorRef = std::shared_ptr<StoredTensor>;

/// The tensors that a request names: found, not announced yet. Inline ones have
/// a description and no tensor.
struct Found {
  TensorRef a, b, c, d;
  OperationTensors descs;
};

/// True when the operation has to copy an input, a view, before it reads it.
/// `desc` is how it will be read.
bool IsReadByCopy(const TensorRef& tensor, const core::TensorDesc& desc) {
  const TensorView* const view = tensor == nullptr ? nullptr : tensor->view();
  return view != nullptr && !view->is_in_place() &&
         !(view->repeats() && desc == view->desc());
}

/// How an operation of `kind` reads a tensor: only those that broadcast take
/// one that repeats as it lies.
core::TensorDesc AsRead(const StoredTensor& tensor, OperationKind kind) {
  const TensorView* const view = tensor.view();
  if (view == nullptr) return tensor.desc();
  const bool broadcasts =
      kind == OperationKind::kPermute || kind == OperationKind::kElementwise;
  return view->repeats() && !broadcasts ? view->gathered_desc() : view->desc();
}

/// How an operation writes a tensor.
/// Errors  INVALID_ARGUMENT, reason OUTPUT_NOT_INJECTIVE.
absl::StatusOr<core::TensorDesc> AsWritten(const StoredTensor& tensor) {
  const TensorView* const view = tensor.view();
  if (view == nullptr) return tensor.desc();
  if (!view->view().IsInjective()) {
    return core::InvalidArgument("OUTPUT_NOT_INJECTIVE", "d is the view ",
                                 tensor.name(), ", which has elements of ",
                                 view->viewed(),
                                 " more than once, wanted each at most once");
  }
  return view->desc();
}

absl::Status FindInput(const Session& session, OperationKind kind,
                       const std::optional<InputRequest>& request,
                       absl::string_view name, bool has_data, TensorRef* tensor,
                       std::optional<core::TensorDesc>* desc,
                       int64_t* inline_bytes) {
  if (!request) return absl::OkStatus();
  if (const auto* sent = std::get_if<InlineTensor>(&request->source)) {
    TENSORD_ASSIGN_OR_RETURN(*desc, DescOf(*sent, name, has_data));
    *inline_bytes += static_cast<int64_t>(sent->data.size());
    return absl::OkStatus();
  }
  TENSORD_ASSIGN_OR_RETURN(
      *tensor, session.Find(std::get<std::string>(request->source)));
  *desc = AsRead(**tensor, kind);
  return absl::OkStatus();
}

/// The tensors that `request` names, and what they are like. Inline ones of
/// which `has_data` is false need no data.
absl::StatusOr<Found> FindTensors(const Session& session,
                                  const OperationRequest& request,
                                  InputsRead has_data,
                                  int64_t max_inline_bytes) {
  Found found;
  int64_t inline_bytes = 0;
  TENSORD_RETURN_IF_ERROR(FindInput(session, request.kind, request.a, "a",
                                    has_data.a, &found.a, &found.descs.a,
                                    &inline_bytes));
  TENSORD_RETURN_IF_ERROR(FindInput(session, request.kind, request.b, "b",
                                    has_data.b, &found.b, &found.descs.b,
                                    &inline_bytes));
  TENSORD_RETURN_IF_ERROR(FindInput(session, request.kind, request.c, "c",
                                    has_data.c, &found.c, &found.descs.c,
                                    &inline_bytes));
  TENSORD_RETURN_IF_ERROR(
      CheckInlineBytes(inline_bytes, max_inline_bytes, "the inline operands"));
  if (!request.d.tensor.empty()) {
    TENSORD_ASSIGN_OR_RETURN(found.d, session.Find(request.d.tensor));
    TENSORD_ASSIGN_OR_RETURN(found.descs.d, AsWritten(*found.d));
  }
  return found;
}

core::PlanKey KeyOf(const Session& session, const OperationRequest& request,
                    const core::AnyDesc& desc) {
  return {.problem = std::visit(
              [](const auto& d) -> core::AnyProblem {
                return core::Canonicalize(d);
              },
              desc),
          .device = session.device().plan_device(),
          .workspace_limit_bytes = request.workspace_limit_bytes,
          .kernel = request.kernel,
          .deterministic = request.deterministic,
          .selection = request.selection};
}

/// False when a factor of 0 spares an input that the problem counts.
bool ReadsAll(const OperationRequest& request) {
  const InputsRead reads = WhichInputs(request);
  if (request.kind != OperationKind::kElementwise) return reads.a;
  return reads.a && reads.c && (reads.b || !request.b);
}

}  // namespace

absl::StatusOr<Operation::Input> Operation::Announce(
    const InputRequest& request, Input input) {
  if (const auto* sent = std::get_if<InlineTensor>(&request.source)) {
    TENSORD_ASSIGN_OR_RETURN(input.tensor,
                             inline_inputs_.Add(*session_, input.desc, *sent));
  }
  input.is_copied = IsReadByCopy(input.tensor, input.desc);
  if (input.is_copied) report_.gathered_bytes += input.desc.span_bytes();
  TENSORD_RETURN_IF_ERROR(input.tensor->BeginRead());
  return input;
}

Operation::Operation(Engine& engine, std::shared_ptr<Session> session)
    : engine_(engine), session_(std::move(session)) {}

Operation::~Operation() { End(); }

void Operation::End() {
  for (Input* const input : {&a_, &b_, &c_}) {
    if (input->tensor != nullptr) input->tensor->EndRead();
    input->tensor.reset();
    input->copy = core::Buffer();
  }
  if (std::exchange(d_announced_, false)) d_->EndWrite(result_);
  if (std::exchange(d_is_new_, false) &&
      result_ != StoredTensor::WriteResult::kDone) {
    session_->Remove(*d_);
  }
}

absl::StatusOr<Operation::Planned> Operation::Plan(
    Session& session, const OperationRequest& request) {
  TENSORD_ASSIGN_OR_RETURN(Found found,
                           FindTensors(session, request, {false, false, false},
                                       std::numeric_limits<int64_t>::max()));
  TENSORD_ASSIGN_OR_RETURN(OperationDesc made, MakeDesc(request, found.descs));
  core::PlanKey key = KeyOf(session, request, made.desc);
  return Planned{std::move(found.descs), std::move(made.output),
                 std::move(key)};
}

absl::StatusOr<std::unique_ptr<Operation>> Operation::Prepare(
    Engine& engine, std::shared_ptr<Session> session,
    const OperationRequest& request, int64_t max_inline_bytes) {
  TENSORD_RETURN_IF_ERROR(session->device().health());
  const InputsRead reads = WhichInputs(request);
  TENSORD_ASSIGN_OR_RETURN(
      Found found, FindTensors(*session, request, reads, max_inline_bytes));
  if (request.plan != nullptr) {
    TENSORD_RETURN_IF_ERROR(request.plan->CheckOperands(found.descs));
  }
  TENSORD_ASSIGN_OR_RETURN(OperationDesc made, MakeDesc(request, found.descs));
  if (request.plan != nullptr) {
    // A new d, too.
    TENSORD_RETURN_IF_ERROR(request.plan->CheckOperands(
        {.a = {}, .b = {}, .c = {}, .d = made.output}));
  }
  core::PlanKey key = KeyOf(*session, request, made.desc);
  TENSORD_ASSIGN_OR_RETURN(
      core::PlanCache::Lookup lookup,
      engine.PlanFor(session->device(), key, session->options().job));

  // From here on the destructor takes back what was announced.
  std::unique_ptr<Operation> operation(new Operation(engine, session));
  operation->plan_ = std::move(lookup.plan);
  operation->prepared_ = request.plan;
  // With a factor of 0 kernels have less to do than the plan is kept for.
  if (operation->plan_->selection != key.selection &&
      !operation->plan_->kernel_name().empty() && ReadsAll(request)) {
    const bool at_once = key.selection == core::Selection::kMeasure;
    (at_once ? operation->to_measure_ : operation->to_tune_) = std::move(key);
  }
  operation->report_ = {operation->plan_->kernel_name(), lookup.hit,
                        operation->plan_->workspace_bytes(), 0};
  if (reads.a) {
    TENSORD_ASSIGN_OR_RETURN(
        operation->a_,
        operation->Announce(*request.a,
                            {std::move(found.a), *std::move(found.descs.a)}));
  }
  if (reads.b) {
    TENSORD_ASSIGN_OR_RETURN(
        operation->b_,
        operation->Announce(*request.b,
                            {std::move(found.b), *std::move(found.descs.b)}));
  }
  if (reads.c) {
    TENSORD_ASSIGN_OR_RETURN(
        operation->c_,
        operation->Announce(*request.c,
                            {std::move(found.c), *std::move(found.descs.c)}));
  }
  if (found.d != nullptr) {
    operation->d_ = std::move(found.d);
    operation->d_is_copied_ = !operation->d_->is_in_place();
    if (operation->d_is_copied_) {
      operation->report_.gathered_bytes += made.output.span_bytes();
    }
  } else if (request.d.is_inline) {
    TENSORD_RETURN_IF_ERROR(CheckInlineBytes(
        made.output.span_bytes(), max_inline_bytes, "the inline results"));
    operation->output_is_inline_ = true;
    operation->d_ = std::make_shared<StoredTensor>(
        "", session->device().info().name, made.output, session->memory());
  } else {
    TENSORD_ASSIGN_OR_RETURN(operation->d_,
                             session->Add(request.d.tensor_id, made.output));
    operation->d_is_new_ = true;
  }
  TENSORD_RETURN_IF_ERROR(operation->d_->BeginWrite());
  operation->d_announced_ = true;
  operation->desc_ = std::move(made.desc);
  operation->frame_ = std::move(made.frame);
  operation->alpha_ = request.alpha;
  operation->beta_ = request.beta;
  operation->gamma_ = request.gamma;
  return operation;
}

core::AnyOperands Operation::Operands(std::byte* d) const {
  std::byte* const result =
      d + frame_.result_offset * core::SizeOf(d_->desc().element_type);
  const auto address = [](const Input& input) -> const void* {
    if (input.tensor == nullptr) return nullptr;
    return input.is_copied
               ? input.copy.data()
               : input.tensor->storage().data() + input.desc.offset_bytes();
  };
  const void* const a = address(a_);
  const void* const b = address(b_);
  const void* const c = address(c_);
  return std::visit(
      [&](const auto& desc) -> core::AnyOperands {
        using Desc = std::decay_t<decltype(desc)>;
        if constexpr (std::is_same_v<Desc, core::PermutationDesc>) {
          return core::PermutationOperands{a, result, alpha_};
        } else if constexpr (std::is_same_v<Desc, core::ElementwiseDesc>) {
          return core::ElementwiseOperands{a,      b,     c,     result,
                                           alpha_, beta_, gamma_};
        } else if constexpr (std::is_same_v<Desc, core::ReductionDesc>) {
          return core::ReductionOperands{a, c, result, alpha_, beta_};
        } else {
          return core::ContractionOperands{a, b, c, result, alpha_, beta_};
        }
      },
      desc_);
}

absl::Status Operation::Measure(core::Stream& stream) {
  if (!to_measure_) return absl::OkStatus();
  const auto adopt = [this](core::PlanCache::Lookup lookup) {
    to_measure_.reset();
    plan_ = std::move(lookup.plan);
    report_ = {plan_->kernel_name(), lookup.hit, plan_->workspace_bytes(),
               report_.gathered_bytes};
    return absl::OkStatus();
  };
  // An equal request may have been measured since this one was prepared.
  TENSORD_ASSIGN_OR_RETURN(core::PlanCache::Lookup known,
                           engine_.PlanFor(session_->device(), *to_measure_,
                                           session_->options().job));
  if (known.plan->selection == to_measure_->selection) {
    return adopt(std::move(known));
  }
  core::MemoryResource& memory = *session_->memory();
  TENSORD_ASSIGN_OR_RETURN(
      const core::Buffer d,
      core::Buffer::Allocate(memory, d_->desc().span_bytes()));
  const absl::Status sent = QueueInputs(stream);
  auto measured =
      sent.ok() ? engine_.MeasuredPlanFor(session_->device(), *to_measure_,
                                          session_->options().job,
                                          Operands(d.data()), memory, stream)
                : sent;
  // It may be launched again, or never: nothing of it stays under way.
  const absl::Status settled = stream.Synchronize();
  TENSORD_RETURN_IF_ERROR(measured.status());
  TENSORD_RETURN_IF_ERROR(settled);
  return adopt(*std::move(measured));
}

absl::Status Operation::TryNext() {
  if (!to_tune_) return Allocate();
  std::shared_ptr<const core::Plan> next =
      engine_.NextPlanToTry(session_->device(), *to_tune_);
  if (next == nullptr) {
    to_tune_.reset();
    return Allocate();
  }
  const std::shared_ptr<const core::Plan> incumbent =
      std::exchange(plan_, std::move(next));
  scratch_.reset();
  const absl::Status allocated = Allocate();
  if (allocated.ok()) {
    report_.kernel = plan_->kernel_name();
    report_.workspace_bytes = plan_->workspace_bytes();
    return absl::OkStatus();
  }
  // This session has too little memory for it, which says nothing about the
  // kernel: others try it. What predictions took may need less.
  to_tune_.reset();
  plan_ = incumbent;
  return Allocate();
}

absl::Status Operation::Run(const core::AnyOperands& operands,
                            core::Stream& stream) {
  const core::Buffer none;
  const core::Buffer& scratch = scratch_ == nullptr ? none : *scratch_;
  if (!to_tune_) return core::Execute(*plan_, operands, scratch, stream);
  TENSORD_RETURN_IF_ERROR(stream.Synchronize());
  const absl::Time start = absl::Now();
  absl::Status status = core::Execute(*plan_, operands, scratch, stream);
  status.Update(stream.Synchronize());
  if (status.ok()) {
    engine_.plans().AddSample(*to_tune_, plan_->kernel_name(),
                              absl::ToDoubleNanoseconds(absl::Now() - start));
  } else {
    engine_.plans().AddFailure(*to_tune_, plan_->kernel_name());
  }
  return status;
}

absl::Status Operation::AllocateCopies() {
  core::MemoryResource& memory = *session_->memory();
  for (Input* const input : {&a_, &b_, &c_}) {
    const int64_t bytes = input->is_copied ? input->desc.span_bytes() : 0;
    if (input->copy.bytes() == bytes) continue;
    TENSORD_ASSIGN_OR_RETURN(input->copy,
                             core::Buffer::Allocate(memory, bytes));
  }
  const int64_t d_bytes = d_is_copied_ ? d_->desc().span_bytes() : 0;
  if (d_copy_.bytes() == d_bytes) return absl::OkStatus();
  TENSORD_ASSIGN_OR_RETURN(d_copy_, core::Buffer::Allocate(memory, d_bytes));
  return absl::OkStatus();
}

absl::Status Operation::Allocate() {
  if (plan_->workspace_bytes() > 0 && scratch_ == nullptr) {
    TENSORD_ASSIGN_OR_RETURN(
        scratch_, session_->scratch().Lend(*session_->memory(),
                                           plan_->workspace_bytes()));
  }
  if (!output_is_inline_) return absl::OkStatus();
  return inline_result_.Allocate(*session_, *d_);
}

absl::Status Operation::QueueInputs(core::Stream& stream) {
  TENSORD_RETURN_IF_ERROR(inline_inputs_.Queue(stream));
  for (const Input* const input : {&a_, &b_, &c_}) {
    if (!input->is_copied) continue;
    TENSORD_RETURN_IF_ERROR(input->tensor->view()->Gather(
        session_->device(), input->tensor->storage().data(), input->copy.data(),
        stream));
  }
  return absl::OkStatus();
}

absl::Status Operation::QueueOutput(core::Stream& stream) {
  if (!d_is_copied_) return absl::OkStatus();
  return d_->view()->Scatter(session_->device(), d_copy_.data(),
                             d_->storage().data(), stream);
}

bool Operation::IsDisjointFromOutput(const Input& input) const {
  if (input.tensor == nullptr || input.tensor == d_ || input.is_copied ||
      d_is_copied_ || &input.tensor->storage() != &d_->storage()) {
    return false;
  }
  const core::TensorDesc& storage = d_->storage().desc();
  const auto strided = [](const core::TensorDesc& desc) {
    return core::StridedView{desc.layout.extents, desc.layout.strides,
                             desc.offset};
  };
  return core::AreDisjoint(storage.layout, storage.offset, strided(input.desc),
                           strided(d_->desc()));
}

absl::Status Operation::CheckAliasing(const core::AnyOperands& operands,
                                      std::byte* d) const {
  const core::DisjointFromOutput disjoint{IsDisjointFromOutput(a_),
                                          IsDisjointFromOutput(b_),
                                          IsDisjointFromOutput(c_)};
  return std::visit(
      [&](const auto& desc, const auto& addresses) {
        if constexpr (requires { core::CheckAliasing(desc, addresses); }) {
          if (frame_.filling.is_empty()) {
            return core::CheckAliasing(desc, addresses, disjoint);
          }
          auto whole = desc;
          whole.d.layout = d_->desc().layout;
          auto whole_addresses = addresses;
          whole_addresses.d = d;
          return core::CheckAliasing(whole, whole_addresses, disjoint);
        } else {
          return core::Internal("WRONG_OPERANDS", "operands of another Desc");
        }
      },
      desc_, operands);
}

absl::Status Operation::Launch(core::Stream& stream) {
  for (const Input* const input : {&a_, &b_, &c_}) {
    if (input->tensor == nullptr) continue;
    TENSORD_RETURN_IF_ERROR(input->tensor->CheckReady());
  }
  if (d_->is_part()) TENSORD_RETURN_IF_ERROR(d_->CheckReady());
  TENSORD_RETURN_IF_ERROR(d_->Allocate());
  TENSORD_RETURN_IF_ERROR(AllocateCopies());
  std::byte* const d = d_is_copied_ ? d_copy_.data() : d_->first();
  const core::AnyOperands operands = Operands(d);
  TENSORD_RETURN_IF_ERROR(CheckAliasing(operands, d));
  TENSORD_RETURN_IF_ERROR(Measure(stream));
  TENSORD_RETURN_IF_ERROR(TryNext());
  has_queued_ = true;
  TENSORD_RETURN_IF_ERROR(QueueInputs(stream));
  d_->StartWrite();
  result_ = StoredTensor::WriteResult::kFailed;
  TENSORD_RETURN_IF_ERROR(frame_.filling.Queue(session_->device(), d, stream));
  TENSORD_RETURN_IF_ERROR(Run(operands, stream));
  TENSORD_RETURN_IF_ERROR(QueueOutput(stream));
  TENSORD_RETURN_IF_ERROR(inline_result_.Queue(*d_, stream));
  result_ = StoredTensor::WriteResult::kDone;
  d_->Written();
  return absl::OkStatus();
}

void Operation::Complete(const absl::Status& status) {
  if (!status.ok() && result_ == StoredTensor::WriteResult::kDone) {
    result_ = StoredTensor::WriteResult::kFailed;
  }
  if (status.ok() && prepared_ != nullptr) prepared_->CountExecution();
  scratch_.reset();
  inline_inputs_.Clear();
  d_copy_ = core::Buffer();
  // Before the response, so that the next request finds everything settled.
  End();
}

std::string Operation::InlineResult() const {
  return inline_result_.Bytes(*d_);
}

}  // namespace tensord::server
