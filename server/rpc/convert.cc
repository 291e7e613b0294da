#include "server/rpc/convert.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/status.h"
#include "core/view/aligned_layout.h"
#include "server/rpc/operations.h"

namespace tensord::rpc {
namespace {

using server::OperationRequest;

// The enums of the wire are those of the core, shifted by _UNSPECIFIED = 0.
static_assert(v1::ELEMENT_TYPE_BOOL ==
              static_cast<int>(core::ElementType::kBool) + 1);
static_assert(v1::ElementType_ARRAYSIZE == core::kElementTypeCount + 1);
static_assert(v1::UNARY_OPERATOR_IMAG ==
              static_cast<int>(core::UnaryOperator::kImag) + 1);
static_assert(v1::UnaryOperator_ARRAYSIZE == core::kUnaryOperatorCount + 1);
static_assert(v1::BINARY_OPERATOR_TAKE ==
              static_cast<int>(core::BinaryOperator::kTake) + 1);
static_assert(v1::BinaryOperator_ARRAYSIZE == core::kBinaryOperatorCount + 1);
static_assert(v1::COMPUTE_TYPE_INTEGER ==
              static_cast<int>(core::ComputeType::kInteger) + 1);
static_assert(v1::ComputeType_ARRAYSIZE == core::kComputeTypeCount + 1);
static_assert(v1::SELECTION_INCREMENTAL ==
              static_cast<int>(core::Selection::kIncremental) + 1);

absl::StatusOr<core::UnaryOperator> UnaryFrom(v1::UnaryOperator op) {
  if (op == v1::UNARY_OPERATOR_UNSPECIFIED) {
    return core::UnaryOperator::kIdentity;
  }
  if (!v1::UnaryOperator_IsValid(op)) return UnknownEnum("unary_operator", op);
  return static_cast<core::UnaryOperator>(op - 1);
}

absl::StatusOr<core::BinaryOperator> BinaryFrom(v1::BinaryOperator op,
                                                absl::string_view field) {
  if (op == v1::BINARY_OPERATOR_UNSPECIFIED) {
    return core::InvalidArgument(
        "OPERATOR_MISSING", field,
        " is not given, wanted ADD, MUL, MAX, MIN, ...");
  }
  if (!v1::BinaryOperator_IsValid(op)) return UnknownEnum(field, op);
  return static_cast<core::BinaryOperator>(op - 1);
}

/// Bounded before anything compares labels with labels.
absl::StatusOr<core::Modes> ModesFrom(
    const google::protobuf::RepeatedField<int32_t>& modes,
    absl::string_view name) {
  if (modes.size() > core::kMaxModes) {
    return core::InvalidArgument("TOO_MANY_MODES", name, " has ", modes.size(),
                                 " modes, wanted at most ", core::kMaxModes);
  }
  return core::Modes(modes.begin(), modes.end());
}

absl::StatusOr<server::InputRequest> InputFrom(const v1::Operand& operand,
                                               absl::string_view name) {
  server::InputRequest input;
  switch (operand.source_case()) {
    case v1::Operand::kTensor: input.source = operand.tensor(); break;
    case v1::Operand::kInline: {
      TENSORD_ASSIGN_OR_RETURN(input.source,
                               FromProto(operand.inline_(), name));
      break;
    }
    case v1::Operand::SOURCE_NOT_SET:
      return core::InvalidArgument("OPERAND_EMPTY", "operand ", name,
                                   " has neither tensor nor inline data");
  }
  TENSORD_ASSIGN_OR_RETURN(input.view,
                           ViewOf(operand, operand.has_tensor(), name));
  TENSORD_ASSIGN_OR_RETURN(input.modes, ModesFrom(operand.modes(), name));
  TENSORD_ASSIGN_OR_RETURN(input.unary, UnaryFrom(operand.unary_operator()));
  return input;
}

absl::StatusOr<server::OutputRequest> OutputFrom(const v1::Output& output,
                                                 absl::string_view name) {
  server::OutputRequest result;
  result.tensor = output.tensor();
  TENSORD_ASSIGN_OR_RETURN(result.view,
                           ViewOf(output, !result.tensor.empty(), name));
  TENSORD_ASSIGN_OR_RETURN(result.modes, ModesFrom(output.modes(), name));
  if (!result.tensor.empty() &&
      (!output.tensor_id().empty() || output.inline_() ||
       output.element_type() != v1::ELEMENT_TYPE_UNSPECIFIED ||
       output.order() != v1::ORDER_UNSPECIFIED)) {
    return core::InvalidArgument("OUTPUT_AMBIGUOUS", name, " names tensor '",
                                 result.tensor,
                                 "' and also says how to make a new one, "
                                 "wanted one of both");
  }
  if (output.inline_() && !output.tensor_id().empty()) {
    return core::InvalidArgument("OUTPUT_AMBIGUOUS", name,
                                 " is inline and has the tensor_id '",
                                 output.tensor_id(), "', wanted one of both");
  }
  result.tensor_id = output.tensor_id();
  if (output.element_type() != v1::ELEMENT_TYPE_UNSPECIFIED) {
    TENSORD_ASSIGN_OR_RETURN(result.element_type,
                             FromProto(output.element_type()));
  }
  TENSORD_ASSIGN_OR_RETURN(result.order, FromProto(output.order()));
  result.is_inline = output.inline_();
  result.is_sent =
      output.with_data() && result.tensor.empty() && !result.is_inline;
  return result;
}

absl::Status TakeOptions(const v1::ExecutionOptions& options,
                         OperationRequest& request) {
  if (options.has_workspace_limit_bytes()) {
    TENSORD_ASSIGN_OR_RETURN(request.workspace_limit_bytes,
                             WorkspaceLimit(options.workspace_limit_bytes()));
  }
  request.kernel = options.kernel();
  request.deterministic = options.deterministic();
  TENSORD_ASSIGN_OR_RETURN(request.selection, FromProto(options.selection()));
  return CheckSelection(request.selection, request.deterministic);
}

/// What the requests of operations with one result have in common.
template <typename Request>
absl::StatusOr<OperationRequest> CommonFrom(const Request& request) {
  OperationRequest result{.kind = KindOf(&request)};
  if (request.has_a()) {
    TENSORD_ASSIGN_OR_RETURN(result.inputs[0], InputFrom(request.a(), "a"));
  }
  if constexpr (requires { request.b(); }) {
    if (request.has_b()) {
      TENSORD_ASSIGN_OR_RETURN(result.inputs[1], InputFrom(request.b(), "b"));
    }
  }
  if constexpr (requires { request.c(); }) {
    if (request.has_c()) {
      TENSORD_ASSIGN_OR_RETURN(result.inputs[2], InputFrom(request.c(), "c"));
    }
  }
  TENSORD_ASSIGN_OR_RETURN(result.results.emplace_back(),
                           OutputFrom(request.d(), "d"));
  if constexpr (requires { request.alpha(); }) {
    if (request.has_alpha()) result.alpha = FromProto(request.alpha());
  }
  if constexpr (requires { request.beta(); }) {
    if (request.has_beta()) result.beta = FromProto(request.beta());
  }
  TENSORD_ASSIGN_OR_RETURN(result.compute_type,
                           FromProto(request.compute_type()));
  TENSORD_RETURN_IF_ERROR(TakeOptions(request.options(), result));
  return result;
}

void SetLayout(const core::ModeVector& extents, const core::ModeVector& strides,
               int64_t offset, v1::Layout& layout) {
  layout.mutable_extents()->Add(extents.begin(), extents.end());
  layout.mutable_strides()->Add(strides.begin(), strides.end());
  layout.set_offset(offset);
}

}  // namespace

absl::Status UnknownEnum(absl::string_view what, int value,
                         const google::protobuf::EnumDescriptor& type) {
  absl::string_view prefix = type.FindValueByNumber(0)->name();
  absl::ConsumeSuffix(&prefix, "UNSPECIFIED");
  std::string known;
  for (int i = 0; i < type.value_count(); ++i) {
    const google::protobuf::EnumValueDescriptor& each = *type.value(i);
    if (each.number() == 0) continue;
    const absl::string_view name = absl::StripPrefix(each.name(), prefix);
    absl::StrAppend(&known, known.empty() ? "" : ", ");
    if (value == 0) {
      absl::StrAppend(&known, name);
    } else {
      absl::StrAppend(&known, each.number(), " (", name, ")");
    }
  }
  if (value != 0) {
    return core::InvalidArgument("ENUM_UNKNOWN", what, " is ", value,
                                 ", wanted one of ", known);
  }
  return core::InvalidArgument("ENUM_UNKNOWN", what, " is not given, wanted ",
                               type.value_count() > 2 ? "one of " : "", known);
}

absl::Status CheckLoad(v1::PlanCacheLoad load) {
  return v1::PlanCacheLoad_IsValid(load) ? absl::OkStatus()
                                         : UnknownEnum("load", load);
}

absl::StatusOr<core::Selection> FromProto(v1::Selection selection) {
  if (selection == v1::SELECTION_UNSPECIFIED) {
    return core::Selection::kHeuristic;
  }
  if (!v1::Selection_IsValid(selection)) {
    return UnknownEnum("selection", selection);
  }
  return static_cast<core::Selection>(selection - 1);
}

absl::Status CheckSelection(core::Selection selection, bool deterministic) {
  if (selection == core::Selection::kHeuristic || !deterministic) {
    return absl::OkStatus();
  }
  return core::InvalidArgument(
      "SELECTION_CONFLICTS",
      "the kernel is to be chosen by measurement, which may end another way "
      "every time, and to be pinned, wanted one of both");
}

absl::StatusOr<int64_t> WorkspaceLimit(int64_t asked) {
  if (asked >= 0) return asked;
  return core::InvalidArgument("WORKSPACE_LIMIT_NEGATIVE",
                               "workspace_limit_bytes is ", asked,
                               ", wanted >= 0");
}

absl::StatusOr<core::ElementType> FromProto(v1::ElementType type) {
  if (type == v1::ELEMENT_TYPE_UNSPECIFIED || !v1::ElementType_IsValid(type)) {
    return UnknownEnum("element_type", type);
  }
  return static_cast<core::ElementType>(type - 1);
}

absl::StatusOr<core::Order> FromProto(v1::Order order) {
  switch (order) {
    case v1::ORDER_UNSPECIFIED:
    case v1::ORDER_FIRST_MODE_FASTEST: return core::Order::kFirstModeFastest;
    case v1::ORDER_LAST_MODE_FASTEST: return core::Order::kLastModeFastest;
    default: return UnknownEnum("order", order);
  }
}

core::Scalar FromProto(const v1::Scalar& scalar) {
  return {scalar.real(), scalar.imaginary()};
}

absl::StatusOr<core::TensorDesc> FromProto(v1::ElementType type,
                                           const v1::Layout& layout) {
  core::TensorDesc desc;
  TENSORD_ASSIGN_OR_RETURN(desc.element_type, FromProto(type));
  TENSORD_ASSIGN_OR_RETURN(const core::Order order, FromProto(layout.order()));
  const core::ModeVector extents(layout.extents().begin(),
                                 layout.extents().end());
  if (layout.strides().empty() && layout.row_alignment() == 0) {
    desc.layout = core::PackedLayout(extents, order);
  } else if (layout.strides().empty()) {
    TENSORD_ASSIGN_OR_RETURN(
        desc.layout,
        core::AlignedLayout(extents, layout.row_alignment(), order));
  } else if (layout.row_alignment() != 0) {
    return core::InvalidArgument(
        "LAYOUT_AMBIGUOUS", "the layout has strides and the row_alignment ",
        layout.row_alignment(), ", wanted one of both");
  } else {
    desc.layout = {extents, core::ModeVector(layout.strides().begin(),
                                             layout.strides().end())};
  }
  desc.offset = layout.offset();
  return desc;
}

absl::StatusOr<server::InlineTensor> FromProto(const v1::InlineTensor& sent,
                                               absl::string_view name) {
  TENSORD_ASSIGN_OR_RETURN(core::TensorDesc desc,
                           FromProto(sent.element_type(), sent.layout()));
  if (desc.offset != 0) {
    return core::InvalidArgument("INLINE_OFFSET", "offset of inline ", name,
                                 " is ", desc.offset, ", wanted 0");
  }
  return server::InlineTensor{desc.element_type, std::move(desc.layout),
                              sent.data()};
}

absl::StatusOr<std::optional<core::ComputeType>> FromProto(
    v1::ComputeType type) {
  if (type == v1::COMPUTE_TYPE_UNSPECIFIED) return std::nullopt;
  if (!v1::ComputeType_IsValid(type)) return UnknownEnum("compute_type", type);
  return static_cast<core::ComputeType>(type - 1);
}

absl::StatusOr<int> PageSize(int32_t asked) {
  constexpr int kMost = 1000;
  if (asked < 0) {
    return core::InvalidArgument("PAGE_SIZE_NEGATIVE", "page_size is ", asked,
                                 ", wanted >= 0");
  }
  return asked == 0 ? kMost : std::min(asked, kMost);
}

absl::StatusOr<OperationRequest> FromProto(const v1::PermuteRequest& request) {
  TENSORD_ASSIGN_OR_RETURN(OperationRequest result, CommonFrom(request));
  if (request.has_padding()) {
    const v1::OutputPadding& padding = request.padding();
    result.padding = {
        .before = {padding.before().begin(), padding.before().end()},
        .after = {padding.after().begin(), padding.after().end()},
        .value = FromProto(padding.value())};
  }
  return result;
}

absl::StatusOr<OperationRequest> FromProto(
    const v1::ElementwiseRequest& request) {
  TENSORD_ASSIGN_OR_RETURN(OperationRequest result, CommonFrom(request));
  if (!request.has_beta()) result.beta = core::kOne;
  if (request.has_gamma()) result.gamma = FromProto(request.gamma());
  TENSORD_ASSIGN_OR_RETURN(result.op, BinaryFrom(request.op_abc(), "op_abc"));
  if (request.has_b() && !core::IsTernary(result.op)) {
    TENSORD_ASSIGN_OR_RETURN(result.op_ab,
                             BinaryFrom(request.op_ab(), "op_ab"));
  }
  return result;
}

absl::StatusOr<OperationRequest> FromProto(const v1::ReduceRequest& request) {
  TENSORD_ASSIGN_OR_RETURN(OperationRequest result, CommonFrom(request));
  if (request.has_along()) {
    const v1::Along& along = request.along();
    if (!v1::Sorting_IsValid(along.sorting())) {
      return UnknownEnum("along.sorting", along.sorting());
    }
    static_assert(v1::SORTING_DESCENDING ==
                  static_cast<int>(core::Sorting::kDescending));
    result.along = {along.mode(), static_cast<core::Sorting>(along.sorting())};
    if (result.along->sorting != core::Sorting::kNone) return result;
  }
  TENSORD_ASSIGN_OR_RETURN(result.op, BinaryFrom(request.op(), "op"));
  return result;
}

absl::StatusOr<OperationRequest> FromProto(const v1::ContractRequest& request) {
  return CommonFrom(request);
}

absl::StatusOr<core::FactorizationMethod> FromProto(
    v1::FactorizationMethod method) {
  switch (method) {
    case v1::FACTORIZATION_METHOD_QR: return core::FactorizationMethod::kQr;
    case v1::FACTORIZATION_METHOD_LQ: return core::FactorizationMethod::kLq;
    case v1::FACTORIZATION_METHOD_SVD: return core::FactorizationMethod::kSvd;
    case v1::FACTORIZATION_METHOD_EIGH: return core::FactorizationMethod::kEigh;
    case v1::FACTORIZATION_METHOD_CHOLESKY:
      return core::FactorizationMethod::kCholesky;
    default: return UnknownEnum("method", method);
  }
}

absl::StatusOr<core::Truncation> FromProto(const v1::Truncation& truncation) {
  core::Truncation result{
      .cutoff = truncation.cutoff(),
      .relative_cutoff = truncation.relative_cutoff(),
      .discarded_squares = truncation.discarded_squares(),
      .relative_discarded_squares = truncation.relative_discarded_squares(),
      .renormalizes = truncation.renormalize(),
      .seed = truncation.sampling().seed()};
  if (!v1::Absorb_IsValid(truncation.absorb())) {
    return UnknownEnum("absorb", truncation.absorb());
  }
  static_assert(v1::ABSORB_BOTH ==
                static_cast<int>(core::Truncation::Absorb::kBoth));
  result.absorb = static_cast<core::Truncation::Absorb>(truncation.absorb());
  return result;
}

core::Sampling FromProto(const v1::Sampling& sampling) {
  core::Sampling result;
  if (sampling.has_oversampling()) {
    result.oversampling = sampling.oversampling();
  }
  if (sampling.has_power_iterations()) {
    result.power_iterations = sampling.power_iterations();
  }
  return result;
}

absl::StatusOr<OperationRequest> FromProto(
    const v1::FactorizeRequest& request) {
  OperationRequest result{.kind = KindOf(&request)};
  if (request.has_a()) {
    TENSORD_ASSIGN_OR_RETURN(result.inputs[0], InputFrom(request.a(), "a"));
  }
  TENSORD_ASSIGN_OR_RETURN(result.method, FromProto(request.method()));
  TENSORD_ASSIGN_OR_RETURN(result.truncation, FromProto(request.truncation()));
  if (request.truncation().has_rank()) {
    result.rank = request.truncation().rank();
  }
  if (request.truncation().has_sampling()) {
    result.sampling = FromProto(request.truncation().sampling());
  }
  TENSORD_RETURN_IF_ERROR(core::ValidateResults(result.method, request.has_r(),
                                                request.has_values()));
  for (const absl::string_view name :
       core::ResultNamesOf(result.method, request.has_values())) {
    const bool is_value = name == "s" || name == "w";
    const bool is_first = result.results.empty() ||
                          result.method == core::FactorizationMethod::kEigh;
    TENSORD_ASSIGN_OR_RETURN(result.results.emplace_back(),
                             OutputFrom(is_value   ? request.values()
                                        : is_first ? request.q()
                                                   : request.r(),
                                        name));
  }
  TENSORD_RETURN_IF_ERROR(TakeOptions(request.options(), result));
  return result;
}

absl::StatusOr<OperationRequest> FromProto(
    const v1::SolveLinearRequest& request) {
  TENSORD_ASSIGN_OR_RETURN(OperationRequest result, CommonFrom(request));
  if (request.structure() != v1::MATRIX_STRUCTURE_UNSPECIFIED) {
    if (!v1::MatrixStructure_IsValid(request.structure())) {
      return UnknownEnum("structure", request.structure());
    }
    static_assert(v1::MATRIX_STRUCTURE_POSITIVE_DEFINITE ==
                  static_cast<int>(core::MatrixStructure::kPositiveDefinite) +
                      1);
    result.structure =
        static_cast<core::MatrixStructure>(request.structure() - 1);
  }
  result.has_unit_diagonal = request.unit_diagonal();
  if (request.function() != v1::MATRIX_FUNCTION_UNSPECIFIED) {
    if (!v1::MatrixFunction_IsValid(request.function())) {
      return UnknownEnum("function", request.function());
    }
    static_assert(v1::MATRIX_FUNCTION_EXPONENTIAL ==
                  static_cast<int>(core::MatrixFunction::kExponential) + 1);
    result.function = static_cast<core::MatrixFunction>(request.function() - 1);
  }
  return result;
}

v1::Result ToProto(const server::Run& run) {
  v1::Result result;
  for (const server::OperandUse& use : run.results()) {
    const bool is_first = &use == run.results().data();
    v1::Result& made = is_first ? result : *result.add_others();
    *made.mutable_tensor() = ToProto(*use.tensor());
    if (use.is_inline()) made.set_data(use.Bytes());
    if (use.is_sent()) made.set_data(use.sent());
  }
  v1::ExecutionReport& report = *result.mutable_report();
  const absl::string_view kernel = run.runner().kernel();
  report.set_kernel(kernel.data(), kernel.size());
  report.set_plan_cache_hit(run.runner().hit_count() > 0);
  report.set_workspace_bytes(run.runner().workspace_bytes());
  report.set_gathered_bytes(run.report().gathered_bytes);
  report.set_kept_extent(run.report().kept_extent);
  const server::RunTimes times = run.times();
  *report.mutable_queued() = ToProto(times.begun - times.made);
  *report.mutable_executed() = ToProto(times.ended - times.begun);
  return result;
}

v1::TensorState ToProto(server::TensorState state) {
  switch (state) {
    case server::TensorState::kEmpty: return v1::TENSOR_STATE_EMPTY;
    case server::TensorState::kPartial: return v1::TENSOR_STATE_PARTIAL;
    case server::TensorState::kPending: return v1::TENSOR_STATE_PENDING;
    case server::TensorState::kReady: return v1::TENSOR_STATE_READY;
    case server::TensorState::kInvalid: return v1::TENSOR_STATE_INVALID;
  }
  __builtin_unreachable();
}

v1::Tensor ToProto(const server::StoredTensor& tensor) {
  const core::TensorDesc& desc = tensor.desc();
  v1::Tensor message;
  message.set_name(tensor.name());
  message.set_element_type(ToProto(desc.element_type));
  message.set_device(tensor.device());
  message.set_state(ToProto(tensor.state()));
  message.set_span_bytes(desc.span_bytes());
  message.set_committed_bytes(tensor.committed_bytes());
  v1::Layout& layout = *message.mutable_layout();
  if (tensor.view() == nullptr) {
    SetLayout(desc.layout.extents, desc.layout.strides, desc.offset, layout);
    return message;
  }
  const server::TensorView& seen = *tensor.view();
  const core::View& view = seen.view();
  if (view.strided()) {
    SetLayout(view.strided()->extents, view.strided()->strides,
              view.strided()->offset, layout);
  } else {
    SetLayout(desc.layout.extents, desc.layout.strides, desc.offset, layout);
  }
  v1::View& info = *message.mutable_view();
  info.set_viewed(seen.viewed());
  info.set_is_gathered(!seen.is_in_place() && !seen.repeats());
  info.set_is_writable(view.IsInjective() && tensor.origin() == nullptr);
  info.set_may_pad(view.may_pad());
  info.set_span_elements(view.span_elements());
  info.set_allocation_elements(view.allocation_elements());
  info.set_has_strides(view.strided().has_value());
  return message;
}

v1::PlanOperand ToProto(const core::TensorDesc& desc,
                        const core::Modes& modes) {
  v1::PlanOperand message;
  message.set_element_type(ToProto(desc.element_type));
  SetLayout(desc.layout.extents, desc.layout.strides, 0,
            *message.mutable_layout());
  message.mutable_modes()->Add(modes.begin(), modes.end());
  return message;
}

v1::ElementType ToProto(core::ElementType type) {
  return static_cast<v1::ElementType>(static_cast<int>(type) + 1);
}

v1::PlanSource ToProto(core::PlanSource source) {
  static_assert(v1::PLAN_SOURCE_LOADED ==
                static_cast<int>(core::PlanSource::kLoaded) + 1);
  return static_cast<v1::PlanSource>(static_cast<int>(source) + 1);
}

v1::Selection ToProto(core::Selection selection) {
  return static_cast<v1::Selection>(static_cast<int>(selection) + 1);
}

v1::Scalar ToProto(const core::Scalar& scalar) {
  v1::Scalar message;
  message.set_real(scalar.real);
  message.set_imaginary(scalar.imaginary);
  return message;
}

v1::Session ToProto(const server::Session& session) {
  v1::Session message;
  message.set_name(session.name());
  message.set_job(session.options().job);
  message.set_device(session.device().info().name);
  *message.mutable_lease() = ToProto(session.options().lease);
  message.set_memory_quota_bytes(session.options().memory_quota_bytes);
  message.set_priority(session.options().priority);
  message.set_memory_used_bytes(session.memory()->used_bytes());
  message.set_tensor_count(session.tensor_count());
  int64_t pinned_bytes = session.staging_memory()->used_bytes();
  if (session.region_memory() != session.memory()) {
    pinned_bytes += session.region_memory()->used_bytes();
  }
  message.set_staging_used_bytes(pinned_bytes);
  return message;
}

google::protobuf::Duration ToProto(absl::Duration duration) {
  google::protobuf::Duration message;
  message.set_seconds(
      absl::IDivDuration(duration, absl::Seconds(1), &duration));
  message.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(duration)));
  return message;
}

google::protobuf::Timestamp ToProto(absl::Time time) {
  google::protobuf::Timestamp message;
  const int64_t seconds = absl::ToUnixSeconds(time);
  message.set_seconds(seconds);
  message.set_nanos(static_cast<int32_t>(
      absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(seconds))));
  return message;
}

absl::StatusOr<absl::Duration> FromProto(
    const google::protobuf::Duration& duration, absl::string_view field) {
  const int64_t seconds = duration.seconds();
  const int32_t nanos = duration.nanos();
  if (nanos <= -1'000'000'000 || nanos >= 1'000'000'000 ||
      (seconds > 0 && nanos < 0) || (seconds < 0 && nanos > 0)) {
    return core::InvalidArgument(
        "DURATION_MALFORMED", field, " is ", seconds, " seconds and ", nanos,
        " nanos, wanted both of one sign and less than 10^9 nanos");
  }
  return absl::Seconds(seconds) + absl::Nanoseconds(nanos);
}

}  // namespace tensord::rpc
