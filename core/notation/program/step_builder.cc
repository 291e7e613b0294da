#include "core/notation/program/step_builder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/ops/type_tables.h"

namespace tensord::core {
namespace {

/// True when all slices write `tensor`: it is not of one slice alone.
bool IsOfAllSlices(const IndexedTensor& tensor) {
  return !tensor.slice_strides.empty();
}

/// OK when `factor` can multiply elements of `type`.
absl::Status CheckFactor(const Scalar& factor, ElementType type) {
  const double size = std::abs(factor.real);
  if (type == ElementType::kBool && factor.real != 0 && !factor.IsOne()) {
    return InvalidArgument("SCALAR_NOT_SUPPORTED", "the factor of a term is ",
                           factor.real,
                           ", but bools have no difference and no multiples");
  }
  // Below that, NumPy's integers wrap; above, it refuses them.
  if (IsInteger(type) && size >= std::exp2(8.0 * SizeOf(type))) {
    return InvalidArgument("SCALAR_NOT_SUPPORTED", "the factor of a term is ",
                           factor.real, ", which does not fit ", NameOf(type));
  }
  return ValidateScalar(factor, type, "the factor of a term");
}

}  // namespace

ProgramBlock& StepBuilder::block() {
  if (wants_block_) {
    program_.blocks.emplace_back();
    wants_block_ = false;
  }
  return program_.blocks.back();
}

void StepBuilder::BeginSlices(absl::Span<const Mode> sliced,
                              int32_t kept_count) {
  sliced_.assign(sliced.begin(), sliced.end());
  ProgramBlock& block = program_.blocks.emplace_back();
  for (const Mode index : sliced_) {
    block.slice_extents.push_back(bindings_.extent(index));
  }
  block.kept_slice_count = kept_count;
  wants_block_ = false;
}

void StepBuilder::EndSlices() {
  sliced_.clear();
  wants_block_ = true;
}

IndexedTensor StepBuilder::Slice(const IndexedTensor& tensor) const {
  IndexedTensor part;
  part.tensor = tensor.tensor;
  part.offset = tensor.offset;
  part.is_conjugated = tensor.is_conjugated;
  part.slice_strides.assign(sliced_.size(), 0);
  for (size_t m = 0; m < tensor.indices.size(); ++m) {
    const auto at = std::ranges::find(sliced_, tensor.indices[m]);
    if (at != sliced_.end()) {
      part.slice_strides[at - sliced_.begin()] = tensor.layout.strides[m];
      continue;
    }
    part.indices.push_back(tensor.indices[m]);
    part.layout.extents.push_back(tensor.layout.extents[m]);
    part.layout.strides.push_back(tensor.layout.strides[m]);
  }
  return part;
}

IndexedTensor StepBuilder::MakeTemporary(ElementType type,
                                         const Modes& indices) {
  ModeVector extents;
  for (const Mode index : indices) extents.push_back(bindings_.extent(index));
  IndexedTensor result;
  result.tensor = static_cast<int32_t>(program_.tensors.size());
  result.indices = indices;
  result.layout = PackedLayout(extents, Order::kFirstModeFastest);
  ProgramTensor& tensor = program_.tensors.emplace_back();
  tensor.name = absl::StrCat("t", ++temporary_count_);
  tensor.element_type = type;
  tensor.layout = result.layout;
  return result;
}

absl::StatusOr<IndexedTensor> StepBuilder::MakeConstant(ElementType type,
                                                        Scalar value) {
  IndexedTensor result = MakeTemporary(type, {});
  ProgramTensor& tensor = program_.tensors[result.tensor];
  tensor.place = ProgramTensor::Place::kConstant;
  TENSORD_ASSIGN_OR_RETURN(tensor.value, ElementOf(value, type, "a constant"));
  tensor.scalar = value;
  return result;
}

OperandDesc StepBuilder::DescOf(const IndexedTensor& tensor) const {
  const ProgramTensor& whole = program_.tensors[tensor.tensor];
  OperandDesc desc;
  desc.element_type = whole.element_type;
  desc.layout = tensor.layout;
  desc.modes = tensor.indices;
  if (tensor.is_conjugated) desc.unary = UnaryOperator::kConj;
  uint64_t offsets = static_cast<uint64_t>(tensor.offset);
  for (const int64_t stride : tensor.slice_strides) {
    offsets |= static_cast<uint64_t>(stride);
  }
  offsets *= static_cast<uint64_t>(SizeOf(whole.element_type));
  const auto alignment = static_cast<uint64_t>(whole.alignment_bytes);
  desc.alignment_bytes = int64_t{1} << std::countr_zero(offsets | alignment);
  return desc;
}

StepOperand StepBuilder::OperandOf(const IndexedTensor& tensor) const {
  return {tensor.tensor, tensor.offset, tensor.slice_strides};
}

double StepBuilder::ExtentProduct(absl::Span<const Mode> indices) const {
  double product = 1;
  for (const Mode index : indices) {
    product *= static_cast<double>(bindings_.extent(index));
  }
  return product;
}

absl::Status StepBuilder::AddStep(ProgramStep step) {
  TENSORD_RETURN_IF_ERROR(
      std::visit([](const auto& desc) { return Validate(desc); }, step.desc));
  // Element by element, what is read may be what is written.
  const bool is_elementwise =
      std::holds_alternative<ElementwiseDesc>(step.desc);
  for (const StepOperand* const output : step.outputs()) {
    for (const StepOperand* const input : {&step.a, &step.b}) {
      if (input->tensor == output->tensor && !step.alpha.IsZero() &&
          !(is_elementwise && *input == *output)) {
        return Internal("STEP_READS_OUTPUT", "a step of statement ",
                        statement_ + 1, " reads ",
                        program_.tensors[output->tensor].name,
                        " while it writes it");
      }
    }
  }
  step.statement = statement_;
  ProgramBlock& to = block();
  if (step.accumulates && to.kept_slice_count < std::ssize(to.slice_extents)) {
    // The slices are added up.
    double elements = 1;
    for (const int64_t extent : ResultOf(step.desc).layout.extents) {
      elements *= static_cast<double>(extent);
    }
    step.flops += elements;
  }
  program_.flops += step.flops * static_cast<double>(to.slice_count());
  for (const StepOperand* const output : step.outputs()) Touch(output->tensor);
  to.steps.push_back(std::move(step));
  return absl::OkStatus();
}

int64_t StepBuilder::VersionOf(int32_t tensor) const {
  const auto found = versions_.find(tensor);
  return found == versions_.end() ? 0 : found->second;
}

std::string StepBuilder::KeyOf(const IndexedTensor& tensor) const {
  std::string key =
      absl::StrCat(tensor.tensor, "v", VersionOf(tensor.tensor), "+",
                   tensor.offset, tensor.is_conjugated ? "*" : "");
  for (int m = 0; m < tensor.layout.mode_count(); ++m) {
    absl::StrAppend(&key, ",", tensor.layout.extents[m], ":",
                    tensor.layout.strides[m]);
  }
  return key;
}

std::optional<IndexedTensor> StepBuilder::Known(const std::string& key,
                                                int32_t target) const {
  if (!keeps_ || is_slicing()) return std::nullopt;
  const auto found = known_.find(key);
  if (found == known_.end()) return std::nullopt;
  const auto& [tensor, version] = found->second;
  if (version != VersionOf(tensor.tensor) || tensor.tensor == target) {
    return std::nullopt;
  }
  return tensor;
}

void StepBuilder::Keep(std::string key, const IndexedTensor& tensor) {
  if (keeps_ && !is_slicing()) {
    known_[std::move(key)] = {tensor, VersionOf(tensor.tensor)};
  }
}

absl::StatusOr<IndexedTensor> StepBuilder::Convert(const IndexedTensor& tensor,
                                                   ElementType type) {
  if (TypeOf(tensor) == type) return tensor;
  const std::string key =
      absl::StrCat("as ", std::string(NameOf(type)), " ", KeyOf(tensor));
  IndexedTensor copy;
  if (const auto known = Known(key)) {
    copy = *known;
    copy.indices = tensor.indices;
    return copy;
  }
  copy = MakeTemporary(type, tensor.indices);
  TENSORD_RETURN_IF_ERROR(Add(copy, {{kOne, tensor}}, kZero));
  Keep(key, copy);
  return copy;
}

absl::StatusOr<IndexedTensor> StepBuilder::Copy(const IndexedTensor& tensor) {
  const IndexedTensor copy = MakeTemporary(TypeOf(tensor), tensor.indices);
  TENSORD_RETURN_IF_ERROR(Add(copy, {{kOne, tensor}}, kZero));
  return copy;
}

absl::StatusOr<IndexedTensor> StepBuilder::Reciprocal(
    const IndexedTensor& tensor) {
  const ElementType type = ReciprocalType(TypeOf(tensor));
  IndexedTensor divisor = tensor;
  divisor.is_conjugated = false;
  TENSORD_ASSIGN_OR_RETURN(divisor, Convert(divisor, type));
  const std::string key = absl::StrCat("1 over ", KeyOf(divisor));
  IndexedTensor result;
  if (const auto known = Known(key)) {
    result = *known;
    result.indices = tensor.indices;
  } else {
    result = MakeTemporary(type, tensor.indices);
    TENSORD_RETURN_IF_ERROR(
        Apply(result, UnaryOperator::kRcp, {{kOne, divisor}}));
    Keep(key, result);
  }
  // 1 over a conjugate is conjugated.
  result.is_conjugated = tensor.is_conjugated;
  return result;
}

absl::Status StepBuilder::Apply(const IndexedTensor& d,
                                const ElementFunction& function,
                                absl::Span<const ScaledTensor> inputs) {
  ProgramStep step;
  step.d = OperandOf(d);
  const ScaledTensor& first = inputs[inputs.size() == 3 ? 1 : 0];
  const ElementType type = TypeOf(first.tensor);
  step.a = OperandOf(first.tensor);
  step.alpha = first.factor;
  if (const auto* const op = std::get_if<UnaryOperator>(&function)) {
    PermutationDesc desc;
    desc.a = DescOf(first.tensor);
    desc.a.unary = *op;
    desc.d = DescOf(d);
    desc.compute_type = ConversionComputeType(type, TypeOf(d));
    desc.alpha_is_one = true;
    step.desc = std::move(desc);
    return AddStep(std::move(step));
  }
  const ScaledTensor& last = inputs.back();
  ElementwiseDesc desc;
  desc.a = DescOf(first.tensor);
  desc.c = DescOf(last.tensor);
  desc.d = DescOf(d);
  desc.op_abc = std::get<BinaryOperator>(function);
  desc.compute_type = DefaultComputeType(type);
  step.c = OperandOf(last.tensor);
  step.gamma = last.factor;
  if (inputs.size() == 3) {
    desc.b = DescOf(inputs[0].tensor);
    step.b = OperandOf(inputs[0].tensor);
    step.beta = kOne;
  }
  step.desc = std::move(desc);
  return AddStep(std::move(step));
}

absl::Status StepBuilder::Take(const IndexedTensor& d, const ScaledTensor& a,
                               Mode taken, const IndexedTensor& indices,
                               StepPlace place) {
  ElementwiseDesc desc;
  desc.a = DescOf(a.tensor);
  if (!Has(desc.a.modes, taken)) {
    desc.a.modes.push_back(taken);
    desc.a.layout.extents.push_back(1);
    desc.a.layout.strides.push_back(1);
  }
  desc.b = DescOf(indices);
  desc.c = desc.d = DescOf(d);
  desc.op_abc = BinaryOperator::kTake;
  desc.compute_type = DefaultComputeType(TypeOf(d));
  ProgramStep step;
  step.desc = std::move(desc);
  step.a = OperandOf(a.tensor);
  step.b = OperandOf(indices);
  step.c = step.d = OperandOf(d);
  step.alpha = a.factor;
  step.beta = kOne;
  step.place = std::move(place);
  return AddStep(std::move(step));
}

OperandDesc StepBuilder::DescOf(const IndexedTensor& tensor,
                                absl::Span<const Mode> modes) const {
  OperandDesc desc = DescOf(tensor);
  desc.modes.assign(modes.begin(), modes.end());
  Layout layout;
  for (const Mode mode : modes) {
    const int at = PositionOf(mode, tensor.indices);
    layout.extents.push_back(at < 0 ? 1 : tensor.layout.extents[at]);
    layout.strides.push_back(at < 0 ? 1 : tensor.layout.strides[at]);
  }
  desc.layout = std::move(layout);
  return desc;
}

absl::Status StepBuilder::AddCallStep(AnyDesc desc,
                                      absl::Span<const IndexedTensor> inputs,
                                      absl::Span<const IndexedTensor> outputs,
                                      const Truncation& truncation,
                                      StepPlace place) {
  ProgramStep step;
  step.place = std::move(place);
  step.desc = std::move(desc);
  step.a = OperandOf(inputs[0]);
  if (inputs.size() > 1) step.b = OperandOf(inputs[1]);
  step.d = OperandOf(outputs[0]);
  for (const IndexedTensor& other : outputs.subspan(1)) {
    step.others.push_back(OperandOf(other));
  }
  step.truncation = truncation;
  return AddStep(std::move(step));
}

ContractionDesc StepBuilder::ContractionOf(
    const IndexedTensor& a, const IndexedTensor& b, const IndexedTensor& d,
    std::optional<ComputeType> compute_type) const {
  ContractionDesc desc;
  desc.a = DescOf(a);
  desc.b = DescOf(b);
  desc.d = DescOf(d);
  desc.c = desc.d;
  desc.compute_type = compute_type.value_or(DefaultComputeType(TypeOf(d)));
  return desc;
}

absl::Status StepBuilder::Add(const IndexedTensor& d,
                              absl::Span<const ScaledTensor> terms,
                              Scalar beta) {
  const ElementType type = TypeOf(d);
  TENSORD_RETURN_IF_ERROR(CheckFactor(beta, type));
  ProgramStep step;
  step.d = OperandOf(d);
  step.accumulates = IsOfAllSlices(d);
  if (terms.size() == 1 && beta.IsZero() && !step.accumulates) {
    const Scalar& factor = terms[0].factor;
    const IndexedTensor& a = terms[0].tensor;
    const ElementType widest = WidestOf(TypeOf(a), type);
    TENSORD_RETURN_IF_ERROR(CheckFactor(factor, widest));
    PermutationDesc desc;
    desc.a = DescOf(a);
    desc.d = DescOf(d);
    desc.compute_type = ConversionComputeType(TypeOf(a), type);
    desc.alpha_is_one = factor.IsOne();
    step.desc = std::move(desc);
    step.a = OperandOf(a);
    step.alpha = factor;
    return AddStep(std::move(step));
  }
  std::vector<IndexedTensor> inputs;
  for (const auto& [factor, tensor] : terms) {
    TENSORD_RETURN_IF_ERROR(CheckFactor(factor, type));
    TENSORD_ASSIGN_OR_RETURN(IndexedTensor same, Convert(tensor, type));
    inputs.push_back(std::move(same));
  }
  const bool adds_to_d = !beta.IsZero() || step.accumulates;
  ElementwiseDesc desc;
  desc.a = DescOf(inputs[0]);
  desc.d = DescOf(d);
  desc.compute_type = DefaultComputeType(type);
  step.a = OperandOf(inputs[0]);
  step.alpha = terms[0].factor;
  const size_t c = inputs.size() - 1;  // when it is not d
  if (adds_to_d ? inputs.size() == 2 : inputs.size() == 3) {
    desc.b = DescOf(inputs[1]);
    step.b = OperandOf(inputs[1]);
    step.beta = terms[1].factor;
  }
  desc.c = adds_to_d ? desc.d : DescOf(inputs[c]);
  step.c = adds_to_d ? step.d : OperandOf(inputs[c]);
  step.gamma = adds_to_d ? beta : terms[c].factor;
  step.desc = std::move(desc);
  return AddStep(std::move(step));
}

absl::Status StepBuilder::Reduce(const IndexedTensor& d, Scalar alpha,
                                 const IndexedTensor& a, Scalar beta) {
  const ElementType type = TypeOf(d);
  TENSORD_RETURN_IF_ERROR(CheckFactor(alpha, type));
  TENSORD_RETURN_IF_ERROR(CheckFactor(beta, type));
  TENSORD_ASSIGN_OR_RETURN(const IndexedTensor same, Convert(a, type));
  ReductionDesc desc;
  desc.a = DescOf(same);
  desc.d = DescOf(d);
  desc.c = desc.d;
  desc.compute_type = DefaultComputeType(type);
  ProgramStep step;
  step.desc = std::move(desc);
  step.a = OperandOf(same);
  step.c = step.d = OperandOf(d);
  step.alpha = alpha;
  step.beta = beta;
  step.accumulates = IsOfAllSlices(d);
  step.flops = ExtentProduct(a.indices);
  return AddStep(std::move(step));
}

absl::Status StepBuilder::Multiply(const IndexedTensor& d, Scalar alpha,
                                   const IndexedTensor& a,
                                   const IndexedTensor& b, Scalar beta) {
  const ElementType type = TypeOf(d);
  TENSORD_RETURN_IF_ERROR(CheckFactor(alpha, type));
  TENSORD_RETURN_IF_ERROR(CheckFactor(beta, type));
  const bool sums =
      std::ranges::any_of(
          a.indices, [&](Mode i) { return PositionOf(i, d.indices) < 0; }) ||
      std::ranges::any_of(b.indices,
                          [&](Mode i) { return PositionOf(i, d.indices) < 0; });
  Modes all = a.indices;
  for (const Mode index : b.indices) {
    if (PositionOf(index, a.indices) < 0) all.push_back(index);
  }
  ProgramStep step;
  step.d = step.c = OperandOf(d);
  step.alpha = alpha;
  step.accumulates = IsOfAllSlices(d);
  step.flops = ExtentProduct(all) * (sums ? 2 : 1);
  IndexedTensor x = a, y = b;
  if (!sums) {
    // Nothing is summed: element by element, broadcast.
    TENSORD_ASSIGN_OR_RETURN(x, Convert(a, type));
    TENSORD_ASSIGN_OR_RETURN(y, Convert(b, type));
    ElementwiseDesc desc;
    desc.a = DescOf(x);
    desc.b = DescOf(y);
    desc.c = desc.d = DescOf(d);
    desc.op_ab = BinaryOperator::kMul;
    desc.compute_type = DefaultComputeType(type);
    step.beta = kOne;
    step.gamma = beta;
    step.desc = std::move(desc);
  } else {
    const auto is_mixed_row = [&](const IndexedTensor& real,
                                  const IndexedTensor& complex) {
      return TypeOf(real) == ElementType::kFloat64 &&
             TypeOf(complex) == ElementType::kComplex128 &&
             type == ElementType::kComplex128 && !compute_type_;
    };
    if (!is_mixed_row(a, b) && !is_mixed_row(b, a)) {
      TENSORD_ASSIGN_OR_RETURN(x, Convert(a, type));
      TENSORD_ASSIGN_OR_RETURN(y, Convert(b, type));
    }
    step.beta = beta;
    step.desc = ContractionOf(x, y, d, compute_type_);
  }
  step.a = OperandOf(x);
  step.b = OperandOf(y);
  return AddStep(std::move(step));
}

}  // namespace tensord::core
