// The rows of the feature checklist's tables of element types, one by one, on
// the CUDA backend: which of its kernels compute them. What each row's kernels
// compute is right or the test fails, too.
#include <cuda_runtime_api.h>

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "core/backend/cuda/cuda_backend.h"
#include "core/ops/type_tables.h"
#include "gtest/gtest.h"
#include "tests/conformance/kernel_runner.h"
#include "tests/simt/fake_runtime.h"
#include "tests/simt/simt.h"
#include "tests/testing/element_types.h"
#include "tests/testing/operands.h"

namespace tensord::test {
namespace {

using core::ElementType;
using core::OperandDesc;

using tensord::test::kBf16;
using tensord::test::kC128;
using tensord::test::kC64;
using tensord::test::kF16;
using tensord::test::kF32;
using tensord::test::kF64;
using enum core::ComputeType;

ConformanceTarget Simulated() {
  return {.name = "Cuda",
          .create = [](int) { return core::CreateCudaBackend(0).value(); },
          .case_stride = 1,
          .copy =
              [](void* to, const void* from, size_t bytes) {
                ASSERT_EQ(cudaMemcpy(to, from, bytes, cudaMemcpyDefault),
                          cudaSuccess);
              }};
}

using Kernels = std::set<std::string, std::less<>>;

/// The words of both.
Kernels Named(absl::string_view kernels, absl::string_view besides = "") {
  return absl::StrSplit(absl::StrCat(kernels, " ", besides), ' ',
                        absl::SkipEmpty());
}

class CudaFeatureRows : public ::testing::Test {
 protected:
  /// Those that compute at least one of the cases, by what is behind the
  /// operation in their names; of variants what all begin with.
  template <typename Desc>
  static Kernels KernelsOf(const std::vector<Case<Desc>>& cases) {
    simt::ResetNode();
    simt::SetSchedule({});
    KernelRunner runner(Simulated(), 2);
    for (const Case<Desc>& c : cases) runner.Check(c);
    Kernels kernels;
    for (const auto& [name, record] : runner.records()) {
      if (record.runs == 0) continue;
      const absl::string_view kernel =
          absl::string_view(name).substr(name.rfind('.') + 1);
      const auto is_variant_of = [&](absl::string_view family) {
        return absl::StartsWith(kernel, family) &&
               kernel.substr(family.size())
                       .find_first_not_of("0123456789x_split_k") ==
                   absl::string_view::npos;
      };
      kernels.emplace(is_variant_of("direct_")    ? "direct"
                      : is_variant_of("threads_") ? "threads"
                      : is_variant_of("gemm_")    ? "gemm"
                                                  : kernel);
    }
    return kernels;
  }
};

// A1.T1 ... A1.T11
TEST_F(CudaFeatureRows, EveryElementwiseRowHasItsKernels) {
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
  for (const core::ElementwiseTypes& types : kRows) {
    const OperandDesc d = Packed(types.c, "ij", {40, 36});
    EXPECT_EQ(KernelsOf<core::ElementwiseDesc>(
                  {{.desc = {.a = Packed(types.a, "ji", {36, 40}),
                             .b = Packed(types.b, "j", {36}),
                             .c = d,
                             .d = d,
                             .compute_type = types.compute},
                    .alpha = {1.5, 0},
                    .beta = {-2, 0},
                    .gamma = {0.5, 0}}}),
              Named("fused reference tiled"))
        << core::NameOf(types.a) << ' ' << core::NameOf(types.c) << " in "
        << core::NameOf(types.compute);
  }
}

// A3.6
TEST_F(CudaFeatureRows, EveryPermutationRowHasItsKernels) {
  struct Row {
    core::PermutationTypes types;
    absl::string_view besides;  // those that compute every row
  };
  constexpr std::array<Row, 14> kRows = {{
      {{kF16, kF16, kFloat16}, "trivial"},
      {{kF16, kF16, kFloat32}, "runs trivial"},
      {{kF16, kF32, kFloat32}, "runs"},
      {{kF32, kF16, kFloat32}, "runs"},
      {{kBf16, kBf16, kBfloat16}, "trivial"},
      {{kBf16, kBf16, kFloat32}, "runs trivial"},
      {{kF32, kF32, kFloat32}, "runs trivial"},
      {{kF64, kF64, kFloat64}, "runs trivial"},
      {{kF32, kF64, kFloat64}, "runs"},
      {{kF64, kF32, kFloat64}, "runs"},
      {{kC64, kC64, kFloat32}, "runs trivial"},
      {{kC128, kC128, kFloat64}, "runs trivial"},
      {{kC64, kC128, kFloat64}, ""},
      {{kC128, kC64, kFloat64}, ""},
  }};
  for (const auto& [types, besides] : kRows) {
    std::vector<Case<core::PermutationDesc>> cases;
    const auto add = [&](absl::string_view modes_a, absl::string_view modes_d) {
      const std::map<char, int64_t> extents = {{'i', 40}, {'j', 36}, {'k', 3}};
      for (const double alpha : {1.0, 0.5}) {
        cases.push_back({.desc = {.a = PackedBy(extents, types.a, modes_a),
                                  .d = PackedBy(extents, types.d, modes_d),
                                  .compute_type = types.compute},
                         .alpha = {alpha, 0}});
      }
    };
    add("ij", "ij");
    add("ij", "ji");
    add("ijk", "ikj");
    add("kji", "jki");
    EXPECT_EQ(KernelsOf(cases),
              Named("packed packed_split reference tiled tiled_copy", besides))
        << core::NameOf(types.a) << ' ' << core::NameOf(types.d) << " in "
        << core::NameOf(types.compute);
  }
}

// A4.T1 ... A4.T13 and the three rows of later versions.
TEST_F(CudaFeatureRows, EveryContractionRowHasItsKernels) {
  struct Row {
    core::ContractionTypes types;
    absl::string_view besides;  // those that compute every row
  };
  constexpr std::array<Row, 16> kRows = {{
      {{kF16, kF16, kF16, kFloat32},
       "direct threads elementwise gemm gemm_no_workspace"},
      {{kBf16, kBf16, kBf16, kFloat32},
       "direct threads elementwise gemm gemm_no_workspace"},
      {{kF32, kF32, kF32, kFloat32},
       "direct threads elementwise gemm gemm_no_workspace"},
      {{kF32, kF32, kF32, kTf32}, "direct threads gemm gemm_no_workspace"},
      {{kF32, kF32, kF32, kFloat16}, "direct threads gemm gemm_no_workspace"},
      {{kF64, kF64, kF64, kFloat64},
       "direct threads elementwise gemm gemm_no_workspace"},
      {{kF64, kF64, kF64, kFloat32}, "direct threads"},
      {{kC64, kC64, kC64, kFloat32},
       "direct threads elementwise gemm gemm_no_workspace"},
      {{kC64, kC64, kC64, kTf32}, "direct threads gemm gemm_no_workspace"},
      {{kC128, kC128, kC128, kFloat64},
       "direct threads elementwise gemm gemm_no_workspace"},
      {{kC128, kC128, kC128, kFloat32}, "direct threads"},
      {{kF64, kC128, kC128, kFloat64}, ""},
      {{kC128, kF64, kC128, kFloat64}, ""},
      {{kF32, kF32, kF32, kThreeTf32},
       "direct threads elementwise gemm gemm_no_workspace gemm_3xtf32"},
      {{kF32, kF32, kF32, kBfloat16}, "direct threads gemm gemm_no_workspace"},
      {{kC64, kC64, kC64, kThreeTf32},
       "direct threads elementwise gemm gemm_no_workspace gemm_3xtf32"},
  }};
  for (const auto& [types, besides] : kRows) {
    std::vector<Case<core::ContractionDesc>> cases;
    const auto add = [&](absl::string_view modes_a, absl::string_view modes_b,
                         absl::string_view modes_d) {
      const std::map<char, int64_t> extents = {
          {'m', 24}, {'n', 20}, {'k', 40}, {'l', 3}, {'x', 2}};
      cases.push_back({.desc = {.a = PackedBy(extents, types.a, modes_a),
                                .b = PackedBy(extents, types.b, modes_b),
                                .c = std::nullopt,
                                .d = PackedBy(extents, types.c, modes_d),
                                .compute_type = types.compute}});
    };
    add("mk", "kn", "mn");
    add("mkxl", "lnk", "nmx");
    add("mx", "mx", "mx");
    EXPECT_EQ(KernelsOf(cases), Named("permuted_gemm reference", besides))
        << core::NameOf(types.a) << ' ' << core::NameOf(types.b) << ' '
        << core::NameOf(types.c) << " in " << core::NameOf(types.compute);
  }
}

// The eight rows of A5's table.
TEST_F(CudaFeatureRows, EveryReductionRowHasItsKernels) {
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
  for (const core::ReductionTypes& types : kRows) {
    std::vector<Case<core::ReductionDesc>> cases;
    for (const auto op :
         {core::BinaryOperator::kAdd, core::BinaryOperator::kMax}) {
      if (!core::ValidateBinary(op, types.a).ok()) continue;
      for (const absl::string_view modes_d : {"i", "j", ""}) {
        const std::map<char, int64_t> extents = {{'i', 40}, {'j', 36}};
        cases.push_back({.desc = {.a = PackedBy(extents, types.a, "ij"),
                                  .c = std::nullopt,
                                  .d = PackedBy(extents, types.c, modes_d),
                                  .op = op,
                                  .compute_type = types.compute}});
      }
    }
    EXPECT_EQ(KernelsOf(cases), Named("reference tree"))
        << core::NameOf(types.a) << " in " << core::NameOf(types.compute);
  }
}

}  // namespace
}  // namespace tensord::test
