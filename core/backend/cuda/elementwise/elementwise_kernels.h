// The element-wise kernels.
#pragma once

#include <memory>

#include "absl/strings/string_view.h"
#include "core/backend/cuda/gpu_model.h"
#include "core/backend/kernel.h"

namespace tensord::core::cuda {

/// "cuda.elementwise.tiled": an input's fastest mode is not that of d.
std::unique_ptr<const ElementwiseKernel> CreateTiledElementwise(
    const GpuModel& model);

/// "cuda.elementwise.fused": everything below 2^31 elements; by groups of 16
/// bytes where all operands are of one type.
std::unique_ptr<const ElementwiseKernel> CreateFusedElementwise(
    const GpuModel& model);

/// "cuda.elementwise.take": every TAKE below 2^31 elements, and nothing else;
/// words, where nothing changes the elements.
std::unique_ptr<const ElementwiseKernel> CreateTakeElementwise(
    const GpuModel& model);

/// "cuda.elementwise.reference": everything.
std::unique_ptr<const ElementwiseKernel> CreateReferenceElementwise(
    const GpuModel& model);

/// What a kernel of that name decides of a TAKE. Where no c is taken instead,
/// launches wait until it is known that b has indices of a alone.
///
/// Requires    problem.is_take(); with `by_words`, CheckCount(problem).ok().
/// Lifetime    `kernel` is a literal.
std::unique_ptr<const ElementwiseSolution> SolveTake(
    absl::string_view kernel, const ElementwiseProblem& problem, bool by_words,
    const GpuModel& model);

}  // namespace tensord::core::cuda
