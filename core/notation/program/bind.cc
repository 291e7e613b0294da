#include "core/notation/program/bind.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/notation/to_text.h"
#include "core/ops/type_tables.h"

namespace tensord::core {
namespace {

std::string At(const TextPosition& position) {
  return absl::StrCat("line ", position.line, ", column ", position.column,
                      ": ");
}

Scalar Conjugate(const Scalar& x) { return {x.real, -x.imaginary}; }

std::complex<double> AsComplex(const Scalar& x) {
  return {x.real, x.imaginary};
}

Scalar Over(const Scalar& x, const Scalar& y) {
  if (x.imaginary == 0 && y.imaginary == 0) return {x.real / y.real, 0};
  const std::complex<double> z = AsComplex(x) / AsComplex(y);
  return {z.real(), z.imag()};
}

/// Whether integers of `type` have the value of `number`; bools are none.
bool Holds(ElementType type, double number) {
  const bool is_signed = type != ElementType::kUint8;
  const double end = std::exp2(8.0 * SizeOf(type) - (is_signed ? 1 : 0));
  return type != ElementType::kBool && std::trunc(number) == number &&
         number >= (is_signed ? -end : 0) && number < end;
}

/// The type of elements of `type` that a term has multiplied by a number.
ElementType Scaled(ElementType type, const BoundTerm& term) {
  if (term.is_quotient) type = ReciprocalType(type);
  return term.coefficient.IsOne() ? type : WithNumber(type, term.coefficient);
}

void Conjugate(BoundTerm& term) {
  term.coefficient = Conjugate(term.coefficient);
  for (BoundFactor& factor : term.factors) {
    bool& flag = factor.is_computed() ? factor.is_conjugated
                                      : factor.tensor.is_conjugated;
    flag = !flag;
  }
}

void Replace(Mode index, Mode by, BoundTerm& term) {
  for (BoundFactor& factor : term.factors) {
    if (factor.group != nullptr) {
      Replace(index, by, *factor.group);
    } else if (factor.call != nullptr) {
      Replace(index, by, *factor.call);
    } else {
      Replace(index, by, factor.tensor);
    }
  }
  for (auto& [first, second] : term.same) {
    if (first == index) first = by;
    if (second == index) second = by;
  }
  std::erase_if(term.same,
                [](const auto& pair) { return pair.first == pair.second; });
}

/// False when it is not there.
bool Replace(Mode index, Mode by, Modes& indices) {
  const int at = PositionOf(index, indices);
  if (at < 0) return false;
  if (PositionOf(by, indices) < 0) {
    indices[at] = by;
  } else {
    indices.erase(indices.begin() + at);
  }
  return true;
}

/// Makes one index of those in `term.same` where it can: what remains there are
/// pairs of `open` indices. `at` are other indices of the term.
void Unite(const Modes& open, std::vector<std::pair<int64_t, Mode>>& at,
           BoundTerm& term) {
  std::vector<std::pair<Mode, Mode>> kept;
  while (!term.same.empty()) {
    auto [index, other] = term.same.back();
    if (PositionOf(other, open) >= 0) std::swap(index, other);
    if (PositionOf(other, open) >= 0) kept.emplace_back(index, other);
    for (auto& [number, each] : at) {
      if (each == other) each = index;
    }
    // Which takes this pair away, too.
    Replace(other, index, term);
  }
  term.same = std::move(kept);
}

}  // namespace

std::optional<Scalar> NumberOf(const BoundSum& sum) {
  Scalar total = kZero;
  for (const BoundTerm& term : sum.terms) {
    if (!term.factors.empty()) return std::nullopt;
    total = {total.real + term.coefficient.real,
             total.imaginary + term.coefficient.imaginary};
  }
  return total;
}

absl::Status Scale(Scalar number, const Factor& from, BoundTerm& term) {
  if (from.is_conjugated) number = Conjugate(number);
  if (!from.is_divisor) {
    term.coefficient = Times(term.coefficient, number);
    return absl::OkStatus();
  }
  if (number.IsZero()) {
    return InvalidArgument("DIVISION_BY_ZERO", At(from.position),
                           "the divisor is 0");
  }
  term.coefficient = Over(term.coefficient, number);
  term.is_quotient = true;
  return absl::OkStatus();
}

ElementType WithNumber(ElementType type, const Scalar& number) {
  if (number.imaginary != 0) type = PromotedType(type, ElementType::kComplex64);
  if (!IsInteger(type) || Holds(type, number.real)) return type;
  return Holds(ElementType::kInt64, number.real) ? ElementType::kInt64
                                                 : ElementType::kFloat64;
}

Scalar Times(const Scalar& x, const Scalar& y) {
  if (x.imaginary == 0 && y.imaginary == 0) return {x.real * y.real, 0};
  const std::complex<double> z = AsComplex(x) * AsComplex(y);
  return {z.real(), z.imag()};
}

ElementType ReciprocalType(ElementType type) {
  return IsInteger(type) || type == ElementType::kBool ? ElementType::kFloat64
                                                       : type;
}

void Replace(Mode index, Mode by, IndexedTensor& tensor) {
  const int at = PositionOf(index, tensor.indices);
  if (at < 0) return;
  const int other = PositionOf(by, tensor.indices);
  if (other < 0) {
    tensor.indices[at] = by;
    return;
  }
  tensor.layout.strides[other] += tensor.layout.strides[at];
  tensor.indices.erase(tensor.indices.begin() + at);
  tensor.layout.strides.erase(tensor.layout.strides.begin() + at);
  tensor.layout.extents.erase(tensor.layout.extents.begin() + at);
}

void Replace(Mode index, Mode by, BoundSum& sum) {
  if (!Replace(index, by, sum.indices)) return;
  for (BoundTerm& term : sum.terms) Replace(index, by, term);
}

void Replace(Mode index, Mode by, BoundCall& call) {
  if (!Replace(index, by, call.indices)) return;
  for (BoundSum& argument : call.arguments) Replace(index, by, argument);
}

const Modes& BoundFactor::indices() const {
  if (group != nullptr) return group->indices;
  return call != nullptr ? call->indices : tensor.indices;
}

bool BoundFactor::Reads(int32_t t) const {
  if (group != nullptr) return group->Reads(t);
  if (call == nullptr) return tensor.tensor == t;
  return std::ranges::any_of(call->arguments,
                             [t](const BoundSum& x) { return x.Reads(t); });
}

bool BoundSum::Reads(int32_t t) const {
  return std::ranges::any_of(terms, [t](const BoundTerm& term) {
    return std::ranges::any_of(
        term.factors, [t](const BoundFactor& x) { return x.Reads(t); });
  });
}

void Bindings::SetScalar(absl::string_view name, Scalar value) {
  names_[name] = {value, -1};
}

void Bindings::SetTensor(absl::string_view name, int32_t tensor) {
  names_[name] = {kOne, tensor};
}

absl::StatusOr<int32_t> Bindings::FindTensor(
    const TensorReference& reference) const {
  const auto found = names_.find(reference.name);
  if (found == names_.end()) {
    return InvalidArgument("NAME_UNKNOWN", At(reference.position), "name '",
                           reference.name,
                           "' stands for nothing, wanted an operand or what a "
                           "statement before has made");
  }
  const int32_t tensor = found->second.second;
  if (tensor < 0) {
    return InvalidArgument("NAME_IS_SCALAR", At(reference.position), "'",
                           reference.name, "' is a scalar, wanted a tensor");
  }
  const int modes = program_.tensors[tensor].layout.mode_count();
  if (reference.is_diagonal) {
    if (modes == 1) return tensor;
    return InvalidArgument("MODE_COUNT_MISMATCH", At(reference.position), "'",
                           reference.name, "' in Diagonal() has ", modes,
                           " modes, wanted a vector");
  }
  if (std::ssize(reference.labels) != modes) {
    return InvalidArgument("MODE_COUNT_MISMATCH", At(reference.position), "'",
                           ToText(reference), "' has ", reference.labels.size(),
                           " labels, but the tensor has ", modes, " modes");
  }
  return tensor;
}

Mode Bindings::IndexOf(const Label& label, Scope& scope) {
  const auto [at, is_new] =
      scope.try_emplace(label.text, static_cast<Mode>(extents_.size()));
  if (is_new) {
    program_.index_names.push_back(ToText(label));
    extents_.push_back(-1);
    first_.emplace_back();
  }
  return at->second;
}

absl::Status Bindings::MeetExtent(Mode index, int64_t extent,
                                  const std::string& where,
                                  absl::string_view place) {
  if (extents_[index] < 0) {
    extents_[index] = extent;
    first_[index] = where;
  }
  if (extents_[index] == extent) return absl::OkStatus();
  return InvalidArgument("MODE_EXTENT_MISMATCH", place, where, ": label '",
                         name(index), "' has extent ", extent, ", but ",
                         extents_[index], " in ", first_[index]);
}

Modes Bindings::WithoutOnes(absl::Span<const Mode> indices) const {
  Modes kept;
  for (const Mode index : indices) {
    if (extents_[index] != 1) kept.push_back(index);
  }
  return kept;
}

IndexedTensor Bindings::Indexed(int32_t tensor,
                                absl::Span<const Mode> indices) const {
  const Layout& layout = program_.tensors[tensor].layout;
  IndexedTensor result;
  result.tensor = tensor;
  for (size_t m = 0; m < indices.size(); ++m) {
    // An extent of 1 repeats along its index.
    if (layout.extents[m] == 1) continue;
    const int at = PositionOf(indices[m], result.indices);
    if (at >= 0) {
      result.layout.strides[at] += layout.strides[m];
      continue;
    }
    result.indices.push_back(indices[m]);
    result.layout.extents.push_back(layout.extents[m]);
    result.layout.strides.push_back(layout.strides[m]);
  }
  return result;
}

absl::Status Bindings::CheckOutput(const TensorReference& output,
                                   int32_t tensor,
                                   absl::Span<const Mode> indices) {
  const ModeVector& extents = program_.tensors[tensor].layout.extents;
  for (size_t m = 0; m < indices.size(); ++m) {
    TENSORD_RETURN_IF_ERROR(
        MeetExtent(indices[m], extents[m],
                   absl::StrCat("line ", output.position.line, ", column ",
                                output.position.column, ", in the output '",
                                ToText(output), "'")));
  }
  return absl::OkStatus();
}

absl::StatusOr<BoundFactor> Bindings::BindTensor(
    const TensorReference& reference, bool is_conjugated, Scope& scope) {
  TENSORD_ASSIGN_OR_RETURN(const int32_t tensor, FindTensor(reference));
  BoundFactor factor;
  factor.text = ToText(reference);
  const ProgramTensor& desc = program_.tensors[tensor];
  std::vector<Mode> indices;
  for (size_t m = 0; m < reference.labels.size(); ++m) {
    const Label& label = reference.labels[m];
    indices.push_back(IndexOf(label, scope));
    TENSORD_RETURN_IF_ERROR(MeetExtent(
        indices.back(), desc.layout.extents[reference.is_diagonal ? 0 : m],
        absl::StrCat("line ", label.position.line, ", column ",
                     label.position.column, ", in '", factor.text, "'")));
  }
  if (reference.is_diagonal) indices.pop_back();
  factor.tensor = Indexed(tensor, indices);
  factor.tensor.is_conjugated = is_conjugated && IsComplex(desc.element_type);
  factor.element_type = desc.element_type;
  return factor;
}

std::optional<Scalar> Bindings::ScalarOf(const Factor& factor) const {
  if (const auto* number = std::get_if<Scalar>(&factor.value)) return *number;
  const auto* reference = std::get_if<TensorReference>(&factor.value);
  if (reference == nullptr || reference->has_brackets) return std::nullopt;
  const auto found = names_.find(reference->name);
  if (found == names_.end() || found->second.second >= 0) return std::nullopt;
  return found->second.first;
}

absl::Status Bindings::AddFactor(const Factor& factor, Scope& scope,
                                 BoundTerm& term) {
  if (const auto scalar = ScalarOf(factor)) return Scale(*scalar, factor, term);
  if (factor.group() != nullptr) return AddGroup(factor, scope, term);
  return factor.call() != nullptr ? AddCall(factor, scope, term)
                                  : AddTensor(factor, scope, term);
}

absl::Status Bindings::AddTensor(const Factor& factor, Scope& scope,
                                 BoundTerm& term) {
  const auto& reference = std::get<TensorReference>(factor.value);
  const auto found = names_.find(reference.name);
  if (factor.is_divisor && !reference.has_brackets && found != names_.end() &&
      found->second.second >= 0) {
    const int modes =
        program_.tensors[found->second.second].layout.mode_count();
    if (modes > 0) {
      return InvalidArgument("NAME_IS_TENSOR", At(reference.position), "'",
                             reference.name, "' is a tensor of ", modes,
                             " modes, wanted a scalar to divide by");
    }
  }
  TENSORD_ASSIGN_OR_RETURN(BoundFactor bound,
                           BindTensor(reference, factor.is_conjugated, scope));
  bound.is_divisor = factor.is_divisor;
  if (bound.is_divisor) bound.element_type = ReciprocalType(bound.element_type);
  if (reference.is_diagonal) {
    const Mode first = IndexOf(reference.labels[0], scope);
    const Mode second = IndexOf(reference.labels[1], scope);
    if (first != second && extents_[first] != 1) {
      term.same.emplace_back(first, second);
    }
  }
  term.factors.push_back(std::move(bound));
  return absl::OkStatus();
}

absl::Status Bindings::AddGroup(const Factor& factor, Scope& scope,
                                BoundTerm& term) {
  const Sum& group = *factor.group();
  // What the group sums inside is its own.
  Scope inner;
  for (const std::string& label : group.labels) {
    inner[label] = IndexOf({label, factor.position}, scope);
  }
  TENSORD_ASSIGN_OR_RETURN(BoundSum bound, BindSum(group, inner));
  // A sum of numbers that multiplies is a value of its own, of float64.
  if (bound.terms.size() == 1 || factor.is_divisor) {
    if (const auto number = NumberOf(bound)) {
      return Scale(*number, factor, term);
    }
  }
  BoundTerm& only = bound.terms[0];
  if (bound.terms.size() == 1 && only.factors.size() == 1 &&
      only.factors[0].indices().size() + only.same.size() ==
          bound.indices.size() &&
      (only.same.empty() || !factor.is_divisor)) {
    // Nothing to compute first.
    TENSORD_RETURN_IF_ERROR(Scale(only.coefficient, factor, term));
    term.is_quotient = term.is_quotient || only.is_quotient;
    if (factor.is_conjugated) Conjugate(only);
    BoundFactor& f = term.factors.emplace_back(std::move(only.factors[0]));
    f.is_divisor = f.is_divisor != factor.is_divisor;
    if (f.is_divisor) f.element_type = ReciprocalType(f.element_type);
    term.same.insert(term.same.end(), only.same.begin(), only.same.end());
    return absl::OkStatus();
  }
  BoundFactor computed;
  computed.element_type = bound.element_type;
  computed.is_conjugated =
      factor.is_conjugated && IsComplex(bound.element_type);
  computed.is_divisor = factor.is_divisor;
  if (computed.is_divisor) {
    computed.element_type = ReciprocalType(computed.element_type);
  }
  computed.text = "(...)";
  computed.group = std::make_unique<BoundSum>(std::move(bound));
  term.factors.push_back(std::move(computed));
  return absl::OkStatus();
}

std::vector<std::pair<int64_t, Mode>> Bindings::SummedNumbers(
    const std::vector<std::string>& labels, const Scope& scope) const {
  std::vector<std::pair<int64_t, Mode>> summed;
  for (const auto& [label, index] : scope) {
    int64_t number = 0;
    if (std::ranges::find(labels, label) == labels.end() &&
        absl::SimpleAtoi(label, &number) && extents_[index] != 1) {
      summed.emplace_back(number, index);
    }
  }
  std::ranges::sort(summed);
  return summed;
}

absl::StatusOr<BoundTerm> Bindings::BindTerm(
    const Term& term, const std::vector<std::string>& labels, Scope& scope) {
  BoundTerm bound;
  bound.number = term_count_++;
  if (term.is_negated) bound.coefficient = {-1, 0};
  for (const Factor& factor : term.factors) {
    TENSORD_RETURN_IF_ERROR(AddFactor(factor, scope, bound));
  }
  bool is_first = true;
  for (const BoundFactor& factor : bound.factors) {
    bound.element_type =
        is_first ? factor.element_type
                 : PromotedType(bound.element_type, factor.element_type);
    is_first = false;
  }
  if (bound.factors.empty()) bound.element_type = ElementType::kFloat64;
  bound.element_type = Scaled(bound.element_type, bound);
  std::vector<std::pair<int64_t, Mode>> summed;
  if (term.is_ncon) summed = SummedNumbers(labels, scope);
  Modes open;
  for (const std::string& label : labels) open.push_back(scope.at(label));
  Unite(open, summed, bound);
  for (const auto& [number, index] : summed) {
    if (PositionOf(index, open) < 0 &&
        std::ranges::find(bound.order, index) == bound.order.end()) {
      bound.order.push_back(index);
    }
  }
  Divide(open, bound);
  return bound;
}

absl::StatusOr<BoundSum> Bindings::BindSum(const Sum& sum, Scope& scope) {
  BoundSum bound;
  std::vector<Mode> open;
  for (const std::string& label : sum.labels) {
    open.push_back(IndexOf({label, {}}, scope));
  }
  bool is_first = true;
  for (const Term& term : sum.terms) {
    // What one term sums is not what another sums.
    Scope inner;
    for (const std::string& label : sum.labels) inner[label] = scope[label];
    TENSORD_ASSIGN_OR_RETURN(BoundTerm one, BindTerm(term, sum.labels, inner));
    // A group that stands alone is part of the sum.
    if (one.factors.size() == 1 && one.factors[0].group != nullptr &&
        !one.factors[0].is_divisor) {
      BoundSum group = std::move(*one.factors[0].group);
      for (BoundTerm& part : group.terms) {
        if (one.factors[0].is_conjugated) Conjugate(part);
        part.coefficient = Times(part.coefficient, one.coefficient);
        part.is_quotient = part.is_quotient || one.is_quotient;
        part.element_type = Scaled(part.element_type, part);
        bound.terms.push_back(std::move(part));
      }
    } else {
      bound.terms.push_back(std::move(one));
    }
  }
  for (const BoundTerm& term : bound.terms) {
    if (term.factors.empty()) continue;
    bound.element_type =
        is_first ? term.element_type
                 : PromotedType(bound.element_type, term.element_type);
    is_first = false;
  }
  if (is_first) bound.element_type = ElementType::kFloat64;
  // Numbers take the type of what they are added to, but for imaginary ones.
  for (const BoundTerm& term : bound.terms) {
    if (term.factors.empty()) {
      bound.element_type = WithNumber(bound.element_type, term.coefficient);
    }
  }
  bound.indices = WithoutOnes(open);
  return bound;
}

absl::StatusOr<Bindings::Bound> Bindings::Bind(const Statement& statement) {
  Scope scope;
  Bound bound;
  TENSORD_ASSIGN_OR_RETURN(bound.sum, BindSum(statement.value, scope));
  for (const Label& label : statement.output.labels) {
    bound.output.push_back(IndexOf(label, scope));
  }
  return bound;
}

absl::StatusOr<Bindings::Bound> Bindings::Bind(
    const EinsumSyntax& einsum, absl::Span<const NamedOperand> operands) {
  Scope scope;
  std::vector<std::vector<Mode>> indices(einsum.inputs.size());
  for (size_t i = 0; i < einsum.inputs.size(); ++i) {
    const ModeVector& extents = operands[i].layout.extents;
    for (size_t m = 0; m < extents.size(); ++m) {
      const Label& label = einsum.inputs[i][m];
      const Mode index = IndexOf(label, scope);
      const std::string where =
          absl::StrCat("mode ", m, " of ", operands[i].name);
      // NCON's labels have no place.
      const std::string place =
          label.position == TextPosition()
              ? ""
              : absl::StrCat("column ", label.position.column, ": ");
      const auto same = std::ranges::find(indices[i], index);
      if (same != indices[i].end() &&
          extents[same - indices[i].begin()] != extents[m]) {
        return InvalidArgument("MODE_EXTENT_MISMATCH", place, where,
                               ": label '", label.text, "' has extent ",
                               extents[m], ", but ",
                               extents[same - indices[i].begin()], " in mode ",
                               same - indices[i].begin());
      }
      indices[i].push_back(index);
      if (extents_[index] == 1) extents_[index] = -1;
      if (extents[m] == 1 && extents_[index] >= 0) continue;
      TENSORD_RETURN_IF_ERROR(MeetExtent(index, extents[m], where, place));
    }
  }
  Bound bound;
  BoundTerm& term = bound.sum.terms.emplace_back();
  for (size_t i = 0; i < einsum.inputs.size(); ++i) {
    BoundFactor& factor = term.factors.emplace_back();
    factor.tensor = Indexed(static_cast<int32_t>(i), indices[i]);
    factor.element_type = operands[i].element_type;
    factor.text = operands[i].name;
    term.element_type =
        i == 0 ? factor.element_type
               : PromotedType(term.element_type, factor.element_type);
  }
  for (const std::string& label : einsum.order) {
    const Mode index = scope[label];
    if (extents_[index] != 1) term.order.push_back(index);
  }
  for (const Label& label : einsum.output) {
    bound.output.push_back(IndexOf(label, scope));
  }
  bound.sum.indices = WithoutOnes(bound.output);
  bound.sum.element_type = term.element_type;
  return bound;
}

}  // namespace tensord::core
