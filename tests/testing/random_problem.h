// Operations to try kernels on, drawn from a seed.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "core/ops/contraction.h"
#include "core/ops/elementwise.h"
#include "core/ops/permutation.h"
#include "core/ops/reduction.h"
#include "core/ops/scalar.h"
#include "tests/testing/tensor_storage.h"

namespace tensord::test {

/// Which input d shares its memory with.
enum class Alias { kNone, kDIsA, kDIsB, kDIsC };

/// One execution of one operation. Factors and data of operands that the
/// operation lacks are ignored.
template <typename Desc>
struct Case {
  Desc desc;
  core::Scalar alpha = core::kOne;
  core::Scalar beta = core::kZero;
  core::Scalar gamma = core::kZero;
  DataKind data_a = DataKind::kUniform;
  DataKind data_b = DataKind::kUniform;
  DataKind data_c = DataKind::kUniform;
  Alias alias = Alias::kNone;
  /// When not empty, a from its first element to its last.
  std::vector<std::byte> bits_of_a;
  /// Why some element may be anything: its bound is infinite. Without a reason
  /// such an element is a failure.
  std::string unbounded = {};
  /// Pass null for inputs whose factor is zero, else NaN.
  bool omits_unused = false;
  /// Of the data and of how operands are aligned.
  uint32_t seed = 0;
};

/// Valid operations of every type row, rank 0 to 12, with permuted modes, gaps,
/// broadcast, extents 0 and 1, operators, factors and aliases. Small: at most
/// a few thousand elements and 30 000 products.
Case<core::PermutationDesc> RandomPermutation(std::mt19937& rng);
Case<core::ElementwiseDesc> RandomElementwise(std::mt19937& rng);
Case<core::ReductionDesc> RandomReduction(std::mt19937& rng);
Case<core::ContractionDesc> RandomContraction(std::mt19937& rng);

/// Data on which `op` is defined and tame.
DataKind DataFor(core::UnaryOperator op);

/// The whole case in one line a operand, to put into a failure.
std::string Describe(const Case<core::PermutationDesc>& c);
std::string Describe(const Case<core::ElementwiseDesc>& c);
std::string Describe(const Case<core::ReductionDesc>& c);
std::string Describe(const Case<core::ContractionDesc>& c);

}  // namespace tensord::test
