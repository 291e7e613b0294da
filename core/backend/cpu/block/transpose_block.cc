#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/backend/cpu/block/transpose_block.cc"
#include "core/backend/cpu/block/transpose_block.h"

#include <algorithm>
#include <cstring>

#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h.
#include "core/backend/cpu/block/unroll.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::core::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// An element of 16 bytes.
struct Pair {
  uint64_t low, high;
};

template <typename T>
HWY_INLINE void TransposeScalar(const std::byte* a, int64_t a_row_bytes,
                                std::byte* d, int64_t d_row_bytes, int64_t rows,
                                int64_t columns) {
  for (int64_t column = 0; column < columns; ++column) {
    for (int64_t row = 0; row < rows; ++row) {
      std::memcpy(d + column * d_row_bytes + row * sizeof(T),
                  a + row * a_row_bytes + column * sizeof(T), sizeof(T));
    }
  }
}

#if !HWY_HAVE_SCALABLE && HWY_TARGET != HWY_SCALAR

/// Elements of a 16-byte block, within which vectors are shuffled.
template <typename T>
inline constexpr int kBlock = 16 / sizeof(T);

template <typename T>
struct LaneOf {
  using Type = T;
};
template <>
struct LaneOf<Pair> {
  using Type = uint64_t;
};
template <typename T>
using Lane = typename LaneOf<T>::Type;

/// A vector whose n-th block comes from `p + n * step`.
template <class D>
HWY_INLINE hn::Vec<D> LoadBlocks(D d, const std::byte* p, int64_t step) {
  using T = hn::TFromD<D>;
  if constexpr (sizeof(T) * hn::MaxLanes(D()) == 16) {
    return hn::LoadU(d, reinterpret_cast<const T*>(p));
  } else {
    const hn::Half<D> half;
    constexpr int64_t kBlocks = sizeof(T) * hn::MaxLanes(D()) / 32;
    return hn::Combine(d, LoadBlocks(half, p + kBlocks * step, step),
                       LoadBlocks(half, p, step));
  }
}

/// Transposes kBlock x kBlock elements within the blocks of v[0 .. kBlock).
template <typename T, int stage = 1, class D>
HWY_INLINE void TransposeBlocks(D d, hn::Vec<D>* v) {
  constexpr size_t kCount = kBlock<T>;
  if constexpr (stage < kCount) {
    hn::Vec<D> shuffled[kCount];
    Unroll<kCount / 2>([&](auto i) TENSORD_UNROLLED {
      shuffled[2 * i] = hn::InterleaveLower(d, v[i], v[i + kCount / 2]);
      shuffled[2 * i + 1] = hn::InterleaveUpper(d, v[i], v[i + kCount / 2]);
    });
    Unroll<kCount>([&](auto i) TENSORD_UNROLLED { v[i] = shuffled[i]; });
    TransposeBlocks<T, 2 * stage>(d, v);
  }
}

/// Transposes kBlock columns of as many rows as fill a cache line of d.
template <typename T, Stores stores>
HWY_INLINE void TransposeLines(const std::byte* a, int64_t a_row_bytes,
                               std::byte* d, int64_t d_row_bytes) {
  constexpr int kCount = kBlock<T>;
  const hn::CappedTag<Lane<T>, 64 / sizeof(Lane<T>)> tag;
  constexpr int kVectorBytes = hn::MaxLanes(tag) * sizeof(Lane<T>);
  constexpr int kVectors = 64 / kVectorBytes;
  constexpr int kRows = kVectorBytes / sizeof(T);
  hn::Vec<decltype(tag)> v[kVectors][kCount];
  Unroll<kVectors>([&](auto k) TENSORD_UNROLLED {
    Unroll<kCount>([&](auto i) TENSORD_UNROLLED {
      v[k][i] = LoadBlocks(tag, a + (k * kRows + i) * a_row_bytes,
                           kCount * a_row_bytes);
    });
    TransposeBlocks<T>(tag, v[k]);
  });
  Unroll<kCount>([&](auto i) TENSORD_UNROLLED {
    Unroll<kVectors>([&](auto k) TENSORD_UNROLLED {
      auto* const to =
          reinterpret_cast<Lane<T>*>(d + i * d_row_bytes + k * kVectorBytes);
      if constexpr (stores == Stores::kStreaming) {
        hn::Stream(v[k][i], tag, to);
      } else {
        hn::StoreU(v[k][i], tag, to);
      }
    });
  });
}

/// Transposes kBlock columns of kBlock rows.
template <typename T>
HWY_INLINE void TransposeSquare(const std::byte* a, int64_t a_row_bytes,
                                std::byte* d, int64_t d_row_bytes) {
  constexpr int kCount = kBlock<T>;
  const hn::FixedTag<Lane<T>, 16 / sizeof(Lane<T>)> tag;
  hn::Vec<decltype(tag)> v[kCount];
  Unroll<kCount>([&](auto i) TENSORD_UNROLLED {
    v[i] = LoadBlocks(tag, a + i * a_row_bytes, 0);
  });
  TransposeBlocks<T>(tag, v);
  Unroll<kCount>([&](auto i) TENSORD_UNROLLED {
    hn::StoreU(v[i], tag, reinterpret_cast<Lane<T>*>(d + i * d_row_bytes));
  });
}

template <typename T, Stores stores>
HWY_INLINE void Transpose(const TilePiece& piece, int64_t prefetch_bytes) {
  constexpr int64_t kSize = sizeof(T);
  constexpr int64_t kLine = kCacheLineBytes / kSize;
  constexpr int64_t kCount = kBlock<T>;
  const int64_t columns = piece.columns / kCount * kCount;
  for (int64_t row = 0; row < piece.rows;) {
    const std::byte* const a = piece.a + row * piece.a_row_bytes;
    std::byte* const d = piece.d + row * kSize;
    const int64_t left = piece.rows - row;
    const int64_t rows = left >= kLine ? kLine : std::min(left, kCount);
    if (rows == kLine) {
      // Each block of columns fetches a quarter of the rows that far ahead.
      constexpr int64_t kAhead = kLine * 16 / kCacheLineBytes;
      for (int64_t column = 0; column < columns; column += kCount) {
        if (prefetch_bytes != 0) {
          const int64_t quarter = column / kCount % 4;
          const std::byte* ahead = a + (column - quarter * kCount) * kSize +
                                   quarter * kAhead * piece.a_row_bytes +
                                   prefetch_bytes;
          Unroll<kAhead>([&](auto) TENSORD_UNROLLED {
            hwy::Prefetch(ahead);
            ahead += piece.a_row_bytes;
          });
        }
        TransposeLines<T, stores>(a + column * kSize, piece.a_row_bytes,
                                  d + column * piece.d_row_bytes,
                                  piece.d_row_bytes);
      }
    } else if (rows == kCount) {
      for (int64_t column = 0; column < columns; column += kCount) {
        TransposeSquare<T>(a + column * kSize, piece.a_row_bytes,
                           d + column * piece.d_row_bytes, piece.d_row_bytes);
      }
    } else {
      TransposeScalar<T>(a, piece.a_row_bytes, d, piece.d_row_bytes, rows,
                         columns);
    }
    TransposeScalar<T>(a + columns * kSize, piece.a_row_bytes,
                       d + columns * piece.d_row_bytes, piece.d_row_bytes, rows,
                       piece.columns - columns);
    row += rows;
  }
}

#else

template <typename T, Stores stores>
HWY_INLINE void Transpose(const TilePiece& piece, int64_t) {
  TransposeScalar<T>(piece.a, piece.a_row_bytes, piece.d, piece.d_row_bytes,
                     piece.rows, piece.columns);
}

#endif

template <Stores stores>
HWY_INLINE void TransposeOfSize(int64_t element_bytes, const TilePiece& piece,
                                int64_t prefetch_bytes) {
  switch (element_bytes) {
    case 1: return Transpose<uint8_t, stores>(piece, prefetch_bytes);
    case 2: return Transpose<uint16_t, stores>(piece, prefetch_bytes);
    case 4: return Transpose<uint32_t, stores>(piece, prefetch_bytes);
    case 8: return Transpose<uint64_t, stores>(piece, prefetch_bytes);
    default: return Transpose<Pair, stores>(piece, prefetch_bytes);
  }
}

void TransposeAnySize(int64_t element_bytes, const TilePiece& piece,
                      Stores stores, int64_t prefetch_bytes) {
  if (stores == Stores::kStreaming) {
    TransposeOfSize<Stores::kStreaming>(element_bytes, piece, prefetch_bytes);
  } else {
    TransposeOfSize<Stores::kCached>(element_bytes, piece, prefetch_bytes);
  }
}

/// Copies whole lines. With kStreaming d is aligned to them.
template <Stores stores>
HWY_INLINE void CopyLines(const std::byte* a, std::byte* d, int64_t bytes) {
  const hn::CappedTag<uint8_t, kCacheLineBytes> tag;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(tag));
  for (int64_t at = 0; at < bytes; at += lanes) {
    const auto v = hn::LoadU(tag, reinterpret_cast<const uint8_t*>(a + at));
    if constexpr (stores == Stores::kStreaming) {
      hn::Stream(v, tag, reinterpret_cast<uint8_t*>(d + at));
    } else {
      hn::StoreU(v, tag, reinterpret_cast<uint8_t*>(d + at));
    }
  }
}

/// Streams the whole lines of d and stores what is left at both ends.
HWY_INLINE void StreamRow(const std::byte* a, std::byte* d, int64_t bytes) {
  const int64_t head = std::min<int64_t>(
      bytes, -reinterpret_cast<intptr_t>(d) & (kCacheLineBytes - 1));
  const int64_t lines = (bytes - head) & -kCacheLineBytes;
  if (head > 0) std::memcpy(d, a, head);
  CopyLines<Stores::kStreaming>(a + head, d + head, lines);
  const int64_t tail = bytes - head - lines;
  if (tail > 0) std::memcpy(d + head + lines, a + head + lines, tail);
}

/// Copies rows of `line_count` lines, all aligned in d.
template <int line_count>
HWY_INLINE void StreamShortRows(const TilePiece& piece,
                                int64_t prefetch_bytes) {
  const std::byte* a = piece.a;
  std::byte* d = piece.d;
  for (int64_t row = 0; row < piece.rows; ++row) {
    if (prefetch_bytes != 0) {
      Unroll<line_count>([&](auto i) TENSORD_UNROLLED {
        hwy::Prefetch(a + prefetch_bytes + i * kCacheLineBytes);
      });
    }
    CopyLines<Stores::kStreaming>(a, d, line_count * kCacheLineBytes);
    a += piece.a_row_bytes;
    d += piece.d_row_bytes;
  }
}

HWY_INLINE void StreamRows(const TilePiece& piece, int64_t prefetch_bytes) {
  for (int64_t row = 0; row < piece.rows; ++row) {
    const std::byte* const a = piece.a + row * piece.a_row_bytes;
    if (prefetch_bytes != 0) {
      for (int64_t at = 0; at < piece.columns; at += kCacheLineBytes) {
        hwy::Prefetch(a + prefetch_bytes + at);
      }
    }
    StreamRow(a, piece.d + row * piece.d_row_bytes, piece.columns);
  }
}

void CopyAllRows(const TilePiece& piece, Stores stores,
                 int64_t prefetch_bytes) {
  if (stores == Stores::kStreaming) {
    const bool aligned =
        (reinterpret_cast<uintptr_t>(piece.d) | piece.d_row_bytes) %
            kCacheLineBytes ==
        0;
    switch (aligned ? piece.columns : 0) {
      case 1 * kCacheLineBytes:
        return StreamShortRows<1>(piece, prefetch_bytes);
      case 2 * kCacheLineBytes:
        return StreamShortRows<2>(piece, prefetch_bytes);
      case 3 * kCacheLineBytes:
        return StreamShortRows<3>(piece, prefetch_bytes);
      case 4 * kCacheLineBytes:
        return StreamShortRows<4>(piece, prefetch_bytes);
      default: return StreamRows(piece, prefetch_bytes);
    }
  }
  const int64_t lines = piece.columns & -kCacheLineBytes;
  for (int64_t row = 0; row < piece.rows; ++row) {
    const std::byte* const a = piece.a + row * piece.a_row_bytes;
    std::byte* const d = piece.d + row * piece.d_row_bytes;
    CopyLines<Stores::kCached>(a, d, lines);
    if (lines < piece.columns) {
      std::memcpy(d + lines, a + lines, piece.columns - lines);
    }
  }
}

}  // namespace
}  // namespace tensord::core::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::core {

HWY_EXPORT(TransposeAnySize);
void TransposePiece(int64_t element_bytes, const TilePiece& piece,
                    Stores stores, int64_t prefetch_bytes) {
  HWY_DYNAMIC_DISPATCH(TransposeAnySize)
  (element_bytes, piece, stores, prefetch_bytes);
}

HWY_EXPORT(CopyAllRows);
void CopyRows(const TilePiece& piece, Stores stores, int64_t prefetch_bytes) {
  HWY_DYNAMIC_DISPATCH(CopyAllRows)(piece, stores, prefetch_bytes);
}

void FlushStreamingStores() { hwy::FlushStream(); }

}  // namespace tensord::core
#endif  // HWY_ONCE
