#include "client/cpp/src/convert.h"

#include <string>

#include "client/cpp/src/errors.h"

namespace tensord::internal {
namespace {

static_assert(static_cast<int>(ElementType::kBool) == v1::ELEMENT_TYPE_BOOL);
static_assert(static_cast<int>(Order::kLastModeFastest) ==
              v1::ORDER_LAST_MODE_FASTEST);
static_assert(static_cast<int>(UnaryOperator::kImag) ==
              v1::UNARY_OPERATOR_IMAG);
static_assert(static_cast<int>(BinaryOperator::kTake) ==
              v1::BINARY_OPERATOR_TAKE);
static_assert(static_cast<int>(Sorting::kDescending) == v1::SORTING_DESCENDING);
static_assert(static_cast<int>(ComputeType::kInteger) ==
              v1::COMPUTE_TYPE_INTEGER);
static_assert(static_cast<int>(TensorState::kInvalid) ==
              v1::TENSOR_STATE_INVALID);

}  // namespace

google::protobuf::Duration ToProto(absl::Duration duration) {
  google::protobuf::Duration message;
  message.set_seconds(
      absl::IDivDuration(duration, absl::Seconds(1), &duration));
  message.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(duration)));
  return message;
}

v1::Layout ToProto(const Layout& layout) {
  v1::Layout message;
  message.mutable_extents()->Add(layout.extents.begin(), layout.extents.end());
  message.mutable_strides()->Add(layout.strides.begin(), layout.strides.end());
  message.set_order(static_cast<v1::Order>(layout.order));
  return message;
}

v1::Scalar ToProto(const Scalar& scalar) {
  v1::Scalar message;
  message.set_real(scalar.real);
  message.set_imaginary(scalar.imaginary);
  return message;
}

absl::StatusOr<v1::Operand> ToProto(const Operand& operand) {
  v1::Operand message;
  if (const auto* remote = std::get_if<const RemoteTensor*>(&operand.source)) {
    message.set_tensor((*remote)->name());
  } else {
    const auto& view = std::get<UntypedHostView>(operand.source);
    TENSORD_CLIENT_ASSIGN_OR_RETURN(const auto bytes,
                                    BytesOf(view, "an inline operand"));
    v1::InlineTensor& tensor = *message.mutable_inline_();
    tensor.set_element_type(static_cast<v1::ElementType>(view.element_type));
    *tensor.mutable_layout() = ToProto(view.layout);
    tensor.set_data(bytes.data(), bytes.size());
  }
  message.mutable_modes()->Add(operand.modes.labels.begin(),
                               operand.modes.labels.end());
  message.set_unary_operator(
      static_cast<v1::UnaryOperator>(operand.unary_operator));
  return message;
}

v1::Output OutputToProto(const Modes& modes, const ExecutionOptions& options,
                         Order default_order) {
  v1::Output message;
  message.mutable_modes()->Add(modes.labels.begin(), modes.labels.end());
  if (options.output != nullptr) {
    message.set_tensor(options.output->name());
    return message;
  }
  message.set_tensor_id(options.output_name);
  message.set_element_type(
      static_cast<v1::ElementType>(options.output_element_type));
  message.set_order(
      static_cast<v1::Order>(options.output_order.value_or(default_order)));
  return message;
}

v1::ExecutionOptions ToProto(const ExecutionOptions& options) {
  v1::ExecutionOptions message;
  if (options.workspace_limit_bytes.has_value()) {
    message.set_workspace_limit_bytes(*options.workspace_limit_bytes);
  }
  message.set_kernel(options.kernel);
  message.set_deterministic(options.deterministic);
  message.set_selection(static_cast<v1::Selection>(options.selection));
  return message;
}

absl::Duration FromProto(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) +
         absl::Nanoseconds(duration.nanos());
}

absl::Time FromProto(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds()) +
         absl::Nanoseconds(time.nanos());
}

TensorInfo FromProto(const v1::Tensor& tensor) {
  TensorInfo info;
  info.name = tensor.name();
  info.element_type = static_cast<ElementType>(tensor.element_type());
  info.layout.extents.assign(tensor.layout().extents().begin(),
                             tensor.layout().extents().end());
  info.layout.strides.assign(tensor.layout().strides().begin(),
                             tensor.layout().strides().end());
  info.device = tensor.device();
  info.state = static_cast<TensorState>(tensor.state());
  info.span_bytes = tensor.span_bytes();
  info.committed_bytes = tensor.committed_bytes();
  if (tensor.has_view()) {
    const v1::View& view = tensor.view();
    info.view = {.viewed = view.viewed(),
                 .is_gathered = view.is_gathered(),
                 .is_writable = view.is_writable(),
                 .may_pad = view.may_pad(),
                 .has_strides = view.has_strides(),
                 .span_elements = view.span_elements(),
                 .allocation_elements = view.allocation_elements()};
  }
  return info;
}

ExecutionReport FromProto(const v1::ExecutionReport& report) {
  return {.kernel = report.kernel(),
          .plan_cache_hit = report.plan_cache_hit(),
          .workspace_bytes = report.workspace_bytes(),
          .queued = FromProto(report.queued()),
          .executed = FromProto(report.executed()),
          .gathered_bytes = report.gathered_bytes(),
          .kept_extent = report.kept_extent()};
}

Explanation FromProto(const v1::ExplainPlanResponse& response) {
  Explanation explanation{.kernel = response.kernel(),
                          .workspace_bytes = response.workspace_bytes(),
                          .flops = response.flops(),
                          .moved_bytes = response.moved_bytes(),
                          .candidates = {},
                          .problem = response.problem(),
                          .plan_cache_hit = response.plan_cache_hit()};
  for (const v1::KernelCandidate& candidate : response.candidates()) {
    explanation.candidates.push_back(
        {.kernel = candidate.kernel(),
         .refusal = candidate.refusal(),
         .predicted_nanoseconds = candidate.predicted_nanoseconds(),
         .workspace_bytes = candidate.workspace_bytes(),
         .measured_nanoseconds = candidate.measured_nanoseconds(),
         .decision = candidate.decision()});
  }
  return explanation;
}

PlanInfo FromProto(const v1::Plan& plan) {
  return {.name = plan.name(),
          .operation = plan.operation(),
          .device = plan.device(),
          .result_count = 1 + plan.others_size(),
          .selection = static_cast<Selection>(plan.selection()),
          .explanation = FromProto(plan.explanation()),
          .min_workspace_bytes = plan.min_workspace_bytes(),
          .max_workspace_bytes = plan.max_workspace_bytes(),
          .sample_count = plan.sample_count(),
          .wanted_sample_count = plan.wanted_sample_count(),
          .execution_count = plan.execution_count()};
}

SessionInfo FromProto(const v1::Session& session) {
  return {.name = session.name(),
          .job = session.job(),
          .device = session.device(),
          .lease = FromProto(session.lease()),
          .memory_quota_bytes = session.memory_quota_bytes(),
          .priority = session.priority(),
          .memory_used_bytes = session.memory_used_bytes(),
          .tensor_count = session.tensor_count(),
          .staging_used_bytes = session.staging_used_bytes()};
}

Limits FromProto(const v1::Limits& limits) {
  return {.max_chunk_bytes = limits.max_chunk_bytes(),
          .max_inline_bytes = limits.max_inline_bytes(),
          .max_message_bytes = limits.max_message_bytes(),
          .max_modes = limits.max_modes(),
          .max_lease = absl::Seconds(limits.max_lease_seconds()),
          .max_sessions = limits.max_sessions(),
          .max_sessions_per_peer = limits.max_sessions_per_peer(),
          .session_quota_bytes = limits.session_quota_bytes(),
          .max_tensors = limits.max_tensors(),
          .transfer_idle = absl::Seconds(limits.transfer_idle_seconds()),
          .max_view_stages = limits.max_view_stages(),
          .max_queued_operations = limits.max_queued_operations(),
          .max_stream_operations = limits.max_stream_operations(),
          .max_program_bytes = limits.max_program_bytes(),
          .max_program_statements = limits.max_program_statements(),
          .max_program_labels = limits.max_program_labels(),
          .max_program_depth = limits.max_program_depth(),
          .max_program_factors = limits.max_program_factors(),
          .max_search = absl::Seconds(limits.max_search_seconds()),
          .max_optimal_operands = limits.max_optimal_operands(),
          .max_symbolic_operands = limits.max_symbolic_operands(),
          .max_programs = limits.max_programs()};
}

ServerInfo FromProto(const v1::GetServerInfoResponse& response) {
  ServerInfo info{.version = response.version(),
                  .devices = {},
                  .limits = FromProto(response.limits())};
  for (const v1::Device& device : response.devices()) {
    info.devices.push_back(
        {.name = device.name(),
         .model = device.model(),
         .architecture = device.architecture(),
         .thread_count = device.thread_count(),
         .memory_bytes = device.memory_bytes(),
         .properties = {device.properties().begin(), device.properties().end()},
         .kernels = {device.kernels().begin(), device.kernels().end()}});
  }
  return info;
}

ServerStats FromProto(const v1::GetServerStatsResponse& response) {
  ServerStats stats;
  stats.uptime = absl::Seconds(response.uptime_seconds());
  stats.session_count = response.session_count();
  stats.tensor_count = response.tensor_count();
  for (const v1::DeviceStats& device : response.devices()) {
    stats.devices.push_back(
        {.device = device.device(),
         .memory_used_bytes = device.memory_used_bytes(),
         .memory_peak_bytes = device.memory_peak_bytes(),
         .memory_reserved_bytes = device.memory_reserved_bytes(),
         .memory_limit_bytes = device.memory_limit_bytes(),
         .staging_used_bytes = device.staging_used_bytes(),
         .staging_peak_bytes = device.staging_peak_bytes(),
         .staging_reserved_bytes = device.staging_reserved_bytes(),
         .staging_limit_bytes = device.staging_limit_bytes(),
         .queued_operations = device.queued_operations(),
         .executed_operations = device.executed_operations(),
         .busy = absl::Seconds(device.busy_seconds()),
         .model = device.model(),
         .is_up = device.is_up()});
  }
  for (const v1::OperationStats& operation : response.operations()) {
    stats.operations.push_back({.operation = operation.operation(),
                                .code = operation.code(),
                                .count = operation.count()});
  }
  stats.plan_cache = {.entry_count = response.plan_cache().entry_count(),
                      .hit_count = response.plan_cache().hit_count(),
                      .miss_count = response.plan_cache().miss_count(),
                      .eviction_count = response.plan_cache().eviction_count()};
  stats.uploaded_bytes = response.uploaded_bytes();
  stats.downloaded_bytes = response.downloaded_bytes();
  for (const v1::HostMemoryStats& entry : response.host_memory()) {
    stats.host_memory.push_back({.use = entry.use(),
                                 .count = entry.count(),
                                 .count_limit = entry.count_limit(),
                                 .used_bytes = entry.used_bytes()});
  }
  stats.host_memory_limit_bytes = response.host_memory_limit_bytes();
  stats.version = response.version();
  stats.state = response.state();
  for (const v1::TenantStats& tenant : response.tenants()) {
    stats.tenants.push_back(
        {.tenant = tenant.tenant(),
         .session_count = tenant.session_count(),
         .tensor_count = tenant.tensor_count(),
         .memory_used_bytes = tenant.memory_used_bytes(),
         .request_count = tenant.request_count(),
         .device_time = absl::Seconds(tenant.device_seconds())});
  }
  return stats;
}

absl::StatusOr<std::span<const std::byte>> BytesOf(const UntypedHostView& view,
                                                   std::string_view what) {
  const absl::string_view name(what.data(), what.size());
  const Layout& layout = view.layout;
  if (!layout.strides.empty() &&
      layout.strides.size() != layout.extents.size()) {
    return InvalidArgument("LAYOUT_MALFORMED", name, " has ",
                           layout.extents.size(), " extents but ",
                           layout.strides.size(), " strides");
  }
  const int64_t elements = SpanElements(layout);
  const int64_t element_bytes = ElementBytes(view.element_type);
  int64_t bytes = 0;
  if (elements < 0 || __builtin_mul_overflow(elements, element_bytes, &bytes)) {
    return InvalidArgument("LAYOUT_MALFORMED", name,
                           " has negative extents or strides, or spans more "
                           "bytes than fit an int64");
  }
  if (element_bytes == 0) {
    return InvalidArgument("ELEMENT_TYPE_MISSING", name,
                           " has no element type");
  }
  if (view.data == nullptr && bytes > 0) {
    return InvalidArgument("DATA_MISSING", name, " spans ", bytes,
                           " bytes but has no data");
  }
  return std::span<const std::byte>(static_cast<const std::byte*>(view.data),
                                    static_cast<size_t>(bytes));
}

}  // namespace tensord::internal
