#include "core/backend/cuda/gemm/gemm_cost.h"

#include <algorithm>
#include <cmath>

#include "core/backend/cuda/gemm/gemm_library.h"
#include "core/backend/cuda/kernel/split/split_task.h"
#include "core/base/checked_math.h"

namespace tensord::core::cuda {
namespace {

// Fitted to an H100 (tests/benchmarks/results/2026-11-27-gpu-*): what a library
// reaches of the peak and of a copy's speed, the side of its smallest tiles,
// and the terms that take as long as a tile's beginning and end.
constexpr double kEfficiency = 0.75;
constexpr double kCopyShare = 0.8;
constexpr int64_t kLeastTile = 16;
constexpr int64_t kTerms = 32;
// The side of tiles that it likes, and the terms worth a block of its own,
// which only a single product's have.
constexpr int64_t kTile = 128;
constexpr int64_t kLeastTerms = 512;

double Count(int64_t x) { return static_cast<double>(x); }

/// Real products that a multiprocessor adds up in a cycle.
double ProductsPerCycle(const GpuModel& model, const GemmCall& call) {
  if (RealPartOf(call.a.type) == ElementType::kFloat64) {
    return model.tensor_float64_products_per_cycle;
  }
  const bool is_half = SizeOf(call.a.type) == 2;
  if (is_half || call.compute_type == ComputeType::kFloat16 ||
      call.compute_type == ComputeType::kBfloat16) {
    return model.tensor_float16_products_per_cycle;
  }
  return call.compute_type == ComputeType::kTf32
             ? model.tensor_tf32_products_per_cycle
             : model.float32_products_per_cycle;
}

/// Bytes of a matrix that is another one for every batch, or one for all.
double Bytes(const GemmMatrix& matrix, int64_t rows, int64_t columns,
             int64_t batch_count) {
  return Count(rows) * Count(columns) * Count(SizeOf(matrix.type)) *
         Count(matrix.batch_stride == 0 ? 1 : batch_count);
}

}  // namespace

double GemmNanoseconds(const GpuModel& model, const GemmCall& call) {
  const double padded = Count(CeilDivide(call.m, kLeastTile) * kLeastTile) *
                        Count(CeilDivide(call.n, kLeastTile) * kLeastTile) *
                        Count(call.k + kTerms) * Count(call.batch_count);
  const int64_t splits = call.batch_count == 1 ? call.k / kLeastTerms : 1;
  const double blocks =
      Count(CeilDivide(call.m, kTile)) * Count(CeilDivide(call.n, kTile)) *
      Count(call.batch_count) * Count(std::max<int64_t>(splits, 1));
  const double busy = std::min(1.0, blocks / model.multiprocessor_count);
  const double compute = padded * (IsComplex(call.a.type) ? 4 : 1) /
                         (model.multiprocessor_count * model.clock_ghz *
                          kEfficiency * busy * ProductsPerCycle(model, call));
  const double bytes = Bytes(call.a, call.m, call.k, call.batch_count) +
                       Bytes(call.b, call.k, call.n, call.batch_count) +
                       Bytes(call.d, call.m, call.n, call.batch_count);
  const double calls =
      Count(CeilDivide(call.batch_count, GemmLibrary::kMostBatches));
  return calls * model.launch_ns +
         std::max(compute, bytes / (kCopyShare * model.copy_bytes_per_ns()));
}

double SplitNanoseconds(const GpuModel& model, const PermutationProblem& copy) {
  constexpr double kWordsMoved = 1 + SplitTask::kParts;
  return model.launch_ns + kWordsMoved * Count(ElementCount(copy.modes)) *
                               Count(SizeOf(copy.type_a)) /
                               model.copy_bytes_per_ns();
}

}  // namespace tensord::core::cuda
