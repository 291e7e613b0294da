// Moving tiles and rows of elements, whatever their type, by whole cache lines.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tensord::core {

inline constexpr int64_t kCacheLineBytes = 64;

/// Results of at least this size are streamed: they exceed what caches keep.
inline constexpr int64_t kStreamingBytes = 16 << 20;

/// An element of 16 bytes.
struct TwoWords {
  uint64_t words[2];
};

/// Calls visit(zero) with a zero of the type that holds `element_bytes` bytes.
template <typename Visitor>
decltype(auto) VisitWord(int64_t element_bytes, Visitor&& visit) {
  switch (element_bytes) {
    case 1: return visit(uint8_t{});
    case 2: return visit(uint16_t{});
    case 4: return visit(uint32_t{});
    case 8: return visit(uint64_t{});
    default: return visit(TwoWords{});
  }
}

/// How results are written.
enum class Stores : uint8_t {
  kCached,
  /// Past the caches, line by line, without reading the lines first. Other
  /// threads see the data after FlushStreamingStores().
  kStreaming,
};

/// A two-dimensional piece of a permutation. Rows of `a` are contiguous.
struct TilePiece {
  const std::byte* a;
  std::byte* d;
  int64_t rows;
  int64_t columns;
  int64_t a_row_bytes;  // from one row of a to the next
  int64_t d_row_bytes;  // likewise of d, whose rows may be a's columns
};

/// Makes a's columns the rows of d:
///
///   d[column * d_row_bytes + row * element_bytes] =
///       a[row * a_row_bytes + column * element_bytes]
///
/// Unless `prefetch_bytes` is 0, fetches the lines that far behind those of `a`
/// into the cache; they need not exist.
/// Requires  element_bytes in {1, 2, 4, 8, 16}; with kStreaming d and
///           d_row_bytes are multiples of kCacheLineBytes.
/// Aliasing  a and d do not overlap.
void TransposePiece(int64_t element_bytes, const TilePiece& piece,
                    Stores stores, int64_t prefetch_bytes);

/// Copies rows of `columns` bytes each; rows stay rows.
///
/// Reads ahead as TransposePiece().
/// Aliasing  a and d do not overlap.
void CopyRows(const TilePiece& piece, Stores stores, int64_t prefetch_bytes);

/// Makes this thread's streaming stores visible to other threads.
void FlushStreamingStores();

}  // namespace tensord::core
