#include "tests/testing/oracle/oracle.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "tests/testing/oracle/oracle_operators.h"

namespace tensord::test {
namespace {

using core::BinaryOperator;
using core::ElementType;
using core::Mode;
using core::OperandDesc;
using core::Scalar;

enum Role : size_t { kA, kB, kC, kD, kRoleCount };
using Offsets = std::array<int64_t, kRoleCount>;
/// Null where the operation lacks the operand.
using Operands = std::array<const OperandDesc*, kRoleCount>;

/// One label with its stride in every operand; 0 where an operand lacks it.
struct Label {
  Mode mode;
  int64_t extent;
  Offsets strides = {};
  std::array<bool, kRoleCount> in = {};
};

std::vector<Label> LabelsOf(const Operands& operands) {
  std::vector<Label> labels;
  for (size_t role = 0; role < kRoleCount; ++role) {
    if (operands[role] == nullptr) continue;
    const OperandDesc& operand = *operands[role];
    for (size_t i = 0; i < operand.modes.size(); ++i) {
      size_t at = 0;
      while (at < labels.size() && labels[at].mode != operand.modes[i]) ++at;
      if (at == labels.size()) {
        labels.push_back({operand.modes[i], operand.layout.extents[i]});
      }
      labels[at].strides[role] = operand.layout.strides[i];
      labels[at].in[role] = true;
    }
  }
  return labels;
}

/// The labels that d has, or those that it lacks.
std::vector<Label> Select(const std::vector<Label>& labels, bool of_output) {
  std::vector<Label> selected;
  for (const Label& label : labels) {
    if (label.in[kD] == of_output) selected.push_back(label);
  }
  return selected;
}

int64_t CountOf(const std::vector<Label>& labels) {
  int64_t count = 1;
  for (const Label& label : labels) count *= label.extent;
  return count;
}

/// Calls visit(offsets) for every combination of coordinates, `start` being the
/// offsets at coordinate 0.
template <typename Visitor>
void ForEach(const std::vector<Label>& labels, const Offsets& start,
             Visitor&& visit) {
  const int64_t count = CountOf(labels);
  std::vector<int64_t> coordinates(labels.size(), 0);
  Offsets offsets = start;
  for (int64_t i = 0; i < count; ++i) {
    visit(offsets);
    for (size_t l = 0; l < labels.size(); ++l) {
      const bool carries = ++coordinates[l] == labels[l].extent;
      const int64_t steps = carries ? 1 - labels[l].extent : 1;
      for (size_t role = 0; role < kRoleCount; ++role) {
        offsets[role] += steps * labels[l].strides[role];
      }
      if (!carries) break;
      coordinates[l] = 0;
    }
  }
}

/// The elements of one input, gaps included, decoded once.
template <typename Value>
std::vector<Value> Decode(const OperandDesc* operand, const std::byte* bytes,
                          Value (*load)(ElementType, const std::byte*)) {
  if (operand == nullptr || bytes == nullptr) return {};
  int64_t span = 1;
  int64_t bytes_each = 0;
  for (size_t i = 0; i < operand->modes.size(); ++i) {
    if (operand->layout.extents[i] == 0) return {};
    span += (operand->layout.extents[i] - 1) * operand->layout.strides[i];
  }
  switch (operand->element_type) {
    case ElementType::kInt8:
    case ElementType::kUint8:
    case ElementType::kBool: bytes_each = 1; break;
    case ElementType::kFloat16:
    case ElementType::kBfloat16:
    case ElementType::kInt16: bytes_each = 2; break;
    case ElementType::kFloat32:
    case ElementType::kInt32: bytes_each = 4; break;
    case ElementType::kFloat64:
    case ElementType::kInt64:
    case ElementType::kComplex64: bytes_each = 8; break;
    case ElementType::kComplex128: bytes_each = 16; break;
  }
  std::vector<Value> values(static_cast<size_t>(span));
  for (int64_t i = 0; i < span; ++i) {
    values[static_cast<size_t>(i)] =
        load(operand->element_type, bytes + i * bytes_each);
  }
  return values;
}

bool IsZero(const Scalar& factor) {
  return factor.real == 0 && factor.imaginary == 0;
}

/// Floating-point arithmetic of one operation.
class Floating {
 public:
  using Value = Estimate;
  using Element = Number;
  static constexpr auto kLoad = LoadNumber;

  Floating(const Operands& operands, core::ComputeType compute_type,
           bool is_contraction, Adder adder = Adder::kNearest)
      : type_(operands[kD]->element_type),
        rounding_(Rounding::Of(
            compute_type,
            HasParts(type_) || HasParts(operands[kA]->element_type),
            is_contraction)) {
    if (adder == Adder::kTensorCores) rounding_ = rounding_.OnTensorCores();
  }

  Value Apply(core::UnaryOperator op, const Element& x) const {
    return ApplyUnary(op, x, rounding_);
  }
  Value Combine(BinaryOperator op, const Value& x, const Value& y) const {
    return ApplyBinary(op, x, y, rounding_);
  }
  /// An operand that is only added: rounded when wider than the arithmetic.
  Value ReadAddend(core::UnaryOperator op, const Element& x) const {
    const Value applied = Apply(op, x);
    Value read = Read(applied.value, rounding_.result);
    read.error += applied.error;
    return read;
  }
  Value ReadFactor(core::UnaryOperator op, const Element& x) const {
    return test::ReadFactor(Apply(op, x).value, rounding_);
  }
  Value Scale(const Scalar& factor, const Value& x) const {
    const Number exact(factor.real, factor.imaginary);
    return Multiply(Read(exact, rounding_.result), x, rounding_);
  }
  Value Zero() const { return {0}; }
  Value Identity(BinaryOperator op) const { return {IdentityOf(op)}; }

  /// Sum of x * y over many terms.
  struct Sum {
    Number value = 0;
    Real magnitude = 0;
    Real error = 0;
    int64_t count = 0;
  };
  void AddTerm(Sum& sum, const Value& x) const {
    sum.value += x.value;
    sum.magnitude += Modulus(x.value);
    sum.error += x.error;
    ++sum.count;
  }
  /// One product without a rounding of its own; Finish() counts it.
  Value Term(const Value& x, const Value& y) const {
    return {Product(x.value, y.value, rounding_.is_complex),
            ProductError(x, y)};
  }
  Value Finish(const Sum& sum, int64_t depth) const {
    if (!std::isfinite(sum.magnitude)) {
      return {sum.value, std::isinf(sum.error) ? sum.error : 0};
    }
    const Estimate total{
        sum.value,
        sum.error + SummationError(depth, sum.magnitude, rounding_.sum)};
    const bool rounds =
        rounding_.result.unit_roundoff > rounding_.sum.unit_roundoff;
    return Rounded(total, rounds ? 1 : 0, rounding_.result);
  }
  /// Products in any order, complex ones in up to four roundings each.
  Value FinishProducts(const Sum& sum) const {
    return Finish(
        sum, rounding_.additions * sum.count + (rounding_.is_complex ? 4 : 1));
  }
  Value FinishTree(const Sum& sum) const {
    return Finish(sum, TreeDepth(sum.count));
  }

  Value FinishScan(const Sum& sum) const {
    return Finish(sum, ScanDepth(sum.count));
  }

  Expected At(int64_t offset, const Value& value) const {
    if (!IsWhole(type_)) {
      return {offset,
              HasParts(type_) ? value : Value{value.value.real(), value.error},
              0};
    }
    const Real x = value.value.real();
    Expected expected{offset, {}, Truncate(x, type_)};
    expected.also = Truncate(x < 0 ? x + value.error : x - value.error, type_);
    if (expected.also == expected.integer) {
      expected.also =
          Truncate(x < 0 ? x - value.error : x + value.error, type_);
    }
    return expected;
  }
  Expected Compared(int64_t offset, BinaryOperator op, const Value& x,
                    const Value& y) const {
    const Verdict verdict = Compare(op, x, y);
    Expected expected{offset, {}, verdict.holds};
    if (verdict.may_hold_not) expected.also = !verdict.holds;
    return expected;
  }

 private:
  const ElementType type_;
  Rounding rounding_;
};

/// Integer arithmetic of one operation: modulo 2^bits, bool as or, and.
class Integral {
 public:
  using Value = int64_t;
  using Element = int64_t;
  static constexpr auto kLoad = LoadInteger;

  Integral(const Operands& operands, core::ComputeType, bool,
           Adder = Adder::kNearest)
      : type_(operands[operands[kC] == nullptr ? kD : kC]->element_type) {}

  Value Apply(core::UnaryOperator op, Element x) const {
    return ApplyUnary(op, WrapInteger(type_, x), type_);
  }
  Value Combine(BinaryOperator op, Value x, Value y) const {
    return ApplyBinary(op, x, y, type_);
  }
  Value ReadAddend(core::UnaryOperator op, Element x) const {
    return Apply(op, x);
  }
  Value ReadFactor(core::UnaryOperator op, Element x) const {
    return Apply(op, x);
  }
  Value Scale(const Scalar& factor, Value x) const {
    const Value exact = WrapInteger(type_, static_cast<int64_t>(factor.real));
    return Combine(BinaryOperator::kMul, exact, x);
  }
  Value Zero() const { return 0; }
  Value Identity(BinaryOperator op) const {
    return IntegerIdentityOf(op, type_);
  }

  using Sum = Value;
  void AddTerm(Sum& sum, Value x) const {
    sum = Combine(BinaryOperator::kAdd, sum, x);
  }
  Value Term(Value x, Value y) const {
    return Combine(BinaryOperator::kMul, x, y);
  }
  Value FinishProducts(Sum sum) const { return sum; }
  Value FinishTree(Sum sum) const { return sum; }
  Value FinishScan(Sum sum) const { return sum; }

  static Expected At(int64_t offset, Value value) {
    return {offset, {}, value};
  }
  static Expected Compared(int64_t offset, BinaryOperator op, Value x,
                           Value y) {
    return {offset, {}, Compare(op, x, y)};
  }

 private:
  const ElementType type_;
};

const OperandDesc* Pointer(const std::optional<OperandDesc>& operand) {
  return operand ? &*operand : nullptr;
}

template <typename Arithmetic>
std::vector<Expected> Elementwise(const core::ElementwiseDesc& desc,
                                  const Inputs& inputs) {
  const Operands operands = {&desc.a, Pointer(desc.b), &desc.c, &desc.d};
  const Arithmetic arithmetic(operands, desc.compute_type, false);
  const auto a = Decode(operands[kA], inputs.a, Arithmetic::kLoad);
  const auto b = Decode(operands[kB], inputs.b, Arithmetic::kLoad);
  const auto c = Decode(operands[kC], inputs.c, Arithmetic::kLoad);
  const auto term = [&](const Scalar& factor, const OperandDesc& operand,
                        const auto& elements, int64_t offset) {
    if (IsZero(factor)) return arithmetic.Zero();
    return arithmetic.Scale(
        factor, arithmetic.Apply(operand.unary,
                                 elements.at(static_cast<size_t>(offset))));
  };
  // Of WHERE and TAKE b is no number.
  const bool is_where = desc.op_abc == BinaryOperator::kWhere;
  const bool is_take = desc.op_abc == BinaryOperator::kTake;
  const auto chosen = is_where || is_take
                          ? Decode(operands[kB], inputs.b, LoadInteger)
                          : std::vector<int64_t>();
  const std::vector<Label> labels = LabelsOf(operands);
  const std::vector<Label> taken = Select(labels, false);
  std::vector<Expected> expected;
  ForEach(Select(labels, true), {}, [&](const Offsets& at) {
    if (is_take) {
      int64_t index = 0;
      if (!IsZero(inputs.beta)) {
        index =
            static_cast<int64_t>(inputs.beta.real) *
            ApplyUnary(desc.b->unary, chosen.at(static_cast<size_t>(at[kB])),
                       ElementType::kInt64);
      }
      const Label& from = taken.at(0);
      const bool is_there = -from.extent <= index && index < from.extent;
      if (index < 0) index += from.extent;
      const auto found = is_there ? term(inputs.alpha, desc.a, a,
                                         at[kA] + index * from.strides[kA])
                                  : term(inputs.gamma, desc.c, c, at[kC]);
      expected.push_back(arithmetic.At(at[kD], found));
      return;
    }
    auto value = term(inputs.alpha, desc.a, a, at[kA]);
    if (is_where) {
      const bool takes_a =
          !IsZero(inputs.beta) &&
          ApplyUnary(desc.b->unary, chosen.at(static_cast<size_t>(at[kB])),
                     ElementType::kBool) != 0;
      if (!takes_a) value = term(inputs.gamma, desc.c, c, at[kC]);
      expected.push_back(arithmetic.At(at[kD], value));
      return;
    }
    if (desc.b) {
      value = arithmetic.Combine(desc.op_ab, value,
                                 term(inputs.beta, *desc.b, b, at[kB]));
    }
    const auto last = term(inputs.gamma, desc.c, c, at[kC]);
    if (core::IsComparison(desc.op_abc)) {
      expected.push_back(arithmetic.Compared(at[kD], desc.op_abc, value, last));
      return;
    }
    value = arithmetic.Combine(desc.op_abc, value, last);
    expected.push_back(arithmetic.At(at[kD], value));
  });
  return expected;
}

template <typename Arithmetic>
std::vector<Expected> Permutation(const core::PermutationDesc& desc,
                                  const Inputs& inputs) {
  const Operands operands = {&desc.a, nullptr, nullptr, &desc.d};
  const Arithmetic arithmetic(operands, desc.compute_type, false);
  const auto a = Decode(operands[kA], inputs.a, Arithmetic::kLoad);
  std::vector<Expected> expected;
  ForEach(LabelsOf(operands), {}, [&](const Offsets& at) {
    auto value = arithmetic.Zero();
    if (!IsZero(inputs.alpha)) {
      value = arithmetic.Scale(
          inputs.alpha,
          arithmetic.Apply(desc.a.unary, a.at(static_cast<size_t>(at[kA]))));
    }
    expected.push_back(arithmetic.At(at[kD], value));
  });
  return expected;
}

/// alpha * value + beta * unary(c), each term only when its factor is not zero.
template <typename Arithmetic, typename Compute>
typename Arithmetic::Value WithAddend(
    const Arithmetic& arithmetic, const Inputs& inputs, const OperandDesc* c,
    const std::vector<typename Arithmetic::Element>& c_elements,
    int64_t c_offset, Compute&& compute) {
  auto value = arithmetic.Zero();
  if (!IsZero(inputs.alpha)) {
    value = arithmetic.Scale(inputs.alpha, compute());
  }
  if (c == nullptr || IsZero(inputs.beta)) return value;
  const auto addend = arithmetic.ReadAddend(
      c->unary, c_elements.at(static_cast<size_t>(c_offset)));
  return arithmetic.Combine(BinaryOperator::kAdd, value,
                            arithmetic.Scale(inputs.beta, addend));
}

template <typename Arithmetic>
std::vector<Expected> Reduction(const core::ReductionDesc& desc,
                                const Inputs& inputs) {
  const Operands operands = {&desc.a, nullptr, Pointer(desc.c), &desc.d};
  const Arithmetic arithmetic(operands, desc.compute_type, false);
  const auto a = Decode(operands[kA], inputs.a, Arithmetic::kLoad);
  const auto c = Decode(operands[kC], inputs.c, Arithmetic::kLoad);
  const std::vector<Label> labels = LabelsOf(operands);
  const std::vector<Label> reduced = Select(labels, false);
  std::vector<Expected> expected;
  ForEach(Select(labels, true), {}, [&](const Offsets& at) {
    const auto reduce = [&] {
      typename Arithmetic::Sum sum = {};
      auto value = arithmetic.Identity(desc.op);
      ForEach(reduced, at, [&](const Offsets& term) {
        const auto x =
            arithmetic.Apply(desc.a.unary, a.at(static_cast<size_t>(term[kA])));
        if (desc.op == BinaryOperator::kAdd) {
          arithmetic.AddTerm(sum, x);
        } else {
          value = arithmetic.Combine(desc.op, value, x);
        }
      });
      return desc.op == BinaryOperator::kAdd ? arithmetic.FinishTree(sum)
                                             : value;
    };
    expected.push_back(arithmetic.At(
        at[kD],
        WithAddend(arithmetic, inputs, operands[kC], c, at[kC], reduce)));
  });
  return expected;
}

/// The label of `labels` along which a reduction goes, taken out of them.
Label TakeAlong(const core::ReductionDesc& desc, std::vector<Label>& labels) {
  const auto along = std::ranges::find(labels, desc.along->mode, &Label::mode);
  Label taken = *along;
  labels.erase(along);
  return taken;
}

Offsets At(const Label& label, const Offsets& start, int64_t coordinate) {
  Offsets at = start;
  for (size_t role = 0; role < kRoleCount; ++role) {
    at[role] += coordinate * label.strides[role];
  }
  return at;
}

template <typename Arithmetic>
std::vector<Expected> Cumulative(const core::ReductionDesc& desc,
                                 const Inputs& inputs) {
  const Operands operands = {&desc.a, nullptr, Pointer(desc.c), &desc.d};
  const Arithmetic arithmetic(operands, desc.compute_type, false);
  const auto a = Decode(operands[kA], inputs.a, Arithmetic::kLoad);
  const auto c = Decode(operands[kC], inputs.c, Arithmetic::kLoad);
  std::vector<Label> labels = LabelsOf(operands);
  const Label along = TakeAlong(desc, labels);
  std::vector<Expected> expected;
  ForEach(labels, {}, [&](const Offsets& start) {
    typename Arithmetic::Sum sum = {};
    auto value = arithmetic.Identity(desc.op);
    for (int64_t i = 0; i < along.extent; ++i) {
      const Offsets at = At(along, start, i);
      if (!IsZero(inputs.alpha)) {
        const auto x =
            arithmetic.Apply(desc.a.unary, a.at(static_cast<size_t>(at[kA])));
        if (desc.op == BinaryOperator::kAdd) {
          arithmetic.AddTerm(sum, x);
          value = arithmetic.FinishScan(sum);
        } else {
          value = arithmetic.Combine(desc.op, value, x);
        }
      }
      expected.push_back(
          arithmetic.At(at[kD], WithAddend(arithmetic, inputs, operands[kC], c,
                                           at[kC], [&] { return value; })));
    }
  });
  return expected;
}

std::vector<Expected> Sorted(const core::ReductionDesc& desc,
                             const Inputs& inputs) {
  const Operands operands = {&desc.a, nullptr, Pointer(desc.c), &desc.d};
  const Integral arithmetic(operands, desc.compute_type, false);
  const auto a = Decode(operands[kA], inputs.a, LoadNumber);
  const auto c = Decode(operands[kC], inputs.c, Integral::kLoad);
  std::vector<Label> labels = LabelsOf(operands);
  const Label along = TakeAlong(desc, labels);
  const bool descends = desc.along->sorting == core::Sorting::kDescending;
  std::vector<Expected> expected;
  ForEach(labels, {}, [&](const Offsets& start) {
    std::vector<int64_t> order(static_cast<size_t>(along.extent));
    std::iota(order.begin(), order.end(), 0);
    const auto element = [&](int64_t i) -> Real {
      return a.at(static_cast<size_t>(At(along, start, i)[kA])).real();
    };
    const auto is_below = [&](Real x, Real y) {
      return std::isnan(y) ? !std::isnan(x) : x < y;
    };
    if (!IsZero(inputs.alpha)) {
      std::ranges::stable_sort(order, [&](int64_t i, int64_t j) {
        return descends ? is_below(element(j), element(i))
                        : is_below(element(i), element(j));
      });
    }
    for (int64_t i = 0; i < along.extent; ++i) {
      const Offsets at = At(along, start, i);
      expected.push_back(arithmetic.At(
          at[kD], WithAddend(arithmetic, inputs, operands[kC], c, at[kC],
                             [&] { return order[static_cast<size_t>(i)]; })));
    }
  });
  return expected;
}

template <typename Arithmetic>
std::vector<Expected> Contraction(const core::ContractionDesc& desc,
                                  const Inputs& inputs, Adder adder) {
  const Operands operands = {&desc.a, &desc.b, Pointer(desc.c), &desc.d};
  const Arithmetic arithmetic(operands, desc.compute_type, true, adder);
  const auto decode = [&](Role role, const std::byte* bytes) {
    std::vector<typename Arithmetic::Value> values;
    for (const auto& element :
         Decode(operands[role], bytes, Arithmetic::kLoad)) {
      values.push_back(arithmetic.ReadFactor(operands[role]->unary, element));
    }
    return values;
  };
  const auto a = decode(kA, inputs.a);
  const auto b = decode(kB, inputs.b);
  const auto c = Decode(operands[kC], inputs.c, Arithmetic::kLoad);
  const std::vector<Label> labels = LabelsOf(operands);
  const std::vector<Label> summed = Select(labels, false);
  std::vector<Expected> expected;
  ForEach(Select(labels, true), {}, [&](const Offsets& at) {
    const auto contract = [&] {
      typename Arithmetic::Sum sum = {};
      ForEach(summed, at, [&](const Offsets& term) {
        arithmetic.AddTerm(
            sum, arithmetic.Term(a.at(static_cast<size_t>(term[kA])),
                                 b.at(static_cast<size_t>(term[kB]))));
      });
      return arithmetic.FinishProducts(sum);
    };
    expected.push_back(arithmetic.At(
        at[kD],
        WithAddend(arithmetic, inputs, operands[kC], c, at[kC], contract)));
  });
  return expected;
}

}  // namespace

std::vector<Expected> Evaluate(const core::PermutationDesc& desc,
                               const Inputs& inputs) {
  return IsWhole(desc.a.element_type) && IsWhole(desc.d.element_type)
             ? Permutation<Integral>(desc, inputs)
             : Permutation<Floating>(desc, inputs);
}

std::vector<Expected> Evaluate(const core::ElementwiseDesc& desc,
                               const Inputs& inputs) {
  return IsWhole(desc.c.element_type) ? Elementwise<Integral>(desc, inputs)
                                      : Elementwise<Floating>(desc, inputs);
}

std::vector<Expected> Evaluate(const core::ReductionDesc& desc,
                               const Inputs& inputs) {
  if (desc.sorts()) return Sorted(desc, inputs);
  if (desc.along) {
    return IsWhole(desc.d.element_type) ? Cumulative<Integral>(desc, inputs)
                                        : Cumulative<Floating>(desc, inputs);
  }
  return IsWhole(desc.d.element_type) ? Reduction<Integral>(desc, inputs)
                                      : Reduction<Floating>(desc, inputs);
}

std::vector<Expected> Evaluate(const core::ContractionDesc& desc,
                               const Inputs& inputs, Adder adder) {
  return IsWhole(desc.d.element_type)
             ? Contraction<Integral>(desc, inputs, adder)
             : Contraction<Floating>(desc, inputs, adder);
}

}  // namespace tensord::test
