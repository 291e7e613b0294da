// Functions of elements, and quotients, which are one of them.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/notation/characters.h"
#include "core/notation/functions.h"
#include "core/notation/program/bind.h"
#include "core/notation/program/number_value.h"
#include "core/notation/text_error.h"
#include "core/notation/to_text.h"
#include "core/ops/type_tables.h"

namespace tensord::core {
namespace {

bool Is(const ElementFunction& function, BinaryOperator op) {
  return function == ElementFunction(op);
}

/// The type that arguments get, from that of what they are.
ElementType ArgumentType(const ElementFunction& function, ElementType type) {
  const auto* const op = std::get_if<UnaryOperator>(&function);
  if (op == nullptr) return type;
  switch (*op) {
    case UnaryOperator::kIdentity:
    case UnaryOperator::kAbs:
    case UnaryOperator::kRelu:
    case UnaryOperator::kReal:
    case UnaryOperator::kImag: return type;
    default: return ReciprocalType(type);
  }
}

ElementType ResultType(const ElementFunction& function, ElementType argument) {
  if (const auto* const op = std::get_if<BinaryOperator>(&function)) {
    return IsComparison(*op) ? ElementType::kBool : argument;
  }
  switch (std::get<UnaryOperator>(function)) {
    case UnaryOperator::kAbs:
    case UnaryOperator::kReal:
    case UnaryOperator::kImag: return RealPartOf(argument);
    default: return argument;
  }
}

/// Integers have no fraction to take away.
ElementFunction OnType(const ElementFunction& function, ElementType type) {
  const bool rounds = function == ElementFunction(UnaryOperator::kCeil) ||
                      function == ElementFunction(UnaryOperator::kFloor);
  return rounds && IsInteger(type) ? UnaryOperator::kIdentity : function;
}

/// OK when `function` is defined on elements of `type`.
absl::Status CheckDefined(const ElementFunction& function, ElementType type,
                          TextPosition position) {
  absl::Status status;
  if (const auto* const op = std::get_if<UnaryOperator>(&function)) {
    status = ValidateUnary(*op, type, absl::StrCat(NotationOf(function), "()"));
  } else if (!Is(function, BinaryOperator::kWhere)) {
    status = ValidateBinary(std::get<BinaryOperator>(function), type);
  }
  if (status.ok()) return status;
  return ErrorAt(position, ReasonOf(status), status.message());
}

/// A sum of one term, with those of `open` that its factors have.
BoundSum SumOf(BoundTerm term, const Modes& open) {
  BoundSum sum;
  for (const Mode index : open) {
    const bool has =
        std::ranges::any_of(term.factors, [index](const BoundFactor& factor) {
          return PositionOf(index, factor.indices()) >= 0;
        });
    if (has) sum.indices.push_back(index);
  }
  sum.element_type = term.element_type;
  sum.terms.push_back(std::move(term));
  return sum;
}

}  // namespace

absl::Status Bindings::AddCall(const Factor& factor, Scope& scope,
                               BoundTerm& term) {
  const Call& call = *factor.call();
  auto bound = std::make_unique<BoundCall>();
  Scope own;
  if (!call.taken.empty()) bound->taken = IndexOf({call.taken, {}}, own);
  std::vector<std::optional<Scalar>> numbers;  // (argument)
  for (const Sum& argument : call.arguments) {
    Scope inner;
    for (const std::string& label : argument.labels) {
      inner[label] = label == call.taken
                         ? bound->taken
                         : IndexOf({label, factor.position}, scope);
    }
    TENSORD_ASSIGN_OR_RETURN(bound->arguments.emplace_back(),
                             BindSum(argument, inner));
    numbers.push_back(NumberOf(bound->arguments.back()));
  }
  // A condition has a type of its own, and so have indices.
  const bool takes = Is(call.function, BinaryOperator::kTake);
  const size_t first = Is(call.function, BinaryOperator::kWhere) ? 1 : 0;
  const size_t last = takes ? 1 : numbers.size();
  std::optional<ElementType> type;
  for (size_t i = first; i < last; ++i) {
    if (numbers[i]) continue;
    const ElementType mine = bound->arguments[i].element_type;
    type = type ? PromotedType(*type, mine) : mine;
  }
  const bool are_numbers = std::ranges::all_of(
      numbers, [](const auto& number) { return number.has_value(); });
  if (!type) type = ElementType::kFloat64;
  for (size_t i = first; i < last; ++i) {
    if (!numbers[i]) continue;
    type = WithNumber(*type, *numbers[i]);
    // Integers have no powers below 1, and 2^-1 is a number, too.
    if (Is(call.function, BinaryOperator::kPow) &&
        (i == 0 || numbers[i]->real < 0)) {
      type = ReciprocalType(*type);
    }
  }
  bound->function = OnType(call.function, *type);
  bound->argument_type = ArgumentType(bound->function, *type);
  bound->result_type = ResultType(bound->function, bound->argument_type);
  TENSORD_RETURN_IF_ERROR(
      CheckDefined(bound->function, bound->argument_type, factor.position));
  if (are_numbers) {
    std::vector<Scalar> values;
    for (const auto& number : numbers) values.push_back(*number);
    return Scale(ValueOf(bound->function, values), factor, term);
  }
  if (takes) {
    const ElementType indices = bound->arguments[1].element_type;
    if (!IsIndex(indices)) {
      return ErrorAt(factor.position, "INDEX_NOT_INTEGER",
                     Quoted(ToText(factor)), " takes at elements of ",
                     NameOf(indices), ", wanted an integer type");
    }
    bound->place = {factor.position,
                    absl::StrCat(Quoted(ToText(factor)), " takes at b = ",
                                 Quoted(ToText(call.arguments[1])), ": ")};
  }
  std::vector<Mode> indices;
  for (const std::string& label : call.labels) {
    indices.push_back(IndexOf({label, factor.position}, scope));
  }
  bound->indices = WithoutOnes(indices);
  BoundFactor& added = term.factors.emplace_back();
  added.element_type = bound->result_type;
  added.is_conjugated = factor.is_conjugated && IsComplex(bound->result_type);
  added.is_divisor = factor.is_divisor;
  if (added.is_divisor) added.element_type = ReciprocalType(added.element_type);
  added.text =
      takes ? ToText(factor)
            : absl::StrCat(
                  IsInfix(call.function) ? "" : NotationOf(call.function),
                  "(...)");
  added.call = std::move(bound);
  return absl::OkStatus();
}

ElementType Bindings::TypeOf(const BoundFactor& factor) const {
  if (factor.group != nullptr) return factor.group->element_type;
  if (factor.call != nullptr) return factor.call->result_type;
  return program_.tensors[factor.tensor.tensor].element_type;
}

void Bindings::Divide(const Modes& open, BoundTerm& term) {
  bool divides = false;
  for (const BoundFactor& factor : term.factors) {
    if (!factor.is_divisor) continue;
    for (const Mode index : factor.indices()) {
      if (PositionOf(index, open) < 0) return;
      divides = true;
    }
  }
  if (!divides) return;
  BoundTerm above, below;
  above.number = term.number;
  above.coefficient = std::exchange(term.coefficient, kOne);
  above.order = std::exchange(term.order, {});
  below.number = term_count_++;
  for (BoundFactor& factor : term.factors) {
    BoundTerm& part = factor.is_divisor ? below : above;
    factor.is_divisor = false;
    factor.element_type = TypeOf(factor);
    part.element_type =
        part.factors.empty()
            ? factor.element_type
            : PromotedType(part.element_type, factor.element_type);
    part.factors.push_back(std::move(factor));
  }
  ElementType type = below.element_type;
  if (above.factors.empty()) {
    type = WithNumber(type, above.coefficient);
    above.element_type = WithNumber(ElementType::kFloat64, above.coefficient);
  } else {
    above.element_type = WithNumber(above.element_type, above.coefficient);
    type = PromotedType(type, above.element_type);
  }
  auto quotient = std::make_unique<BoundCall>();
  quotient->function = BinaryOperator::kDiv;
  quotient->argument_type = quotient->result_type = ReciprocalType(type);
  quotient->arguments.push_back(SumOf(std::move(above), open));
  quotient->arguments.push_back(SumOf(std::move(below), open));
  for (const Mode index : open) {
    const auto has = [index](const BoundSum& sum) {
      return PositionOf(index, sum.indices) >= 0;
    };
    if (std::ranges::any_of(quotient->arguments, has)) {
      quotient->indices.push_back(index);
    }
  }
  BoundFactor only;
  only.element_type = term.element_type = quotient->result_type;
  only.text = "(...)";
  only.call = std::move(quotient);
  term.factors.clear();
  term.factors.push_back(std::move(only));
}

}  // namespace tensord::core
