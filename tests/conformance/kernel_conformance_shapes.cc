// Shapes that kernels split, block and special-case, and equal bits twice.
#include <algorithm>
#include <array>
#include <numeric>
#include <string>

#include "core/ops/type_tables.h"
#include "tests/conformance/kernel_conformance.h"
#include "tests/testing/case_share.h"
#include "tests/testing/element_types.h"
#include "tests/testing/operands.h"

namespace tensord::test {
namespace {

using core::BinaryOperator;
using core::ComputeType;
using core::ElementType;
using core::ModeVector;
using core::UnaryOperator;

using tensord::test::kC128;
using tensord::test::kC64;
using tensord::test::kF16;
using tensord::test::kF32;
using tensord::test::kF64;

/// d's modes are a's in the order `order`.
Case<core::PermutationDesc> Permuted(ElementType type,
                                     const ModeVector& extents,
                                     const std::vector<int>& order) {
  std::string modes, permuted;
  ModeVector permuted_extents;
  for (size_t i = 0; i < extents.size(); ++i) {
    modes += static_cast<char>('!' + i);
  }
  for (const int i : order) {
    permuted += modes[static_cast<size_t>(i)];
    permuted_extents.push_back(extents[static_cast<size_t>(i)]);
  }
  return {.desc = {.a = Packed(type, modes, extents),
                   .d = Packed(type, permuted, permuted_extents),
                   .compute_type = core::DefaultComputeType(type)}};
}

void CheckEveryOrder(KernelRunner& runner, ElementType type,
                     const ModeVector& extents) {
  std::vector<int> order(extents.size());
  std::iota(order.begin(), order.end(), 0);
  do {
    runner.Check(Permuted(type, extents, order));
  } while (std::next_permutation(order.begin(), order.end()));
}

// A3.1
TEST_P(KernelConformance, PermutesFiveModesInEveryOrder) {
  for (const ElementType type : {kF16, kF32, kF64, kC128, ElementType::kInt8}) {
    CheckEveryOrder(runner_, type, {4, 7, 3, 9, 5});
  }
}

TEST_P(KernelConformance, PermutesLargeTensorsInEveryOrder) {
  CheckEveryOrder(runner_, kF32, {300, 200, 5});
  CheckEveryOrder(runner_, kF64, {5, 131, 129});
}

TEST_P(KernelConformance, PermutesSixtyFourModes) {
  for (const ElementType type : {kF16, kF32, kC128}) {
    ModeVector extents(64, 1);
    for (size_t i = 0; i < extents.size(); i += 5) extents[i] = 2;
    std::vector<int> order(64);
    std::iota(order.begin(), order.end(), 0);
    std::reverse(order.begin(), order.end());
    runner_.Check(Permuted(type, extents, order));
    std::shuffle(order.begin(), order.end(), std::mt19937(3));
    runner_.Check(Permuted(type, extents, order));
  }
}

TEST_P(KernelConformance, TransposesAroundTheEdgesOfTiles) {
  for (const int64_t rows : {1, 7, 8, 15, 16, 17, 31, 33, 63, 65}) {
    for (const int64_t columns : {1, 8, 9, 16, 31, 32, 64, 67}) {
      for (const ElementType type : {kF16, kF32, kF64, ElementType::kInt8}) {
        runner_.Check(Permuted(type, {rows, columns}, {1, 0}));
      }
    }
  }
}

// Rows that begin at every distance from a multiple of 16 bytes, in a and in d.
TEST_P(KernelConformance, PermutesRunsThatBeginAnywhere) {
  for (const int64_t run : {64, 65, 75, 130}) {
    for (const auto& types : core::PermutationTypeTable()) {
      // Numbers of one kind: how others are converted does not depend on where.
      const bool are_floats =
          !core::IsInteger(types.a) && !core::IsInteger(types.d) &&
          core::IsComplex(types.a) == core::IsComplex(types.d);
      if (types.a != types.d && !are_floats) continue;
      Case<core::PermutationDesc> rows{
          .desc = {.a = Packed(types.a, "ijk", {run, 3, 17}),
                   .d = Packed(types.d, "ikj", {run, 17, 3}),
                   .compute_type = types.compute}};
      runner_.Check(rows);
      rows.alpha = {-3, 0};
      runner_.Check(rows);
    }
    for (const ElementType type : {ElementType::kInt8, ElementType::kInt16}) {
      runner_.Check(Permuted(type, {run, 3, 17}, {0, 2, 1}));
    }
  }
  const auto runs = runner_.records().find("cuda.permute.runs");
  // Of the few cases that a stride leaves, it may decline each.
  if (runs != runner_.records().end() && GetParam().case_stride == 1) {
    EXPECT_GT(runs->second.runs, 0);
  }
}

TEST_P(KernelConformance, PermutationConvertsAndScales) {
  for (const auto& types : core::PermutationTypeTable()) {
    Case<core::PermutationDesc> transpose{
        .desc = {.a = Packed(types.a, "ji", {45, 67}),
                 .d = Packed(types.d, "ij", {67, 45}),
                 .compute_type = types.compute}};
    const auto check = [&] {
      if (core::IsComplex(types.a) && !core::IsComplex(types.d)) {
        transpose.desc.a.unary = UnaryOperator::kImag;
      }
      if (core::IsInteger(types.d)) transpose.data_a = DataKind::kWide;
      runner_.Check(transpose);
    };
    check();
    transpose.alpha = {-3, 0};
    check();
    transpose.desc.a = Packed(types.a, "ij", {67, 45});
    check();
    transpose.desc.a = Packed(types.a, "j", {45});
    check();
    transpose.desc.a = Packed(types.a, "", {});
    check();
  }
}

TEST_P(KernelConformance, ContractsMatricesOfEveryOrientation) {
  struct Shape {
    int64_t m, n, k;
  };
  constexpr std::array<Shape, 8> kShapes = {{{1, 1, 1000},
                                             {1, 129, 65},
                                             {129, 1, 65},
                                             {64, 64, 1},
                                             {33, 47, 129},
                                             {97, 101, 103},
                                             {5, 300, 7},
                                             {130, 17, 260}}};
  for (const auto& types : core::ContractionTypeTable()) {
    for (const auto& [m, n, k] : kShapes) {
      for (const int orientation : SomeOf<int>({0, 1, 2, 3, 4, 5, 6, 7}, 2)) {
        const bool a_turned = orientation & 1;
        const bool b_turned = orientation & 2;
        const bool d_turned = orientation & 4;
        Case<core::ContractionDesc> product{
            .desc = {.a = a_turned ? Packed(types.a, "km", {k, m})
                                   : Packed(types.a, "mk", {m, k}),
                     .b = b_turned ? Packed(types.b, "nk", {n, k})
                                   : Packed(types.b, "kn", {k, n}),
                     .c = std::nullopt,
                     .d = d_turned ? Packed(types.c, "nm", {n, m})
                                   : Packed(types.c, "mn", {m, n}),
                     .compute_type = types.compute},
            .seed = static_cast<uint32_t>(orientation)};
        if (orientation % 2 == 1) {
          product.desc.c = product.desc.d;
          product.alpha = {2, 0};
          product.beta = {-1, 0};
          product.alias = Alias::kDIsC;
        }
        runner_.Check(product);
        // The other orientations would tell the same of the larger shapes.
        if (m * n * k > 200'000 && orientation == 1) break;
      }
    }
  }
}

TEST_P(KernelConformance, MultipliesMatricesByStridedVectors) {
  for (const ElementType type : {kF32, kF64, kC64, kC128}) {
    for (const int64_t stride : {1, 2, 270}) {
      for (int64_t extent = 1; extent < 60; extent += 3) {
        const core::OperandDesc vector = Strided(type, "k", {extent}, {stride});
        Case<core::ContractionDesc> product{
            .desc = {.a = Packed(type, "mk", {2, extent}),
                     .b = vector,
                     .c = std::nullopt,
                     .d = Packed(type, "m", {2}),
                     .compute_type = core::DefaultComputeType(type)}};
        runner_.Check(product);
        product.desc.a = Packed(type, "km", {extent, 5});
        product.desc.d = Strided(type, "m", {5}, {stride});
        runner_.Check(product);
        std::swap(product.desc.a, product.desc.b);
        runner_.Check(product);
      }
    }
  }
}

TEST_P(KernelConformance, ContractsScatteredModes) {
  for (const ElementType type :
       {kF32, kF64, kC64, kC128, kF16, ElementType::kInt16}) {
    const ComputeType compute = core::DefaultComputeType(type);
    // Modes of each group lie apart in every operand.
    Case<core::ContractionDesc> scattered{
        .desc = {.a = Packed(type, "akbl", {13, 5, 7, 9}),
                 .b = Packed(type, "clkd", {6, 9, 5, 11}),
                 .c = std::nullopt,
                 .d = Packed(type, "cadb", {6, 13, 11, 7}),
                 .compute_type = compute}};
    runner_.Check(scattered);
    // No operand has a mode of stride 1.
    Case<core::ContractionDesc> strided{
        .desc = {.a = Strided(type, "mk", {33, 29}, {2, 70}),
                 .b = Strided(type, "kn", {29, 35}, {3, 100}),
                 .c = std::nullopt,
                 .d = Strided(type, "mn", {33, 35}, {2, 67}),
                 .compute_type = compute}};
    runner_.Check(strided);
    strided.desc.c = strided.desc.d;
    strided.beta = {3, 0};
    runner_.Check(strided);
    // c elsewhere with other strides than d.
    strided.desc.c->layout.strides = {35, 1};
    runner_.Check(strided);
    // A batch mode outermost, innermost and in between.
    for (const char* modes : {"mkx", "xmk", "mxk"}) {
      ModeVector extents;
      for (const char* mode = modes; *mode != 0; ++mode) {
        extents.push_back(*mode == 'x' ? 5 : *mode == 'm' ? 21 : 34);
      }
      runner_.Check(Case<core::ContractionDesc>{
          .desc = {.a = Packed(type, modes, extents),
                   .b = Packed(type, "knx", {34, 19, 5}),
                   .c = std::nullopt,
                   .d = Packed(type, "nxm", {19, 5, 21}),
                   .compute_type = compute}});
    }
  }
}

/// The matrix product of the extents, c included.
Case<core::ContractionDesc> Product(ElementType type, int64_t m, int64_t n,
                                    int64_t k) {
  return {.desc = {.a = Packed(type, "mk", {m, k}),
                   .b = Packed(type, "kn", {k, n}),
                   .c = Packed(type, "mn", {m, n}),
                   .d = Packed(type, "mn", {m, n}),
                   .compute_type = core::DefaultComputeType(type)},
          .alpha = {2, 0},
          .beta = {-1, 0}};
}

TEST_P(KernelConformance, ContractsAroundTheEdgesOfTiles) {
  for (const ElementType type : {kF32, kC128, ElementType::kInt8}) {
    for (const int64_t m : {16, 17, 64, 65, 129, 257}) {
      for (const int64_t n : {15, 17, 65, 129}) {
        runner_.Check(Product(type, m, n, m % 2 == 0 ? 9 : 16));
      }
    }
  }
}

TEST_P(KernelConformance, ContractsRowsThatEndInsideOfVectors) {
  // Where rows begin at multiples of 16 bytes but do not end there, vectors
  // must not reach behind the last; nor are there any where only some rows, or
  // some batches, begin so.
  constexpr int64_t kTerms = 11, kBatches = 2;
  for (const ElementType type : {kF32, kF64, kC64, kC128}) {
    for (const int64_t m : {61, 128}) {
      for (const int64_t n : {23, 24}) {
        const auto padded = [](int64_t x) { return (x + 3) / 4 * 4; };
        const auto check = [&](int64_t of_k, int64_t of_batch) {
          const int64_t k_a = padded(m) + of_k, k_b = padded(n) + of_k;
          const int64_t x_a = padded(kTerms * k_a) + of_batch;
          const int64_t x_b = padded(kTerms * k_b) + of_batch;
          runner_.Check(Case<core::ContractionDesc>{
              .desc = {.a = Strided(type, "mkx", {m, kTerms, kBatches},
                                    {1, k_a, x_a}),
                       .b = Strided(type, "nkx", {n, kTerms, kBatches},
                                    {1, k_b, x_b}),
                       .c = std::nullopt,
                       .d = Packed(type, "mnx", {m, n, kBatches}),
                       .compute_type = core::DefaultComputeType(type)}});
        };
        check(0, 0);
        check(1, 0);
        check(0, 1);
      }
    }
  }
}

TEST_P(KernelConformance, ContractsSumsOfEveryLength) {
  for (const ElementType type : {kF32, kF64, kC64, kC128, kF16,
                                 ElementType::kUint8, ElementType::kInt64}) {
    for (const int64_t k :
         SomeOf<int64_t>({1, 4, 7, 8, 9, 16, 17, 128, 255, 256, 257, 264, 511,
                          512, 513, 3001, 4096, 8200},
                         5)) {
      runner_.Check(Product(type, 5, 3, k));
      runner_.Check(Product(type, 1, 1, k));
    }
  }
}

TEST_P(KernelConformance, ContractsOperandsOfTwoOrders) {
  // The fastest mode of a is d's second or third, k lies in between: tiles are
  // blocks of both orders, which reach beyond most of these extents.
  struct Extents {
    int64_t i, j, l, k;
  };
  for (const ElementType type :
       {kF32, kF64, kC64, kC128, kF16, ElementType::kInt32}) {
    for (const auto& [i, j, l, k] :
         {Extents{24, 16, 3, 5}, Extents{40, 36, 1, 12}, Extents{17, 33, 2, 9},
          Extents{9, 70, 1, 40}, Extents{2, 3, 150, 4},
          Extents{5, 9, 4, 1100}}) {
      Case<core::ContractionDesc> c{
          .desc = {.a = Packed(type, "jkli", {j, k, l, i}),
                   .b = Packed(type, "nk", {7, k}),
                   .c = std::nullopt,
                   .d = Packed(type, "ijnl", {i, j, 7, l}),
                   .compute_type = core::DefaultComputeType(type)}};
      runner_.Check(c);
      // c has an order of its own.
      c.desc.c = Strided(type, "ijnl", {i, j, 7, l}, {7 * j, 7, 1, 7 * i * j});
      c.beta = {2, 0};
      runner_.Check(c);
    }
  }
}

TEST_P(KernelConformance, ContractsTermsOfTwoOrders) {
  // What is summed is in another order in b than in a, so that terms come in
  // blocks of both where extents divide.
  for (const ElementType type :
       {kF32, kF64, kC64, kC128, kF16, ElementType::kInt32}) {
    for (const auto& [k, l] :
         {std::pair<int64_t, int64_t>{24, 20}, {16, 48}, {23, 12}}) {
      for (const auto& [m, n] :
           {std::pair<int64_t, int64_t>{1, 1}, {3, 4}, {70, 30}}) {
        runner_.Check(Case<core::ContractionDesc>{
            .desc = {.a = Packed(type, "kxml", {k, 2, m, l}),
                     .b = Packed(type, "lnkx", {l, n, k, 2}),
                     .c = std::nullopt,
                     .d = Packed(type, "mn", {m, n}),
                     .compute_type = core::DefaultComputeType(type)}});
      }
    }
  }
}

TEST_P(KernelConformance, ContractsLittleOfManyBatches) {
  // The batch is the fastest mode, or the slowest, of each operand.
  struct Extents {
    int64_t m, n, k, x;
  };
  for (const ElementType type :
       SomeOf<ElementType>({kF32, kF64, kC64, kF16, ElementType::kInt32}, 2)) {
    for (const auto& [m, n, k, x] : SomeOf<Extents>({{1, 1, 64, 300},
                                                     {5, 3, 7, 90},
                                                     {8, 8, 8, 33},
                                                     {4, 1, 33, 65},
                                                     {6, 9, 1, 70}},
                                                    3)) {
      for (const bool is_fastest : {true, false}) {
        const auto operand = [&](std::string modes, ModeVector extents) {
          modes.insert(is_fastest ? 0 : modes.size(), 1, 'x');
          extents.insert(is_fastest ? extents.begin() : extents.end(), x);
          return Packed(type, modes.c_str(), extents);
        };
        runner_.Check(Case<core::ContractionDesc>{
            .desc = {.a = operand("km", {k, m}),
                     .b = operand("kn", {k, n}),
                     .c = operand("mn", {m, n}),
                     .d = operand("mn", {m, n}),
                     .compute_type = core::DefaultComputeType(type)},
            .alpha = {3, 0},
            .beta = {2, 0}});
      }
    }
  }
}

TEST_P(KernelConformance, ContractsManyModesOfTwo) {
  // Every third mode is n, the next ones m and k; each operand has its own
  // order of them.
  for (const ElementType type : {kF32, kC64}) {
    std::string a, b, d;
    for (int i = 0; i < 18; ++i) {
      const char mode = static_cast<char>('!' + i);
      if (i % 3 != 0) a += mode;
      if (i % 3 != 1) b.insert(b.begin(), mode);
      if (i % 3 != 2) d.insert(d.size() / 2, 1, mode);
    }
    const auto twos = [](const std::string& modes) {
      return ModeVector(modes.size(), 2);
    };
    runner_.Check(Case<core::ContractionDesc>{
        .desc = {.a = Packed(type, a, twos(a)),
                 .b = Packed(type, b, twos(b)),
                 .c = std::nullopt,
                 .d = Packed(type, d, twos(d)),
                 .compute_type = core::DefaultComputeType(type)}});
  }
}

TEST_P(KernelConformance, ContractsModesThatOneInputHasAlone) {
  for (const ElementType type : {kF32, kF64, kC64}) {
    for (const char* modes_b : {"kn", "kxn"}) {
      const bool has_x = modes_b[1] == 'x';
      runner_.Check(Case<core::ContractionDesc>{
          .desc = {.a = Packed(type, "mlky", {33, 3, 14, 5}),
                   .b = has_x ? Packed(type, modes_b, {14, 4, 21})
                              : Packed(type, modes_b, {14, 21}),
                   .c = std::nullopt,
                   .d = Packed(type, "nlm", {21, 3, 33}),
                   .compute_type = core::DefaultComputeType(type)}});
    }
  }
}

TEST_P(KernelConformance, ReducesInEveryDirection) {
  for (const auto& types : core::ReductionTypeTable()) {
    for (int op = 0; op < core::kBinaryOperatorCount; ++op) {
      const auto binary = static_cast<BinaryOperator>(op);
      if (!core::Reduces(binary) ||
          !core::ValidateBinary(binary, types.a).ok()) {
        continue;
      }
      const bool multiplies = binary == BinaryOperator::kMul;
      for (const char* kept : {"", "i", "j", "k", "ij", "kj", "ki", "kji"}) {
        ModeVector extents;
        for (const char* mode = kept; *mode != 0; ++mode) {
          extents.push_back(*mode == 'i' ? 37 : *mode == 'j' ? 5 : 19);
        }
        runner_.Check(Case<core::ReductionDesc>{
            .desc = {.a = Packed(types.a, "ijk", {37, 5, 19}),
                     .c = std::nullopt,
                     .d = Packed(types.c, kept, extents),
                     .op = binary,
                     .compute_type = types.compute},
            .data_a = multiplies ? DataKind::kNearOne : DataKind::kUniform});
      }
    }
  }
}

TEST_P(KernelConformance, CombinesLargeOperandsOfDifferentOrder) {
  for (const auto& types : core::ElementwiseTypeTable()) {
    Case<core::ElementwiseDesc> trinary{
        .desc = {.a = Packed(types.a, "kji", {33, 17, 65}),
                 .b = Packed(types.b, "jk", {17, 33}),
                 .c = Packed(types.c, "ijk", {65, 17, 33}),
                 .d = Packed(types.c, "ijk", {65, 17, 33}),
                 .op_ab = BinaryOperator::kMul,
                 .compute_type = types.compute},
        .alpha = {2, 0},
        .beta = core::kOne,
        .gamma = {-1, 0}};
    runner_.Check(trinary);
    trinary.desc.b = std::nullopt;
    trinary.alias = Alias::kDIsC;
    runner_.Check(trinary);
  }
}

// Every operand in an order of its own, with fastest modes that fill no warp.
TEST_P(KernelConformance, CombinesOperandsOfShortFastestModes) {
  for (const int64_t i : {2, 3, 5, 6}) {
    for (const auto& types : core::ElementwiseTypeTable()) {
      runner_.Check(Case<core::ElementwiseDesc>{
          .desc = {.a = Packed(types.a, "jki", {70, 19, i}),
                   .b = Packed(types.b, "jik", {70, i, 19}),
                   .c = Packed(types.c, "ikj", {i, 19, 70}),
                   .d = Packed(types.c, "ijk", {i, 70, 19}),
                   .op_ab = BinaryOperator::kAdd,
                   .compute_type = types.compute},
          .alpha = {2, 0},
          .beta = core::kOne,
          .gamma = {-1, 0}});
    }
  }
}

/// Both runners' kernels give the same bits, every time.
template <typename Desc>
void ExpectSameBits(KernelRunner& first, KernelRunner& second,
                    const Case<Desc>& c) {
  const KernelRunner::Images images = first.Run(c);
  EXPECT_FALSE(images.empty());
  EXPECT_EQ(images, first.Run(c)) << "twice in one backend";
  EXPECT_EQ(images, second.Run(c)) << "in a backend of other thread count";
}

TEST_P(KernelConformance, ReductionsGiveTheSameBitsOnAnyThreadCount) {
  KernelRunner single(GetParam(), 1);
  for (const ElementType type :
       SomeOf<ElementType>({kF32, kF16, kF64, kC64}, 1)) {
    for (const char* kept : {"", "i", "j"}) {
      ModeVector extents;
      if (*kept != 0) extents.push_back(*kept == 'i' ? 1003 : 301);
      ExpectSameBits(
          runner_, single,
          Case<core::ReductionDesc>{
              .desc = {.a = Packed(type, "ij", {1003, 301}),
                       .c = std::nullopt,
                       .d = Packed(type, kept, extents),
                       .compute_type = core::DefaultComputeType(type)}});
    }
  }
}

TEST_P(KernelConformance, ContractionsGiveTheSameBitsTwice) {
  for (const ElementType type : SomeOf<ElementType>({kF32, kF64, kC64}, 1)) {
    const Case<core::ContractionDesc> product{
        .desc = {.a = Packed(type, "kam", {53, 3, 61}),
                 .b = Packed(type, "nka", {47, 53, 3}),
                 .c = std::nullopt,
                 .d = Packed(type, "nm", {47, 61}),
                 .compute_type = core::DefaultComputeType(type)}};
    ExpectSameBits(runner_, runner_, product);
  }
}

}  // namespace
}  // namespace tensord::test
