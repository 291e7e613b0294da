#include "server/rpc/program_service.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/status.h"
#include "server/rpc/convert.h"
#include "server/rpc/coroutine/carry.h"
#include "server/rpc/coroutine/in_background.h"
#include "server/rpc/coroutine/unheard.h"
#include "server/rpc/explain_program.h"

namespace tensord::rpc {
namespace {

// Plans that are taken, or shown, in less time than others would notice.
constexpr size_t kFewPlans = 64;

v1::ProgramTensor TensorToProto(const std::string& name, core::ElementType type,
                                const core::Layout& layout) {
  v1::ProgramTensor message;
  message.set_name(name);
  message.set_element_type(ToProto(type));
  message.mutable_layout()->mutable_extents()->Add(layout.extents.begin(),
                                                   layout.extents.end());
  message.mutable_layout()->mutable_strides()->Add(layout.strides.begin(),
                                                   layout.strides.end());
  return message;
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

v1::ProgramReport ReportOf(const server::Run& run,
                           const server::Preparation& preparation) {
  const server::RunReport& done = run.report();
  v1::ProgramReport report;
  report.set_operation_count(done.operation_count);
  report.set_flops(done.flops);
  report.set_peak_bytes(done.peak_bytes);
  report.set_workspace_bytes(run.runner().workspace_bytes());
  report.set_plan_cache_hits(run.runner().hit_count());
  report.set_plan_count(std::ssize(run.runner().plans()));
  report.set_gathered_bytes(done.gathered_bytes);
  report.set_folded_operation_count(done.folded_operation_count);
  report.set_kept_bytes(done.kept_bytes);
  report.set_replayed(done.is_replayed);
  for (size_t i = 0; i < done.kept_extents.size(); ++i) {
    const core::KeptExtent& kept =
        preparation.program().program().kept_extents[i];
    v1::KeptExtent& message = *report.add_kept_extents();
    message.set_statement(kept.statement);
    message.set_label(kept.label);
    message.set_extent(done.kept_extents[i]);
  }
  report.set_program_cache_hit(preparation.is_known());
  *report.mutable_prepared() = ToProto(preparation.time());
  const server::RunTimes times = run.times();
  *report.mutable_queued() = ToProto(times.begun - times.made);
  *report.mutable_executed() = ToProto(times.ended - times.begun);
  return report;
}

absl::StatusOr<v1::ExplainProgramResponse> ExplainPrepared(
    const server::Preparation& preparation) {
  TENSORD_ASSIGN_OR_RETURN(const auto plans, preparation.Plans());
  v1::ExplainProgramResponse response;
  *response.mutable_explanation() = Explain(preparation.program(), plans);
  if (IsTooLarge(response.explanation())) {
    return core::ResourceExhausted(
        "EXPLANATION_TOO_LARGE", "the explanation of ",
        response.explanation().operations_size(), " operations has ",
        response.explanation().ByteSizeLong(),
        " bytes, more than fit a response; explain a part of the program");
  }
  return response;
}

}  // namespace

void ProgramService::ServeOn(LoopGroup& loops) {
  loops.Serve(raw(), "ExecuteProgram", *this, &ProgramService::Execute);
  loops.Serve(raw(), "ExplainProgram", *this, &ProgramService::ExplainSpec);
  loops.Serve(raw(), "CreateProgram", *this, &ProgramService::Create);
  loops.Serve(raw(), "DescribeProgram", *this, &ProgramService::DescribeOne);
  loops.Serve(raw(), "ListPrograms", *this, &ProgramService::List);
  loops.Serve(raw(), "DeleteProgram", *this, &ProgramService::Delete);
}

absl::StatusOr<server::Preparation> ProgramService::Read(
    const Call& call, const v1::ProgramSpec& spec, Purpose purpose) {
  TENSORD_ASSIGN_OR_RETURN(server::ProgramRequest request, FromProto(spec));
  return server::Preparation::Of(context_.preparer, call.shared_session(),
                                 std::move(request), purpose);
}

absl::StatusOr<server::Preparation> ProgramService::Read(
    const Call& call, const v1::ExecuteProgramRequest& request) {
  if (request.has_spec()) return Read(call, request.spec(), Purpose::kExecute);
  TENSORD_ASSIGN_OR_RETURN(auto operands, FromProto(request.operands()));
  TENSORD_ASSIGN_OR_RETURN(auto outputs, FromProto(request.outputs()));
  return server::Preparation::OfKept(context_.preparer, call.shared_session(),
                                     request.name(), std::move(operands),
                                     std::move(outputs));
}

Task<absl::Status> ProgramService::Prepare(Call& call,
                                           server::Preparation& preparation) {
  if (preparation.is_ready()) co_return absl::OkStatus();
  absl::Status made;
  if (preparation.is_short()) {
    made = preparation.Make(call.cancelled_flag());
  } else {
    auto make = [&] {
      // Others of the tenant may have taken it meanwhile.
      made = preparation.CheckBudget();
      if (made.ok()) made = preparation.Make(call.cancelled_flag());
    };
    const absl::Status has_time = preparation.CheckBudget();
    if (!has_time.ok()) co_return has_time;
    const absl::Status waited = co_await InBackground(
        call, context_.preparer.background(), call.session().client(), make);
    if (!waited.ok()) co_return waited;
  }
  co_return made;
}

Task<absl::Status> ProgramService::Work(Call& call,
                                        const server::PreparedProgram& program,
                                        absl::FunctionRef<void()> work) {
  if (program.keys().size() <= kFewPlans) {
    work();
    co_return absl::OkStatus();
  }
  co_return co_await InBackground(call, context_.preparer.background(),
                                  call.session().client(), work);
}

Task<absl::StatusOr<v1::ExecuteProgramResponse>> ProgramService::Execute(
    Call& call, const v1::ExecuteProgramRequest& request) {
  absl::StatusOr<server::Preparation> preparation = Read(call, request);
  if (!preparation.ok()) co_return preparation.status();
  const absl::Status prepared = co_await Prepare(call, *preparation);
  if (!prepared.ok()) co_return prepared;
  absl::Status planned;
  auto plan = [&] { planned = preparation->PlanRun(); };
  const absl::Status worked = co_await Work(call, preparation->program(), plan);
  if (!worked.ok()) co_return worked;
  if (!planned.ok()) co_return planned;
  const auto run = co_await Carry(call, call.shared_session(), [&] {
    return preparation->Start(context_.limits.max_inline_bytes);
  });
  if (!run.ok()) co_return run.status();

  v1::ExecuteProgramResponse response;
  const core::Program& program = preparation->program().program();
  for (const size_t i : OrderOfOutputs(program, preparation->outputs())) {
    const server::OperandUse& output = (*run)->results()[i];
    v1::ProgramResult& result = *response.add_results();
    result.set_name(program.tensors[program.outputs[i]].name);
    *result.mutable_tensor() = ToProto(*output.tensor());
    if (output.is_inline()) result.set_data(output.Bytes());
  }
  RemoveUnheard(call, **run);
  *response.mutable_report() = ReportOf(**run, *preparation);
  co_return response;
}

Task<absl::StatusOr<v1::ExplainProgramResponse>> ProgramService::ExplainSpec(
    Call& call, const v1::ExplainProgramRequest& request) {
  absl::StatusOr<server::Preparation> preparation =
      Read(call, request.spec(), Purpose::kExplain);
  if (!preparation.ok()) co_return preparation.status();
  const absl::Status prepared = co_await Prepare(call, *preparation);
  if (!prepared.ok()) co_return prepared;
  absl::StatusOr<v1::ExplainProgramResponse> response;
  auto explain = [&] { response = ExplainPrepared(*preparation); };
  const absl::Status worked =
      co_await Work(call, preparation->program(), explain);
  if (!worked.ok()) co_return worked;
  co_return response;
}

absl::StatusOr<v1::Program> ProgramService::Describe(
    const server::Session& session, const server::PreparedProgram& program,
    bool explains) {
  v1::Program message;
  message.set_name(program.name());
  *message.mutable_source() = ToProto(program.source());
  message.set_device(session.device().info().name);
  const core::Program& lowered = program.program();
  for (size_t i = 0; i < program.operands().size(); ++i) {
    const core::NamedOperand& operand = program.operands()[i];
    v1::ProgramTensor& shown = *message.add_operands();
    if (operand.scalar) {
      shown.set_name(operand.name);
      *shown.mutable_scalar() = ToProto(*operand.scalar);
      continue;
    }
    shown = TensorToProto(operand.name, operand.element_type, operand.layout);
    shown.set_is_written(lowered.operand_written[i]);
    shown.set_is_constant(operand.is_constant);
  }
  for (const size_t i : OrderOfOutputs(lowered, program.outputs())) {
    const core::ProgramTensor& made = lowered.tensors[lowered.outputs[i]];
    *message.add_outputs() =
        TensorToProto(made.name, made.element_type, made.layout);
  }
  message.set_execution_count(program.execution_count());
  if (!explains) return message;
  TENSORD_ASSIGN_OR_RETURN(const auto plans,
                           server::PlansOf(context_.engine, session, program));
  *message.mutable_explanation() = Explain(program, plans);
  Shorten(*message.mutable_explanation());
  return message;
}

Task<absl::StatusOr<v1::CreateProgramResponse>> ProgramService::Create(
    Call& call, const v1::CreateProgramRequest& request) {
  absl::StatusOr<server::Preparation> preparation =
      Read(call, request.spec(), Purpose::kCreate);
  if (!preparation.ok()) co_return preparation.status();
  const absl::Status prepared = co_await Prepare(call, *preparation);
  if (!prepared.ok()) co_return prepared;
  absl::StatusOr<v1::Program> described;
  auto keep = [&] {
    const auto program = preparation->Keep(request.program_id());
    described = program.ok() ? Describe(call.session(), **program, true)
                             : program.status();
  };
  const absl::Status worked = co_await Work(call, preparation->program(), keep);
  if (!worked.ok()) co_return worked;
  if (!described.ok()) co_return described.status();
  if (request.program_id().empty()) {
    call.OnUnheard([session = call.shared_session(), name = described->name()] {
      session->programs().Remove(name).IgnoreError();
    });
  }
  v1::CreateProgramResponse response;
  *response.mutable_program() = *std::move(described);
  co_return response;
}

Task<absl::StatusOr<v1::DescribeProgramResponse>> ProgramService::DescribeOne(
    Call& call, const v1::DescribeProgramRequest& request) {
  const auto program = call.session().programs().Find(request.program());
  if (!program.ok()) co_return program.status();
  absl::StatusOr<v1::Program> described;
  auto describe = [&] {
    described = Describe(call.session(), **program, true);
  };
  const absl::Status worked = co_await Work(call, **program, describe);
  if (!worked.ok()) co_return worked;
  if (!described.ok()) co_return described.status();
  v1::DescribeProgramResponse response;
  *response.mutable_program() = *std::move(described);
  co_return response;
}

Task<absl::StatusOr<v1::ListProgramsResponse>> ProgramService::List(
    Call& call, const v1::ListProgramsRequest& request) {
  v1::ListProgramsResponse response;
  const absl::Status filled = FillPage(
      request,
      [&](absl::string_view after, int count) {
        return call.session().programs().List(after, count);
      },
      [&](const server::PreparedProgram& program) -> absl::Status {
        TENSORD_ASSIGN_OR_RETURN(*response.add_programs(),
                                 Describe(call.session(), program, false));
        return absl::OkStatus();
      },
      response);
  if (!filled.ok()) co_return filled;
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
