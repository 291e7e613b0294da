#include "core/backend/cuda/gemm/permuted_gemm.h"

#include <gtest/gtest.h>

#include "core/backend/cuda/kernel/split/split_task.h"
#include "core/base/status.h"
#include "tests/testing/case_share.h"
#include "tests/unit/core/backend/cuda/gemm/matmul_of.h"
#include "tests/unit/core/backend/cuda/gemm/random_product.h"

namespace tensord::core::cuda {
namespace {

using tensord::test::Complex;
using tensord::test::Elements;
using tensord::test::RandomProduct;

const GpuModel kModel{.multiprocessor_count = 132,
                      .memory_bytes_per_ns = 4800,
                      .clock_ghz = 1.7,
                      .cycles = {}};

/// Calls `body(offsets)` for every element of `modes`.
template <size_t count, typename Body>
void ForEach(const LoopModes<count>& modes, const Body& body) {
  for (int64_t i = 0; i < ElementCount(modes); ++i) {
    std::array<int64_t, count> offsets = {};
    int64_t rest = i;
    for (const auto& mode : modes) {
      for (size_t o = 0; o < count; ++o) {
        offsets[o] += rest % mode.extent * mode.strides[o];
      }
      rest /= mode.extent;
    }
    body(offsets);
  }
}

/// Takes the place of an element's three parts: products of an a and a b in the
/// same order sum to a * b, in no other order they do.
constexpr double kPartsOfA[] = {1, 2, 3};
constexpr double kPartsOfB[] = {4, 3, -3};

/// What `copy` makes of `from`; as it is without a copy.
Elements Copied(const std::optional<InputCopy>& copy, const Elements& from,
                const double (&parts)[3]) {
  if (!copy.has_value()) return from;
  const PermutationProblem& problem = copy->problem;
  Elements to(static_cast<size_t>(copy->bytes / SizeOf(problem.type_d)));
  ForEach(problem.modes, [&](const std::array<int64_t, 2>& at) {
    Complex x = from[at[0]];
    if (problem.unary == UnaryOperator::kConj) x = std::conj(x);
    if (copy->part_stride == 0) {
      to.at(at[1]) = x;
    } else {
      for (int64_t i = 0; i < SplitTask::kParts; ++i) {
        to.at(at[1] + i * copy->part_stride) = parts[i] * x;
      }
    }
  });
  return to;
}

/// Does what `gemm` says, by definition, in complex128.
Elements Result(const PermutedGemm& gemm, const RandomProduct& product) {
  const Elements a = Copied(gemm.copy_a, product.a, kPartsOfA);
  const Elements b = Copied(gemm.copy_b, product.b, kPartsOfB);
  const Complex beta(product.beta.real, product.beta.imaginary);
  Elements d = product.d;
  Elements moved(
      static_cast<size_t>(gemm.bytes_d / SizeOf(gemm.copy_d.type_a)));
  simt::Matmul matmul = tensord::test::MatmulOf(gemm.call);
  matmul.a = gemm.call.swaps ? b.data() : a.data();
  matmul.b = gemm.call.swaps ? a.data() : b.data();
  matmul.c = product.c.data();
  matmul.d = gemm.moves_d ? moved.data() : d.data();
  matmul.alpha = {product.alpha.real, product.alpha.imaginary};
  matmul.beta = gemm.moves_d ? 0 : beta;
  simt::Run(matmul);
  if (!gemm.moves_d) return d;
  if (product.beta.IsZero()) {
    ForEach(gemm.copy_d.modes, [&](const std::array<int64_t, 2>& at) {
      d[at[1]] = moved.at(at[0]);
    });
    return d;
  }
  ForEach(gemm.merge_d.modes, [&](const std::array<int64_t, 4>& at) {
    const Complex c = product.c[at[2]];
    d[at[3]] =
        moved.at(at[0]) +
        beta *
            (gemm.merge_d.unary[2] == UnaryOperator::kConj ? std::conj(c) : c);
  });
  return d;
}

TEST(PermutedGemmTest, MeansWhatTheContractionMeans) {
  int taken = 0;
  const uint32_t case_count = tensord::test::CaseShare(6'000);
  for (uint32_t seed = 0; seed < case_count; ++seed) {
    SCOPED_TRACE(seed);
    const RandomProduct product = RandomProduct::Make(seed, 3);
    const auto gemm = PermutedGemmOf(kModel, Canonicalize(product.desc));
    if (!gemm.ok()) {
      ASSERT_EQ(ReasonOf(gemm.status()), "NOTHING_TO_PERMUTE");
      continue;
    }
    ++taken;
    ASSERT_EQ(Result(*gemm, product), product.Expected());
  }
  EXPECT_GT(taken, static_cast<int>(case_count / 2));
}

/// Modes in the order of memory, packed, all of one extent.
OperandDesc Packed(const char* modes, int64_t extent, ElementType type) {
  OperandDesc operand;
  operand.element_type = type;
  int64_t stride = 1;
  for (const char* mode = modes; *mode != '\0'; ++mode) {
    operand.modes.push_back(*mode);
    operand.layout.extents.push_back(extent);
    operand.layout.strides.push_back(stride);
    stride *= extent;
  }
  return operand;
}

TEST(PermutedGemmTest, SplitsMeanTheSameOverThreeTimesTheTerms) {
  const uint32_t case_count = tensord::test::CaseShare(6'000);
  for (uint32_t seed = 0; seed < case_count; ++seed) {
    SCOPED_TRACE(seed);
    const RandomProduct product = RandomProduct::Make(seed, 3);
    ContractionProblem problem = Canonicalize(product.desc);
    problem.type_a = problem.type_b = problem.type_d = ElementType::kComplex64;
    problem.compute_type = ComputeType::kThreeTf32;
    const auto gemm = SplitGemmOf(kModel, problem);
    ASSERT_TRUE(gemm.ok()) << gemm.status();
    ASSERT_EQ(gemm->call.k, 3 * ElementCount(problem.k));
    ASSERT_EQ(gemm->call.compute_type, ComputeType::kTf32);
    ASSERT_EQ(Result(*gemm, product), product.Expected());
  }
}

TEST(PermutedGemmTest, OnlyThreeTf32IsSplit) {
  constexpr ElementType kF32 = ElementType::kFloat32;
  const ContractionDesc desc{.a = Packed("mk", 8, kF32),
                             .b = Packed("kn", 8, kF32),
                             .c = std::nullopt,
                             .d = Packed("mn", 8, kF32),
                             .compute_type = ComputeType::kTf32};
  EXPECT_EQ(ReasonOf(SplitGemmOf(kModel, Canonicalize(desc)).status()),
            "COMPUTE_TYPE_UNSUPPORTED");
}

TEST(PermutedGemmTest, InputsOfTooManyElementsAreNotSplit) {
  constexpr ElementType kF32 = ElementType::kFloat32;
  const ContractionDesc desc{.a = Packed("k", int64_t{1} << 31, kF32),
                             .b = Packed("k", int64_t{1} << 31, kF32),
                             .c = std::nullopt,
                             .d = Packed("", 1, kF32),
                             .compute_type = ComputeType::kThreeTf32};
  EXPECT_EQ(ReasonOf(SplitGemmOf(kModel, Canonicalize(desc)).status()),
            "TOO_MANY_ELEMENTS");
}

absl::StatusOr<PermutedGemm> Planned(const char* a, const char* b,
                                     const char* d, int64_t extent,
                                     ComputeType compute_type,
                                     ElementType type_a, ElementType type_b,
                                     ElementType type_d) {
  return PermutedGemmOf(
      kModel, Canonicalize(ContractionDesc{.a = Packed(a, extent, type_a),
                                           .b = Packed(b, extent, type_b),
                                           .c = std::nullopt,
                                           .d = Packed(d, extent, type_d),
                                           .compute_type = compute_type}));
}

TEST(PermutedGemmTest, CopiesOnlyTheOperandThatIsNoMatrix) {
  constexpr ElementType kF32 = ElementType::kFloat32;
  const auto gemm = Planned("xkyl", "kln", "xyn", 24, ComputeType::kFloat32,
                            kF32, kF32, kF32);
  ASSERT_TRUE(gemm.ok()) << gemm.status();
  EXPECT_TRUE(gemm->copy_a.has_value());
  EXPECT_FALSE(gemm->copy_b.has_value());
  EXPECT_FALSE(gemm->moves_d);
  EXPECT_TRUE(gemm->copy_a->problem.is_move);
  EXPECT_EQ(gemm->copy_a->bytes, 24 * 24 * 24 * 24 * 4);
  EXPECT_EQ(gemm->call.m, 24 * 24);
  EXPECT_EQ(gemm->call.k, 24 * 24);
}

TEST(PermutedGemmTest, CopiesTheSmallOperandRatherThanTheLargeOnes) {
  constexpr ElementType kF32 = ElementType::kFloat32;
  // a's order of k and l is not b's; b is the smaller one.
  const auto gemm = Planned("wxyzkl", "lkn", "wxyzn", 8, ComputeType::kFloat32,
                            kF32, kF32, kF32);
  ASSERT_TRUE(gemm.ok()) << gemm.status();
  EXPECT_FALSE(gemm->copy_a.has_value());
  EXPECT_TRUE(gemm->copy_b.has_value());
  EXPECT_FALSE(gemm->moves_d);
}

TEST(PermutedGemmTest, ConvertsWhatNoGemmTakes) {
  constexpr ElementType kF64 = ElementType::kFloat64;
  constexpr ElementType kC128 = ElementType::kComplex128;
  const auto narrow =
      Planned("mk", "kn", "mn", 8, ComputeType::kFloat32, kF64, kF64, kF64);
  ASSERT_TRUE(narrow.ok()) << narrow.status();
  EXPECT_EQ(narrow->call.a.type, ElementType::kFloat32);
  EXPECT_EQ(narrow->copy_a->problem.type_d, ElementType::kFloat32);
  EXPECT_EQ(narrow->copy_d.type_a, ElementType::kFloat32);
  EXPECT_EQ(narrow->copy_d.type_d, kF64);

  const auto mixed =
      Planned("mk", "kn", "mn", 8, ComputeType::kFloat64, kF64, kC128, kC128);
  ASSERT_TRUE(mixed.ok()) << mixed.status();
  EXPECT_EQ(mixed->copy_a->problem.type_d, kC128);
  EXPECT_FALSE(mixed->copy_b.has_value());
  EXPECT_FALSE(mixed->moves_d);
}

TEST(PermutedGemmTest, ProductsOfHalvesWaitInFloat32) {
  constexpr ElementType kHalf = ElementType::kFloat16;
  // d's order of modes is neither input's, so that all have to be apart.
  const auto gemm = Planned("mxk", "nkyz", "xymzn", 4, ComputeType::kFloat32,
                            kHalf, kHalf, kHalf);
  ASSERT_TRUE(gemm.ok()) << gemm.status();
  ASSERT_TRUE(gemm->moves_d);
  EXPECT_EQ(gemm->call.d.type, ElementType::kFloat32);
  EXPECT_EQ(gemm->bytes_d, 4 * 4 * 4 * 4 * 4 * 4);
}

TEST(PermutedGemmTest, MatricesAsTheyLieAreLeftToGemm) {
  constexpr ElementType kF32 = ElementType::kFloat32;
  const auto gemm =
      Planned("mk", "kn", "mn", 8, ComputeType::kFloat32, kF32, kF32, kF32);
  EXPECT_EQ(ReasonOf(gemm.status()), "NOTHING_TO_PERMUTE");
}

}  // namespace
}  // namespace tensord::core::cuda
