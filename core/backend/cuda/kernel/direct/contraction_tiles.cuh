// Contractions by tiles of d that whole blocks compute, out of shared memory.
#pragma once

#include <cuda_pipeline_primitives.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "core/backend/cuda/kernel/direct/direct_block.cuh"
#include "core/backend/cuda/kernel/shared_memory.cuh"

namespace tensord::core::cuda {

/// How tiles of a and b come into shared memory.
enum class TileTransfer {
  kThroughRegisters,  // rounded, converted or conjugated on the way
  kAsynchronous,      // as they are
};

/// What a block of the kernel for `tile` keeps in shared memory. Tiles of a and
/// b have several stages: one is multiplied while others come.
template <typename T, DirectTile tile, TileTransfer transfer>
struct TilesShared {
  static constexpr uint32_t kStages =
      transfer == TileTransfer::kAsynchronous ? 3 : 2;
  static constexpr DirectTileExtents kTile = ExtentsOf(tile, sizeof(T));
  using Element = T;
  /// Neighbours that a thread takes from shared memory at once.
  static constexpr uint32_t kVector = 16 / sizeof(T);
  /// Elements from one k to the next: aligned, and in different banks.
  static constexpr uint32_t kPitchA = kTile.m + kVector;
  static constexpr uint32_t kPitchB = kTile.n + kVector;
  static constexpr uint32_t kChunk = ContractionDirectTask::kChunk;
  static_assert(kChunk % kTile.k == 0);
  static constexpr uint32_t kThreads = ThreadsOf(tile, sizeof(T));

  alignas(16) T a[kStages][kTile.k * kPitchA];
  alignas(16) T b[kStages][kTile.k * kPitchB];
  // Offsets of a (b), in the order in which it is read, and of c and d in
  // d's; negative beyond the last.
  int64_t m[3][kTile.m];
  int64_t n[3][kTile.n];
  int64_t k[2][kChunk];  // of a and b
};

/// Begins to copy an element to shared memory, or to clear it unless `is_read`.
template <typename T>
__device__ __forceinline__ void CopyAsynchronously(T* to, const T* from,
                                                   bool is_read) {
  // 16 bytes go in halves: addresses may be multiples of 8 only.
  constexpr uint32_t kBytes = sizeof(T) < 8 ? sizeof(T) : 8;
#pragma unroll
  for (uint32_t at = 0; at < sizeof(T); at += kBytes) {
    __pipeline_memcpy_async(reinterpret_cast<unsigned char*>(to) + at,
                            reinterpret_cast<const unsigned char*>(from) + at,
                            kBytes, is_read ? 0 : kBytes);
  }
}

/// The same for the elements in 16 bytes.
template <typename T>
__device__ __forceinline__ void CopyVectorAsynchronously(T* to, const T* from,
                                                         bool is_read) {
  __pipeline_memcpy_async(to, from, 16, is_read ? 0 : 16);
}

/// Where an element of m (n), at `place` in the order of d's tile, is in the
/// order in which the input is read.
__device__ __forceinline__ uint32_t PlaceInReading(const DirectReading& reading,
                                                   uint32_t place) {
  const uint32_t in_block =
      place & ((1u << (reading.log_d + reading.log_input)) - 1);
  const uint32_t of_d = in_block & ((1u << reading.log_d) - 1);
  return place - in_block + (of_d << reading.log_input) +
         (in_block >> reading.log_d);
}

/// Where a result waits whose element of a is at `place` in the order in which
/// a is read. At most two threads meet in a bank, both when they write their
/// elements and when they read neighbours in d, for any blocks of both orders;
/// without blocks just one. Found by trying them all.
template <typename T>
__device__ __forceinline__ uint32_t StagedPlace(uint32_t place) {
  switch (sizeof(T)) {
    case 4: return place ^ (place >> 3) ^ (place >> 4);
    case 8: return place ^ (place >> 2) ^ (place >> 3);
    default: return place ^ (place >> 1) ^ (place >> 2) ^ (place >> 4);
  }
}

/// An operand on its way into shared memory: side is m or n.
template <typename Stored, uint32_t side, uint32_t depth, uint32_t threads>
class TileLoader {
 public:
  using T = ComputedIn<Stored>;

  /// `from` may be null when nothing is loaded.
  __device__ __forceinline__ TileLoader(const void* from, int64_t base,
                                        const DirectReading& reading,
                                        OperandRounding rounding,
                                        bool conjugates)
      : from_(static_cast<const Stored*>(from)),
        reading_(reading),
        rounding_(rounding),
        conjugates_(conjugates) {
    if (from_ != nullptr) from_ += base;
  }

  /// Begins to load the tile at the offsets of its rows and terms.
  __device__ __forceinline__ void Load(const int64_t* of_side,
                                       const int64_t* of_k) {
#pragma unroll
    for (uint32_t i = 0; i < kTurns; ++i) {
      if (!IsInside(i)) continue;
      const int64_t at_side = of_side[Side(i)], at_k = of_k[Term(i)];
      elements_[i] = (at_side | at_k) < 0 ? Stored{} : from_[at_side + at_k];
    }
  }

  /// Begins to copy that tile to `tile`, without conversion.
  __device__ __forceinline__ void Copy(const int64_t* of_side,
                                       const int64_t* of_k, T* tile,
                                       uint32_t pitch) const {
    if (reading_.by_vectors) {
      CopyVectors(of_side, of_k, tile, pitch);
      return;
    }
#pragma unroll
    for (uint32_t i = 0; i < kTurns; ++i) {
      if (!IsInside(i)) continue;
      const int64_t at_side = of_side[Side(i)], at_k = of_k[Term(i)];
      const bool is_read = (at_side | at_k) >= 0;
      CopyAsynchronously(tile + Term(i) * pitch + Side(i),
                         from_ + (is_read ? at_side + at_k : 0), is_read);
    }
  }

  /// Puts what was loaded into `tile`.
  __device__ __forceinline__ void Put(T* tile, uint32_t pitch) const {
#pragma unroll
    for (uint32_t i = 0; i < kTurns; ++i) {
      if (!IsInside(i)) continue;
      tile[Term(i) * pitch + Side(i)] =
          FactorOf(elements_[i], rounding_, conjugates_);
    }
  }

 private:
  static constexpr uint32_t kTurns = (side * depth + threads - 1) / threads;

  __device__ __forceinline__ void CopyVectors(const int64_t* of_side,
                                              const int64_t* of_k, T* tile,
                                              uint32_t pitch) const {
    constexpr uint32_t kVector = 16 / sizeof(T);
    constexpr uint32_t kVectorsOfSide = side / kVector;
    constexpr uint32_t kVectors = kVectorsOfSide * depth;
    static_assert(side % kVector == 0);
#pragma unroll
    for (uint32_t first = 0; first < kVectors; first += threads) {
      const uint32_t index = first + threadIdx.x;
      if (kVectors % threads != 0 && index >= kVectors) continue;
      const uint32_t place = index % kVectorsOfSide * kVector;
      const uint32_t term = index / kVectorsOfSide;
      const int64_t at_side = of_side[place], at_k = of_k[term];
      const bool is_read = (at_side | at_k) >= 0;
      CopyVectorAsynchronously(tile + term * pitch + place,
                               from_ + (is_read ? at_side + at_k : 0), is_read);
    }
  }

  static __device__ __forceinline__ uint32_t Index(uint32_t turn) {
    return turn * threads + threadIdx.x;
  }
  static __device__ __forceinline__ bool IsInside(uint32_t turn) {
    return side * depth % threads == 0 || Index(turn) < side * depth;
  }
  __device__ __forceinline__ uint32_t Side(uint32_t turn) const {
    return reading_.along_k ? Index(turn) / depth : Index(turn) % side;
  }
  __device__ __forceinline__ uint32_t Term(uint32_t turn) const {
    return reading_.along_k ? Index(turn) % depth : Index(turn) / side;
  }

  const Stored* from_;
  const DirectReading reading_;
  const OperandRounding rounding_;
  const bool conjugates_;
  Stored elements_[kTurns] = {};
};

/// Elements of a row in shared memory that belong to one thread: groups of
/// `vector` neighbours, `count` in all. The threads' groups alternate.
template <uint32_t vector, uint32_t count, uint32_t threads>
struct MicroTile {
  static_assert(count % vector == 0);

  /// Place in the row of the thread's `i`-th element.
  static __device__ __forceinline__ uint32_t At(uint32_t thread, uint32_t i) {
    return i / vector * (vector * threads) + thread * vector + i % vector;
  }

  template <typename T>
  static __device__ __forceinline__ void Load(const T* row, uint32_t thread,
                                              T (&elements)[count]) {
    struct alignas(16) Vector {
      T element[vector];
    };
#pragma unroll
    for (uint32_t i = 0; i < count; i += vector) {
      const auto group = *reinterpret_cast<const Vector*>(row + At(thread, i));
#pragma unroll
      for (uint32_t v = 0; v < vector; ++v) {
        elements[i + v] = group.element[v];
      }
    }
  }
};

/// The tile of d that a thread's share of a block computes: micro_m x micro_n
/// elements.
template <typename Shared>
struct ThreadTile {
  static constexpr DirectTileExtents kTile = Shared::kTile;
  static constexpr uint32_t kThreadsM = kTile.m / kTile.micro_m;
  static constexpr uint32_t kThreadsN = kTile.n / kTile.micro_n;
  static_assert(kThreadsM * kThreadsN == Shared::kThreads);
  using MicroM = MicroTile<Shared::kVector, kTile.micro_m, kThreadsM>;
  using MicroN = MicroTile<Shared::kVector, kTile.micro_n, kThreadsN>;
  using T = typename Shared::Element;

  /// Adds the products of the terms in one stage.
  __device__ __forceinline__ void Multiply(const T* a, const T* b) {
    // Unrolled as far as it goes without spilling registers.
#pragma unroll 2
    for (uint32_t term = 0; term < kTile.k; ++term) {
      T column[kTile.micro_m], row[kTile.micro_n];
      MicroM::Load(a + term * Shared::kPitchA, thread_m, column);
      MicroN::Load(b + term * Shared::kPitchB, thread_n, row);
#pragma unroll
      for (uint32_t i = 0; i < kTile.micro_m; ++i) {
#pragma unroll
        for (uint32_t j = 0; j < kTile.micro_n; ++j) {
          MultiplyAdd(column[i], row[j], sums[i][j]);
        }
      }
    }
  }

  const uint32_t thread_m = threadIdx.x % kThreadsM;
  const uint32_t thread_n = threadIdx.x / kThreadsM;
  T sums[kTile.micro_m][kTile.micro_n] = {};
};

/// Multiplies `terms` terms whose offsets are in shared memory; tiles come
/// through registers, one ahead.
template <typename Shared, typename LoaderA, typename LoaderB>
__device__ __forceinline__ void MultiplyThroughRegisters(
    Shared& shared, LoaderA& a, LoaderB& b, uint32_t terms,
    ThreadTile<Shared>& mine) {
  constexpr uint32_t kDepth = Shared::kTile.k;
  a.Load(shared.m[0], shared.k[0]);
  b.Load(shared.n[0], shared.k[1]);
  a.Put(shared.a[0], Shared::kPitchA);
  b.Put(shared.b[0], Shared::kPitchB);
  __syncthreads();
  uint32_t current = 0;
  for (uint32_t at = 0; at < terms; at += kDepth) {
    const uint32_t next = at + kDepth;
    if (next < terms) {
      a.Load(shared.m[0], shared.k[0] + next);
      b.Load(shared.n[0], shared.k[1] + next);
    }
    mine.Multiply(shared.a[current], shared.b[current]);
    if (next < terms) {
      current = 1 - current;
      a.Put(shared.a[current], Shared::kPitchA);
      b.Put(shared.b[current], Shared::kPitchB);
      __syncthreads();
    }
  }
}

/// The same; tiles are copied asynchronously, kStages - 1 ahead.
template <typename Shared, typename LoaderA, typename LoaderB>
__device__ __forceinline__ void MultiplyAsynchronously(
    Shared& shared, const LoaderA& a, const LoaderB& b, uint32_t terms,
    ThreadTile<Shared>& mine) {
  constexpr uint32_t kDepth = Shared::kTile.k;
  constexpr uint32_t kAhead = Shared::kStages - 1;
  const auto copy = [&](uint32_t stage, uint32_t at) {
    if (at < terms) {
      a.Copy(shared.m[0], shared.k[0] + at, shared.a[stage], Shared::kPitchA);
      b.Copy(shared.n[0], shared.k[1] + at, shared.b[stage], Shared::kPitchB);
    }
    __pipeline_commit();  // also when empty, so that waits can count
  };
#pragma unroll
  for (uint32_t stage = 0; stage < kAhead; ++stage) {
    copy(stage, stage * kDepth);
  }
  uint32_t current = 0, last = kAhead;
  for (uint32_t at = 0; at < terms; at += kDepth) {
    __pipeline_wait_prior(kAhead - 1);
    // All of this stage has come, and nobody reads the stage before any more:
    // that one is filled next.
    __syncthreads();
    copy(last, at + kAhead * kDepth);
    mine.Multiply(shared.a[current], shared.b[current]);
    current = current + 1 == Shared::kStages ? 0 : current + 1;
    last = last + 1 == Shared::kStages ? 0 : last + 1;
  }
}

template <typename Stored, DirectTile tile, TileTransfer transfer>
__global__ void __launch_bounds__(ThreadsOf(tile, sizeof(ComputedIn<Stored>)),
                                  sizeof(ComputedIn<Stored>) < 16 ? 2 : 1)
    Tiles(const ContractionDirectTask __grid_constant__ task) {
  using T = ComputedIn<Stored>;
  using Shared = TilesShared<T, tile, transfer>;
  using Mine = ThreadTile<Shared>;
  constexpr DirectTileExtents kTile = Shared::kTile;
  constexpr uint32_t kThreads = Shared::kThreads;
  Shared& shared = *static_cast<Shared*>(SharedMemory());

  const DirectBlock block(task, kTile);

  for (uint32_t i = threadIdx.x; i < kTile.m + kTile.n; i += kThreads) {
    const bool is_m = i < kTile.m;
    const uint32_t at = is_m ? i : i - kTile.m;
    const Offsets<3> offsets = OffsetsOf(
        is_m ? task.m : task.n, (is_m ? block.first_m : block.first_n) + at);
    const uint32_t read_at = is_m ? PlaceInReading(task.reading_a, at) : at;
    (is_m ? shared.m[0] : shared.n[0])[read_at] = offsets.at[0];
    (is_m ? shared.m[1] : shared.n[1])[at] = offsets.at[1];
    (is_m ? shared.m[2] : shared.n[2])[at] = offsets.at[2];
  }

  Mine mine;
  TileLoader<Stored, kTile.m, kTile.k, kThreads> a(
      task.formula.a, block.base.at[0], task.reading_a, task.formula.rounding_a,
      task.formula.conj_a);
  TileLoader<Stored, kTile.n, kTile.k, kThreads> b(
      task.formula.b, block.base.at[1], task.reading_b, task.formula.rounding_b,
      task.formula.conj_b);

  for (uint32_t chunk = block.first_k; chunk < block.end_k;
       chunk += Shared::kChunk) {
    __syncthreads();  // nobody reads the chunk before any more
    for (uint32_t i = threadIdx.x; i < Shared::kChunk; i += kThreads) {
      Offsets<2> offsets{{-1, -1}};
      if (chunk + i < block.end_k) offsets = OffsetsOf(task.k, chunk + i);
      shared.k[0][i] = offsets.at[0];
      shared.k[1][i] = offsets.at[1];
    }
    __syncthreads();
    const uint32_t terms = min(Shared::kChunk, block.end_k - chunk);
    if constexpr (transfer == TileTransfer::kAsynchronous) {
      MultiplyAsynchronously(shared, a, b, terms, mine);
    } else {
      MultiplyThroughRegisters(shared, a, b, terms, mine);
    }
  }

  // Through shared memory, kThreadsN columns at a time, so that neighbouring
  // threads write neighbours along m: there rows go back to the order of d. A
  // thread writes the same rows of all columns.
  T* const stage = &shared.a[0][0];
  constexpr uint32_t kThreadsN = Mine::kThreadsN;
  static_assert(kThreadsN * Shared::kPitchA <= 2 * kTile.k * Shared::kPitchA);
  static_assert((kTile.m & (kTile.m - 1)) == 0);  // StagedPlace()s stay inside
  constexpr uint32_t kVector = Shared::kVector;
  // As many threads as go round in both; they are neighbours along m.
  constexpr uint32_t kRowThreads =
      kThreads % kTile.m == 0 ? kTile.m : kThreads & (0u - kThreads);
  constexpr uint32_t kRows = kTile.m / kRowThreads;
  constexpr uint32_t kColumnsAtOnce = kThreads / kRowThreads;
  static_assert(kTile.m % kRowThreads == 0 && kThreadsN % kColumnsAtOnce == 0);
  struct Row {
    int64_t c, d;     // offsets
    uint32_t staged;  // place
  };
  const auto row_at = [&](uint32_t r) {
    const uint32_t at_m = r * kRowThreads + threadIdx.x % kRowThreads;
    return Row{shared.m[1][at_m], shared.m[2][at_m],
               StagedPlace<T>(PlaceInReading(task.reading_a, at_m))};
  };
  // Where registers are short, they are read again.
  constexpr bool kKeepsRows =
      kIsComplex<T> ? tile == DirectTile::kSquare : kRows <= 2;
  const SumStore<Stored> store = block.StoreOf<Stored>(task);
  __syncthreads();
  Row rows[kKeepsRows ? kRows : 1];
  if constexpr (kKeepsRows) {
#pragma unroll
    for (uint32_t r = 0; r < kRows; ++r) rows[r] = row_at(r);
  }
#pragma unroll
  for (uint32_t j = 0; j < kTile.micro_n; ++j) {
    __syncthreads();
#pragma unroll
    for (uint32_t i = 0; i < kTile.micro_m; i += kVector) {
      const uint32_t first = StagedPlace<T>(Mine::MicroM::At(mine.thread_m, i));
      // The elements of a vector all move by as much.
#pragma unroll
      for (uint32_t v = 0; v < kVector; ++v) {
        stage[mine.thread_n * Shared::kPitchA + (first ^ v)] =
            mine.sums[i + v][j];
      }
    }
    __syncthreads();
#pragma unroll
    for (uint32_t first = 0; first < kThreadsN; first += kColumnsAtOnce) {
      const uint32_t column = first + threadIdx.x / kRowThreads;
      const uint32_t at_n = Mine::MicroN::At(column, j);
      const int64_t column_d = shared.n[2][at_n];
      const int64_t column_c = shared.n[1][at_n];
      if (column_d < 0) continue;
#pragma unroll
      for (uint32_t r = 0; r < kRows; ++r) {
        const Row row = kKeepsRows ? rows[kKeepsRows ? r : 0] : row_at(r);
        if (row.d < 0) continue;
        store.Store(stage[column * Shared::kPitchA + row.staged],
                    row.c + column_c, row.d + column_d);
      }
    }
  }
}

}  // namespace tensord::core::cuda
