// How long the ways of the direct kernel take.
#pragma once

#include "core/backend/cpu/direct/direct_way.h"
#include "core/backend/cpu/gemm/gemm_strategy.h"

namespace tensord::core {

/// Predicted nanoseconds of `way`, whose parts are decided, for the whole
/// contraction: products or what memory moves, whichever takes longer, and
/// packing, stores and starting tasks beside them. Of `rates` it uses
/// bytes_per_ns and thread_count; products go by the tile's vectors.
double PredictDirectWay(const DirectWay& way, const GemmRates& rates);

}  // namespace tensord::core
