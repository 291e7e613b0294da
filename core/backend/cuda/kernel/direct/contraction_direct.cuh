// QueueContractionDirect(), to be instantiated by type.
#pragma once

#include <type_traits>

#include "core/backend/cuda/kernel/direct/contraction_deep.cuh"
#include "core/backend/cuda/kernel/direct/contraction_tiles.cuh"
#include "core/backend/cuda/kernel/launch.cuh"

namespace tensord::core::cuda {

inline uint32_t BlocksOf(const ContractionDirectTask& task) {
  return task.tiles_m.divisor * task.tiles_n.divisor *
         task.split_count.divisor * task.batch.count;
}

template <typename Stored, DirectTile tile, TileTransfer transfer>
cudaError_t QueueTilesBy(const ContractionDirectTask& task,
                         cudaStream_t stream) {
  using Shared = TilesShared<ComputedIn<Stored>, tile, transfer>;
  const Grid grid{.blocks = BlocksOf(task),
                  .threads = ContractionDirectTask::kThreads,
                  .shared_bytes = sizeof(Shared)};
  return Launch(grid, stream, &Tiles<Stored, tile, transfer>, task);
}

template <typename Stored, DirectTile tile>
cudaError_t QueueTiles(const ContractionDirectTask& task, cudaStream_t stream) {
  if constexpr (std::is_same_v<Stored, ComputedIn<Stored>>) {
    const ContractionFormula& formula = task.formula;
    if (formula.rounding_a == OperandRounding::kNone &&
        formula.rounding_b == OperandRounding::kNone && !formula.conj_a &&
        !formula.conj_b) {
      return QueueTilesBy<Stored, tile, TileTransfer::kAsynchronous>(task,
                                                                     stream);
    }
  }
  return QueueTilesBy<Stored, tile, TileTransfer::kThroughRegisters>(task,
                                                                     stream);
}

template <typename Stored>
cudaError_t QueueContractionDirect(const ContractionDirectTask& task,
                                   cudaStream_t stream) {
  switch (task.tile) {
    case DirectTile::kDeep: {
      using T = ComputedIn<Stored>;
      constexpr uint32_t kThreads = ContractionDirectTask::kThreads;
      const Grid grid{
          .blocks = BlocksOf(task),
          .threads = kThreads,
          .shared_bytes = kDeepSums<T> * kThreads * int64_t{sizeof(T)}};
      return Launch(grid, stream, &Deep<Stored>, task);
    }
    case DirectTile::kLarge:
      if constexpr (sizeof(ComputedIn<Stored>) == 4) {
        return QueueTiles<Stored, DirectTile::kLarge>(task, stream);
      }
      break;
    case DirectTile::kSquare:
      return QueueTiles<Stored, DirectTile::kSquare>(task, stream);
    case DirectTile::kTall:
      return QueueTiles<Stored, DirectTile::kTall>(task, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace tensord::core::cuda
