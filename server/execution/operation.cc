#include "server/execution/operation.h"

#include <limits>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/pooled.h"
#include "core/base/status.h"
#include "core/executor/aliasing.h"
#include "core/executor/operands.h"
#include "server/execution/operation_desc.h"
#include "server/execution/operation_table.h"
#include "server/execution/prepared_plan.h"

namespace tensord::server {
namespace {

using TensorRef = std::shared_ptr<StoredTensor>;

/// The tensors that a request names: found, not announced yet. Inline ones have
/// a description and no tensor.
struct Found {
  PerInput<TensorRef> inputs;
  PerResult<TensorRef> results;  // null: a new one
  OperationTensors descs;
};

/// Where an operation finds or puts the elements of a tensor. `desc` is how it
/// sees them; `is_copy`: it is no more than a copy of it, from or to the
/// device's memory.
OperandUse::Place PlaceFor(const StoredTensor& tensor,
                           const core::TensorDesc& desc,
                           OperandUse::Access access, bool is_copy,
                           const Device& device) {
  const TensorView* const view = tensor.view();
  if (view != nullptr && !view->is_in_place() &&
      !(view->repeats() && desc == view->desc())) {
    return OperandUse::Place::kPacked;
  }
  return is_copy ? OperandUse::Place::kTensor
                 : PlaceOf(tensor, desc, access, device);
}

/// How an operation reads a tensor.
core::TensorDesc AsRead(const StoredTensor& tensor, bool broadcasts) {
  const TensorView* const view = tensor.view();
  if (view == nullptr) return tensor.desc();
  return view->repeats() && !broadcasts ? view->gathered_desc() : view->desc();
}

/// The tensors that `request` names, and what they are like. Inline ones need
/// data where they are read, if `needs_data`.
absl::StatusOr<Found> FindTensors(const Session& session,
                                  const OperationRequest& request,
                                  bool needs_data, int64_t max_inline_bytes) {
  const OperationRow& row = RowOf(request.kind);
  Found found;
  int64_t inline_bytes = 0;
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    if (!request.inputs[i]) continue;
    std::optional<core::TensorDesc>& desc = found.descs.inputs[i];
    const auto& source = request.inputs[i]->source;
    if (const auto* sent = std::get_if<InlineTensor>(&source)) {
      TENSORD_ASSIGN_OR_RETURN(
          desc, DescOf(*sent, kInputNames[i], needs_data && Reads(request, i)));
      inline_bytes += static_cast<int64_t>(sent->data.size());
      continue;
    }
    TENSORD_ASSIGN_OR_RETURN(
        found.inputs[i], session.Find(std::get<std::string>(source),
                                      request.inputs[i]->view, kInputNames[i]));
    desc = AsRead(*found.inputs[i], row.broadcasts);
  }
  TENSORD_RETURN_IF_ERROR(
      CheckInlineBytes(inline_bytes, max_inline_bytes, "the inline operands"));
  for (size_t i = 0; i < request.results.size(); ++i) {
    found.results.emplace_back();
    found.descs.results.emplace_back();
    if (request.results[i].tensor.empty()) continue;
    TENSORD_ASSIGN_OR_RETURN(
        found.results[i],
        session.Find(request.results[i].tensor, request.results[i].view,
                     ResultNameOf(request, i)));
    const StoredTensor& tensor = *found.results[i];
    TENSORD_RETURN_IF_ERROR(CheckInjective(tensor, ResultNameOf(request, i)));
    found.descs.results[i] = tensor.desc();
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
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const bool counts =
        HasInput(request, i) && !RowOf(request.kind).inputs[i].is_addend;
    if (counts && !Reads(request, i)) return false;
  }
  return true;
}

/// The step of an operation.
class OneStep final : public Steps, public core::Pooled {
 public:
  core::AnyDesc desc;
  OutputFrame frame;
  core::Placement placement;  // factors; addresses from Allocate() on
  core::PlanKey key;
  std::shared_ptr<const PreparedPlan> prepared;  // null: not prepared before

  absl::Status Allocate(RunState& state) override;
  absl::Status Begin(RunState& state, core::Stream& stream) override;
  absl::StatusOr<bool> Queue(RunState& state, core::Stream& stream) override;
  void Complete() override {
    if (prepared != nullptr) prepared->CountExecution();
  }

 private:
  /// OK when all of the results may be written while the inputs are read.
  absl::Status CheckAliasing(const RunState& state) const;
};

absl::Status OneStep::Allocate(RunState& state) {
  for (size_t i = 0; i < state.first_result; ++i) {
    placement.inputs[i] = state.uses[i].first();
  }
  for (size_t i = state.first_result; i < state.uses.size(); ++i) {
    const OperandUse& result = state.uses[i];
    placement.outputs[i - state.first_result] =
        result.first() +
        frame.result_offset * core::SizeOf(result.desc().element_type);
  }
  return CheckAliasing(state);
}

absl::Status OneStep::CheckAliasing(const RunState& state) const {
  const absl::Span<const OperandUse> results =
      absl::MakeConstSpan(state.uses).subspan(state.first_result);
  core::DisjointOperands disjoint;
  for (size_t i = 0; i < results.size(); ++i) {
    for (size_t input = 0; input < state.first_result; ++input) {
      disjoint.inputs[input][i] = AreDisjoint(state.uses[input], results[i]);
    }
  }
  for (size_t i = 0; i < results.size(); ++i) {
    for (size_t j = i + 1; j < results.size(); ++j) {
      disjoint.results[i][j] = AreDisjoint(results[i], results[j]);
    }
  }
  // As the client sees them.
  core::Placement at = placement;
  for (size_t i = 0; i < state.first_result; ++i) {
    at.inputs[i] = state.uses[i].first_for_overlaps();
  }
  for (size_t i = 0; i < results.size(); ++i) {
    at.outputs[i] =
        results[i].first_for_overlaps() +
        frame.result_offset * core::SizeOf(results[i].desc().element_type);
  }
  if (frame.filling.is_empty()) {
    return core::CheckAnyAliasing(desc, core::OperandsAt(desc, at), disjoint);
  }
  const OperandUse& d = results[0];
  core::AnyDesc whole = desc;
  std::get<core::PermutationDesc>(whole).d.layout = d.desc().layout;
  at.outputs[0] = d.first_for_overlaps();
  return core::CheckAnyAliasing(whole, core::OperandsAt(whole, at), disjoint);
}

absl::Status OneStep::Begin(RunState& state, core::Stream& stream) {
  state.report.operation_count = 1;
  return frame.filling.Queue(state.session->device(),
                             state.uses[state.first_result].first(), stream);
}

absl::StatusOr<bool> OneStep::Queue(RunState& state, core::Stream& stream) {
  TENSORD_RETURN_IF_ERROR(
      state.runner.Execute(0, core::OperandsAt(desc, placement), stream));
  return true;
}

/// Whether all that the run of one step does takes less time than another
/// thread to wake up for it.
bool IsBrief(const RunState& state) {
  constexpr double kBriefNanoseconds = 20e3;
  constexpr int64_t kBriefBytes = 128 << 10;
  int64_t bytes = 0;
  for (const OperandUse& use : state.uses) {
    if (!use.is_used()) continue;
    if (use.is_copied()) return false;
    bytes += use.desc().span_bytes();
  }
  return state.predicted_nanoseconds <= kBriefNanoseconds &&
         bytes <= kBriefBytes && !state.runner.takes_times();
}

/// Takes the inputs that are read into use.
absl::Status UseInputs(const OperationRequest& request, Found& found,
                       RunState& state) {
  const bool is_copy =
      request.kind == OperationKind::kPermute &&
      (found.results[0] == nullptr || !found.results[0]->storage().is_given());
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    OperandUse& use = state.uses.emplace_back();
    if (!Reads(request, i)) continue;
    core::TensorDesc& desc = *found.descs.inputs[i];
    TensorRef& tensor = found.inputs[i];
    if (const auto* sent =
            std::get_if<InlineTensor>(&request.inputs[i]->source)) {
      TENSORD_ASSIGN_OR_RETURN(
          tensor, state.inline_inputs.Add(*state.session, desc, *sent));
    }
    constexpr OperandUse::Access kAccess{.is_read = true};
    const auto place =
        PlaceFor(*tensor, desc, kAccess, is_copy, state.session->device());
    use = OperandUse(std::move(tensor), std::move(desc), kAccess, place);
  }
  state.first_result = state.uses.size();
  return absl::OkStatus();
}

/// Takes the results into use; makes new ones.
absl::Status UseResults(const OperationRequest& request,
                        PerResult<core::TensorDesc> descs,
                        int64_t max_inline_bytes, Found& found,
                        RunState& state) {
  int64_t inline_bytes = 0;
  for (size_t i = 0; i < descs.size(); ++i) {
    if (TensorRef& tensor = found.results[i]; tensor != nullptr) {
      constexpr OperandUse::Access kAccess{.is_written = true};
      const auto place = PlaceFor(*tensor, descs[i], kAccess,
                                  request.kind == OperationKind::kPermute,
                                  state.session->device());
      state.uses.emplace_back(std::move(tensor), std::move(descs[i]), kAccess,
                              place);
      continue;
    }
    const OutputRequest& asked = request.results[i];
    if (asked.is_inline) inline_bytes += descs[i].span_bytes();
    TENSORD_RETURN_IF_ERROR(
        CheckInlineBytes(inline_bytes, max_inline_bytes, "the inline results"));
    TENSORD_ASSIGN_OR_RETURN(
        OperandUse use,
        OperandUse::OfNew(*state.session, asked.tensor_id, std::move(descs[i]),
                          asked.is_inline));
    if (asked.is_sent && use.desc().span_bytes() <= max_inline_bytes) {
      use.Send();
    }
    state.uses.push_back(std::move(use));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PlannedOperation> PlanOperation(
    const Session& session, const OperationRequest& request) {
  TENSORD_ASSIGN_OR_RETURN(Found found,
                           FindTensors(session, request, /*needs_data=*/false,
                                       std::numeric_limits<int64_t>::max()));
  TENSORD_ASSIGN_OR_RETURN(OperationDesc made, MakeDesc(request, found.descs));
  core::PlanKey key = KeyOf(session, request, made.desc);
  return PlannedOperation{std::move(found.descs), std::move(made.results),
                          std::move(key)};
}

absl::StatusOr<std::unique_ptr<Run>> PrepareOperation(
    Engine& engine, std::shared_ptr<Session> session,
    const OperationRequest& request, int64_t max_inline_bytes) {
  TENSORD_RETURN_IF_ERROR(session->device().health());
  TENSORD_ASSIGN_OR_RETURN(
      Found found,
      FindTensors(*session, request, /*needs_data=*/true, max_inline_bytes));
  if (request.plan != nullptr) {
    TENSORD_RETURN_IF_ERROR(request.plan->CheckOperands(found.descs));
  }
  TENSORD_ASSIGN_OR_RETURN(OperationDesc made, MakeDesc(request, found.descs));
  if (request.plan != nullptr) {
    // New ones, too.
    TENSORD_RETURN_IF_ERROR(
        request.plan->CheckResults({made.results.begin(), made.results.end()}));
  }
  auto step = std::make_unique<OneStep>();
  step->key = KeyOf(*session, request, made.desc);
  auto state = std::make_unique<RunState>(engine, std::move(session));
  TENSORD_RETURN_IF_ERROR(state->runner.Add(
      step->key, core::ResultBytes(made.desc), ReadsAll(request)));
  state->predicted_nanoseconds =
      state->runner.plans()[0]->predicted_nanoseconds();
  state->uses.reserve(request.inputs.size() + made.results.size());
  TENSORD_RETURN_IF_ERROR(UseInputs(request, found, *state));
  TENSORD_RETURN_IF_ERROR(UseResults(request, std::move(made.results),
                                     max_inline_bytes, found, *state));
  state->is_brief = made.frame.filling.is_empty() && IsBrief(*state);
  step->desc = std::move(made.desc);
  step->frame = std::move(made.frame);
  step->placement.alpha = request.alpha;
  step->placement.beta = request.beta;
  step->placement.gamma = request.gamma;
  step->placement.truncation = request.truncation;
  step->placement.kept = &state->report.kept_extent;
  step->prepared = request.plan;
  return Run::Make(std::move(state), std::move(step));
}

}  // namespace tensord::server
