#include "server/rpc/program_service.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <variant>

#include "absl/time/clock.h"
#include "core/base/status.h"
#include "server/rpc/convert.h"
#include "server/rpc/coroutine/on_device.h"
#include "server/rpc/explain_program.h"
#include "server/session/program/given_operands.h"

namespace tensord::rpc {
namespace {

constexpr int64_t kCacheBytes = int64_t{128} << 20;
/// Threads that search paths, of which a session has one at a time.
constexpr int kSearchThreads = 4;
/// Programs of a session that may wait for them.
constexpr int64_t kSearchQueueLimit = 1024;

/// Products of so many factors are searched in no time.
constexpr int kFewFactors = 10;

/// True when a program is prepared in less time than others would notice,
/// however its products are written.
bool IsSmall(const server::ProgramSpec& spec) {
  constexpr size_t kShort = 2048;
  if (spec.options.memory_limit_bytes ||
      spec.options.time_budget > absl::ZeroDuration()) {
    return false;
  }
  const auto* const statements = std::get_if<std::string>(&spec.source);
  if (statements == nullptr) return spec.operands.size() <= kFewFactors;
  return statements->size() <= kShort &&
         std::ranges::count(*statements, '*') < kFewFactors;
}

/// True when lowering the program again takes no longer: other scalars may ask
/// for another search.
bool IsSmall(const server::PreparedProgram& program) {
  size_t count = 0;
  for (const core::ProgramBlock& block : program.program().blocks) {
    count += block.steps.size();
  }
  return count < kFewFactors && !program.options().memory_limit_bytes;
}

/// A program that is carried out, for OnDevice.
struct Running {
  std::unique_ptr<server::ProgramRun> run;
  server::DeviceWorker::Times times;

  absl::Status Launch(core::Stream& stream) const {
    return run->Launch(stream);
  }
  bool CanLaunchAgain() const { return run->CanLaunchAgain(); }
  bool IsUnfinished() const { return run->IsUnfinished(); }
  void Complete(const absl::Status& status,
                const server::DeviceWorker::Times& worked) {
    times = worked;
    run->Complete(status);
  }
};

v1::ProgramTensor ToProto(const std::string& name, core::ElementType type,
                          const core::Layout& layout) {
  v1::ProgramTensor message;
  message.set_name(name);
  message.set_element_type(rpc::ToProto(type));
  message.mutable_layout()->mutable_extents()->Add(layout.extents.begin(),
                                                   layout.extents.end());
  message.mutable_layout()->mutable_strides()->Add(layout.strides.begin(),
                                                   layout.strides.end());
  return message;
}

/// Has `program` read and keep what is constant of `operands`.
void KeepConstants(const server::Session& session,
                   const std::vector<server::ProgramOperandRequest>& operands,
                   const server::FoundOperands& found,
                   server::PreparedProgram& program) {
  if (std::ranges::none_of(operands,
                           &server::ProgramOperandRequest::is_constant)) {
    return;
  }
  std::vector<std::shared_ptr<server::StoredTensor>> constants(operands.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].is_constant) constants[i] = found.tensors[i];
  }
  program.SetConstants(std::move(constants), session.memory());
}

/// The numbers of what a program makes, first what is asked for by name.
std::vector<size_t> OrderOfOutputs(
    const core::Program& program,
    absl::Span<const server::ProgramOutputRequest> asked) {
  std::vector<size_t> order(program.outputs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) {
    return std::ranges::find(asked, program.tensors[program.outputs[i]].name,
                             &server::ProgramOutputRequest::name) -
           asked.begin();
  });
  return order;
}

void FillReport(const server::ProgramReport& done, v1::ProgramReport& report) {
  report.set_operation_count(done.operation_count);
  report.set_flops(done.flops);
  report.set_peak_bytes(done.peak_bytes);
  report.set_workspace_bytes(done.workspace_bytes);
  report.set_plan_cache_hits(done.plan_cache_hits);
  report.set_plan_count(done.plan_count);
  report.set_gathered_bytes(done.gathered_bytes);
  report.set_folded_operation_count(done.folded_operation_count);
  report.set_kept_bytes(done.kept_bytes);
  report.set_replayed(done.is_replayed);
}

}  // namespace

ProgramService::ProgramService(ServiceContext& context)
    : context_(context),
      cache_(kCacheBytes),
      background_(kSearchThreads, kSearchQueueLimit) {}

void ProgramService::ServeOn(LoopGroup& loops) {
  using S = v1::ProgramService::AsyncService;
  loops.Serve("ExecuteProgram", service_, &S::RequestExecuteProgram,
              [this](auto& call, auto& q) { return Execute(call, q); });
  loops.Serve("ExplainProgram", service_, &S::RequestExplainProgram,
              [this](auto& call, auto& q) { return ExplainSpec(call, q); });
  loops.Serve("CreateProgram", service_, &S::RequestCreateProgram,
              [this](auto& call, auto& q) { return Create(call, q); });
  loops.Serve("DescribeProgram", service_, &S::RequestDescribeProgram,
              [this](auto& call, auto& q) { return DescribeOne(call, q); });
  loops.Serve("ListPrograms", service_, &S::RequestListPrograms,
              [this](auto& call, auto& q) { return List(call, q); });
  loops.Serve("DeleteProgram", service_, &S::RequestDeleteProgram,
              [this](auto& call, auto& q) { return Delete(call, q); });
}

absl::StatusOr<ProgramService::Asked> ProgramService::Ask(
    const Call& call, const v1::ProgramSpec& spec, Purpose purpose) {
  Asked asked;
  asked.session = call.shared_session();
  TENSORD_ASSIGN_OR_RETURN(asked.spec, FromProto(spec));
  if (purpose == Purpose::kExecute) {
    TENSORD_RETURN_IF_ERROR(server::CheckNoConstants(asked.spec.operands));
  } else if (purpose == Purpose::kCreate) {
    TENSORD_RETURN_IF_ERROR(server::CheckConstants(asked.spec.operands));
  }
  TENSORD_ASSIGN_OR_RETURN(
      asked.found, server::FindOperands(*asked.session, asked.spec.operands,
                                        purpose == Purpose::kExecute));
  return asked;
}

absl::StatusOr<ProgramService::Asked> ProgramService::AskPrepared(
    const Call& call, const v1::ExecuteProgramRequest& request) {
  Asked asked;
  asked.session = call.shared_session();
  TENSORD_ASSIGN_OR_RETURN(Program program,
                           asked.session->programs().Find(request.name()));
  TENSORD_ASSIGN_OR_RETURN(auto given, FromProto(request.operands()));
  TENSORD_RETURN_IF_ERROR(server::CheckNoConstants(given));
  TENSORD_ASSIGN_OR_RETURN(asked.spec.operands,
                           server::InOrder(std::move(given), *program));
  TENSORD_ASSIGN_OR_RETURN(asked.spec.outputs, FromProto(request.outputs()));
  if (asked.spec.outputs.empty()) {
    asked.spec.outputs = program->outputs();
  }
  TENSORD_ASSIGN_OR_RETURN(
      asked.found,
      server::FindOperands(*asked.session, asked.spec.operands, true));
  TENSORD_RETURN_IF_ERROR(
      server::CheckAreLike(asked.found.described, program->operands()));
  TENSORD_RETURN_IF_ERROR(
      server::CheckOutputs(asked.spec.outputs, program->program()));
  asked.is_known = true;
  asked.like = std::move(program);
  asked.program = asked.like->WithScalars(asked.found.described);
  return asked;
}

Task<absl::Status> ProgramService::Prepare(Call& call, Asked& asked) {
  if (asked.program != nullptr) co_return absl::OkStatus();
  const server::ProgramSpec& spec = asked.spec;
  const server::Device& device = asked.session->device();
  const bool is_cached = asked.like == nullptr;
  std::string key;
  if (is_cached) {
    key = server::ProgramKeyOf(spec.source, asked.found.described, spec.outputs,
                               spec.options, device.plan_device());
    asked.like = cache_.Find(key);
    asked.is_known = asked.like != nullptr;
    if (asked.is_known) {
      asked.program = asked.like->WithScalars(asked.found.described);
      if (asked.program != nullptr) co_return absl::OkStatus();
    }
  }
  const absl::Time start = absl::Now();
  absl::StatusOr<std::shared_ptr<server::PreparedProgram>> made =
      absl::InternalError("not made");
  auto make = [&] {
    made = asked.like != nullptr
               ? asked.like->WithOperands(asked.found.described, device,
                                          &call.cancelled_flag())
               : server::PreparedProgram::Make(
                     spec.source, asked.found.described, spec.outputs,
                     spec.options, device, &call.cancelled_flag());
  };
  if (asked.like != nullptr ? IsSmall(*asked.like) : IsSmall(spec)) {
    make();
  } else {
    const absl::Status waited =
        co_await InBackground(call, background_, asked.session->number(), make);
    if (!waited.ok()) co_return waited;
    // The search may have ended early.
    if (call.cancelled()) co_return absl::CancelledError("the call ended");
  }
  if (!made.ok()) co_return made.status();
  if (!is_cached) {
    const absl::Status fits =
        server::CheckMakesLike((*made)->program(), asked.like->program());
    if (!fits.ok()) co_return fits;
  }
  asked.program = *std::move(made);
  asked.prepared = absl::Now() - start;
  if (asked.like != nullptr) {
    asked.like->KeepVariant(asked.program);
  } else {
    cache_.Add(std::move(key), asked.program);
  }
  co_return absl::OkStatus();
}

Task<absl::StatusOr<v1::ExecuteProgramResponse>> ProgramService::Execute(
    Call& call, const v1::ExecuteProgramRequest& request) {
  const absl::Time arrived = absl::Now();
  absl::StatusOr<Asked> asked =
      request.has_spec() ? Ask(call, request.spec(), Purpose::kExecute)
                         : AskPrepared(call, request);
  if (!asked.ok()) co_return asked.status();
  const absl::Status prepared = co_await Prepare(call, *asked);
  if (!prepared.ok()) co_return prepared;

  server::Session& session = *asked->session;
  Running running;
  absl::ReleasableMutexLock order(&session.order());
  auto run = server::ProgramRun::Prepare(
      context_.engine, asked->session, asked->program, asked->spec.operands,
      std::move(asked->found), asked->spec.outputs,
      context_.limits.max_inline_bytes);
  if (!run.ok()) co_return run.status();
  running.run = *std::move(run);
  const absl::Status ran = co_await OnDevice(call, session.device().worker(),
                                             session.number(), running, &order);
  if (!ran.ok()) co_return ran;

  v1::ExecuteProgramResponse response;
  const core::Program& program = running.run->program();
  for (const size_t i : OrderOfOutputs(program, asked->spec.outputs)) {
    const server::ProgramRun::Output& output = running.run->outputs()[i];
    // Its name, which the server chose, would never be learned.
    if (call.cancelled() && !output.is_inline && !output.is_named) {
      session.Remove(*output.tensor);
    }
    v1::ProgramResult& result = *response.add_results();
    result.set_name(program.tensors[program.outputs[i]].name);
    *result.mutable_tensor() = ToProto(*output.tensor);
    if (output.is_inline) {
      result.set_data(output.contents.Bytes(*output.tensor));
    }
  }
  v1::ProgramReport& report = *response.mutable_report();
  FillReport(running.run->report(), report);
  report.set_program_cache_hit(asked->is_known);
  *report.mutable_prepared() = ToProto(asked->prepared);
  *report.mutable_queued() =
      ToProto(running.times.begun - arrived - asked->prepared);
  *report.mutable_executed() =
      ToProto(running.times.ended - running.times.begun);
  co_return response;
}

absl::StatusOr<std::vector<std::shared_ptr<const core::Plan>>>
ProgramService::PlansOf(const server::Session& session,
                        const server::PreparedProgram& program) {
  std::vector<std::shared_ptr<const core::Plan>> plans;
  for (const core::PlanKey& key : program.keys()) {
    TENSORD_ASSIGN_OR_RETURN(
        core::PlanCache::Lookup lookup,
        context_.engine.PlanFor(session.device(), key, session.options().job));
    plans.push_back(std::move(lookup.plan));
  }
  return plans;
}

Task<absl::StatusOr<v1::ExplainProgramResponse>> ProgramService::ExplainSpec(
    Call& call, const v1::ExplainProgramRequest& request) {
  absl::StatusOr<Asked> asked = Ask(call, request.spec(), Purpose::kExplain);
  if (!asked.ok()) co_return asked.status();
  const absl::Status prepared = co_await Prepare(call, *asked);
  if (!prepared.ok()) co_return prepared;
  const auto plans = PlansOf(*asked->session, *asked->program);
  if (!plans.ok()) co_return plans.status();
  v1::ExplainProgramResponse response;
  *response.mutable_explanation() = Explain(*asked->program, *plans);
  if (IsTooLarge(response.explanation())) {
    co_return core::ResourceExhausted(
        "EXPLANATION_TOO_LARGE", "the explanation of ",
        response.explanation().operations_size(), " operations has ",
        response.explanation().ByteSizeLong(),
        " bytes, more than fit a response; explain a part of the program");
  }
  co_return response;
}

absl::StatusOr<v1::Program> ProgramService::Describe(
    const server::Session& session, const server::PreparedProgram& program,
    bool explains) {
  v1::Program message;
  message.set_name(program.name());
  *message.mutable_source() = rpc::ToProto(program.source());
  message.set_device(session.device().info().name);
  const core::Program& lowered = program.program();
  for (size_t i = 0; i < program.operands().size(); ++i) {
    const core::NamedOperand& operand = program.operands()[i];
    v1::ProgramTensor& shown = *message.add_operands();
    if (operand.scalar) {
      shown.set_name(operand.name);
      *shown.mutable_scalar() = rpc::ToProto(*operand.scalar);
      continue;
    }
    shown = ToProto(operand.name, operand.element_type, operand.layout);
    shown.set_is_written(lowered.operand_written[i]);
    shown.set_is_constant(operand.is_constant);
  }
  for (const int32_t output : lowered.outputs) {
    const core::ProgramTensor& made = lowered.tensors[output];
    *message.add_outputs() = ToProto(made.name, made.element_type, made.layout);
  }
  message.set_execution_count(program.execution_count());
  if (!explains) return message;
  TENSORD_ASSIGN_OR_RETURN(const auto plans, PlansOf(session, program));
  *message.mutable_explanation() = Explain(program, plans);
  Shorten(*message.mutable_explanation());
  return message;
}

Task<absl::StatusOr<v1::CreateProgramResponse>> ProgramService::Create(
    Call& call, const v1::CreateProgramRequest& request) {
  absl::StatusOr<Asked> asked = Ask(call, request.spec(), Purpose::kCreate);
  if (!asked.ok()) co_return asked.status();
  const absl::Status prepared = co_await Prepare(call, *asked);
  if (!prepared.ok()) co_return prepared;
  // What cannot be planned is refused now. A copy: what the cache has is
  // nobody's.
  const auto plans = PlansOf(*asked->session, *asked->program);
  if (!plans.ok()) co_return plans.status();
  const std::shared_ptr<server::PreparedProgram> own = asked->program->Copy();
  const absl::Status counted =
      own->CountAgainst(asked->session->program_bytes());
  if (!counted.ok()) co_return counted;
  KeepConstants(*asked->session, asked->spec.operands, asked->found, *own);
  const auto make = [&](std::string name) {
    own->set_name(std::move(name));
    return Program(own);
  };
  const auto program =
      asked->session->programs().Add(request.program_id(), make);
  if (!program.ok()) co_return program.status();
  auto described = Describe(*asked->session, **program, true);
  if (!described.ok()) co_return described.status();
  v1::CreateProgramResponse response;
  *response.mutable_program() = *std::move(described);
  co_return response;
}

Task<absl::StatusOr<v1::DescribeProgramResponse>> ProgramService::DescribeOne(
    Call& call, const v1::DescribeProgramRequest& request) {
  const auto program = call.session().programs().Find(request.program());
  if (!program.ok()) co_return program.status();
  auto described = Describe(call.session(), **program, true);
  if (!described.ok()) co_return described.status();
  v1::DescribeProgramResponse response;
  *response.mutable_program() = *std::move(described);
  co_return response;
}

Task<absl::StatusOr<v1::ListProgramsResponse>> ProgramService::List(
    Call& call, const v1::ListProgramsRequest& request) {
  const absl::StatusOr<int> page_size = PageSize(request.page_size());
  if (!page_size.ok()) co_return page_size.status();
  const auto page =
      call.session().programs().List(request.page_token(), *page_size + 1);
  v1::ListProgramsResponse response;
  for (int i = 0; i < std::min<int>(*page_size, std::ssize(page)); ++i) {
    auto described = Describe(call.session(), *page[i], false);
    if (!described.ok()) co_return described.status();
    *response.add_programs() = *std::move(described);
  }
  if (std::ssize(page) > *page_size) {
    response.set_next_page_token(page[*page_size - 1]->name());
  }
  co_return response;
}

Task<absl::StatusOr<v1::DeleteProgramResponse>> ProgramService::Delete(
    Call& call, const v1::DeleteProgramRequest& request) {
  const absl::Status removed =
      call.session().programs().Remove(request.program());
  if (!removed.ok()) co_return removed;
  co_return v1::DeleteProgramResponse();
}

}  // namespace tensord::rpc
