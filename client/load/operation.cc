#include "client/load/operation.h"

#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <random>
#include <span>
#include <type_traits>

#include "tensord/element_type.h"
#include "tensord/layout.h"

namespace tensord::load {
namespace {

/// From [-1, 1), or for integers from 0 to 9.
template <typename T>
T RandomElement(std::minstd_rand& random) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(random() % 10);
  } else {
    using Real = float;
    const auto next = [&] {
      return static_cast<Real>(random() % (1 << 20)) / (1 << 19) - 1;
    };
    if constexpr (requires(T value) { value.real(); }) {
      const Real real = next();
      return T(real, next());
    } else {
      return T(next());
    }
  }
}

template <typename T>
void Fill(std::span<std::byte> bytes) {
  std::minstd_rand random;
  for (size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    const T element = RandomElement<T>(random);
    std::memcpy(&bytes[at], &element, sizeof(T));
  }
}

void Fill(ElementType type, std::span<std::byte> bytes) {
  switch (type) {
    case ElementType::kFloat16: return Fill<Float16>(bytes);
    case ElementType::kBfloat16: return Fill<Bfloat16>(bytes);
    case ElementType::kFloat32: return Fill<float>(bytes);
    case ElementType::kFloat64: return Fill<double>(bytes);
    case ElementType::kComplex64: return Fill<std::complex<float>>(bytes);
    case ElementType::kComplex128: return Fill<std::complex<double>>(bytes);
    case ElementType::kInt8: return Fill<int8_t>(bytes);
    case ElementType::kInt16: return Fill<int16_t>(bytes);
    case ElementType::kInt32: return Fill<int32_t>(bytes);
    case ElementType::kInt64: return Fill<int64_t>(bytes);
    case ElementType::kUint8: return Fill<uint8_t>(bytes);
    case ElementType::kBool:
      for (std::byte& each : bytes) each = std::byte{1};
      return;
    case ElementType::kUnspecified: return;
  }
}

Layout LayoutOf(const TensorSpec& tensor) {
  return {.extents = tensor.extents, .strides = tensor.strides};
}

template <typename Report>
void Note(const Report& report, CallOutcome& outcome) {
  outcome.has_report = true;
  outcome.queued = report.queued;
  outcome.executed = report.executed;
}

}  // namespace

TensorContents RandomContents(const OperationSpec& spec) {
  TensorContents contents;
  for (const TensorSpec& tensor : spec.tensors) {
    const int64_t bytes =
        SpanElements(LayoutOf(tensor)) * ElementBytes(tensor.element_type);
    Fill(tensor.element_type, contents.emplace_back(bytes));
  }
  return contents;
}

bool IsSentByCalls(const OperationSpec& spec) {
  return spec.is_inline || spec.kind == OperationKind::kUpload;
}

absl::StatusOr<std::unique_ptr<Operation>> Operation::Prepare(
    Session& session, const OperationSpec& spec,
    const TensorContents& contents) {
  std::unique_ptr<Operation> operation(new Operation(session, spec, contents));
  if (!IsSentByCalls(spec)) {
    for (size_t i = 0; i < spec.tensors.size(); ++i) {
      absl::StatusOr<RemoteTensor> uploaded =
          session.Upload(operation->HostViewOf(i));
      if (!uploaded.ok()) return uploaded.status();
      operation->residents_.push_back(*std::move(uploaded));
    }
  }
  switch (spec.kind) {
    case OperationKind::kEinsum:
    case OperationKind::kProgram: operation->MakeProgramOperands(); break;
    case OperationKind::kUpload:
    case OperationKind::kDownload: break;
    default: operation->MakeOperands();
  }
  return operation;
}

UntypedHostView Operation::HostViewOf(size_t tensor) const {
  const TensorSpec& spec = spec_.tensors[tensor];
  return {spec.element_type, contents_[tensor].data(), LayoutOf(spec)};
}

void Operation::MakeOperands() {
  for (size_t i = 0; i < spec_.tensors.size(); ++i) {
    Modes modes(spec_.tensors[i].modes);
    if (spec_.is_inline) {
      operands_.emplace_back(HostViewOf(i), std::move(modes));
    } else {
      operands_.emplace_back(residents_[i], std::move(modes));
    }
  }
  d_ = Modes(spec_.result_modes);
  ExecutionOptions execution;
  execution.compute_type = spec_.compute_type;
  execution.selection = spec_.selection;
  execution.deadline = spec_.deadline;
  contract_.execution = permute_.execution = reduce_.execution =
      elementwise_.execution = execution;
  // As in tensorctl, one tensor more than the operation needs is added.
  if (operands_.size() == 3) {
    contract_.c = operands_[2];
    contract_.beta = 1;
  }
  if (operands_.size() == 2) {
    reduce_.c = operands_[1];
    reduce_.beta = 1;
  }
}

void Operation::MakeProgramOperands() {
  for (size_t i = 0; i < spec_.tensors.size(); ++i) {
    program_operands_.emplace_back(
        spec_.tensors[i].name, spec_.is_inline ? ProgramValue(HostViewOf(i))
                                               : ProgramValue(residents_[i]));
  }
  for (const auto& [name, number] : spec_.scalars) {
    program_operands_.emplace_back(name, number);
  }
}

ProgramOptions Operation::program_options() const {
  ProgramOptions options;
  options.compute_type = spec_.compute_type;
  options.selection = spec_.selection;
  options.deadline = spec_.deadline;
  return options;
}

ProductOptions Operation::product_options() const {
  ProductOptions options;
  options.compute_type = spec_.compute_type;
  options.selection = spec_.selection;
  options.deadline = spec_.deadline;
  return options;
}

FactorizeOptions Operation::factorize_options() const {
  FactorizeOptions options;
  options.selection = spec_.selection;
  options.deadline = spec_.deadline;
  return options;
}

absl::Status Operation::Check() {
  const std::vector<Operand>& in = operands_;
  switch (spec_.kind) {
    case OperationKind::kContract:
      return session_.ExplainContract(in[0], in[1], d_, contract_).status();
    case OperationKind::kPermute:
      return session_.ExplainPermute(in[0], d_, permute_).status();
    case OperationKind::kReduce:
      return session_.ExplainReduce(spec_.op, in[0], d_, reduce_).status();
    case OperationKind::kElementwise:
      return (in.size() == 2 ? session_.ExplainElementwise(
                                   in[0], spec_.op, in[1], d_, elementwise_)
                             : session_.ExplainElementwise(
                                   in[0], BinaryOperator::kMul, in[1], spec_.op,
                                   in[2], d_, elementwise_))
          .status();
    case OperationKind::kEinsum:
      return session_
          .ExplainEinsum(spec_.subscripts, program_operands_, product_options())
          .status();
    case OperationKind::kProgram:
      return session_
          .ExplainProgram(spec_.statements, program_operands_,
                          program_options())
          .status();
    case OperationKind::kFactorize:
      if (spec_.is_inline) return absl::OkStatus();  // only tensors have this
      return session_
          .ExplainFactorize(spec_.subscripts, residents_[0],
                            factorize_options())
          .status();
    case OperationKind::kUpload:
    case OperationKind::kDownload: return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::StatusOr<RemoteTensor> Operation::Compute() {
  const std::vector<Operand>& in = operands_;
  switch (spec_.kind) {
    case OperationKind::kContract:
      return session_.Contract(in[0], in[1], d_, contract_);
    case OperationKind::kPermute: return session_.Permute(in[0], d_, permute_);
    case OperationKind::kReduce:
      return session_.Reduce(spec_.op, in[0], d_, reduce_);
    case OperationKind::kElementwise:
      return in.size() == 2
                 ? session_.Elementwise(in[0], spec_.op, in[1], d_,
                                        elementwise_)
                 : session_.Elementwise(in[0], BinaryOperator::kMul, in[1],
                                        spec_.op, in[2], d_, elementwise_);
    default:
      return session_.Einsum(spec_.subscripts, program_operands_,
                             product_options());
  }
}

CallResult Operation::Call() {
  CallResult result;
  CallOutcome& outcome = result.outcome;
  switch (spec_.kind) {
    case OperationKind::kUpload: {
      UploadOptions options;
      options.deadline = spec_.deadline;
      absl::StatusOr<RemoteTensor> made =
          session_.Upload(HostViewOf(0), options);
      outcome.status = made.status();
      if (made.ok()) result.tensors.push_back(*std::move(made));
      outcome.transferred_bytes = contents_[0].size();
      break;
    }
    case OperationKind::kDownload: {
      thread_local std::vector<std::byte> bytes;
      bytes.resize(residents_[0].info().span_bytes);
      DownloadOptions options;
      options.deadline = spec_.deadline;
      outcome.status = residents_[0].DownloadTo(spec_.tensors[0].element_type,
                                                bytes, options);
      outcome.transferred_bytes = bytes.size();
      break;
    }
    case OperationKind::kProgram: {
      absl::StatusOr<ProgramResults> made =
          session_.Run(spec_.statements, program_operands_, program_options());
      outcome.status = made.status();
      if (!made.ok()) break;
      Note(made->report, outcome);
      for (ProgramResult& each : made->results) {
        if (each.tensor.has_value()) {
          result.tensors.push_back(*std::move(each.tensor));
        }
      }
      break;
    }
    case OperationKind::kFactorize: {
      absl::StatusOr<std::vector<RemoteTensor>> made =
          spec_.is_inline
              ? session_.FactorizeAll(spec_.subscripts, HostViewOf(0),
                                      factorize_options())
              : session_.FactorizeAll(spec_.subscripts, residents_[0],
                                      factorize_options());
      outcome.status = made.status();
      if (!made.ok()) break;
      Note(made->front().report(), outcome);
      std::ranges::move(*made, std::back_inserter(result.tensors));
      break;
    }
    default: {
      absl::StatusOr<RemoteTensor> made = Compute();
      outcome.status = made.status();
      if (!made.ok()) break;
      Note(made->report(), outcome);
      result.tensors.push_back(*std::move(made));
    }
  }
  return result;
}

}  // namespace tensord::load
