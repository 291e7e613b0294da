// The rows of the feature checklist that concern operations, one by one, from
// Desc to result: ids in comments are those of the checklist.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/backend/cpu/cpu_backend.h"
#include "core/ops/type_tables.h"
#include "gtest/gtest.h"
#include "tests/conformance/kernel_runner.h"
#include "tests/testing/element_types.h"
#include "tests/testing/operands.h"

namespace tensord::test {
namespace {

using core::BinaryOperator;
using core::ComputeType;
using core::ElementType;
using core::Scalar;
using core::UnaryOperator;

using tensord::test::kBf16;
using tensord::test::kC128;
using tensord::test::kC64;
using tensord::test::kF16;
using tensord::test::kF32;
using tensord::test::kF64;
using enum ComputeType;

KernelRunner CpuRunner() {
  return KernelRunner(
      {.name = "Cpu",
       .create =
           [](int thread_count) {
             return core::CreateCpuBackend({.thread_count = thread_count});
           },
       .uses_host_memory = true,
       .case_stride = 1},
      2);
}

// ---- A1, A2: element-wise -------------------------------------------------

class ElementwiseRows : public ::testing::Test {
 protected:
  static Case<core::ElementwiseDesc> Make(const core::OperandDesc& a,
                                          std::optional<core::OperandDesc> b,
                                          const core::OperandDesc& d) {
    return {.desc = {.a = a,
                     .b = std::move(b),
                     .c = d,
                     .d = d,
                     .compute_type = core::DefaultComputeType(d.element_type)},
            .alpha = {1.5, 0},
            .beta = {-2, 0},
            .gamma = {0.5, 0}};
  }
  KernelRunner runner_ = CpuRunner();
};

// A1.1, the formulas of the function reference.
TEST_F(ElementwiseRows, PermutesEitherInput) {
  runner_.Check(Make(Packed(kF32, "ba", {5, 4}), Packed(kF32, "cab", {6, 4, 5}),
                     Packed(kF32, "abc", {4, 5, 6})));
  runner_.Check(Make(Packed(kF32, "whcn", {7, 6, 5, 4}),
                     Packed(kF32, "nchw", {4, 5, 6, 7}),
                     Packed(kF32, "chwn", {5, 6, 7, 4})));
}

// A1.2, A2.1
TEST_F(ElementwiseRows, BroadcastsOmittedModes) {
  runner_.Check(
      Make(Packed(kF32, "b", {5}), std::nullopt, Packed(kF32, "ab", {4, 5})));
  auto outer = Make(Packed(kF32, "b", {5}), Packed(kF32, "c", {6}),
                    Packed(kF32, "abc", {4, 5, 6}));
  outer.desc.op_ab = BinaryOperator::kMul;
  runner_.Check(outer);
  // c may omit modes, too.
  outer.desc.c = Packed(kF32, "", {});
  runner_.Check(outer);
}

// A1.5, and of the operators that are this project's own.
TEST_F(ElementwiseRows, EveryPairOfBinaryOperators) {
  for (int ab = 0; ab < core::kBinaryOperatorCount; ++ab) {
    for (int abc = 0; abc < core::kBinaryOperatorCount; ++abc) {
      auto trinary = Make(Packed(kF64, "ba", {9, 8}), Packed(kF64, "a", {8}),
                          Packed(kF64, "ab", {8, 9}));
      trinary.desc.op_ab = static_cast<BinaryOperator>(ab);
      trinary.desc.op_abc = static_cast<BinaryOperator>(abc);
      if (core::IsComparison(trinary.desc.op_abc)) {
        trinary.desc.d.element_type = ElementType::kBool;
      }
      if (trinary.desc.op_abc == BinaryOperator::kWhere) {
        trinary.desc.b->element_type = ElementType::kBool;
      }
      if (!core::Validate(trinary.desc).ok()) continue;  // others' own tests
      // Of which powers are defined, and quotients have a bound.
      trinary.beta = {2, 0};
      trinary.data_a = trinary.data_b = trinary.data_c = DataKind::kAboveOne;
      runner_.Check(trinary);
    }
  }
}

// A1.6: each of the operators on each operand and class of types.
TEST_F(ElementwiseRows, EveryUnaryOperatorOnEveryOperand) {
  for (int i = 0; i < core::kUnaryOperatorCount; ++i) {
    const auto op = static_cast<UnaryOperator>(i);
    for (const ElementType type :
         {kF16, kBf16, kF32, kF64, kC64, kC128, ElementType::kInt16}) {
      if (!core::ValidateUnary(op, type, "a").ok()) continue;
      for (int operand = 0; operand < 3; ++operand) {
        auto trinary =
            Make(Packed(type, "ba", {37, 11}), Packed(type, "ab", {11, 37}),
                 Packed(type, "ab", {11, 37}));
        trinary.alpha = trinary.beta = trinary.gamma = {1, 0};
        (operand == 0   ? trinary.desc.a
         : operand == 1 ? *trinary.desc.b
                        : trinary.desc.c)
            .unary = op;
        (operand == 0   ? trinary.data_a
         : operand == 1 ? trinary.data_b
                        : trinary.data_c) = DataFor(op);
        runner_.Check(trinary);
      }
    }
  }
}

// A1.9: in place on each input that has d's layout and mode order.
TEST_F(ElementwiseRows, OutputMayBeAnyInput) {
  const core::OperandDesc d = Packed(kF32, "ab", {33, 20});
  for (const Alias alias : {Alias::kDIsA, Alias::kDIsB, Alias::kDIsC}) {
    auto trinary = Make(d, d, d);
    trinary.alias = alias;
    runner_.Check(trinary);
  }
}

// A1.14
TEST_F(ElementwiseRows, EveryOperandMayBeAView) {
  auto views = Make(Strided(kF32, "ab", {7, 9}, {3, 40}),
                    Strided(kF32, "ba", {9, 7}, {2, 25}),
                    Strided(kF32, "ab", {7, 9}, {11, 1}));
  views.desc.c = Strided(kF32, "ba", {9, 7}, {8, 90});
  runner_.Check(views);
}

// A1.T1 ... A1.T11, A2's binary rows.
TEST_F(ElementwiseRows, EveryTypeRow) {
  constexpr std::array<core::ElementwiseTypes, 11> kRows = {{
      {kF16, kF16, kF16, kFloat16},
      {kF16, kF16, kF16, kFloat32},
      {kBf16, kBf16, kBf16, kBfloat16},
      {kBf16, kBf16, kBf16, kFloat32},
      {kF32, kF32, kF32, kFloat32},
      {kF64, kF64, kF64, kFloat64},
      {kC64, kC64, kC64, kFloat32},
      {kC128, kC128, kC128, kFloat64},
      {kF32, kF32, kF16, kFloat32},
      {kF64, kF64, kF32, kFloat64},
      {kC128, kC128, kC64, kFloat64},
  }};
  for (const auto& [a, b, c, compute] : kRows) {
    auto trinary = Make(Packed(a, "kij", {5, 6, 7}), Packed(b, "ji", {7, 6}),
                        Packed(c, "ijk", {6, 7, 5}));
    trinary.desc.compute_type = compute;
    runner_.Check(trinary);
    if (HasParts(c)) {
      trinary.alpha = {0.5, -1.5};
      trinary.gamma = {0, 1};
      trinary.desc.b->unary = UnaryOperator::kConj;
      runner_.Check(trinary);
    }
    trinary.desc.b = std::nullopt;
    runner_.Check(trinary);
  }
}

// ---- A3: permutation ------------------------------------------------------

class PermutationRows : public ::testing::Test {
 protected:
  KernelRunner runner_ = CpuRunner();
};

// A3.2, A3.3, A3.5
TEST_F(PermutationRows, ScalesBroadcastsAndLeavesTheInputAtZero) {
  Case<core::PermutationDesc> permutation{
      .desc = {.a = Packed(kF32, "b", {5}, UnaryOperator::kSqrt),
               .d = Packed(kF32, "ab", {4, 5})},
      .alpha = {-2.5, 0},
      .data_a = DataKind::kPositive};
  runner_.Check(permutation);
  permutation.alpha = core::kZero;
  runner_.Check(permutation);
}

// A3.6: the 14 rows of the permutation table.
TEST_F(PermutationRows, EveryTypeRow) {
  constexpr std::array<core::PermutationTypes, 14> kRows = {{
      {kF16, kF16, kFloat16},
      {kF16, kF16, kFloat32},
      {kF16, kF32, kFloat32},
      {kF32, kF16, kFloat32},
      {kBf16, kBf16, kBfloat16},
      {kBf16, kBf16, kFloat32},
      {kF32, kF32, kFloat32},
      {kF64, kF64, kFloat64},
      {kF32, kF64, kFloat64},
      {kF64, kF32, kFloat64},
      {kC64, kC64, kFloat32},
      {kC128, kC128, kFloat64},
      {kC64, kC128, kFloat64},
      {kC128, kC64, kFloat64},
  }};
  for (const auto& [a, d, compute] : kRows) {
    for (const Scalar alpha : {core::kOne, Scalar{0.3, 0}}) {
      Case<core::PermutationDesc> permutation{
          .desc = {.a = Packed(a, "cab", {9, 10, 11}),
                   .d = Packed(d, "abc", {10, 11, 9}),
                   .compute_type = compute},
          .alpha = alpha};
      runner_.Check(permutation);
      permutation.desc.a.unary = UnaryOperator::kConj;
      runner_.Check(permutation);
    }
  }
}

// ---- A4: contraction ------------------------------------------------------

class ContractionRows : public ::testing::Test {
 protected:
  static Case<core::ContractionDesc> Make(const core::OperandDesc& a,
                                          const core::OperandDesc& b,
                                          const core::OperandDesc& d) {
    return {.desc = {.a = a,
                     .b = b,
                     .c = d,
                     .d = d,
                     .compute_type = core::DefaultComputeType(d.element_type)},
            .alpha = {1.25, 0},
            .beta = {-0.5, 0}};
  }
  KernelRunner runner_ = CpuRunner();
};

// A4.18: contracted and free modes.
TEST_F(ContractionRows, SumsOverSharedModes) {
  runner_.Check(Make(Packed(kF64, "mhkn", {4, 5, 6, 7}),
                     Packed(kF64, "ukh", {3, 6, 5}),
                     Packed(kF64, "mun", {4, 3, 7})));
  runner_.Check(Make(Packed(kF64, "akbl", {4, 5, 6, 7}),
                     Packed(kF64, "lck", {7, 3, 5}),
                     Packed(kF64, "abc", {4, 6, 3})));
}

// A4.18: batch modes.
TEST_F(ContractionRows, BatchModesStay) {
  runner_.Check(Make(Packed(kF64, "xmk", {4, 5, 6}),
                     Packed(kF64, "knx", {6, 7, 4}),
                     Packed(kF64, "mxn", {5, 4, 7})));
  // Batch modes alone: a product element by element.
  runner_.Check(Make(Packed(kF64, "xy", {4, 5}), Packed(kF64, "yx", {5, 4}),
                     Packed(kF64, "xy", {4, 5})));
}

// C26: tuples count the open modes of a, then those of b, from 1. The last of
// a's has their number itself; it would not fit where b's first one goes.
TEST_F(ContractionRows, OpenModesOfBothInputsComeInAnyOrder) {
  const std::map<char, int64_t> extents = {
      {'a', 2}, {'b', 3}, {'k', 4}, {'c', 5}, {'d', 6}};
  const std::string open_of_a = "ab", open_of_b = "cd";
  std::vector<size_t> tuple = {1, 2, 3, 4};
  do {
    std::string modes_d;
    for (const size_t n : tuple) {
      modes_d += n <= open_of_a.size() ? open_of_a[n - 1]
                                       : open_of_b[n - open_of_a.size() - 1];
    }
    runner_.Check(Make(PackedBy(extents, kF64, "akb"),
                       PackedBy(extents, kF64, "ckd"),
                       PackedBy(extents, kF64, modes_d)));
  } while (std::next_permutation(tuple.begin(), tuple.end()));
}

// A4.18: no contracted mode.
TEST_F(ContractionRows, OuterProduct) {
  runner_.Check(Make(Packed(kF64, "a", {40}), Packed(kF64, "b", {50}),
                     Packed(kF64, "ba", {50, 40})));
}

// A4.18: no free mode.
TEST_F(ContractionRows, FullContractionToAScalar) {
  runner_.Check(Make(Packed(kF64, "abc", {6, 7, 8}),
                     Packed(kF64, "cab", {8, 6, 7}), Packed(kF64, "", {})));
  runner_.Check(
      Make(Packed(kF64, "", {}), Packed(kF64, "", {}), Packed(kF64, "", {})));
}

// A4.18: a mode of one input only.
TEST_F(ContractionRows, ModesOfOneInputAreSummedThere) {
  runner_.Check(Make(Packed(kF64, "mxk", {5, 3, 6}),
                     Packed(kF64, "kyn", {6, 4, 7}),
                     Packed(kF64, "mn", {5, 7})));
}

// A4.13, A4.14
TEST_F(ContractionRows, AddendIsUnreadAtZeroAndMayBeTheOutput) {
  auto product =
      Make(Packed(kF64, "mk", {30, 40}), Packed(kF64, "kn", {40, 20}),
           Packed(kF64, "mn", {30, 20}));
  product.beta = core::kZero;
  runner_.Check(product);  // c is NaN
  product.beta = {2, 0};
  product.alias = Alias::kDIsC;
  runner_.Check(product);
}

// A4.15
TEST_F(ContractionRows, ConjugatesAnyOperand) {
  for (const ElementType type : {kC64, kC128}) {
    for (int conjugated = 0; conjugated < 8; ++conjugated) {
      auto product =
          Make(Packed(type, "mk", {13, 17}), Packed(type, "nk", {11, 17}),
               Packed(type, "mn", {13, 11}));
      product.alpha = {0.5, 2};
      product.beta = {1, -1};
      if (conjugated & 1) product.desc.a.unary = UnaryOperator::kConj;
      if (conjugated & 2) product.desc.b.unary = UnaryOperator::kConj;
      if (conjugated & 4) product.desc.c->unary = UnaryOperator::kConj;
      runner_.Check(product);
    }
  }
}

// A4.T1 ... A4.T13 and the three rows of later versions.
TEST_F(ContractionRows, EveryTypeRow) {
  constexpr std::array<core::ContractionTypes, 16> kRows = {{
      {kF16, kF16, kF16, kFloat32},
      {kBf16, kBf16, kBf16, kFloat32},
      {kF32, kF32, kF32, kFloat32},
      {kF32, kF32, kF32, kTf32},
      {kF32, kF32, kF32, kFloat16},
      {kF64, kF64, kF64, kFloat64},
      {kF64, kF64, kF64, kFloat32},
      {kC64, kC64, kC64, kFloat32},
      {kC64, kC64, kC64, kTf32},
      {kC128, kC128, kC128, kFloat64},
      {kC128, kC128, kC128, kFloat32},
      {kF64, kC128, kC128, kFloat64},
      {kC128, kF64, kC128, kFloat64},
      {kF32, kF32, kF32, kThreeTf32},
      {kF32, kF32, kF32, kBfloat16},
      {kC64, kC64, kC64, kThreeTf32},
  }};
  for (const auto& [a, b, c, compute] : kRows) {
    auto product =
        Make(Packed(a, "mkxl", {12, 5, 3, 6}), Packed(b, "lnk", {6, 14, 5}),
             Packed(c, "nmx", {14, 12, 3}));
    product.desc.compute_type = compute;
    runner_.Check(product);
  }
}

/// Moduli of the elements of d, by name of the kernel.
std::map<std::string, std::vector<Real>, std::less<>> Moduli(
    KernelRunner& runner, const Case<core::ContractionDesc>& c) {
  std::map<std::string, std::vector<Real>, std::less<>> moduli;
  const ElementType type = c.desc.d.element_type;
  for (const auto& [kernel, image] : runner.Run(c)) {
    for (size_t at = 0; at < image.size();
         at += static_cast<size_t>(core::SizeOf(type))) {
      moduli[kernel].push_back(std::abs(LoadNumber(type, &image[at])));
    }
  }
  return moduli;
}

// A4.T4, T5, T7, T9, T11: the compute type shows in the result. 1 + 2^-12 is
// what neither TF32, float16 nor bfloat16 hold, 1 + 2^-30 what float32 does
// not.
TEST_F(ContractionRows, LessPreciseComputeTypesRoundTheirOperands) {
  struct Row {
    ElementType type;
    ComputeType compute;
    double given, seen;
  };
  constexpr double kFine = 1 + 0x1p-12, kFiner = 1 + 0x1p-30;
  constexpr std::array<Row, 10> kRows = {{
      {kF32, kFloat32, kFine, kFine},
      {kF32, kTf32, kFine, 1},
      {kF32, kThreeTf32, kFine, kFine},
      {kF32, kFloat16, kFine, 1},
      {kF32, kBfloat16, kFine, 1},
      {kC64, kTf32, kFine, 1},
      {kC64, kThreeTf32, kFine, kFine},
      {kF64, kFloat64, kFiner, kFiner},
      {kF64, kFloat32, kFiner, 1},
      {kC128, kFloat32, kFiner, 1},
  }};
  for (const auto& [type, compute, given, seen] : kRows) {
    SCOPED_TRACE(::testing::Message()
                 << core::NameOf(type) << " in " << core::NameOf(compute));
    Case<core::ContractionDesc> scalar{
        .desc = {.a = Packed(type, "", {}),
                 .b = Packed(type, "", {}),
                 .c = std::nullopt,
                 .d = Packed(type, "", {}),
                 .compute_type = compute},
        .bits_of_a =
            std::vector<std::byte>(static_cast<size_t>(core::SizeOf(type)))};
    StoreNumber(type, given, scalar.bits_of_a.data());
    auto ones = scalar;
    StoreNumber(type, 1, ones.bits_of_a.data());
    const auto rounded = Moduli(runner_, scalar);
    const auto plain = Moduli(runner_, ones);
    ASSERT_FALSE(rounded.empty());
    for (const auto& [kernel, moduli] : rounded) {
      SCOPED_TRACE(kernel);
      if (seen == 1) {
        EXPECT_EQ(moduli, plain.at(kernel));
      } else {
        EXPECT_NE(moduli, plain.at(kernel));
      }
    }
  }
}

// ---- A5: reduction --------------------------------------------------------

class ReductionRows : public ::testing::Test {
 protected:
  KernelRunner runner_ = CpuRunner();
};

// A5.1, A5.2
TEST_F(ReductionRows, ReducesToAScalarOrToPermutedModes) {
  runner_.Check(
      Case<core::ReductionDesc>{.desc = {.a = Packed(kF32, "ijk", {30, 40, 50}),
                                         .c = std::nullopt,
                                         .d = Packed(kF32, "", {})},
                                .alpha = {0.5, 0}});
  runner_.Check(
      Case<core::ReductionDesc>{.desc = {.a = Packed(kF32, "kji", {30, 40, 50}),
                                         .c = std::nullopt,
                                         .d = Packed(kF32, "ij", {50, 40})},
                                .alpha = {0.5, 0}});
}

// A5.4: the sum of roots, the sum of conjugates, the root of the addend.
TEST_F(ReductionRows, OperatorsApplyBeforeTheReductionAndToTheAddend) {
  Case<core::ReductionDesc> roots{
      .desc = {.a = Packed(kF32, "ij", {21, 34}, UnaryOperator::kSqrt),
               .c = Packed(kF32, "i", {21}, UnaryOperator::kSqrt),
               .d = Packed(kF32, "i", {21})},
      .beta = {2, 0},
      .data_a = DataKind::kPositive,
      .data_c = DataKind::kPositive};
  runner_.Check(roots);
  runner_.Check(Case<core::ReductionDesc>{
      .desc = {.a = Packed(kC64, "ij", {21, 34}, UnaryOperator::kConj),
               .c = Packed(kC64, "j", {34}, UnaryOperator::kConj),
               .d = Packed(kC64, "j", {34})},
      .alpha = {1, 1},
      .beta = {0, -1}});
}

// A5.3, A5.5 and the eight type rows.
TEST_F(ReductionRows, EveryTypeRowWithEveryOperator) {
  constexpr std::array<core::ReductionTypes, 8> kRows = {{
      {kF16, kF16, kFloat16},
      {kF16, kF16, kFloat32},
      {kBf16, kBf16, kBfloat16},
      {kBf16, kBf16, kFloat32},
      {kF32, kF32, kFloat32},
      {kF64, kF64, kFloat64},
      {kC64, kC64, kFloat32},
      {kC128, kC128, kFloat64},
  }};
  for (const auto& [a, c, compute] : kRows) {
    for (int i = 0; i < core::kBinaryOperatorCount; ++i) {
      const auto op = static_cast<BinaryOperator>(i);
      if (!core::Reduces(op) || !core::ValidateBinary(op, a).ok()) continue;
      const bool multiplies = op == BinaryOperator::kMul;
      runner_.Check(Case<core::ReductionDesc>{
          .desc = {.a = Packed(a, "ijk", {6, 15, 7}),
                   .c = Packed(c, "ki", {7, 6}),
                   .d = Packed(c, "ki", {7, 6}),
                   .op = op,
                   .compute_type = compute},
          .alpha = {0.75, 0},
          .beta = {-1.5, 0},
          .data_a = multiplies ? DataKind::kNearOne : DataKind::kUniform,
          .alias = Alias::kDIsC});
    }
  }
}

}  // namespace
}  // namespace tensord::test
