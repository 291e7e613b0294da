#include "core/notation/program/emit.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/base/status.h"
#include "core/notation/program/value_key.h"
#include "core/ops/type_tables.h"

namespace tensord::core {
namespace {

/// The type to compute `x` times `y` in, for a result of type `d`.
ElementType ProductType(ElementType x, ElementType y, ElementType d) {
  const ElementType type = PromotedType(x, y);
  // As precise as the result is; integers do not wrap on the way to it.
  return IsInteger(d) && !IsInteger(type) ? type
                                          : PromotedType(type, RealPartOf(d));
}

bool IsSubset(const Modes& indices, const Modes& of) {
  return std::ranges::all_of(
      indices, [&](Mode index) { return PositionOf(index, of) >= 0; });
}

/// True when `term` is one tensor, reciprocal or function's value of which
/// nothing is summed.
bool IsSingle(const BoundTerm& term, const IndexedTensor& d) {
  return term.factors.size() == 1 &&
         (term.factors[0].group == nullptr || term.factors[0].is_divisor) &&
         IsSubset(term.factors[0].indices(), d.indices);
}

/// The function's value that `sum` is, if it is nothing else.
const BoundCall* LoneCall(const BoundSum& sum) {
  if (sum.terms.size() != 1 || sum.terms[0].factors.size() != 1) return nullptr;
  const BoundTerm& term = sum.terms[0];
  const BoundFactor& factor = term.factors[0];
  const bool is_alone = term.coefficient.IsOne() && term.same.empty() &&
                        !factor.is_divisor && !factor.is_conjugated;
  return is_alone ? factor.call.get() : nullptr;
}

/// `indices`, those in `order` first and like it.
Modes Ordered(const Modes& indices, const Modes& order) {
  Modes ordered;
  for (const Modes* const from : {&order, &indices}) {
    for (const Mode index : *from) {
      if (PositionOf(index, indices) >= 0 && PositionOf(index, ordered) < 0) {
        ordered.push_back(index);
      }
    }
  }
  return ordered;
}

/// True when two tensors are the same elements, index by index.
bool IsSamePart(const IndexedTensor& x, const IndexedTensor& y) {
  return x.tensor == y.tensor && x.offset == y.offset &&
         x.indices == y.indices && x.layout == y.layout;
}

/// `number`, or an infinity where a floating-point type has none of its size.
double RoundedTo(ElementType type, double number) {
  const bool fits = IsInteger(type) || !std::isfinite(number) ||
                    ElementOf({number, 0}, RealPartOf(type), "a number").ok();
  return fits ? number : std::copysign(HUGE_VAL, number);
}

/// True when some index of d is in no factor of `term`.
bool Repeats(const BoundTerm& term, const IndexedTensor& d) {
  return !std::ranges::all_of(d.indices, [&](Mode index) {
    return std::ranges::any_of(term.factors, [index](const BoundFactor& f) {
      return PositionOf(index, f.indices()) >= 0;
    });
  });
}

/// A view without the modes of one element that are not in `kept`: there is
/// nothing to sum.
IndexedTensor WithoutUnits(const IndexedTensor& tensor, const Modes& kept) {
  IndexedTensor view = tensor;
  view.indices.clear();
  view.layout.extents.clear();
  view.layout.strides.clear();
  for (size_t m = 0; m < tensor.indices.size(); ++m) {
    if (tensor.layout.extents[m] == 1 &&
        PositionOf(tensor.indices[m], kept) < 0) {
      continue;
    }
    view.indices.push_back(tensor.indices[m]);
    view.layout.extents.push_back(tensor.layout.extents[m]);
    view.layout.strides.push_back(tensor.layout.strides[m]);
  }
  return view;
}

}  // namespace

bool Emitter::IsInPlace(const IndexedTensor& d, const BoundSum& sum) {
  const BoundCall* const call = LoneCall(sum);
  // Some powers are functions of one argument.
  if (call == nullptr || call->arguments.size() < 2 ||
      call->function == ElementFunction(BinaryOperator::kPow)) {
    return false;
  }
  return std::ranges::all_of(call->arguments, [&](const BoundSum& argument) {
    // What is not one tensor, as it is, is computed before.
    const BoundTerm& term = argument.terms.front();
    if (argument.terms.size() > 1 || term.factors.size() != 1 ||
        term.factors[0].is_computed()) {
      return true;
    }
    const IndexedTensor& input = term.factors[0].tensor;
    if (input.tensor != d.tensor) return true;
    return IsSamePart(input, d) &&
           !(call->taken >= 0 && &argument == call->arguments.data());
  });
}

void Emitter::BeginStatement(int32_t statement) {
  statement_ = statement;
  steps_.BeginStatement(statement);
}

absl::Status Emitter::Evaluate(const IndexedTensor& d, const BoundSum& sum,
                               Scalar factor, Scalar beta) {
  const int32_t target = std::exchange(target_, d.tensor);
  const absl::Status evaluated = EvaluateInto(d, sum, factor, beta);
  target_ = target;
  return evaluated;
}

absl::Status Emitter::EvaluateInto(const IndexedTensor& d, const BoundSum& sum,
                                   Scalar factor, Scalar beta) {
  const ElementType type = steps_.TypeOf(d);
  if (const BoundCall* const call = LoneCall(sum);
      call != nullptr && call->result_type == type && factor.IsOne() &&
      beta.IsZero()) {
    return ComputeInto(d, *call);
  }
  std::vector<ScaledTensor> singles;
  std::vector<const BoundTerm*> products, diagonals;
  for (const BoundTerm& term : sum.terms) {
    if (!term.same.empty()) {
      diagonals.push_back(&term);
    } else if (term.factors.empty()) {
      TENSORD_ASSIGN_OR_RETURN(IndexedTensor one,
                               steps_.MakeConstant(type, kOne));
      singles.push_back({Times(term.coefficient, factor), std::move(one)});
    } else if (IsSingle(term, d)) {
      TENSORD_ASSIGN_OR_RETURN(IndexedTensor value,
                               ValueOf(term.factors[0], ByStride(d)));
      singles.push_back({Times(term.coefficient, factor), std::move(value)});
    } else if (Repeats(term, d)) {
      TENSORD_ASSIGN_OR_RETURN(IndexedTensor value, RepeatedPart(term, d));
      singles.push_back({factor, std::move(value)});
    } else {
      products.push_back(&term);
    }
  }
  const bool is_narrower = PromotedType(sum.element_type, type) != type;
  // What one tensor or number is, a conversion takes whole.
  const auto number = NumberOf(sum);
  const bool is_converted =
      singles.size() == 1 &&
      (number ? ElementOf(Times(*number, factor), type, "a number").ok()
              : steps_.TypeOf(singles[0].tensor) == sum.element_type);
  if (is_narrower && (!is_converted || !products.empty() ||
                      !diagonals.empty() || !beta.IsZero())) {
    const IndexedTensor wide =
        steps_.MakeTemporary(sum.element_type, ByStride(d));
    TENSORD_RETURN_IF_ERROR(Evaluate(wide, sum, factor, kZero));
    return steps_.Add(d, {{kOne, wide}}, beta);
  }
  absl::Span<const ScaledTensor> rest(singles);
  while (!rest.empty()) {
    const size_t count = std::min<size_t>(rest.size(), beta.IsZero() ? 3 : 2);
    TENSORD_RETURN_IF_ERROR(steps_.Add(d, rest.first(count), beta));
    rest.remove_prefix(count);
    beta = kOne;
  }
  for (const BoundTerm* const term : products) {
    TENSORD_RETURN_IF_ERROR(AddProduct(d, *term, factor, beta));
    beta = kOne;
  }
  if (!diagonals.empty() && !beta.IsOne()) {
    TENSORD_RETURN_IF_ERROR(steps_.Add(d, {{kZero, d}}, beta));
  }
  for (const BoundTerm* const term : diagonals) {
    TENSORD_RETURN_IF_ERROR(AddOnDiagonal(d, *term, factor));
  }
  return absl::OkStatus();
}

absl::StatusOr<IndexedTensor> Emitter::RepeatedPart(const BoundTerm& term,
                                                    const IndexedTensor& d) {
  Modes own;
  for (const Mode index : ByStride(d)) {
    const auto has = [index](const BoundFactor& factor) {
      return PositionOf(index, factor.indices()) >= 0;
    };
    if (std::ranges::any_of(term.factors, has)) own.push_back(index);
  }
  const IndexedTensor value = steps_.MakeTemporary(term.element_type, own);
  TENSORD_RETURN_IF_ERROR(AddProduct(value, term, kOne, kZero));
  return value;
}

absl::Status Emitter::ComputeInto(const IndexedTensor& d,
                                  const BoundCall& call) {
  Numbering numbering;
  std::string key = KeyOf(call, steps_, numbering);
  if (auto known = steps_.Known(key, target_)) {
    known->indices = numbering.Back(known->indices);
    return steps_.Add(d, {{kOne, *std::move(known)}}, kZero);
  }
  TENSORD_RETURN_IF_ERROR(Compute(d, call));
  // Where it repeats nothing, d can stand for it.
  if (d.indices.size() == call.indices.size()) {
    IndexedTensor numbered = d;
    numbered.indices = numbering.Of(d.indices);
    steps_.Keep(std::move(key), numbered);
  }
  return absl::OkStatus();
}

absl::Status Emitter::Compute(const IndexedTensor& d, const BoundCall& call) {
  const Modes order = ByStride(d);
  const auto input = [&](size_t argument, bool may_be_scaled) {
    return InputOf(call.arguments[argument], call.argument_type, order,
                   may_be_scaled);
  };
  if (const auto* const op = std::get_if<UnaryOperator>(&call.function)) {
    return ComputeUnary(d, *op, call);
  }
  const auto op = std::get<BinaryOperator>(call.function);
  if (op == BinaryOperator::kPow) {
    // What has functions of its own, which are faster and more exact.
    const auto exponent = NumberOf(call.arguments[1]);
    if (exponent == Scalar{-1, 0} && !IsInteger(call.argument_type)) {
      return ComputeUnary(d, UnaryOperator::kRcp, call);
    }
    if (exponent == Scalar{0.5, 0}) {
      return ComputeUnary(d, UnaryOperator::kSqrt, call);
    }
    if (exponent == Scalar{2, 0}) {
      TENSORD_ASSIGN_OR_RETURN(const ScaledTensor x, input(0, true));
      return steps_.Apply(d, BinaryOperator::kMul, {x, x});
    }
  }
  if (op == BinaryOperator::kTake) {
    TENSORD_ASSIGN_OR_RETURN(const ScaledTensor a, input(0, true));
    TENSORD_ASSIGN_OR_RETURN(
        const ScaledTensor indices,
        InputOf(call.arguments[1], call.arguments[1].element_type, order,
                false));
    return steps_.Take(d, a, call.taken, indices.tensor, call.place);
  }
  std::vector<ScaledTensor> inputs;
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    if (i == 0 && op == BinaryOperator::kWhere) {
      TENSORD_ASSIGN_OR_RETURN(
          inputs.emplace_back(),
          InputOf(call.arguments[0], ElementType::kBool, order, false));
    } else {
      TENSORD_ASSIGN_OR_RETURN(inputs.emplace_back(), input(i, true));
    }
  }
  return steps_.Apply(d, op, inputs);
}

absl::Status Emitter::ComputeUnary(const IndexedTensor& d, UnaryOperator op,
                                   const BoundCall& call) {
  TENSORD_ASSIGN_OR_RETURN(
      IndexedTensor x,
      ValueOf(call.arguments[0], call.argument_type, ByStride(d)));
  return steps_.Apply(d, op, {{kOne, std::move(x)}});
}

absl::StatusOr<IndexedTensor> Emitter::ValueOf(const BoundSum& sum,
                                               ElementType type,
                                               const Modes& order) {
  TENSORD_ASSIGN_OR_RETURN(const ScaledTensor input,
                           InputOf(sum, type, order, false));
  if (input.tensor.is_conjugated) return steps_.Copy(input.tensor);
  return input.tensor;
}

absl::StatusOr<ScaledTensor> Emitter::InputOf(const BoundSum& argument,
                                              ElementType type,
                                              const Modes& wanted_order,
                                              bool may_be_scaled) {
  ScaledTensor input;
  const Modes order = Ordered(argument.indices, wanted_order);
  const BoundTerm& only = argument.terms.front();
  const bool is_one_factor =
      argument.terms.size() == 1 && only.factors.size() == 1 &&
      only.same.empty() &&
      only.factors[0].indices().size() == argument.indices.size() &&
      (only.coefficient.IsOne() ||
       (may_be_scaled && !only.coefficient.IsZero()));
  if (auto number = NumberOf(argument)) {
    // A condition; or what is beyond the type's range, and any comparison.
    if (type == ElementType::kBool && !number->IsZero()) number = kOne;
    number->real = RoundedTo(type, number->real);
    number->imaginary = RoundedTo(type, number->imaginary);
    TENSORD_ASSIGN_OR_RETURN(input.tensor, steps_.MakeConstant(type, *number));
    return input;
  }
  if (is_one_factor) {
    input.factor = only.coefficient;
    TENSORD_ASSIGN_OR_RETURN(input.tensor, ValueOf(only.factors[0], order));
  } else {
    input.tensor = steps_.MakeTemporary(argument.element_type, order);
    TENSORD_RETURN_IF_ERROR(Evaluate(input.tensor, argument, kOne, kZero));
  }
  const ElementType given = steps_.TypeOf(input.tensor);
  if (type == ElementType::kBool && IsComplex(given)) {
    TENSORD_ASSIGN_OR_RETURN(IndexedTensor zero,
                             steps_.MakeConstant(given, kZero));
    const IndexedTensor holds =
        steps_.MakeTemporary(type, input.tensor.indices);
    TENSORD_RETURN_IF_ERROR(steps_.Apply(holds, BinaryOperator::kNotEqual,
                                         {input, {kOne, std::move(zero)}}));
    return ScaledTensor{kOne, holds};
  }
  TENSORD_ASSIGN_OR_RETURN(input.tensor, steps_.Convert(input.tensor, type));
  return input;
}

absl::Status Emitter::AddOnDiagonal(const IndexedTensor& d,
                                    const BoundTerm& term, Scalar factor) {
  IndexedTensor diagonal = d;
  for (const auto& [index, other] : term.same) Replace(other, index, diagonal);
  if (!IsSingle(term, diagonal)) {
    return AddProduct(diagonal, term, factor, kOne);
  }
  TENSORD_ASSIGN_OR_RETURN(IndexedTensor value, ValueOf(term.factors[0], {}));
  return steps_.Add(
      diagonal, {{Times(term.coefficient, factor), std::move(value)}}, kOne);
}

absl::StatusOr<IndexedTensor> Emitter::SumAway(const IndexedTensor& tensor,
                                               const Modes& kept,
                                               ElementType type) {
  Modes order;
  for (const Mode index : ByStride(tensor)) {
    if (PositionOf(index, kept) >= 0) order.push_back(index);
  }
  if (order.size() == tensor.indices.size()) return tensor;
  if (steps_.TypeOf(tensor) == type) {
    IndexedTensor part = WithoutUnits(tensor, kept);
    if (part.indices.size() == order.size()) return part;
  }
  Numbering numbering;
  std::string key = absl::StrCat("sum in ", std::string(NameOf(type)), " ",
                                 steps_.KeyOf(tensor));
  numbering.Of(tensor.indices);
  AppendSet(numbering.Of(order), key);
  if (auto known = steps_.Known(key)) {
    known->indices = numbering.Back(known->indices);
    return *std::move(known);
  }
  const IndexedTensor sum = steps_.MakeTemporary(type, order);
  TENSORD_RETURN_IF_ERROR(steps_.Reduce(sum, kOne, tensor, kZero));
  IndexedTensor numbered = sum;
  numbered.indices = numbering.Of(sum.indices);
  steps_.Keep(std::move(key), numbered);
  return sum;
}

absl::StatusOr<IndexedTensor> Emitter::ValueOf(const BoundFactor& factor,
                                               const Modes& order) {
  if (!factor.is_computed()) {
    return factor.is_divisor ? steps_.Reciprocal(factor.tensor) : factor.tensor;
  }
  Numbering numbering;
  std::string key = factor.group != nullptr
                        ? KeyOf(*factor.group, steps_, numbering)
                        : KeyOf(*factor.call, steps_, numbering);
  IndexedTensor value;
  if (auto known = steps_.Known(key, target_)) {
    value = *std::move(known);
    value.indices = numbering.Back(value.indices);
  } else {
    const Modes modes = Ordered(factor.indices(), order);
    if (factor.group != nullptr) {
      value = steps_.MakeTemporary(factor.group->element_type, modes);
      TENSORD_RETURN_IF_ERROR(Evaluate(value, *factor.group, kOne, kZero));
    } else {
      value = steps_.MakeTemporary(factor.call->result_type, modes);
      TENSORD_RETURN_IF_ERROR(Compute(value, *factor.call));
    }
    IndexedTensor numbered = value;
    numbered.indices = numbering.Of(value.indices);
    steps_.Keep(std::move(key), numbered);
  }
  value.is_conjugated = factor.is_conjugated;
  return factor.is_divisor ? steps_.Reciprocal(value) : value;
}

absl::StatusOr<IndexedTensor> Emitter::Contract(const IndexedTensor& x,
                                                const IndexedTensor& y,
                                                const Contraction& wanted) {
  // Indices that nobody else has are summed alone.
  IndexedTensor pair[2] = {x, y};
  const ElementType type =
      ProductType(steps_.TypeOf(x), steps_.TypeOf(y), wanted.result_type);
  for (const int p : {0, 1}) {
    Modes others = pair[1 - p].indices;
    others.insert(others.end(), wanted.kept.begin(), wanted.kept.end());
    TENSORD_ASSIGN_OR_RETURN(pair[p], SumAway(pair[p], others, type));
  }
  PairKey key(pair, steps_, wanted.kept, type);
  std::optional<IndexedTensor> value = steps_.Known(key.text(), target_);
  if (value) value = key.Named(*std::move(value));
  if (wanted.into == nullptr) {
    if (value) return *std::move(value);
    value = steps_.MakeTemporary(type, wanted.kept);
    TENSORD_RETURN_IF_ERROR(
        steps_.Multiply(*value, kOne, pair[0], pair[1], kZero));
    steps_.Keep(key.text(), key.Numbered(*value));
    return *std::move(value);
  }
  const IndexedTensor& d = *wanted.into;
  if (value) {
    TENSORD_RETURN_IF_ERROR(
        steps_.Add(d, {{wanted.alpha, *value}}, wanted.beta));
    return d;
  }
  TENSORD_RETURN_IF_ERROR(
      steps_.Multiply(d, wanted.alpha, pair[0], pair[1], wanted.beta));
  // Only as it is, d can stand for the product.
  if (wanted.beta.IsZero() && wanted.alpha.IsOne() &&
      steps_.TypeOf(d) == type) {
    steps_.Keep(key.text(), key.Numbered(d));
  }
  return d;
}

absl::Status Emitter::AddContractions(const PlannedProduct& plan,
                                      std::vector<IndexedTensor> nodes,
                                      const IndexedTensor& d, Scalar alpha,
                                      Scalar beta) {
  const size_t inputs = nodes.size();
  const auto& steps = plan.product.tree.steps;
  for (size_t s = 0; s < steps.size(); ++s) {
    const bool is_last = s + 1 == steps.size();
    Contraction wanted{.kept = {},
                       .result_type = steps_.TypeOf(d),
                       .into = is_last ? &d : nullptr,
                       .alpha = alpha,
                       .beta = beta};
    for (const Mode index : plan.orders[inputs + s]) {
      if (PositionOf(index, plan.sliced) < 0) wanted.kept.push_back(index);
    }
    TENSORD_ASSIGN_OR_RETURN(
        IndexedTensor result,
        Contract(nodes[steps[s].first], nodes[steps[s].second], wanted));
    nodes.push_back(std::move(result));
  }
  return absl::OkStatus();
}

absl::Status Emitter::AddProduct(const IndexedTensor& d, const BoundTerm& term,
                                 Scalar factor, Scalar beta) {
  const Scalar alpha = Times(term.coefficient, factor);
  if (term.factors.size() == 1) {
    TENSORD_ASSIGN_OR_RETURN(const IndexedTensor a,
                             ValueOf(term.factors[0], d.indices));
    return steps_.Reduce(d, alpha, a, beta);
  }
  TENSORD_ASSIGN_OR_RETURN(
      PlannedProduct plan,
      PlanProduct(d, term, bindings_, options_, max_peak_bytes_));
  plan.product.statement = statement_;
  plan.product.result = d.tensor;
  std::vector<IndexedTensor> nodes;
  for (size_t i = 0; i < term.factors.size(); ++i) {
    TENSORD_ASSIGN_OR_RETURN(IndexedTensor value,
                             ValueOf(term.factors[i], plan.orders[i]));
    nodes.push_back(std::move(value));
  }
  if (plan.sliced.empty()) {
    TENSORD_RETURN_IF_ERROR(
        AddContractions(plan, std::move(nodes), d, alpha, beta));
  } else {
    steps_.BeginSlices(plan.sliced, plan.kept_slice_count);
    for (IndexedTensor& node : nodes) node = steps_.Slice(node);
    TENSORD_RETURN_IF_ERROR(
        AddContractions(plan, std::move(nodes), steps_.Slice(d), alpha, beta));
    steps_.EndSlices();
  }
  if (term.factors.size() > 2) {
    program_.products.push_back(std::move(plan.product));
  }
  return absl::OkStatus();
}

}  // namespace tensord::core
