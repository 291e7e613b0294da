// Tiles of an operand in the compute type: loading, scaling, storing.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/backend/cpu/block/block_convert.h"
#include "core/backend/cpu/block/block_operators.h"
#include "core/backend/cpu/block/element_math.h"
#include "core/backend/cpu/block/tile_space.h"
#include "core/backend/cpu/block/transpose_block.h"
#include "core/base/element_type.h"
#include "core/ops/scalar.h"
#include "hwy/cache_control.h"

namespace tensord::core {

/// Bytes of one tile in the compute type: a few of them fit the first-level
/// cache together.
inline constexpr int64_t kTileBytes = 8 << 10;

template <typename T>
inline constexpr int64_t kTileElements = kTileBytes / sizeof(T);

/// How many rows ahead of their use short rows that lie apart are fetched.
inline constexpr int64_t kRowsAhead = 8;

/// Room for one tile.
template <typename T>
struct alignas(kCacheLineBytes) TileBuffer {
  T* data() { return reinterpret_cast<T*>(bytes); }
  std::byte bytes[kTileBytes];
};

/// Where a tile lies in one operand: element (i, j) at
/// offset + i * stride_i + j * stride_j. Its block has i fastest, without gaps.
struct TileLayout {
  int64_t offset;
  int64_t count_i, count_j;
  int64_t stride_i, stride_j;

  int64_t count() const { return count_i * count_j; }
  /// In memory as in the block.
  bool IsContiguous() const {
    return (stride_i == 1 || count_i == 1) &&
           (count_j == 1 || stride_j == count_i);
  }
};

/// An input: factor * unary(elements).
template <typename T>
class TileInput {
 public:
  struct Options {
    ElementType stored;
    ElementType element;  // that of T
    ComputeType compute;
    UnaryOperator unary;
    Scalar factor;
  };

  TileInput(const void* data, const Options& options)
      : data_(static_cast<const std::byte*>(data)),
        stored_bytes_(SizeOf(options.stored)),
        load_(FindLoad(options.stored, options.element)),
        unary_(FindUnary<T>(options.unary)),
        round_(FindRounding<T>(options.compute)),
        factor_(RoundTo(options.compute, FactorAs<T>(options.factor))),
        is_zero_(options.factor.IsZero()),
        scales_(!options.factor.IsOne()),
        is_plain_(!is_zero_ && !scales_ && unary_ == nullptr &&
                  options.stored == options.element) {}

  bool is_zero() const { return is_zero_; }

  /// The operand's elements from `offset` on if nothing changes them, or null.
  const T* Direct(int64_t offset) const {
    return is_plain_ ? reinterpret_cast<const T*>(data_) + offset : nullptr;
  }

  /// The terms of a tile: in `block`, or the operand's own elements if nothing
  /// changes them.
  const T* Load(const TileLayout& tile, T* block,
                TileBuffer<T>& scratch) const {
    if (is_zero_) {
      std::fill_n(block, tile.count(), T(0));
      return block;
    }
    const std::byte* const source = data_ + tile.offset * stored_bytes_;
    if (tile.IsContiguous()) {
      if (is_plain_) return reinterpret_cast<const T*>(source);
      load_(source, 1, tile.count(), block);
    } else {
      Gather(source, tile, block, scratch);
    }
    Apply(block, tile.count());
    return block;
  }

  /// What Load() does after loading.
  void Apply(T* block, int64_t count) const {
    if (unary_ != nullptr) {
      unary_(block, count);
      if (round_ != nullptr) round_(block, count);
    }
    if (scales_) {
      Scale(factor_, block, count);
      if (round_ != nullptr) round_(block, count);
    }
  }

 private:
  void Gather(const std::byte* source, const TileLayout& tile, T* block,
              TileBuffer<T>& scratch) const {
    const bool turns = tile.stride_j != 0 && tile.stride_j < tile.stride_i &&
                       tile.count_j > 1 && tile.count_i > 1;
    if (turns) {
      T* const rows = scratch.data();
      const int64_t row_bytes = tile.count_j * tile.stride_j * stored_bytes_;
      for (int64_t i = 0; i < tile.count_i; ++i) {
        const std::byte* const ahead =
            source + (i + kRowsAhead) * tile.stride_i * stored_bytes_;
        for (int64_t at = 0; at < row_bytes; at += kCacheLineBytes) {
          hwy::Prefetch(ahead + at);
        }
        load_(source + i * tile.stride_i * stored_bytes_, tile.stride_j,
              tile.count_j, rows + i * tile.count_j);
      }
      const int64_t size = sizeof(T);
      TransposePiece(size,
                     {.a = reinterpret_cast<const std::byte*>(rows),
                      .d = reinterpret_cast<std::byte*>(block),
                      .rows = tile.count_i,
                      .columns = tile.count_j,
                      .a_row_bytes = tile.count_j * size,
                      .d_row_bytes = tile.count_i * size},
                     Stores::kCached, 0);
      return;
    }
    for (int64_t j = 0; j < tile.count_j; ++j) {
      T* const row = block + j * tile.count_i;
      if (j > 0 && tile.stride_j == 0) {
        std::memcpy(static_cast<void*>(row), block, tile.count_i * sizeof(T));
      } else {
        load_(source + j * tile.stride_j * stored_bytes_, tile.stride_i,
              tile.count_i, row);
      }
    }
  }

  const std::byte* data_;
  int64_t stored_bytes_;
  LoadBlock load_;
  UnaryBlock<T> unary_;
  UnaryBlock<T> round_;
  T factor_;
  bool is_zero_;
  bool scales_;
  bool is_plain_;
};

/// The output.
template <typename T>
class TileOutput {
 public:
  TileOutput(void* data, ElementType element, ElementType stored, Stores stores)
      : data_(static_cast<std::byte*>(data)),
        stored_bytes_(SizeOf(stored)),
        store_(FindStore(element, stored)),
        converts_(element != stored),
        stores_(stores) {}

  /// Writes the elements of a tile.
  void Store(const T* block, const TileLayout& tile,
             TileBuffer<T>& scratch) const {
    std::byte* const target = data_ + tile.offset * stored_bytes_;
    if (stores_ == Stores::kStreaming && tile.stride_i == 1) {
      const auto* rows = reinterpret_cast<const std::byte*>(block);
      if (converts_) {
        store_(block, tile.count(), scratch.bytes, 1);
        rows = scratch.bytes;
      }
      TilePiece piece{.a = rows,
                      .d = target,
                      .rows = tile.count_j,
                      .columns = tile.count_i * stored_bytes_,
                      .a_row_bytes = tile.count_i * stored_bytes_,
                      .d_row_bytes = tile.stride_j * stored_bytes_};
      if (tile.IsContiguous()) {
        piece.columns *= piece.rows;
        piece.rows = 1;
      }
      CopyRows(piece, Stores::kStreaming, 0);
      return;
    }
    if (tile.IsContiguous()) {
      store_(block, tile.count(), target, 1);
      return;
    }
    for (int64_t j = 0; j < tile.count_j; ++j) {
      store_(block + j * tile.count_i, tile.count_i,
             target + j * tile.stride_j * stored_bytes_, tile.stride_i);
    }
  }

 private:
  std::byte* data_;
  int64_t stored_bytes_;
  StoreBlock store_;
  bool converts_;
  Stores stores_;
};

/// Cuts `modes` into tiles of at most `elements` elements. Loop 0 of the result
/// is mode 0. If an input is strided along mode 0, loop 1 is the mode along
/// which it is contiguous, so that tiles have runs on both sides.
///
/// `output` is the operand that leads `modes`.
template <size_t operand_count>
TileSpace<operand_count> CutIntoTiles(const LoopModes<operand_count>& modes,
                                      size_t output, int64_t elements) {
  const LoopMode<operand_count> single{1, {}};
  const LoopMode<operand_count>& inner = modes.empty() ? single : modes[0];
  size_t across = 0;
  for (size_t k = 0; k < operand_count && across == 0; ++k) {
    if (k == output || inner.strides[k] <= 1) continue;
    int64_t least = inner.strides[k];
    for (size_t m = 1; m < modes.size(); ++m) {
      if (modes[m].strides[k] > 0 && modes[m].strides[k] < least) {
        least = modes[m].strides[k];
        across = m;
      }
    }
  }
  constexpr int64_t kShortestRun = 32;
  int64_t count_i = std::min(inner.extent, elements);
  if (across != 0) {
    const int64_t room =
        std::max(kShortestRun, elements / modes[across].extent);
    count_i = std::min(inner.extent, std::min(room, elements));
  } else if (modes.size() > 1) {
    across = 1;
  }
  const LoopMode<operand_count>& outer = across == 0 ? single : modes[across];
  TileSpace<operand_count> space;
  space.Add(inner, std::max<int64_t>(count_i, 1));
  space.Add(outer, std::clamp<int64_t>(elements / count_i, 1, outer.extent));
  for (size_t m = 1; m < modes.size(); ++m) {
    if (m != across) space.Add(modes[m]);
  }
  return space;
}

}  // namespace tensord::core
