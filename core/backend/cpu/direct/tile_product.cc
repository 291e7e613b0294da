#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/backend/cpu/direct/tile_product.cc"
#include "core/backend/cpu/direct/tile_product.h"

#include <algorithm>
#include <cstddef>

#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h.
#include "core/backend/cpu/block/unroll.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::core::HWY_NAMESPACE {
namespace {

#if !HWY_HAVE_SCALABLE && HWY_TARGET != HWY_SCALAR

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
using Tag = hn::CappedTag<T, 64 / sizeof(T)>;
template <typename T>
inline constexpr int64_t kLanes = hn::MaxLanes(Tag<T>());

/// The sums of a tile as they become elements of d.
template <typename T>
struct Result {
  T alpha, beta;
};

/// d = alpha * sum + beta * c of one vector.
template <class D, typename T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> Finish(D tag, hn::Vec<D> sum, const Result<T>& result,
                             const T* c) {
  const auto scaled = hn::Mul(hn::Set(tag, result.alpha), sum);
  if (result.beta == 0) return scaled;
  return hn::MulAdd(hn::Set(tag, result.beta), hn::LoadU(tag, c), scaled);
}

/// `count` elements, by vectors of `lanes` and then of half as many.
template <int64_t lanes, typename T>
HWY_INLINE void FinishRun(const T* sums, int64_t count, const Result<T>& result,
                          const T* c, T* d) {
  const hn::CappedTag<T, lanes> tag;
  for (; count >= lanes; count -= lanes) {
    hn::StoreU(Finish(tag, hn::LoadU(tag, sums), result, c), tag, d);
    sums += lanes;
    c += lanes;
    d += lanes;
  }
  if constexpr (lanes > 1) {
    if (count > 0) FinishRun<lanes / 2>(sums, count, result, c, d);
  }
}

/// Copies `count` elements, past the caches where they are whole vectors that
/// are aligned in d.
template <typename T>
HWY_INLINE void StreamRun(const T* from, int64_t count, T* d) {
  const Tag<T> tag;
  if (reinterpret_cast<uintptr_t>(d) % (kLanes<T> * sizeof(T)) == 0) {
    for (; count >= kLanes<T>; count -= kLanes<T>) {
      hn::Stream(hn::LoadU(tag, from), tag, d);
      from += kLanes<T>;
      d += kLanes<T>;
    }
  }
  FinishRun<kLanes<T>>(from, count, Result<T>{1, 0}, from, d);
}

/// One tile.
template <typename T, size_t vectors, size_t columns>
HWY_INLINE void MultiplyTile(const BlockProduct<T>& block, const T* x,
                             const T* y, absl::Span<const RowRun> runs,
                             size_t first_column, size_t column_count) {
  constexpr int64_t kRows = vectors * kLanes<T>;
  const Tag<T> tag;
  hn::Vec<Tag<T>> sums[columns][vectors];
  Unroll<columns>([&](auto j) TENSORD_UNROLLED {
    Unroll<vectors>([&](auto v)
                        TENSORD_UNROLLED { sums[j][v] = hn::Zero(tag); });
  });
  for (int64_t term = 0; term < block.terms; ++term) {
    hn::Vec<Tag<T>> row[vectors];
    Unroll<vectors>([&](auto v) TENSORD_UNROLLED {
      row[v] = hn::Load(tag, x + v * kLanes<T>);
    });
    Unroll<columns>([&](auto j) TENSORD_UNROLLED {
      const auto column = hn::Set(tag, y[j]);
      Unroll<vectors>([&](auto v) TENSORD_UNROLLED {
        sums[j][v] = hn::MulAdd(row[v], column, sums[j][v]);
      });
    });
    x += kRows;
    y += columns;
  }

  const Result<T> result{block.alpha, block.beta};
  const int64_t* const column_c = block.columns_c.data() + first_column;
  const int64_t* const column_d = block.columns_d.data() + first_column;
  if (runs.size() == 1 && runs[0].count == kRows && column_count == columns) {
    // Whole vectors, straight out of registers.
    T* const d = block.d + runs[0].d;
    const T* const c = block.c + runs[0].c;
    Unroll<columns>([&](auto j) TENSORD_UNROLLED {
      T* const to = d + column_d[j];
      const T* const from = c + column_c[j];
      const bool streams =
          block.streams &&
          reinterpret_cast<uintptr_t>(to) % (kLanes<T> * sizeof(T)) == 0;
      Unroll<vectors>([&](auto v) TENSORD_UNROLLED {
        const auto value =
            Finish(tag, sums[j][v], result, from + v * kLanes<T>);
        if (streams) {
          hn::Stream(value, tag, to + v * kLanes<T>);
        } else {
          hn::StoreU(value, tag, to + v * kLanes<T>);
        }
      });
    });
    return;
  }
  if (runs.size() == 1 && runs[0].first == 0 && block.streams &&
      block.beta == 0) {
    // One after the other, each over what the one before has too much.
    const int64_t count = runs[0].count;
    alignas(64) T dense[(columns + 1) * kRows];
    Unroll<columns>([&](auto j) TENSORD_UNROLLED {
      Unroll<vectors>([&](auto v) TENSORD_UNROLLED {
        hn::StoreU(Finish(tag, sums[j][v], result, block.c), tag,
                   dense + static_cast<int64_t>(j) * count + v * kLanes<T>);
      });
    });
    for (size_t j = 0; j < column_count;) {
      size_t end = j + 1;
      while (end < column_count && column_d[end] == column_d[end - 1] + count) {
        ++end;
      }
      StreamRun(dense + static_cast<int64_t>(j) * count,
                static_cast<int64_t>(end - j) * count,
                block.d + runs[0].d + column_d[j]);
      j = end;
    }
    return;
  }
  alignas(64) T buffer[columns * kRows];
  Unroll<columns>([&](auto j) TENSORD_UNROLLED {
    Unroll<vectors>([&](auto v) TENSORD_UNROLLED {
      hn::Store(sums[j][v], tag, buffer + j * kRows + v * kLanes<T>);
    });
  });
  for (size_t j = 0; j < column_count; ++j) {
    for (const RowRun& run : runs) {
      FinishRun<kLanes<T>>(buffer + static_cast<int64_t>(j) * kRows + run.first,
                           run.count, result, block.c + run.c + column_c[j],
                           block.d + run.d + column_d[j]);
    }
  }
}

template <typename T, size_t vectors, size_t columns>
void MultiplyPanels(const BlockProduct<T>& block) {
  constexpr int64_t kRows = vectors * kLanes<T>;
  const size_t column_count = block.columns_d.size();
  const T* y = block.y;
  for (size_t column = 0; column < column_count; column += columns) {
    // Those that are missing are the last ones of a panel.
    size_t tile_columns = std::min(columns, column_count - column);
    while (block.columns_d[column + tile_columns - 1] ==
           BlockProduct<T>::kNoColumn) {
      --tile_columns;
    }
    const T* x = block.x;
    int64_t begin = 0;
    for (const int64_t end : block.run_ends) {
      MultiplyTile<T, vectors, columns>(
          block, x, y,
          block.runs.subspan(static_cast<size_t>(begin),
                             static_cast<size_t>(end - begin)),
          column, tile_columns);
      begin = end;
      x += kRows * block.terms;
    }
    y += static_cast<int64_t>(columns) * block.terms;
  }
}

// As many sums as registers hold beside a row and a column.
#undef TENSORD_TILES
#if HWY_TARGET <= HWY_AVX3
#define TENSORD_TILES(visit) visit(2, 12) visit(3, 8) visit(2, 8) visit(2, 4)
#else
#define TENSORD_TILES(visit) visit(2, 6) visit(3, 4) visit(2, 4) visit(1, 6)
#endif

template <typename T>
void MultiplyBlock(const BlockProduct<T>& block) {
  constexpr void (*kProducts[])(const BlockProduct<T>&) = {
#define TENSORD_PRODUCT(vectors, columns) MultiplyPanels<T, vectors, columns>,
      TENSORD_TILES(TENSORD_PRODUCT)
#undef TENSORD_PRODUCT
  };
  kProducts[block.shape](block);
}

template <typename T>
absl::Span<const TileShape> Shapes() {
  static constexpr TileShape kShapes[] = {
#define TENSORD_SHAPE(vectors, columns) \
  {vectors * kLanes<T>, columns, kLanes<T>},
      TENSORD_TILES(TENSORD_SHAPE)
#undef TENSORD_SHAPE
  };
  return kShapes;
}

#else

template <typename T>
void MultiplyBlock(const BlockProduct<T>&) {}

template <typename T>
absl::Span<const TileShape> Shapes() {
  return {};
}

#endif

void MultiplyFloat32(const BlockProduct<float>& block) { MultiplyBlock(block); }
void MultiplyFloat64(const BlockProduct<double>& block) {
  MultiplyBlock(block);
}
absl::Span<const TileShape> ShapesOf(ElementType type) {
  return type == ElementType::kFloat64 ? Shapes<double>() : Shapes<float>();
}

}  // namespace
}  // namespace tensord::core::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::core {

HWY_EXPORT(ShapesOf);
absl::Span<const TileShape> TileShapes(ElementType type) {
  return HWY_DYNAMIC_DISPATCH(ShapesOf)(type);
}

HWY_EXPORT(MultiplyFloat32);
void Multiply(const BlockProduct<float>& block) {
  HWY_DYNAMIC_DISPATCH(MultiplyFloat32)(block);
}

HWY_EXPORT(MultiplyFloat64);
void Multiply(const BlockProduct<double>& block) {
  HWY_DYNAMIC_DISPATCH(MultiplyFloat64)(block);
}

}  // namespace tensord::core
#endif  // HWY_ONCE
