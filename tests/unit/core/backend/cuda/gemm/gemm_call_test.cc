#include "core/backend/cuda/gemm/gemm_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/status.h"
#include "tests/unit/core/backend/cuda/gemm/matmul_of.h"
#include "tests/unit/core/backend/cuda/gemm/random_product.h"

namespace tensord::core::cuda {
namespace {

using tensord::test::Elements;
using tensord::test::RandomProduct;

/// Modes in the order of memory, packed.
OperandDesc Packed(const char* modes, const std::vector<int64_t>& extents,
                   ElementType type = ElementType::kFloat32) {
  OperandDesc operand;
  operand.element_type = type;
  int64_t stride = 1;
  for (size_t i = 0; i < extents.size(); ++i) {
    operand.modes.push_back(modes[i]);
    operand.layout.extents.push_back(extents[i]);
    operand.layout.strides.push_back(stride);
    stride *= extents[i];
  }
  return operand;
}

ContractionProblem Product(const OperandDesc& a, const OperandDesc& b,
                           const OperandDesc& d) {
  return Canonicalize(
      ContractionDesc{.a = a, .b = b, .c = std::nullopt, .d = d});
}

TEST(GemmCallTest, ColumnMajorMatricesAreTakenAsTheyLie) {
  const auto call = GemmCallOf(Product(
      Packed("mk", {5, 7}), Packed("kn", {7, 3}), Packed("mn", {5, 3})));
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_EQ(*call, (GemmCall{.m = 5,
                             .n = 3,
                             .k = 7,
                             .a = {.leading_stride = 5},
                             .b = {.leading_stride = 7},
                             .c = {.leading_stride = 5},
                             .d = {.leading_stride = 5}}));
}

TEST(GemmCallTest, RowMajorResultSwapsTheInputs) {
  const auto call = GemmCallOf(Product(
      Packed("km", {7, 5}), Packed("kn", {7, 3}), Packed("nm", {3, 5})));
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_TRUE(call->swaps);
  EXPECT_EQ(call->m, 3);
  EXPECT_EQ(call->n, 5);
  EXPECT_EQ(call->form_a, GemmForm::kTransposed);
  EXPECT_EQ(call->form_b, GemmForm::kPlain);
}

TEST(GemmCallTest, ModeOfOneInputIsTheBatchWhereItDoesNotFuse) {
  // a's modes x and y are apart: as many products as y is long, all with one b.
  const auto call =
      GemmCallOf(Product(Packed("xky", {5, 7, 2}), Packed("kn", {7, 3}),
                         Packed("xny", {5, 3, 2})));
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_EQ(call->batch_count, 2);
  EXPECT_EQ(call->a.batch_stride, 35);
  EXPECT_EQ(call->b.batch_stride, 0);
}

TEST(GemmCallTest, WhatIsNoMatrixIsRefused) {
  const auto reason = [](const ContractionProblem& problem) {
    return ReasonOf(GemmCallOf(problem).status());
  };
  const OperandDesc b = Packed("kn", {7, 3}), d = Packed("mn", {5, 3});
  OperandDesc with_gaps = Packed("mk", {5, 7});
  with_gaps.layout.strides = {2, 10};
  EXPECT_EQ(reason(Product(with_gaps, b, d)), "NO_MATRICES");
  EXPECT_EQ(reason(Product(Packed("mks", {5, 7, 2}), b, d)),
            "MODES_IN_ONE_INPUT");
  EXPECT_EQ(reason(Product(Packed("mk", {5, 0}), Packed("kn", {0, 3}), d)),
            "NO_TERMS");
  OperandDesc whole = Packed("mk", {5, 7}, ElementType::kInt32);
  EXPECT_EQ(reason(Product(whole, Packed("kn", {7, 3}, ElementType::kInt32),
                           Packed("mn", {5, 3}, ElementType::kInt32))),
            "TYPE_UNSUPPORTED");
}

TEST(GemmCallTest, ExtentsBeyondTheFieldsOfTheLibraryAreRefused) {
  const int64_t large = kMaxGemmExtent + 1;
  const auto refused =
      GemmCallOf(Product(Packed("mk", {large, 2}), Packed("kn", {2, 3}),
                         Packed("mn", {large, 3})));
  EXPECT_EQ(ReasonOf(refused.status()), "GEMM_TOO_LARGE");
  EXPECT_TRUE(
      GemmCallOf(Product(Packed("mk", {large - 1, 2}), Packed("kn", {2, 3}),
                         Packed("mn", {large - 1, 3})))
          .ok());
}

TEST(GemmCallTest, MeansWhatTheContractionMeans) {
  int taken = 0;
  constexpr uint32_t kCases = 20'000;
  for (uint32_t seed = 0; seed < kCases; ++seed) {
    SCOPED_TRACE(seed);
    RandomProduct product = RandomProduct::Make(seed, 2);
    const auto call = GemmCallOf(Canonicalize(product.desc));
    if (!call.ok()) continue;
    ++taken;
    simt::Matmul matmul = tensord::test::MatmulOf(*call);
    matmul.a = call->swaps ? product.b.data() : product.a.data();
    matmul.b = call->swaps ? product.a.data() : product.b.data();
    matmul.c = product.c.data();
    matmul.alpha = {product.alpha.real, product.alpha.imaginary};
    matmul.beta = {product.beta.real, product.beta.imaginary};
    const Elements expected = product.Expected();
    matmul.d = product.d.data();
    simt::Run(matmul);
    ASSERT_EQ(product.d, expected);
  }
  EXPECT_GT(taken, static_cast<int>(kCases / 5));
}

}  // namespace
}  // namespace tensord::core::cuda
