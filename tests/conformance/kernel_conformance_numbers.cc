// What kernels owe to special numbers, factors and aliases.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>

#include "core/ops/type_tables.h"
#include "tests/conformance/kernel_conformance.h"
#include "tests/testing/element_types.h"
#include "tests/testing/operands.h"

namespace tensord::test {
namespace {

using core::BinaryOperator;
using core::ComputeType;
using core::ElementType;
using core::UnaryOperator;

using tensord::test::kF16;
using tensord::test::kF32;
using tensord::test::kF64;

constexpr std::array<ElementType, 6> kFloatingTypes = {
    ElementType::kFloat16, ElementType::kBfloat16,  ElementType::kFloat32,
    ElementType::kFloat64, ElementType::kComplex64, ElementType::kComplex128};

ComputeType ComputeFor(ElementType type) {
  return core::DefaultComputeType(type);
}

Case<core::ContractionDesc> MatrixProduct(ElementType type, int64_t m,
                                          int64_t n, int64_t k) {
  return {.desc = {.a = Packed(type, "mk", {m, k}),
                   .b = Packed(type, "kn", {k, n}),
                   .c = Packed(type, "mn", {m, n}),
                   .d = Packed(type, "mn", {m, n}),
                   .compute_type = ComputeFor(type)}};
}

Case<core::ReductionDesc> RowSums(ElementType type, int64_t rows,
                                  int64_t columns) {
  return {.desc = {.a = Packed(type, "ij", {rows, columns}),
                   .c = Packed(type, "i", {rows}),
                   .d = Packed(type, "i", {rows}),
                   .compute_type = ComputeFor(type)}};
}

Case<core::ElementwiseDesc> Trinary(ElementType type, int64_t rows,
                                    int64_t columns) {
  return {.desc = {.a = Packed(type, "ji", {columns, rows}),
                   .b = Packed(type, "ij", {rows, columns}),
                   .c = Packed(type, "ij", {rows, columns}),
                   .d = Packed(type, "ij", {rows, columns}),
                   .compute_type = ComputeFor(type)},
          .beta = core::kOne,
          .gamma = core::kOne};
}

// A1.7, A3.5, A4.13: an input whose factor is zero may hold NaN or be null.
TEST_P(KernelConformance, ZeroFactorLeavesItsOperandUnread) {
  for (const ElementType type : kFloatingTypes) {
    for (const bool omits : {false, true}) {
      for (const double beta : {0.0, 1.0, 0.5}) {
        auto product = MatrixProduct(type, 17, 13, 19);
        product.alpha = core::kZero;
        product.beta = {beta, 0};
        product.omits_unused = omits;
        runner_.Check(product);
        product.alpha = {beta, 0};
        product.beta = core::kZero;
        runner_.Check(product);
        auto sums = RowSums(type, 17, 33);
        sums.alpha = core::kZero;
        sums.beta = {beta, 0};
        sums.omits_unused = omits;
        runner_.Check(sums);
        sums.alpha = {beta, 0};
        sums.beta = core::kZero;
        runner_.Check(sums);
      }
      runner_.Check(Case<core::PermutationDesc>{
          .desc = {.a = Packed(type, "ji", {33, 18}, UnaryOperator::kSqrt),
                   .d = Packed(type, "ij", {18, 33}),
                   .compute_type = ComputeFor(type)},
          .alpha = core::kZero,
          .omits_unused = omits});
      for (int zeros = 1; zeros < 8; ++zeros) {
        auto trinary = Trinary(type, 18, 33);
        trinary.desc.a.unary = UnaryOperator::kSqrt;
        trinary.data_a = DataKind::kPositive;
        trinary.omits_unused = omits;
        if (zeros & 1) trinary.alpha = core::kZero;
        if (zeros & 2) trinary.beta = core::kZero;
        if (zeros & 4) trinary.gamma = core::kZero;
        runner_.Check(trinary);
        trinary.desc.op_ab = BinaryOperator::kMul;
        runner_.Check(trinary);
      }
    }
  }
}

// A1.9, A4.14: d may be c, and in element-wise operations a or b, too.
TEST_P(KernelConformance, WritesInPlace) {
  for (const ElementType type : kFloatingTypes) {
    auto product = MatrixProduct(type, 65, 47, 31);
    product.beta = {0.5, 0};
    product.alias = Alias::kDIsC;
    runner_.Check(product);
    auto sums = RowSums(type, 65, 130);
    sums.beta = {-1, 0};
    sums.alias = Alias::kDIsC;
    runner_.Check(sums);
    auto trinary = Trinary(type, 65, 70);
    trinary.alias = Alias::kDIsB;
    runner_.Check(trinary);
    trinary.alias = Alias::kDIsC;
    runner_.Check(trinary);
    trinary.desc.a = trinary.desc.d;
    trinary.alias = Alias::kDIsA;
    runner_.Check(trinary);
  }
}

// A5.3: NaN anywhere in a row makes its maximum and minimum NaN.
TEST_P(KernelConformance, MaxAndMinPropagateNan) {
  constexpr int64_t kColumns = 67;
  for (const ElementType type : {kF16, kF32, kF64}) {
    for (const BinaryOperator op :
         {BinaryOperator::kMax, BinaryOperator::kMin}) {
      const core::OperandDesc matrix = Packed(type, "ij", {kColumns, kColumns});
      Case<core::ElementwiseDesc> one_side{
          .desc = {.a = matrix,
                   .c = matrix,
                   .d = matrix,
                   .op_abc = op,
                   .compute_type = ComputeFor(type)},
          .gamma = core::kOne};
      one_side.data_a = DataKind::kNan;
      runner_.Check(one_side);
      std::swap(one_side.data_a, one_side.data_c);
      runner_.Check(one_side);
      Case<core::ReductionDesc> all_nan{
          .desc = {.a = matrix,
                   .c = std::nullopt,
                   .d = Packed(type, "i", {kColumns}),
                   .op = op,
                   .compute_type = ComputeFor(type)},
          .data_a = DataKind::kNan};
      runner_.Check(all_nan);
      all_nan.data_a = DataKind::kSparseNan;
      runner_.Check(all_nan);
      all_nan.desc.d = Packed(type, "j", {kColumns});
      runner_.Check(all_nan);
    }
  }
}

TEST_P(KernelConformance, ReducesNegativeNumbersToTheirMaximum) {
  for (const ElementType type : {kF16, kF32, kF64, ElementType::kInt32}) {
    Case<core::ReductionDesc> rows{
        .desc = {.a = Packed(type, "ij", {37, 41}, UnaryOperator::kNeg),
                 .c = std::nullopt,
                 .d = Packed(type, "i", {37}),
                 .op = BinaryOperator::kMax,
                 .compute_type = ComputeFor(type)},
        .data_a = DataKind::kPositive};
    runner_.Check(rows);
    rows.desc.d = Packed(type, "j", {41});
    runner_.Check(rows);
  }
}

TEST_P(KernelConformance, ReductionOverNothingGivesTheIdentity) {
  for (const auto& types : core::ReductionTypeTable()) {
    for (int op = 0; op < core::kBinaryOperatorCount; ++op) {
      const auto binary = static_cast<BinaryOperator>(op);
      if (!core::Reduces(binary) ||
          !core::ValidateBinary(binary, types.a).ok()) {
        continue;
      }
      Case<core::ReductionDesc> rows{
          .desc = {.a = Packed(types.a, "ijk", {5, 0, 3}),
                   .c = std::nullopt,
                   .d = Packed(types.c, "ki", {3, 5}),
                   .op = binary,
                   .compute_type = types.compute}};
      runner_.Check(rows);
      rows.desc.c = rows.desc.d;
      rows.beta = core::kOne;
      runner_.Check(rows);
      rows.desc.d = rows.desc.c.emplace(Packed(types.c, "", {}));
      rows.desc.a = Packed(types.a, "i", {0});
      runner_.Check(rows);
    }
  }
}

/// Elements of `type` with those parts, real and imaginary in turn.
std::vector<std::byte> ElementsOf(ElementType type,
                                  const std::vector<float>& parts) {
  const auto bytes = static_cast<size_t>(core::SizeOf(type));
  const size_t each = core::IsComplex(type) ? 2 : 1;
  std::vector<std::byte> elements(parts.size() / each * bytes);
  for (size_t i = 0; i < parts.size() / each; ++i) {
    const Number number(parts[each * i], each == 2 ? parts[2 * i + 1] : 0);
    StoreNumber(type, number, elements.data() + i * bytes);
  }
  return elements;
}

// An infinity times a number that is not 0 in the compute type is one, however
// numbers are rounded or split before; the largest numbers do not become one.
TEST_P(KernelConformance, ContractsInfinitiesAndTheLargestNumbers) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kLargest = std::numeric_limits<float>::max();
  constexpr float kLargestBfloat16 = 0x1.fep127f;
  const std::vector<float> special = {kInfinity,
                                      1,
                                      0,
                                      -kInfinity,
                                      2,
                                      -0.5f,
                                      kInfinity,
                                      -kInfinity,
                                      kLargest,
                                      0x1p-100f,
                                      -kLargest,
                                      std::bit_cast<float>(0x7f800001u),
                                      0x1.ffdp99f,
                                      0x1p-126f,
                                      kLargestBfloat16,
                                      0};
  for (const auto& types : core::ContractionTypeTable()) {
    if (core::RealPartOf(types.a) != kF32 || types.a != types.b) continue;
    const auto count = static_cast<int64_t>(special.size()) /
                       (core::IsComplex(types.a) ? 2 : 1);
    const bool rounds = types.compute != ComputeType::kFloat32;
    const std::string unbounded =
        rounds                     ? "the largest numbers may be rounded up"
        : core::IsComplex(types.a) ? "parts of the largest numbers are added"
                                   : "";
    runner_.Check(Case<core::ContractionDesc>{
        .desc = {.a = Packed(types.a, "m", {count}),
                 .b = Packed(types.b, "n", {5}),
                 .c = std::nullopt,
                 .d = Packed(types.c, "mn", {count, 5}),
                 .compute_type = types.compute},
        .bits_of_a = ElementsOf(types.a, special),
        .unbounded = unbounded});
    runner_.Check(Case<core::ContractionDesc>{
        .desc = {.a = Packed(types.a, "mk", {count / 8, 8}),
                 .b = Packed(types.b, "kn", {8, 5}),
                 .c = std::nullopt,
                 .d = Packed(types.c, "mn", {count / 8, 5}),
                 .compute_type = types.compute},
        .bits_of_a = ElementsOf(types.a, special),
        .unbounded = unbounded});
  }
}

// Numbers without their fraction, the nearest ones beyond the range, 0 of NaN;
// and what is rounded twice on its way to a half if it passes float32.
TEST_P(KernelConformance, ConvertsNumbersAtTheEndsOfRanges) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> special = {std::numeric_limits<float>::quiet_NaN(),
                                      kInfinity,
                                      -kInfinity,
                                      0.9f,
                                      -0.9f,
                                      1,
                                      -1.5f,
                                      126.9f,
                                      127,
                                      127.9f,
                                      128,
                                      -128,
                                      -128.9f,
                                      -129,
                                      255,
                                      255.9f,
                                      256,
                                      32767,
                                      32768,
                                      -32768,
                                      -32769,
                                      0x1p31f,
                                      -0x1p31f,
                                      0x1p62f,
                                      0x1p63f,
                                      -0x1p63f,
                                      -0x1p64f,
                                      0x1p100f,
                                      -0x1p100f,
                                      0x1p-20f,
                                      -0.0f,
                                      65504};
  for (const auto& types : core::PermutationTypeTable()) {
    if (core::IsInteger(types.a) || core::IsComplex(types.a) ||
        !core::IsInteger(types.d)) {
      continue;
    }
    runner_.Check(
        Case<core::PermutationDesc>{.desc = {.a = Packed(types.a, "i", {32}),
                                             .d = Packed(types.d, "i", {32}),
                                             .compute_type = types.compute},
                                    .bits_of_a = ElementsOf(types.a, special)});
  }
  // Half-way between two halves but for what float32 does not hold.
  for (const double half_way : {1 + 0x1p-11, 1 + 0x3p-11, 1 + 0x1p-8}) {
    std::vector<std::byte> bits;
    for (const double x :
         {half_way + 0x1p-40, half_way - 0x1p-40, -half_way - 0x1p-40, half_way,
          -half_way + 0x1p-40, 0x1p-25 + 0x1p-60}) {
      bits.resize(bits.size() + sizeof(x));
      StoreNumber(kF64, Number(x), bits.data() + bits.size() - sizeof(x));
    }
    for (const ElementType type : {kF16, ElementType::kBfloat16}) {
      runner_.Check(Case<core::PermutationDesc>{
          .desc = {.a = Packed(kF64, "i", {6}),
                   .d = Packed(type, "i", {6}),
                   .compute_type = ComputeType::kFloat64},
          .bits_of_a = bits});
    }
  }
}

TEST_P(KernelConformance, ContractionOverNothingGivesBetaC) {
  for (const auto& types : core::ContractionTypeTable()) {
    Case<core::ContractionDesc> product{
        .desc = {.a = Packed(types.a, "mk", {5, 0}),
                 .b = Packed(types.b, "kn", {0, 7}),
                 .c = Packed(types.c, "mn", {5, 7}),
                 .d = Packed(types.c, "mn", {5, 7}),
                 .compute_type = types.compute},
        .beta = core::kOne};
    runner_.Check(product);
    product.beta = core::kZero;
    runner_.Check(product);
    product.desc.a = Packed(types.a, "mx", {5, 0});
    product.desc.b = Packed(types.b, "n", {7});
    runner_.Check(product);
    product.desc.a = Packed(types.a, "m", {5});
    product.desc.b = Packed(types.b, "xn", {0, 7});
    runner_.Check(product);
  }
}

TEST_P(KernelConformance, SumsAreTreesWhoseErrorGrowsWithTheLogarithm) {
  for (const ElementType type : {kF32, ElementType::kComplex64}) {
    Case<core::ReductionDesc> sum{
        .desc = {.a = Packed(type, "i", {1'000'003}),
                 .c = std::nullopt,
                 .d = Packed(type, "", {}),
                 .compute_type = ComputeType::kFloat32},
        .data_a = DataKind::kPositive};
    runner_.Check(sum);
    sum.desc.a = Packed(type, "ij", {3, 300'007});
    sum.desc.d = Packed(type, "i", {3});
    runner_.Check(sum);
    sum.desc.a = Packed(type, "ij", {50'021, 5});
    sum.desc.d = Packed(type, "j", {5});
    runner_.Check(sum);
    // Every other element: lanes cannot be loaded straight.
    sum.desc.a = Strided(type, "i", {200'003}, {2});
    sum.desc.d = Packed(type, "", {});
    runner_.Check(sum);
  }
}

// A5.7: the sums are exact, so that only a wrong one is another.
TEST_P(KernelConformance, ReductionsGiveTheSameWithAndWithoutWorkspace) {
  static_assert(core::kBufferAlignment % 128 == 0);
  const Case<core::ReductionDesc> sum{
      .desc = {.a = Packed(kF32, "i", {200'000}),
               .c = std::nullopt,
               .d = Packed(kF32, "", {})},
      .data_a = DataKind::kSmallIntegers};
  int64_t least = std::numeric_limits<int64_t>::max(), most = 0;
  for (const auto& kernel : runner_.backend().kernels().reduction) {
    const auto solution = kernel->Solve(Canonicalize(sum.desc));
    if (!solution.ok()) continue;
    least = std::min(least, (*solution)->workspace_bytes());
    most = std::max(most, (*solution)->workspace_bytes());
  }
  EXPECT_EQ(least, 0);
  EXPECT_GT(most, 0);
  const KernelRunner::Images images = runner_.Run(sum);
  for (const auto& [kernel, image] : images) {
    EXPECT_EQ(image, images.begin()->second) << kernel;
  }
}

/// Bits of `type` chosen to trip arithmetic: signalling and quiet NaNs with
/// payloads, subnormals, negative zero, infinities, and plain random ones.
uint64_t AwkwardBits(int64_t bytes, std::mt19937& rng) {
  constexpr std::array<uint64_t, 6> k16 = {0x7c01, 0x7fff, 0xfe2a,
                                           0x0001, 0x8000, 0xfc00};
  constexpr std::array<uint64_t, 6> k32 = {0x7f800001, 0x7fc12345, 0xffffffff,
                                           0x00000001, 0x80000000, 0x807fffff};
  constexpr std::array<uint64_t, 6> k64 = {
      0x7ff0000000000001, 0x7ff8123456789abc, 0xffffffffffffffff,
      0x0000000000000001, 0x8000000000000000, 0x800fffffffffffff};
  const uint64_t random = uint64_t{rng()} << 32 | rng();
  const size_t at = rng() % 8;
  if (at >= 6) return random;
  return bytes == 2 ? k16[at] : bytes == 4 ? k32[at] : k64[at];
}

// A3.1 with alpha == 1: bits are moved, not numbers.
TEST_P(KernelConformance, PermutationMovesBits) {
  constexpr int64_t kRows = 37, kColumns = 50;
  for (const ElementType type : kFloatingTypes) {
    SCOPED_TRACE(core::NameOf(type));
    const int64_t bytes = core::SizeOf(type);
    const int64_t part = HasParts(type) ? bytes / 2 : bytes;
    const core::PermutationDesc desc{
        .a = Packed(type, "ji", {kColumns, kRows}),
        .d = Strided(type, "ij", {kRows, kColumns}, {1, kRows + 3}),
        .compute_type = ComputeFor(type)};
    std::mt19937 rng(1);
    std::vector<std::byte> bits(static_cast<size_t>(kRows * kColumns * bytes));
    for (int64_t at = 0; at < kRows * kColumns * bytes; at += part) {
      const uint64_t awkward = AwkwardBits(part, rng);
      std::memcpy(&bits[static_cast<size_t>(at)], &awkward,
                  static_cast<size_t>(part));
    }
    const KernelRunner::Images images = runner_.Run(
        Case<core::PermutationDesc>{.desc = desc, .bits_of_a = bits});
    for (const auto& [kernel, image] : images) {
      SCOPED_TRACE(kernel);
      int64_t wrong = 0;
      for (int64_t i = 0; i < kRows; ++i) {
        for (int64_t j = 0; j < kColumns; ++j) {
          const int64_t from = (j + i * kColumns) * bytes;
          const int64_t to = (i + j * (kRows + 3)) * bytes;
          wrong += std::memcmp(&bits[static_cast<size_t>(from)],
                               &image[static_cast<size_t>(to)],
                               static_cast<size_t>(bytes)) != 0;
        }
      }
      EXPECT_EQ(wrong, 0) << "elements whose bits differ";
    }
  }
}

}  // namespace
}  // namespace tensord::test
