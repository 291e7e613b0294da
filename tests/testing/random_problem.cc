#include "tests/testing/random_problem.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/ops/type_tables.h"

namespace tensord::test {
namespace {

using core::BinaryOperator;
using core::ElementType;
using core::Mode;
using core::OperandDesc;
using core::Scalar;
using core::UnaryOperator;

int Pick(std::mt19937& rng, int count) {
  return static_cast<int>(rng() % static_cast<uint32_t>(count));
}

bool Chance(std::mt19937& rng, int percent) { return Pick(rng, 100) < percent; }

template <typename Range>
auto PickFrom(std::mt19937& rng, const Range& range) {
  return range[static_cast<size_t>(Pick(rng, static_cast<int>(range.size())))];
}

struct RandomLabel {
  Mode mode;
  int64_t extent;
};
using Labels = std::vector<RandomLabel>;

/// Of what TAKE takes from.
constexpr Mode kTakenMode = 'z';

/// `count` labels whose extents multiply to at most `budget`.
Labels RandomLabels(std::mt19937& rng, int count, int64_t budget) {
  constexpr std::array<int64_t, 16> kExtents = {1, 2, 2, 3,  3,  4,  5,  6,
                                                7, 8, 9, 16, 17, 31, 33, 64};
  const bool has_letters = Chance(rng, 80);
  Labels labels;
  for (int i = 0; i < count; ++i) {
    int64_t extent = PickFrom(rng, kExtents);
    // Leave room for the modes to come.
    const int64_t most =
        i + 1 < count ? std::max<int64_t>(budget / 2, 1) : budget;
    extent = std::min(extent, most);
    budget = std::max<int64_t>(budget / extent, 1);
    labels.push_back({has_letters ? 'a' + i : 1000 - 777 * i, extent});
  }
  std::shuffle(labels.begin(), labels.end(), rng);
  return labels;
}

int RandomRank(std::mt19937& rng) {
  return Chance(rng, 90) ? Pick(rng, 7) : 7 + Pick(rng, 6);
}

/// Strides in any order of modes, often packed, with gaps else.
core::ModeVector RandomStrides(std::mt19937& rng,
                               const core::ModeVector& extents) {
  std::vector<size_t> order(extents.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (Chance(rng, 30)) std::shuffle(order.begin(), order.end(), rng);
  const bool has_gaps = Chance(rng, 40);
  core::ModeVector strides(extents.size());
  int64_t stride = has_gaps && Chance(rng, 30) ? 2 + Pick(rng, 2) : 1;
  int gaps = 3;
  for (const size_t i : order) {
    strides[i] = stride;
    stride *= std::max<int64_t>(extents[i], 1);
    if (has_gaps && gaps > 0 && Chance(rng, 40)) {
      stride += 1 + Pick(rng, 5);
      --gaps;
    }
  }
  return strides;
}

OperandDesc RandomOperand(std::mt19937& rng, ElementType type,
                          const Labels& labels) {
  OperandDesc operand;
  operand.element_type = type;
  for (const RandomLabel& label : labels) {
    operand.modes.push_back(label.mode);
    operand.layout.extents.push_back(label.extent);
  }
  operand.layout.strides = RandomStrides(rng, operand.layout.extents);
  return operand;
}

/// `labels` in another order, some left out when `drops`.
Labels Variant(std::mt19937& rng, const Labels& labels, bool drops) {
  Labels variant;
  for (const RandomLabel& label : labels) {
    if (!drops || !Chance(rng, 30)) variant.push_back(label);
  }
  if (Chance(rng, 70)) std::shuffle(variant.begin(), variant.end(), rng);
  return variant;
}

/// An operand that is only read may visit an address twice.
void MaybeOverlap(std::mt19937& rng, OperandDesc& operand) {
  if (!operand.modes.empty() && Chance(rng, 5)) {
    operand.layout.strides[Pick(rng, static_cast<int>(operand.modes.size()))] =
        1;
  }
}

UnaryOperator RandomUnary(std::mt19937& rng, ElementType type) {
  if (Chance(rng, 40)) return UnaryOperator::kIdentity;
  while (true) {
    const auto op =
        static_cast<UnaryOperator>(Pick(rng, core::kUnaryOperatorCount));
    if (core::ValidateUnary(op, type, "x").ok()) return op;
  }
}

BinaryOperator RandomBinary(std::mt19937& rng, ElementType type,
                            int operator_count) {
  while (true) {
    const auto op = static_cast<BinaryOperator>(Pick(rng, operator_count));
    if (core::ValidateBinary(op, type).ok()) return op;
  }
}
constexpr int kReducing = static_cast<int>(BinaryOperator::kMin) + 1;
constexpr int kJoining = static_cast<int>(BinaryOperator::kPow) + 1;

/// Operands of which quotients and powers are tame: positive, and no smaller
/// than 1 on the right.
void MakeTame(std::mt19937& rng, Case<core::ElementwiseDesc>& random) {
  const auto tame = [&](OperandDesc& operand, DataKind& data, Scalar& factor,
                        DataKind kind) {
    operand.unary = UnaryOperator::kIdentity;
    data = kind;
    factor = {Chance(rng, 50) ? 1.0 : 0.7, 0};
    if (IsWhole(operand.element_type)) {
      factor = core::kOne;
      data = DataKind::kSmallIntegers;
    }
  };
  core::ElementwiseDesc& desc = random.desc;
  tame(desc.a, random.data_a, random.alpha, DataKind::kPositive);
  if (desc.b) {
    tame(*desc.b, random.data_b, random.beta, DataKind::kAboveOne);
  }
  tame(desc.c, random.data_c, random.gamma, DataKind::kAboveOne);
  if (desc.b && desc.op_abc == BinaryOperator::kPow) {
    random.unbounded = "powers of what has an error are beyond float32";
  }
}

/// Indices of any integer type, and a further mode of a that they are of.
void MakeTaken(std::mt19937& rng, const Labels& labels,
               core::ElementwiseDesc& desc) {
  constexpr std::array kIndexTypes = {ElementType::kInt8, ElementType::kInt16,
                                      ElementType::kInt32, ElementType::kInt64,
                                      ElementType::kUint8};
  desc.b = RandomOperand(rng, PickFrom(rng, kIndexTypes),
                         Variant(rng, labels, Chance(rng, 60)));
  if (Chance(rng, 20)) desc.b->unary = UnaryOperator::kNeg;
  Labels of_a = Variant(rng, labels, Chance(rng, 40));
  of_a.insert(of_a.begin() + Pick(rng, static_cast<int>(of_a.size()) + 1),
              {kTakenMode, Chance(rng, 5) ? 0 : 1 + Pick(rng, 25)});
  const UnaryOperator unary = desc.a.unary;
  desc.a = RandomOperand(rng, desc.a.element_type, of_a);
  desc.a.unary = unary;
  MaybeOverlap(rng, desc.a);
}

Scalar RandomFactor(std::mt19937& rng, ElementType type) {
  constexpr std::array<double, 8> kReal = {1, 1, 1, 0, -1, 2, 0.7, -1.3};
  constexpr std::array<double, 6> kWhole = {1, 1, 0, -1, 3, 200};
  if (IsWhole(type)) return {PickFrom(rng, kWhole), 0};
  const double real = PickFrom(rng, kReal);
  if (HasParts(type) && Chance(rng, 40)) return {real, PickFrom(rng, kReal)};
  return {real, 0};
}

/// c as the addend of a reduction or contraction: d's modes, strides alike or
/// not.
OperandDesc RandomAddend(std::mt19937& rng, const OperandDesc& d) {
  OperandDesc c = d;
  if (Chance(rng, 50)) c.layout.strides = RandomStrides(rng, c.layout.extents);
  return c;
}

template <typename Desc>
void FinishCase(std::mt19937& rng, Case<Desc>& random) {
  random.omits_unused = Chance(rng, 50);
  random.seed = rng();
}

/// Makes one of the labels empty now and then.
void MaybeEmpty(std::mt19937& rng, Labels& labels) {
  if (!labels.empty() && Chance(rng, 3)) {
    labels[static_cast<size_t>(Pick(rng, static_cast<int>(labels.size())))]
        .extent = 0;
  }
}

void Append(std::string& text, absl::string_view name,
            const OperandDesc& operand, DataKind data) {
  absl::StrAppend(
      &text, "\n  ", name, ": ", core::NameOf(operand.element_type), " ",
      core::NameOf(operand.unary), " modes ", core::ToString(operand.modes),
      " extents ", core::ToString(operand.layout.extents), " strides ",
      core::ToString(operand.layout.strides), " data ", static_cast<int>(data));
}

template <typename Desc>
std::string DescribeCase(const Case<Desc>& c, absl::string_view operation) {
  std::string text = absl::StrCat(
      operation, " in ", core::NameOf(c.desc.compute_type), ", alpha ",
      c.alpha.real, "+", c.alpha.imaginary, "i, beta ", c.beta.real, "+",
      c.beta.imaginary, "i, gamma ", c.gamma.real, "+", c.gamma.imaginary,
      "i, alias ", static_cast<int>(c.alias), ", seed ", c.seed);
  if constexpr (requires { c.desc.op; }) {
    absl::StrAppend(&text, ", op ", core::NameOf(c.desc.op));
  }
  if constexpr (requires { c.desc.along; }) {
    if (c.desc.along) {
      absl::StrAppend(&text, ", along ", core::ToString(c.desc.along->mode),
                      ", sorting ", static_cast<int>(c.desc.along->sorting));
    }
  }
  if constexpr (requires { c.desc.op_ab; }) {
    absl::StrAppend(&text, ", op_ab ", core::NameOf(c.desc.op_ab), ", op_abc ",
                    core::NameOf(c.desc.op_abc));
  }
  Append(text, "a", c.desc.a, c.data_a);
  if constexpr (requires { c.desc.b.layout; }) {
    Append(text, "b", c.desc.b, c.data_b);
  } else if constexpr (requires { c.desc.b; }) {
    if (c.desc.b) Append(text, "b", *c.desc.b, c.data_b);
  }
  if constexpr (requires { c.desc.c.layout; }) {
    Append(text, "c", c.desc.c, c.data_c);
  } else if constexpr (requires { c.desc.c; }) {
    if (c.desc.c) Append(text, "c", *c.desc.c, c.data_c);
  }
  Append(text, "d", c.desc.d, DataKind::kNan);
  return text;
}

}  // namespace

DataKind DataFor(UnaryOperator op) {
  switch (op) {
    case UnaryOperator::kSqrt:
    case UnaryOperator::kRcp:
    case UnaryOperator::kLog: return DataKind::kPositive;
    case UnaryOperator::kAcosh: return DataKind::kAboveOne;
    case UnaryOperator::kAsin:
    case UnaryOperator::kAcos:
    case UnaryOperator::kAtanh:
    case UnaryOperator::kTan: return DataKind::kUniform;
    case UnaryOperator::kIdentity:
    case UnaryOperator::kConj: return DataKind::kUniform;
    default: return DataKind::kWide;
  }
}

Case<core::PermutationDesc> RandomPermutation(std::mt19937& rng) {
  const auto types = PickFrom(rng, core::PermutationTypeTable());
  Labels labels = RandomLabels(rng, RandomRank(rng), 4000);
  MaybeEmpty(rng, labels);
  Case<core::PermutationDesc> random;
  random.desc.compute_type = types.compute;
  const bool drops_parts = HasParts(types.a) && !HasParts(types.d);
  random.desc.d = RandomOperand(rng, types.d, labels);
  random.desc.a =
      RandomOperand(rng, types.a, Variant(rng, labels, Chance(rng, 20)));
  MaybeOverlap(rng, random.desc.a);
  const auto is_possible = [&](UnaryOperator op) {
    const bool makes_real = op == UnaryOperator::kReal ||
                            op == UnaryOperator::kImag ||
                            op == UnaryOperator::kAbs;
    return core::ValidateUnary(op, types.d, "x").ok() &&
           (makes_real || !drops_parts);
  };
  do {
    random.desc.a.unary = RandomUnary(rng, types.a);
  } while (!is_possible(random.desc.a.unary));
  random.data_a = DataFor(random.desc.a.unary);
  random.alpha = RandomFactor(rng, types.d);
  FinishCase(rng, random);
  return random;
}

Case<core::ElementwiseDesc> RandomElementwise(std::mt19937& rng) {
  const auto types = PickFrom(rng, core::ElementwiseTypeTable());
  Labels labels = RandomLabels(rng, RandomRank(rng), 3000);
  MaybeEmpty(rng, labels);
  Case<core::ElementwiseDesc> random;
  core::ElementwiseDesc& desc = random.desc;
  desc.compute_type = types.compute;
  desc.op_ab = RandomBinary(rng, types.c, kJoining);
  const bool has_b = Chance(rng, 70);
  do {
    desc.op_abc = RandomBinary(rng, types.c, core::kBinaryOperatorCount);
  } while (core::IsTernary(desc.op_abc) && !has_b);
  const bool is_take = desc.op_abc == BinaryOperator::kTake;
  const bool is_where = desc.op_abc == BinaryOperator::kWhere;
  desc.d = RandomOperand(
      rng, core::IsComparison(desc.op_abc) ? ElementType::kBool : types.c,
      labels);
  const auto input = [&](ElementType type) {
    OperandDesc operand =
        RandomOperand(rng, type, Variant(rng, labels, Chance(rng, 30)));
    if (Chance(rng, 30) && type == desc.d.element_type) operand = desc.d;
    MaybeOverlap(rng, operand);
    operand.unary = RandomUnary(rng, type);
    return operand;
  };
  desc.a = input(types.a);
  if (has_b) desc.b = input(is_where ? ElementType::kBool : types.b);
  desc.c = input(types.c);
  if (is_take) MakeTaken(rng, labels, desc);
  random.data_a = DataFor(desc.a.unary);
  random.data_b = desc.b ? DataFor(desc.b->unary) : DataKind::kUniform;
  random.data_c = DataFor(desc.c.unary);
  random.alpha = RandomFactor(rng, types.c);
  random.beta = RandomFactor(rng, is_where ? ElementType::kBool : types.c);
  random.gamma = RandomFactor(rng, types.c);
  if (is_take) {
    random.data_b = DataKind::kSmallIntegers;
    random.beta = PickFrom(
        rng, std::array<Scalar, 4>{core::kOne, core::kOne, {-1, 0}, {0, 0}});
    // Of others than those there are, a c has to be taken.
    if (desc.a.layout.extents[desc.taken()] < 10 ||
        desc.b->element_type == ElementType::kUint8) {
      random.gamma = core::kOne;
    }
  }
  const auto is_steep = [](BinaryOperator op) {
    return op == BinaryOperator::kDiv || op == BinaryOperator::kPow;
  };
  if (is_steep(desc.op_abc) ||
      (has_b && !core::IsTernary(desc.op_abc) && is_steep(desc.op_ab))) {
    MakeTame(rng, random);
  } else if (core::IsComparison(desc.op_abc) && Chance(rng, 50)) {
    random.data_a = random.data_b = random.data_c = DataKind::kSmallIntegers;
    desc.a.unary = desc.c.unary = UnaryOperator::kIdentity;
  }
  const auto is_d = [&](const OperandDesc& x) {
    return x.element_type == desc.d.element_type && x.modes == desc.d.modes &&
           x.layout == desc.d.layout;
  };
  if (Chance(rng, 60)) {
    if (is_d(desc.c)) {
      random.alias = Alias::kDIsC;
    } else if (!is_take && is_d(desc.a)) {
      random.alias = Alias::kDIsA;
    } else if (desc.b && is_d(*desc.b)) {
      random.alias = Alias::kDIsB;
    }
  }
  if (types.compute == core::ComputeType::kFloat16 &&
      (desc.op_ab == BinaryOperator::kMul ||
       desc.op_abc == BinaryOperator::kMul)) {
    random.unbounded = "products of exponentials are beyond float16";
  }
  FinishCase(rng, random);
  return random;
}

/// Along a mode of a, with all of its modes in d, and sorted or not.
void GoAlong(std::mt19937& rng, const Labels& labels, Labels& kept,
             core::ReductionTypes& types, core::ReductionDesc& desc) {
  kept = labels;
  desc.along = core::Along{PickFrom(rng, labels).mode};
  if (core::IsComplex(types.a) || !Chance(rng, 40)) return;
  desc.along->sorting =
      Chance(rng, 50) ? core::Sorting::kAscending : core::Sorting::kDescending;
  types.c = ElementType::kInt64;
  types.compute = core::ComputeType::kInteger;
}

Case<core::ReductionDesc> RandomReduction(std::mt19937& rng) {
  auto types = PickFrom(rng, core::ReductionTypeTable());
  const int64_t budget = Chance(rng, 10) ? 40000 : 4000;
  Labels labels = RandomLabels(rng, RandomRank(rng), budget);
  Case<core::ReductionDesc> random;
  core::ReductionDesc& desc = random.desc;
  desc.compute_type = types.compute;
  desc.op = RandomBinary(rng, types.a, kReducing);
  Labels kept;
  for (const RandomLabel& label : labels) {
    if (Chance(rng, 50)) kept.push_back(label);
  }
  if (!labels.empty() && Chance(rng, 30)) {
    GoAlong(rng, labels, kept, types, desc);
    desc.compute_type = types.compute;
  }
  MaybeEmpty(rng, labels);
  for (RandomLabel& label : kept) {
    for (const RandomLabel& of_a : labels) {
      if (of_a.mode == label.mode) label.extent = of_a.extent;
    }
  }
  desc.a = RandomOperand(rng, types.a, labels);
  MaybeOverlap(rng, desc.a);
  desc.a.unary =
      desc.sorts() || (desc.op == BinaryOperator::kMul && !IsWhole(types.a))
          ? UnaryOperator::kIdentity
          : RandomUnary(rng, types.a);
  random.data_a = desc.sorts() && Chance(rng, 50)   ? DataKind::kSmallIntegers
                  : desc.op == BinaryOperator::kMul ? DataKind::kNearOne
                                                    : DataFor(desc.a.unary);
  desc.d = RandomOperand(rng, types.c, Variant(rng, kept, false));
  random.alpha = RandomFactor(rng, types.c);
  if (Chance(rng, 60)) {
    desc.c = RandomAddend(rng, desc.d);
    desc.c->unary = RandomUnary(rng, types.c);
    random.data_c = DataFor(desc.c->unary);
    random.beta = RandomFactor(rng, types.c);
    if (desc.c->layout == desc.d.layout && Chance(rng, 60)) {
      random.alias = Alias::kDIsC;
    }
  }
  FinishCase(rng, random);
  return random;
}

Case<core::ContractionDesc> RandomContraction(std::mt19937& rng) {
  const auto types = PickFrom(rng, core::ContractionTypeTable());
  const Labels labels = [&] {
    const int rank = Chance(rng, 95) ? Pick(rng, 8) : 8 + Pick(rng, 5);
    Labels some = RandomLabels(rng, rank, 30000);
    MaybeEmpty(rng, some);
    return some;
  }();
  Labels of_a, of_b, of_d;
  for (const RandomLabel& label : labels) {
    // Summed over, free in a, free in b most often; batch; in one input only.
    const int kind =
        PickFrom(rng, std::array{0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 4, 5});
    if (kind == 0 || kind == 1 || kind == 3 || kind == 4) of_a.push_back(label);
    if (kind == 0 || kind == 2 || kind == 3 || kind == 5) of_b.push_back(label);
    if (kind == 1 || kind == 2 || kind == 3) of_d.push_back(label);
  }
  Case<core::ContractionDesc> random;
  core::ContractionDesc& desc = random.desc;
  desc.compute_type = types.compute;
  desc.a = RandomOperand(rng, types.a, Variant(rng, of_a, false));
  desc.b = RandomOperand(rng, types.b, Variant(rng, of_b, false));
  desc.d = RandomOperand(rng, types.c, Variant(rng, of_d, false));
  MaybeOverlap(rng, desc.a);
  MaybeOverlap(rng, desc.b);
  if (Chance(rng, 30)) desc.a.unary = UnaryOperator::kConj;
  if (Chance(rng, 30)) desc.b.unary = UnaryOperator::kConj;
  random.alpha = RandomFactor(rng, types.c);
  if (Chance(rng, 60)) {
    desc.c = RandomAddend(rng, desc.d);
    if (Chance(rng, 30)) desc.c->unary = UnaryOperator::kConj;
    random.beta = RandomFactor(rng, types.c);
    if (desc.c->layout == desc.d.layout && Chance(rng, 60)) {
      random.alias = Alias::kDIsC;
    }
  }
  if (Chance(rng, 20)) random.data_a = DataKind::kSmallIntegers;
  FinishCase(rng, random);
  return random;
}

std::string Describe(const Case<core::PermutationDesc>& c) {
  return DescribeCase(c, "permutation");
}
std::string Describe(const Case<core::ElementwiseDesc>& c) {
  return DescribeCase(c, "element-wise");
}
std::string Describe(const Case<core::ReductionDesc>& c) {
  return DescribeCase(c, "reduction");
}
std::string Describe(const Case<core::ContractionDesc>& c) {
  return DescribeCase(c, "contraction");
}

}  // namespace tensord::test
