// How long the ways of the direct kernel take.
#pragma once

#include "core/backend/cpu/direct/direct_way.h"
#include "core/backend/cpu/gemm/gemm_strategy.h"

namespace tensord::core {

/// Predicted nanoseconds of the whole contraction by `way`, whose parts are
/// decided: the longer of products and memory traffic, plus packing, stores and
/// starting tasks. Uses bytes_per_ns and thread_count of `rates`; products go
/// by the tile's vectors.
double PredictDirectWay(const DirectWay& way, const GemmRates& rates);

}  // namespace tensord::core
