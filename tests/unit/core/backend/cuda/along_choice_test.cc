// Which kernels reduce along a mode on an H200: the references nowhere.
#include <gtest/gtest.h>

#include "core/backend/cuda/along/along_kernels.h"
#include "core/backend/cuda/reduction_kernels.h"
#include "tests/unit/core/backend/cuda/h200.h"

namespace tensord::core::cuda {
namespace {

/// Of a packed operand, the mode along which it goes the fastest or not.
ReductionProblem Along(Sorting sorting, int64_t extent, int64_t kept,
                       bool is_fastest) {
  const int64_t stride = is_fastest ? 1 : kept;
  const int64_t stride_kept = is_fastest ? extent : 1;
  const bool sorts = sorting != Sorting::kNone;
  return {.type_d = sorts ? ElementType::kInt64 : ElementType::kFloat32,
          .compute_type = sorts ? ComputeType::kInteger : ComputeType::kFloat32,
          .kept = Canonical(
              LoopModes<3>{{kept, {stride_kept, stride_kept, stride_kept}}}, 2),
          .reduced = {},
          .sorting = sorting,
          .along = {extent, {stride, stride, stride}}};
}

TEST(AlongChoiceTest, ReferencesAreSlower) {
  const auto reference = CreateReferenceReduction(kH200);
  const auto scan = CreateScanReduction(kH200);
  const auto sort = CreateSortReduction(kH200);
  for (const int64_t extent : {64, 1000, 2048, 2049, 100'000}) {
    for (const int64_t kept : {1, 100, 1000, 100'000}) {
      for (const bool is_fastest : {false, true}) {
        const auto sums = Along(Sorting::kNone, extent, kept, is_fastest);
        EXPECT_LT((*scan->Solve(sums))->predicted_nanoseconds(),
                  (*reference->Solve(sums))->predicted_nanoseconds())
            << extent << " " << kept;
        const auto sorted =
            Along(Sorting::kAscending, extent, kept, is_fastest);
        EXPECT_LT((*sort->Solve(sorted))->predicted_nanoseconds(),
                  (*reference->Solve(sorted))->predicted_nanoseconds())
            << extent << " " << kept;
      }
    }
  }
}

}  // namespace
}  // namespace tensord::core::cuda
