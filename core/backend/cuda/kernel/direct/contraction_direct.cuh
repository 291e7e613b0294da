// QueueContractionDirect(), and QueueContractionThreads() with it, to be
// instantiated by type.
#pragma once

#include <type_traits>

#include "core/backend/cuda/kernel/direct/contraction_deep.cuh"
#include "core/backend/cuda/kernel/direct/contraction_threads.cuh"
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
                  .threads = Shared::kThreads,
                  .shared_bytes = sizeof(Shared)};
  return Launch(grid, stream, &Tiles<Stored, tile, transfer>, task);
}

/// Whether operands are multiplied as they are stored, but for their type.
inline bool IsPlain(const ContractionFormula& formula) {
  return formula.rounding_a == OperandRounding::kNone &&
         formula.rounding_b == OperandRounding::kNone && !formula.conj_a &&
         !formula.conj_b;
}

template <typename Stored, DirectTile tile>
cudaError_t QueueTiles(const ContractionDirectTask& task, cudaStream_t stream) {
  using enum TileTransfer;
  constexpr bool kConverts = !std::is_same_v<Stored, ComputedIn<Stored>>;
  if constexpr (kConverts) {
    return QueueTilesBy<Stored, tile, kThroughRegisters>(task, stream);
  } else if constexpr (std::is_integral_v<Stored>) {
    return QueueTilesBy<Stored, tile, kAsynchronous>(task, stream);
  } else {
    return IsPlain(task.formula)
               ? QueueTilesBy<Stored, tile, kAsynchronous>(task, stream)
               : QueueTilesBy<Stored, tile, kThroughRegisters>(task, stream);
  }
}

template <typename Stored>
cudaError_t QueueDeep(const ContractionDirectTask& task, cudaStream_t stream) {
  using T = ComputedIn<Stored>;
  constexpr uint32_t kThreads = ThreadsOf(DirectTile::kDeep, sizeof(T));
  constexpr DirectTileExtents kTile = ExtentsOf(DirectTile::kDeep, sizeof(T));
  const Grid grid{.blocks = BlocksOf(task),
                  .threads = kThreads,
                  .shared_bytes = kDeepSums<T> * kThreads * int64_t{sizeof(T)}};
  if (task.n.space.count > 1) {
    return Launch(grid, stream, &Deep<Stored, kTile.m, kTile.n>, task);
  }
  return task.m.space.count > 1
             ? Launch(grid, stream, &Deep<Stored, kTile.m, 1>, task)
             : Launch(grid, stream, &Deep<Stored, 1, 1>, task);
}

template <typename Stored>
cudaError_t QueueContractionDirect(const ContractionDirectTask& task,
                                   cudaStream_t stream) {
  switch (task.tile) {
    case DirectTile::kDeep: return QueueDeep<Stored>(task, stream);
    case DirectTile::kLarge:
      if constexpr (sizeof(ComputedIn<Stored>) == 4 && sizeof(Stored) > 1) {
        return QueueTiles<Stored, DirectTile::kLarge>(task, stream);
      }
      break;
    case DirectTile::kSquare:
      return QueueTiles<Stored, DirectTile::kSquare>(task, stream);
    case DirectTile::kTall:
      return QueueTiles<Stored, DirectTile::kTall>(task, stream);
    case DirectTile::kTall24:
      if constexpr (!std::is_integral_v<Stored>) {
        return QueueTiles<Stored, DirectTile::kTall24>(task, stream);
      }
      break;
  }
  return cudaErrorInvalidValue;
}

}  // namespace tensord::core::cuda

#define TENSORD_CONTRACTIONS_OF(Stored)                 \
  template cudaError_t QueueContractionDirect<Stored>(  \
      const ContractionDirectTask&, cudaStream_t);      \
  template cudaError_t QueueContractionThreads<Stored>( \
      const ContractionThreadsTask&, cudaStream_t)
