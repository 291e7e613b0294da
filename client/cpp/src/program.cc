#include "tensord/program.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "client/cpp/src/convert.h"
#include "client/cpp/src/program_messages.h"

namespace tensord {

using internal::Channels;
using internal::FromProto;
using internal::InvalidArgument;
using internal::ProgramCalls;
using Programs = v1::ProgramService::Stub;

namespace {

/// What all operations of a program did together.
ExecutionReport Summary(const ProgramReport& report) {
  return {.kernel = "",
          .plan_cache_hit = report.plan_cache_hits == report.plan_count,
          .workspace_bytes = report.workspace_bytes,
          .queued = report.queued,
          .executed = report.executed,
          .gathered_bytes = report.gathered_bytes};
}

absl::string_view Name(ElementType type) {
  const std::string_view name = ToString(type);
  return {name.data(), name.size()};
}

}  // namespace

absl::StatusOr<ProgramResults> ProgramCalls::Execute(
    const std::shared_ptr<Connection>& connection,
    const v1::ExecuteProgramRequest& request,
    std::optional<absl::Duration> deadline) {
  Channels& channels = connection->channels();
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const v1::ExecuteProgramResponse response,
      channels.Call(channels.program, &Programs::ExecuteProgram, request,
                    connection->Deadline(deadline)));
  ProgramResults results{.results = {}, .report = FromProto(response.report())};
  const ExecutionReport report = Summary(results.report);
  for (const v1::ProgramResult& result : response.results()) {
    TensorInfo info = FromProto(result.tensor());
    ProgramResult& added = results.results.emplace_back();
    added.name = result.name();
    added.element_type = info.element_type;
    added.layout = info.layout;
    if (info.name.empty()) {
      const std::string& data = result.data();
      added.bytes.resize(data.size());
      std::memcpy(added.bytes.data(), data.data(), data.size());
    } else {
      added.tensor =
          RemoteTensor(connection, std::move(info), /*owns=*/true, report);
    }
  }
  return results;
}

absl::Status ProgramResult::DownloadTo(ElementType wanted,
                                       std::span<std::byte> to,
                                       const DownloadOptions& options) const {
  if (tensor.has_value()) return tensor->DownloadTo(wanted, to, options);
  if (wanted != element_type) {
    return InvalidArgument("ELEMENT_TYPE_MISMATCH", "result '", name, "' has ",
                           Name(element_type),
                           " elements, but is downloaded as ", Name(wanted));
  }
  if (to.size() != bytes.size()) {
    return InvalidArgument("SIZE_MISMATCH", "result '", name, "' has ",
                           bytes.size(), " bytes, but there is memory for ",
                           to.size());
  }
  std::ranges::copy(bytes, to.begin());
  return absl::OkStatus();
}

const ProgramResult* ProgramResults::Find(std::string_view name) const {
  const auto found = std::ranges::find(results, name, &ProgramResult::name);
  return found == results.end() ? nullptr : &*found;
}

absl::StatusOr<RemoteTensor> ProgramResults::Take(std::string_view name) {
  const auto found = std::ranges::find(results, name, &ProgramResult::name);
  const absl::string_view shown(name.data(), name.size());
  if (found == results.end()) {
    std::string others;
    for (const ProgramResult& result : results) {
      absl::StrAppend(&others, others.empty() ? "" : ", ", result.name);
    }
    return internal::Error(
        absl::StatusCode::kNotFound, "RESULT_NOT_FOUND",
        absl::StrCat("there is no result '", shown, "', wanted one of ",
                     others.empty() ? "none" : others));
  }
  if (!found->tensor.has_value()) {
    return internal::Error(
        absl::StatusCode::kNotFound, "RESULT_NOT_FOUND",
        absl::StrCat("result '", shown,
                     "' came inline or was taken before, wanted a tensor"));
  }
  RemoteTensor taken = *std::move(found->tensor);
  found->tensor.reset();
  return taken;
}

absl::StatusOr<ProgramInfo> PreparedProgram::Describe() const {
  Channels& channels = handle_.connection()->channels();
  v1::DescribeProgramRequest request;
  request.set_program(info_.name);
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const v1::DescribeProgramResponse response,
      channels.Call(channels.program, &Programs::DescribeProgram, request));
  return FromProto(response.program());
}

absl::StatusOr<ProgramResults> PreparedProgram::Run(
    ProgramOperands operands, const ProgramExecution& options) const {
  v1::ExecuteProgramRequest request;
  request.set_session(handle_.connection()->session().name);
  request.set_name(info_.name);
  TENSORD_CLIENT_RETURN_IF_ERROR(internal::AddOperands(
      operands, internal::Contents::kSent, *request.mutable_operands()));
  for (const ProgramOutput& output : options.outputs) {
    *request.add_outputs() = internal::ToProto(output);
  }
  return ProgramCalls::Execute(handle_.connection(), request, options.deadline);
}

absl::Status PreparedProgram::Delete() {
  Release();
  return handle_.connection()->channels().Delete(info_.name);
}

}  // namespace tensord
